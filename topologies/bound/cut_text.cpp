#include "topologies/bound/cut_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "sim/base/quantity.hpp"

namespace ringsim {

std::string without_numbers(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (c < '0' || c > '9')
      result += c;
    else if (result.empty() || result.back() != '*')
      result += '*';
  }
  return result;
}

namespace {

constexpr std::size_t most_named = 3;

std::string list_in_words(const std::vector<std::string>& names) {
  if (names.size() == 1) return names.front();
  const std::size_t named = names.size() <= most_named ? names.size() - 1 : most_named - 1;
  const std::vector<std::string> first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(named));
  const std::size_t rest = names.size() - named;
  return fmt::format("{} and {}", fmt::join(first, ", "), rest == 1 ? names.back() : fmt::format("{} more", rest));
}

/// The ranks' devices of a set: whole hosts as "node1", others by name.
std::string set_in_words(const Topology& topology, const Wires& wires, const std::vector<bool>& set) {
  std::map<std::uint32_t, std::pair<int, int>> hosts;  // ranks in the set, ranks
  for (std::size_t v = 0; v < wires.vertices.size(); ++v) {
    const Wires::Vertex& vertex = wires.vertices[v];
    if (vertex.ranks == 0 || !vertex.host) continue;
    hosts[*vertex.host].first += set[v] ? 1 : 0;
    ++hosts[*vertex.host].second;
  }
  std::vector<std::string> names;
  for (std::size_t v = 0; v < wires.vertices.size(); ++v) {
    const Wires::Vertex& vertex = wires.vertices[v];
    if (!set[v] || vertex.ranks == 0) continue;
    const bool whole = vertex.host && hosts[*vertex.host].first == hosts[*vertex.host].second;
    std::string name = whole ? fmt::format("node{}", *vertex.host) : topology.node(vertex.node).name;
    if (names.empty() || names.back() != name) names.push_back(std::move(name));
  }
  return list_in_words(names);
}

std::int64_t ranks_of(const Wires& wires, const std::vector<bool>& set) {
  std::int64_t n = 0;
  for (std::size_t v = 0; v < set.size(); ++v) n += set[v] ? wires.vertices[v].ranks : 0;
  return n;
}

}  // namespace

std::string links_in_words(const Topology& topology, const std::vector<LinkId>& links,
                           const std::vector<Bandwidth>& rates) {
  struct Group {
    std::string name;
    std::int64_t rate = 0;
    int count = 0;
  };
  std::vector<Group> groups;
  for (const LinkId id : links) {
    const Link& link = topology.link(id);
    const std::string own = topology.resource_name(link.resource), like = without_numbers(own);
    auto found = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& group) { return without_numbers(group.name) == like; });
    if (found == groups.end()) found = groups.insert(groups.end(), {own});
    found->rate += (rates.empty() ? link.bandwidth : rates[id.value]).bytes_per_second;
    if (++found->count > 1) found->name = like;
  }
  std::vector<std::string> texts;
  for (const Group& group : groups)
    texts.push_back(group.count == 1
                        ? fmt::format("{} ({})", group.name, format(Bandwidth{group.rate}))
                        : fmt::format("{} ({} links, {})", group.name, group.count, format(Bandwidth{group.rate})));
  return texts.empty() ? "no links" : list_in_words(texts);
}

std::string cut_in_words(const Topology& topology, const Wires& wires, const Limit& limit, const std::string& amount,
                         const std::vector<Bandwidth>& rates) {
  if (limit.sets.empty()) return "nothing has to move";
  const std::string over = "over " + links_in_words(topology, links_leaving(wires, limit.sets), rates);
  if (limit.sets.size() == 1) {
    std::vector<bool> receives = limit.sets.front();
    receives.flip();
    const bool enters = ranks_of(wires, receives) <= ranks_of(wires, limit.sets.front());
    return fmt::format("{} must {} {} {}", amount, enters ? "enter" : "leave",
                       set_in_words(topology, wires, enters ? receives : limit.sets.front()), over);
  }
  std::vector<std::vector<bool>> sets = limit.sets;
  if (sets.size() == 2) {
    std::stable_sort(sets.begin(), sets.end(),
                     [&](const auto& a, const auto& b) { return ranks_of(wires, a) < ranks_of(wires, b); });
    return fmt::format("{} must cross between {} and the other ranks {}", amount,
                       set_in_words(topology, wires, sets.front()), over);
  }
  std::vector<std::string> names;
  for (const std::vector<bool>& set : sets) names.push_back(set_in_words(topology, wires, set));
  return fmt::format("{} must send {} in all, {}", list_in_words(names), amount, over);
}

}  // namespace ringsim
