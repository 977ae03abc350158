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

using Widths = std::vector<std::vector<std::int64_t>>;  // [from][to] bytes/s; 0: no path

Widths widths_of(const Topology& topology, std::span<const NodeId> ranks, const Transport& transport) {
  Routes routes(topology, transport);
  Widths widths(ranks.size(), std::vector<std::int64_t>(ranks.size()));
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    for (std::size_t j = 0; j < ranks.size(); ++j) {
      if (i == j) continue;
      try {
        const Path path = routes.find(ranks[i], ranks[j]);
        const std::int64_t width = narrowest(topology, path).bytes_per_second;
        widths[i][j] = path.legs.size() > 1 ? width / 2 : width;
      } catch (const InputError&) {
        // No path: no hop. If no ring can do without it, that is said.
      }
    }
  }
  return widths;
}

std::int64_t narrowest_hop(const Widths& widths, const std::vector<std::size_t>& order) {
  std::int64_t least = widths[order.back()][order.front()];
  for (std::size_t i = 1; i < order.size(); ++i) least = std::min(least, widths[order[i - 1]][order[i]]);
  return least;
}

/// A closed tour over hops of at least a width.
class Tour {
 public:
  Tour(const Widths& widths, std::int64_t least) : n_(widths.size()), next_(n_), visited_(n_) {
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t d = 1; d < n_; ++d)  // from the next rank on: of equals the given order
        if (const std::size_t j = (i + d) % n_; widths[i][j] >= least) next_[i].push_back(j);
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
  best.narrowest = {narrowest_hop(widths, best.order)};
  std::set<std::int64_t, std::greater<>> wider;  // than the order given
  for (const auto& row : widths)
    for (const std::int64_t width : row)
      if (width > best.narrowest.bytes_per_second) wider.insert(width);
  for (const std::int64_t width : wider) {
    Tour tour(widths, width);
    if (tour.find()) {
      best.order = tour.order();
      best.narrowest = {narrowest_hop(widths, best.order)};
      break;
    }
    best.is_best = best.is_best && !tour.was_broken_off();
  }
  if (best.narrowest.bytes_per_second == 0)
    throw InputError("", "best_ring: expected a closed path through all ranks, found none");
  return best;
}

}  // namespace ringsim
