#include "topologies/search/ring_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

constexpr int most_tries = 200'000;

/// How well a hop or a ring does: wider comes first, then one without relays or staging, whose latency is lower.
struct Rank {
  std::int64_t width = 0;  // bytes/s; 0: no path
  bool is_direct = false;
  auto operator<=>(const Rank&) const = default;
};
using Widths = std::vector<std::vector<Rank>>;  // [from][to]

Widths widths_of(const Topology& topology, std::span<const NodeId> ranks, const Transport& transport) {
  Routes routes(topology, transport);
  Widths widths(ranks.size(), std::vector<Rank>(ranks.size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t j = 0; j < ranks.size(); ++j) {
      if (i == j) continue;
      try {
        const Path path = routes.find(ranks[i], ranks[j]);
        const std::int64_t width = narrowest(topology, path).bytes_per_second;
        const bool is_direct = path.legs.size() == 1;
        widths[i][j] = {is_direct ? width : width / 2, is_direct};
      } catch (const InputError&) {
        // No path: no hop. If no ring can do without it, that is said.
      }
    }
  }
  return widths;
}

/// A ring's narrowest hop, and whether none is relayed or staged.
Rank rank_of(const Widths& widths, const std::vector<std::size_t>& order) {
  Rank least = widths[order.back()][order.front()];
  const auto take = [&](const Rank& hop) {
    least = {std::min(least.width, hop.width), least.is_direct && hop.is_direct};
  };
  for (std::size_t i = 1; i < order.size(); ++i) take(widths[order[i - 1]][order[i]]);
  return least;
}

/// A closed tour over hops of at least a width, without relays and staging if `least` is direct.
class Tour {
 public:
  Tour(const Widths& widths, Rank least) : n_(widths.size()), next_(n_), visited_(n_) {
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t d = 1; d < n_; ++d)  // from the next rank on: of equals the given order
        if (const std::size_t j = (i + d) % n_;
            widths[i][j].width >= least.width && (widths[i][j].is_direct || !least.is_direct))
          next_[i].push_back(j);
  }

  bool find() {
    order_ = {0};
    visited_[0] = true;
    return extend();
  }
  const std::vector<std::size_t>& order() const { return order_; }
  bool was_broken_off() const { return tries_ >= most_tries; }

 private:
  std::size_t ways_on(std::size_t rank) const {
    return static_cast<std::size_t>(
        std::count_if(next_[rank].begin(), next_[rank].end(), [&](std::size_t next) { return !visited_[next]; }));
  }

  bool extend() {
    const std::size_t here = order_.back();
    if (order_.size() == n_)
      return std::find(next_[here].begin(), next_[here].end(), std::size_t{0}) != next_[here].end();
    std::vector<std::pair<std::size_t, std::size_t>> choices;  // ways on from there, which
    for (const std::size_t next : next_[here])
      if (!visited_[next]) choices.emplace_back(ways_on(next), next);
    std::stable_sort(choices.begin(), choices.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& choice : choices) {
      if (++tries_ >= most_tries) return false;
      order_.push_back(choice.second);
      visited_[choice.second] = true;
      if (extend()) return true;
      visited_[choice.second] = false;
      order_.pop_back();
    }
    return false;
  }

  std::size_t n_;
  std::vector<std::vector<std::size_t>> next_;  // [rank] whom it may go on to
  std::vector<bool> visited_;
  std::vector<std::size_t> order_;
  int tries_ = 0;
};

}  // namespace

RingOrder best_ring(const Topology& topology, std::span<const NodeId> ranks, const Transport& transport) {
  if (ranks.size() > most_in_best_ring)
    throw InputError("",
                     fmt::format("best_ring: expected at most {} ranks, found {}", most_in_best_ring, ranks.size()));
  RingOrder best{std::vector<std::size_t>(ranks.size()), {0}, true};
  std::iota(best.order.begin(), best.order.end(), std::size_t{0});
  if (ranks.size() < 2) return best;
  const Widths widths = widths_of(topology, ranks, transport);
  const Rank given = rank_of(widths, best.order);
  best.narrowest = {given.width};
  std::set<Rank, std::greater<>> better;  // than the order given
  for (const auto& row : widths)
    for (const Rank& hop : row)
      for (const bool is_direct : {true, false})
        if (const Rank rank{hop.width, is_direct}; hop.width > 0 && rank > given) better.insert(rank);
  std::int64_t widest_left = 0;  // of those that were not ruled out
  for (const Rank& rank : better) {
    Tour tour(widths, rank);
    if (tour.find()) {
      best.order = tour.order();
      best.narrowest = {rank_of(widths, best.order).width};
      break;
    }
    if (tour.was_broken_off()) widest_left = std::max(widest_left, rank.width);
  }
  best.is_best = widest_left <= best.narrowest.bytes_per_second;
  if (best.narrowest.bytes_per_second == 0)
    throw InputError("", "best_ring: expected a closed path through all ranks, found none");
  return best;
}

}  // namespace ringsim
