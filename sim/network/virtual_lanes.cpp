#include "sim/network/virtual_lanes.hpp"

#include <algorithm>
#include <numeric>

#include "sim/base/error.hpp"

namespace ringsim {

VirtualLanes::VirtualLanes(std::size_t n_links, int most) : n_links_(n_links), most_(static_cast<std::size_t>(most)) {
  ensure(most >= 1, "there is a lane");
}

std::uint32_t VirtualLanes::place(std::span<const Dependency> route) {
  for (std::uint32_t lane = 0; lane < most_; ++lane) {
    if (lane == lanes_.size()) lanes_.emplace_back(n_links_);
    if (lanes_[lane].add(route)) return lane;
  }
  return static_cast<std::uint32_t>(most_ - 1);
}

VirtualLanes::Lane::Lane(std::size_t n_links) : place_(n_links), out_(n_links), in_(n_links), seen_(n_links, false) {
  std::iota(place_.begin(), place_.end(), 0U);
}

bool VirtualLanes::Lane::add(std::span<const Dependency> route) {
  std::vector<Dependency> added;
  for (const auto& [from, to] : route) {
    const auto& known = out_[from.value];
    if (std::find(known.begin(), known.end(), to.value) != known.end()) continue;
    if (add(from.value, to.value)) {
      added.emplace_back(from, to);
      continue;
    }
    for (; !added.empty(); added.pop_back()) {  // the order stays good without them
      out_[added.back().first.value].pop_back();
      in_[added.back().second.value].pop_back();
    }
    return false;
  }
  return true;
}

// If `to` comes before `from` in the order, the predecessors of `from` and the successors of `to` between the two
// change places.
bool VirtualLanes::Lane::add(std::uint32_t from, std::uint32_t to) {
  const std::uint32_t low = place_[to], high = place_[from];
  if (low <= high) {
    std::vector<std::uint32_t> after, before;
    if (!collect(to, out_, low, high, from, after)) return false;
    collect(from, in_, low, high, UINT32_MAX, before);
    std::vector<std::uint32_t> links, places;
    for (auto* group : {&before, &after}) {
      std::sort(group->begin(), group->end(), [&](auto a, auto b) { return place_[a] < place_[b]; });
      links.insert(links.end(), group->begin(), group->end());
    }
    for (const std::uint32_t link : links) places.push_back(place_[link]);
    std::sort(places.begin(), places.end());
    for (std::size_t i = 0; i < links.size(); ++i) place_[links[i]] = places[i];
  }
  out_[from].push_back(to);
  in_[to].push_back(from);
  return true;
}

// All that can be reached from `start` between two places of the order; false if that is `forbidden`.
bool VirtualLanes::Lane::collect(std::uint32_t start, const std::vector<std::vector<std::uint32_t>>& next,
                                 std::uint32_t low, std::uint32_t high, std::uint32_t forbidden,
                                 std::vector<std::uint32_t>& found) {
  found.assign(1, start);
  seen_[start] = true;
  bool is_free = start != forbidden;
  for (std::size_t i = 0; i < found.size() && is_free; ++i) {
    for (const std::uint32_t link : next[found[i]]) {
      if (seen_[link] || place_[link] < low || place_[link] > high) continue;
      is_free = is_free && link != forbidden;
      seen_[link] = true;
      found.push_back(link);
    }
  }
  for (const std::uint32_t link : found) seen_[link] = false;
  return is_free;
}

}  // namespace ringsim
