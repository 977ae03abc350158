#include "scenarios/predict/link_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "topologies/bound/cut_text.hpp"
#include "topologies/machines/scale_links.hpp"

namespace ringsim {

BottleneckReport bottleneck_report(const Topology& topology, const Bottleneck& found, Picoseconds duration) {
  BottleneckReport result;
  const auto total = static_cast<double>(duration.count());
  result.delay = static_cast<double>(found.delay.count()) / total;
  if (found.resource != no_resource) {
    result.link = topology.resource_name(found.resource);
    result.kind = to_string(topology.link(topology.resource(found.resource).link).kind);
    result.busy = static_cast<double>(found.busy.count()) / total;
  }
  result.latency = static_cast<double>(found.latency.count()) / total;
  return result;
}

std::optional<Bytes> most_leaving_a_host(const Topology& topology, const Timeline& timeline) {
  std::map<std::uint32_t, Bytes> leaving;  // [host]
  for (std::size_t i = 0; i < topology.n_links(); ++i) {
    const Link& link = topology.links()[i];
    const auto host = topology.node(link.from).host;
    if (host && !topology.node(link.to).host) leaving[*host] += timeline.link_bytes[i];
  }
  if (leaving.size() < 2) return std::nullopt;
  return std::max_element(leaving.begin(), leaving.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

std::vector<LinkGroup> link_groups(const Topology& topology, const Timeline& timeline) {
  // By resource: the two directions of a half-duplex cable are one.
  std::vector<Bytes> carried(topology.n_resources());
  for (std::size_t i = 0; i < topology.n_links(); ++i)
    carried[topology.links()[i].resource.value] += timeline.link_bytes[i];
  std::map<std::string, LinkGroup> found;
  const double seconds = static_cast<double>(timeline.duration().count()) / 1e12;
  for (std::uint32_t r = 0; r < carried.size(); ++r) {
    if (carried[r].count == 0) continue;
    const Resource& resource = topology.resource({r});
    const std::string name = without_numbers(topology.resource_name({r}));
    LinkGroup& group = found[name];
    group.links = name;
    group.kind = to_string(topology.link(resource.link).kind);
    group.link_class = class_name(topology, topology.link(resource.link));
    ++group.count;
    group.most = std::max(group.most, carried[r]);
    const double utilization =
        static_cast<double>(carried[r].count) / (static_cast<double>(resource.bandwidth.bytes_per_second) * seconds);
    if (utilization <= group.utilization) continue;
    group.utilization = utilization;
    group.busiest = topology.resource_name({r});
    group.through_busiest = carried[r];
  }
  std::vector<LinkGroup> result;
  for (auto& [name, group] : found) result.push_back(std::move(group));
  std::stable_sort(result.begin(), result.end(),
                   [](const LinkGroup& a, const LinkGroup& b) { return a.utilization > b.utilization; });
  return result;
}

namespace {
/// Chosen: links are as busy as others if their utilizations differ by no more than this. At the begin and the end of a
/// collective messages cross only some of the links of their path, so equally loaded links differ a little.
constexpr double as_busy = 0.01;
}  // namespace

std::vector<std::string> classes_as_busy(const Prediction& prediction, const std::set<std::string>& own) {
  double most = 1;
  for (const LinkGroup& group : prediction.links)
    if (own.contains(group.link_class)) {
      most = group.utilization;
      break;  // groups are in order of utilization
    }
  std::vector<std::string> found;
  for (const LinkGroup& group : prediction.links)
    if (!own.contains(group.link_class) && group.utilization >= most - as_busy &&
        std::find(found.begin(), found.end(), group.link_class) == found.end())
      found.push_back(group.link_class);
  return found;
}

std::string as_busy_text(const std::vector<std::string>& classes) {
  if (classes.empty()) return "";
  std::vector<std::string> words;
  for (const std::string& each : classes)
    if (each != to_string(LinkKind::channel)) words.push_back(each);
  if (!words.empty()) words.back() += " links";
  if (words.size() < classes.size()) words.emplace_back("thread blocks of the GPUs");
  const std::string last = words.back();
  words.pop_back();
  return fmt::format("{}{}{} are at least as busy", fmt::join(words, ", "), words.empty() ? "" : " and ", last);
}

}  // namespace ringsim
