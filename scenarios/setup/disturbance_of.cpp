// The disturbance of a scenario, with the links and nodes of its topology in place of their names.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "scenarios/setup/blaming.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim {

std::vector<LinkId> links_named(const Topology& topology, const std::string& name, const std::string& pointer) {
  std::vector<LinkId> links;
  const auto node = topology.find(name);
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    const Link& link = topology.link({l});
    if (link.leads_to_itself()) continue;  // what a device does within itself
    if (node ? link.from == *node || link.to == *node : topology.link_name({l}) == name) links.push_back({l});
  }
  if (!links.empty()) return links;
  throw InputError(
      pointer, fmt::format("expected a link, FROM -> TO, or the name of a node that has links, found \"{}\"", name),
      topology.n_links() == 0
          ? "the topology has no links, because a single GPU needs none"
          : fmt::format("such as \"{}\"; `ringsim topology show` lists nodes and links", topology.link_name({0})));
}

namespace {

/// One change for each link, to the share of its new bandwidth that kernels reach, or to a share of what they reach.
void add_shares(const LinkChange& change, const Topology& topology, const Topology& as_built,
                std::vector<LinkChange>& changes) {
  for (const LinkId link : change.links) {
    LinkChange one = change;
    one.links = {link};
    const double reached = static_cast<double>(topology.link(link).bandwidth.bytes_per_second) /
                           static_cast<double>(as_built.link(link).bandwidth.bytes_per_second);
    one.reached = reached;
    if (change.to == LinkChange::To::bandwidth) {
      const double rate = std::round(static_cast<double>(change.bandwidth.bytes_per_second) * reached);
      one.bandwidth = {std::max<std::int64_t>(1, static_cast<std::int64_t>(rate))};
    }
    changes.push_back(std::move(one));
  }
}

/// `as_built`: the topology before kernels, of which a library's reach a share of each link, if there is one. A fault's
/// bandwidth is the link's own, of which they reach as large a share.
std::vector<LinkChange> changes_in(const Topology& topology, const Topology* as_built,
                                   const std::vector<FaultSpec>& faults) {
  std::vector<LinkChange> changes;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const std::string pointer = fmt::format("/{}", i);
    LinkChange change = faults[i].change;
    change.links = links_named(topology, faults[i].link, pointer + "/link");
    for (const LinkId link : change.links) {
      const Bandwidth nominal = (as_built != nullptr ? *as_built : topology).link(link).bandwidth;
      if (change.to == LinkChange::To::bandwidth && nominal < change.bandwidth)
        throw InputError(pointer + "/bandwidth",
                         fmt::format("expected at most the bandwidth of {} without faults, {}, found {}",
                                     topology.link_name(link), format(nominal), format(change.bandwidth)),
                         "a fault can only reduce bandwidth; set a higher bandwidth in the topology");
    }
    const bool slows = change.to == LinkChange::To::bandwidth || change.to == LinkChange::To::share;
    if (slows && as_built != nullptr)
      add_shares(change, topology, *as_built, changes);
    else
      changes.push_back(change);
    if (!faults[i].until) continue;
    change.to = LinkChange::To::restored;
    change.at = *faults[i].until;
    changes.push_back(std::move(change));
  }
  return changes;
}

}  // namespace

std::vector<LinkChange> faults_of(const Topology& topology, const Scenario& scenario) {
  std::optional<Topology> as_built;
  if (!scenario.faults.empty() && !calls_of(scenario).empty()) as_built = topology_without_kernels(scenario);
  return blaming(scenario, "/faults",
                 [&] { return changes_in(topology, as_built ? &*as_built : nullptr, scenario.faults); });
}

Topology topology_at_start(const Topology& topology, const Scenario& scenario) {
  std::map<std::uint32_t, Bandwidth> left;  // [resource] the last change counts
  for (const LinkChange& change : faults_of(topology, scenario)) {
    if (change.at > SimTime{}) continue;
    for (const LinkId link : change.links) {
      const ResourceId resource = topology.link(link).resource;
      left[resource.value] =
          change.to == LinkChange::To::down ? Bandwidth{1} : change.of(topology.resource(resource).bandwidth);
    }
  }
  if (left.empty()) return topology;
  return topology.with_links([&](Link& link) {
    if (const auto found = left.find(link.resource.value); found != left.end()) link.bandwidth = found->second;
  });
}

Disturbance disturbance_of(const Topology& topology, const Scenario& scenario,
                           const std::vector<std::vector<Actor>>& actors,
                           const std::vector<Disturbance::Lanes>& lanes) {
  Disturbance out;
  out.links = faults_of(topology, scenario);
  const auto actor = [&](const RankDelay& delay) { return actors[delay.job][static_cast<std::size_t>(delay.rank)]; };
  const auto lanes_of = [&](const RankDelay& delay) { return lanes.empty() ? Disturbance::Lanes{} : lanes[delay.job]; };
  for (const RankDelay& each : scenario.late) {
    const Picoseconds start = scenario.jobs[each.job].start;
    if (each.time <= start) continue;  // it begins with the others
    // The start of a collective is a task on its ranks' own lanes, that of a training on a lane of its own.
    const bool trains = scenario.training_of(each.job) != nullptr;
    out.late.push_back({actor(each), SimTime{trains ? each.time : each.time - start}, lanes_of(each)});
  }
  for (const RankDelay& each : scenario.slow) out.slow.push_back({actor(each), each.time, lanes_of(each)});
  out.jitter = scenario.jitter;
  for (std::size_t i = 0; i < scenario.background.size(); ++i) {
    const BackgroundSpec& spec = scenario.background[i];
    Disturbance::Background message = spec.message;
    blaming(scenario, fmt::format("/disturbance/background/{}", i), [&] {
      message.from = gpu_named(topology, spec.from, "/from");
      message.to = gpu_named(topology, spec.to, "/to");
      if (message.from == message.to)
        throw InputError("/to", fmt::format("expected a GPU other than the sender, found \"{}\"", spec.to));
      return 0;
    });
    out.background.push_back(message);
  }
  return out;
}

}  // namespace ringsim
