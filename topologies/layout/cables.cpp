#include "topologies/layout/cables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "sim/base/quantity.hpp"

namespace ringsim::layout {

namespace {

std::string short_rate(double bytes_per_second) {
  if (bytes_per_second < 1e9) return fmt::format("{:.4g} MB/s", bytes_per_second / 1e6);
  return fmt::format("{:.4g} GB/s", bytes_per_second / 1e9);
}

/// "6 x 25 GB/s", "25 GB/s + 2 x 50 GB/s".
std::string rate_of(const Topology& topology, const std::vector<LinkId>& links) {
  std::map<double, int> rates;
  for (const LinkId id : links) {
    const Link& link = topology.link(id);
    const int n = std::max<int>(link.joined, 1);
    rates[static_cast<double>(link.bandwidth.bytes_per_second) / n] += n;
  }
  std::string text;
  for (const auto& [rate, n] : rates)
    text += (text.empty() ? "" : " + ") + (n > 1 ? fmt::format("{} x ", n) : std::string()) + short_rate(rate);
  return text;
}

std::string rate_of(const Topology& topology, const Cable& cable) {
  const std::string there = rate_of(topology, cable.there), back = rate_of(topology, cable.back);
  if (there.empty() || back.empty())
    return fmt::format("{}{} to {} only", there, back, topology.node(there.empty() ? cable.a : cable.b).name);
  if (there != back) return fmt::format("{} to {}, {} back", there, topology.node(cable.b).name, back);
  return topology.resource(topology.link(cable.there.front()).resource).shared ? there + " shared" : there;
}

}  // namespace

std::vector<Cable> cables_of(const Topology& topology) {
  std::map<std::pair<NodeId, NodeId>, Cable> found;
  for (std::uint32_t i = 0; i < topology.n_links(); ++i) {
    const Link& link = topology.link({i});
    if (link.leads_to_itself()) continue;
    const auto ends = std::minmax(link.from, link.to);
    Cable& cable = found[{ends.first, ends.second}];
    cable.a = ends.first;
    cable.b = ends.second;
    cable.kind = link.kind;
    (link.from == cable.a ? cable.there : cable.back).push_back({i});
  }
  std::vector<Cable> cables;
  for (auto& [ends, cable] : found) {
    cable.rate = rate_of(topology, cable);
    cables.push_back(std::move(cable));
  }
  return cables;
}

std::vector<std::size_t> likeness_of(const Topology& topology, const LinkMarks& marks) {
  using End = std::tuple<bool, NodeKind, LinkKind, std::int64_t, std::int64_t, int, std::string>;
  std::map<std::pair<NodeKind, std::vector<End>>, std::size_t> numbers;
  std::vector<std::size_t> likeness;
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    std::vector<End> ends;
    for (const bool leaves : {true, false})
      for (const LinkId id : leaves ? topology.links_from({n}) : topology.links_to({n})) {
        const Link& link = topology.link(id);
        const auto mark = marks.find(id);
        ends.emplace_back(leaves, topology.node(leaves ? link.to : link.from).kind, link.kind,
                          link.bandwidth.bytes_per_second, link.latency.count(), link.joined,
                          mark == marks.end() ? std::string() : mark->second);
      }
    std::sort(ends.begin(), ends.end());
    likeness.push_back(numbers.try_emplace({topology.node({n}).kind, std::move(ends)}, numbers.size()).first->second);
  }
  return likeness;
}

}  // namespace ringsim::layout
