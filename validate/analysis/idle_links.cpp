#include "validate/analysis/idle_links.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/predict/link_report.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/bound/cut_text.hpp"

namespace ringsim {

namespace {

constexpr std::size_t most_groups_named = 3;
constexpr double hardly_anything = 0.001;  // of the time

/// What a change does to links, by the names of like links: "node*.nic* -> leaf*".
struct ChangedLinks {
  std::set<std::string> groups;
  std::optional<LinkId> port;  ///< the first that leaves a host
  bool latencies = false;      ///< some have another latency
};

/// The links of each group, as bandwidths and latencies in ascending order.
std::map<std::string, std::vector<std::pair<Bandwidth, Picoseconds>>> figures_of_groups(const Topology& topology) {
  std::map<std::string, std::vector<std::pair<Bandwidth, Picoseconds>>> groups;
  for (const Link& link : topology.links())
    groups[without_numbers(topology.resource_name(link.resource))].emplace_back(link.bandwidth, link.latency);
  for (auto& [group, figures] : groups) std::sort(figures.begin(), figures.end());
  return groups;
}

/// Links of fabrics that join the same hosts by other switches: groups with more links, or fewer, have changed.
std::optional<ChangedLinks> changed_fabric(const Topology& before, const Topology& after) {
  if (before.ranks().size() != after.ranks().size() || before.hosts().size() != after.hosts().size())
    return std::nullopt;
  const auto old_groups = figures_of_groups(before);
  const auto new_groups = figures_of_groups(after);
  ChangedLinks found;
  for (const auto& [group, figures] : old_groups) {
    const auto now = new_groups.find(group);
    if (now != new_groups.end() && now->second.size() == figures.size() && now->second != figures) return std::nullopt;
    if (now == new_groups.end() || now->second != figures) found.groups.insert(group);
  }
  for (const auto& [group, figures] : new_groups)
    if (!old_groups.contains(group)) found.groups.insert(group);
  return found.groups.empty() ? std::nullopt : std::optional(found);
}

/// Nothing if the two have other hosts, or only some of like links change: results have like links together.
std::optional<ChangedLinks> changed_links(const Topology& before, const Topology& after) {
  if (before.n_links() != after.n_links() || before.n_nodes() != after.n_nodes()) return changed_fabric(before, after);
  ChangedLinks found;
  std::set<std::string> unchanged;
  for (std::uint32_t i = 0; i < before.n_links(); ++i) {
    const Link &old_link = before.link({i}), &new_link = after.link({i});
    if (before.link_name({i}) != after.link_name({i})) return std::nullopt;
    if (!found.port && before.node(old_link.from).host && !before.node(old_link.to).host) found.port = LinkId{i};
    const bool changes = old_link.bandwidth != new_link.bandwidth || old_link.latency != new_link.latency;
    (changes ? found.groups : unchanged).insert(without_numbers(before.resource_name(old_link.resource)));
    found.latencies = found.latencies || old_link.latency != new_link.latency;
  }
  const bool partly = std::any_of(found.groups.begin(), found.groups.end(),
                                  [&](const std::string& group) { return unchanged.contains(group); });
  return partly ? std::nullopt : std::optional(found);
}

std::string names(const std::set<std::string>& groups) {
  std::vector<std::string> first;
  for (const std::string& group : groups)
    if (first.size() < most_groups_named) first.push_back(group);
  std::string text = fmt::format("{}", fmt::join(first, ", "));
  if (groups.size() > most_groups_named) text += fmt::format(" and {} more groups", groups.size() - most_groups_named);
  return text;
}

/// A share of a critical path, or the utilization of a link. Prints 100 % only if the share is all of it.
std::string share_of_time(double share) {
  const double percent = 100 * share;
  if (percent > 0 && percent < 0.1) return "less than 0.1 %";
  return fmt::format("{:.1f} %", percent > 99.9 && percent < 100 ? 99.9 : percent);
}

/// What has most of the critical path besides links of these groups: "node*.pcie* -> node*.nic* has 99.8 % of it".
std::string holder(const Prediction& run, const std::set<std::string>& but) {
  for (const ExplainedPart& part : run.explanation->parts) {
    if (part.cause == "link" && but.contains(part.links)) continue;
    const std::string what = part.cause == "link" && !part.links.empty() ? part.links
                             : part.task.empty()                         ? part.cause
                                                 : fmt::format("{} ({})", part.task, part.cause);
    return fmt::format("{} takes {} of it", what, share_of_time(microseconds(part.time) / microseconds(run.time)));
  }
  return "";
}

/// The highest share of what a link of the groups could have carried in all of the run's time; nothing if none carried
/// any. LinkGroup counts from the first step to the last: without the launch, and what a GPU does after the last step.
std::optional<double> utilization_of(const Prediction& run, const std::set<std::string>& groups) {
  std::optional<double> most;
  for (const LinkGroup& group : run.links)
    if (groups.contains(group.links)) most = std::max(most.value_or(0), group.utilization);
  if (!most || !run.explanation) return most;
  double off = 0;
  for (const ExplainedPart& part : run.explanation->parts)
    if (part.cause == "launch" || part.cause == "own pass") off += microseconds(part.time) / microseconds(run.time);
  return *most * (1 - off);
}

}  // namespace

std::string why_links_are_idle(const Scenario& scenario, const Prediction& before, const Scenario& changed,
                               const Prediction& after, bool of_topology) {
  ensure(before.explanation.has_value(), "a change is compared with a run that was explained");
  if (before.time.count() == 0) return "";
  const Topology topology = topology_of(scenario);
  const std::optional<ChangedLinks> links = changed_links(topology, topology_of(changed));
  if (!links) return "";
  if (links->groups.empty()) {
    if (!of_topology || before.time != after.time || !links->port) return "";
    return fmt::format(
        "every link keeps its bandwidth and latency; the slower of an adapter and its cable sets the rate ({} has {})",
        topology.link_name(*links->port), format(topology.link(*links->port).bandwidth));
  }
  const std::string which = names(links->groups);
  const std::optional<double> busy = utilization_of(before, links->groups);
  if (!busy && !utilization_of(after, links->groups))
    return fmt::format("no message of the collective uses a link that it changes ({})", which);
  double on_path = 0;
  for (const ExplainedPart& part : before.explanation->parts)
    if ((part.cause == "link" && links->groups.contains(part.links)) || (part.cause == "latency" && links->latencies))
      on_path += microseconds(part.time) / microseconds(before.time);
  const std::string other = holder(before, links->groups);
  if (on_path < hardly_anything && !other.empty())
    return fmt::format("the links that it changes ({}) {} the critical path, although their utilization is {}; {}",
                       which, on_path == 0 ? "are not on" : fmt::format("take {} of", share_of_time(on_path)),
                       share_of_time(busy.value_or(0)), other);
  if (!scenario.faults.empty()) return "";  // a fault may fix the rate of a link
  std::set<std::string> classes;
  for (const LinkGroup& group : before.links)
    if (links->groups.contains(group.links)) classes.insert(group.link_class);
  const std::string others = as_busy_text(classes_as_busy(before, classes));
  if (before.time != after.time && others.empty()) return "";
  return fmt::format("the links that it changes ({}) take {} of the critical path, but {} and then limit the time",
                     which, share_of_time(on_path),
                     others.empty() ? "other links or messages take equally long" : others);
}

}  // namespace ringsim
