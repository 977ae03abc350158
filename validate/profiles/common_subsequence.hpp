// A longest common subsequence: what two lists have in common, in order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace ringsim::profiles {

/// A longest common subsequence of two lists of `n` and `m` things, as pairs of indices in order, by Myers' greedy
/// algorithm (Algorithmica 1 (1986), 251). equal(i, j): may thing i of the first list be thing j of the second? Work
/// grows with n + m times the number of differences. Empty, and `given_up` true, if more than `most_differences` things
/// have no partner.
template <class Equal>
std::vector<std::pair<std::size_t, std::size_t>> common_subsequence(std::size_t n, std::size_t m, Equal equal,
                                                                    std::size_t most_differences, bool& given_up) {
  // A path through the grid of both lists: right leaves out a thing of the first, down one of the second, a diagonal
  // step pairs two. history[d][k + d]: how far right d left-out things lead on the diagonal k = x - y; -1: not in the
  // grid.
  using Row = std::vector<std::int64_t>;
  const auto end_x = static_cast<std::int64_t>(n), end_y = static_cast<std::int64_t>(m);
  const auto most = static_cast<std::int64_t>(std::min(n + m, most_differences));
  std::vector<Row> history;
  struct Move {
    std::int64_t x;
    bool down;
  };
  // Where diagonal k is reached with one more thing left out than `before`.
  const auto move_to = [&](const Row& before, std::int64_t k) {
    const auto d = static_cast<std::int64_t>(before.size() / 2);
    const auto reached = [&](std::int64_t diagonal) {
      return diagonal < -d || diagonal > d ? std::int64_t{-1} : before[static_cast<std::size_t>(diagonal + d)];
    };
    const std::int64_t left = reached(k - 1), above = reached(k + 1);
    const std::int64_t right = left >= 0 && left < end_x ? left + 1 : -1;
    const std::int64_t down = above >= 0 && above - k <= end_y ? above : -1;
    return right > down ? Move{right, false} : Move{down, true};
  };
  bool found = false;
  for (std::int64_t d = 0; d <= most && !found; ++d) {
    Row row(static_cast<std::size_t>(2 * d + 1), -1);
    for (std::int64_t k = -d; k <= d && !found; k += 2) {
      std::int64_t x = d == 0 ? 0 : move_to(history.back(), k).x;
      if (x < 0) continue;
      std::int64_t y = x - k;
      while (x < end_x && y < end_y && equal(static_cast<std::size_t>(x), static_cast<std::size_t>(y))) ++x, ++y;
      row[static_cast<std::size_t>(k + d)] = x;
      found = x == end_x && y == end_y;
    }
    history.push_back(std::move(row));
  }
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  given_up = !found;
  if (given_up) return pairs;
  std::int64_t x = end_x, y = end_y;
  for (std::size_t d = history.size(); d-- > 0;) {
    const Move move = d == 0 ? Move{0, false} : move_to(history[d - 1], x - y);
    while (x > move.x) pairs.emplace_back(static_cast<std::size_t>(--x), static_cast<std::size_t>(--y));
    if (move.down)
      --y;
    else
      --x;
  }
  std::reverse(pairs.begin(), pairs.end());
  return pairs;
}

}  // namespace ringsim::profiles
