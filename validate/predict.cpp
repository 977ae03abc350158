#include "validate/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "algorithms/stored_schedule.hpp"
#include "scenarios/json_text.hpp"
#include "sim/error.hpp"
#include "sim/run.hpp"

namespace ringsim {

namespace {

std::vector<NodeId> places(const Topology& topology, const Scenario& scenario) {
  std::vector<NodeId> result;
  if (scenario.ranks.empty()) result.assign(topology.ranks().begin(), topology.ranks().end());
  for (std::size_t i = 0; i < scenario.ranks.size(); ++i) {
    const auto node = topology.find(scenario.ranks[i]);
    if (!node || topology.node(*node).kind != NodeKind::gpu)
      throw InputError(
          fmt::format("/ranks/{}", i), fmt::format("expected the name of a gpu, found \"{}\"", scenario.ranks[i]),
          fmt::format("gpus are named {} to {}; `ringsim topology show` lists them",
                      topology.node(topology.ranks().front()).name, topology.node(topology.ranks().back()).name));
    result.push_back(*node);
  }
  if (scenario.shuffle) {  // Fisher and Yates; the standard's own shuffle differs between libraries
    std::mt19937_64 random(*scenario.shuffle);
    for (std::size_t i = result.size(); i > 1; --i) std::swap(result[i - 1], result[random() % i]);
  }
  return result;
}

NodeId node_named(const Topology& topology, const std::string& name, const std::string& pointer) {
  const auto node = topology.find(name);
  if (node) return *node;
  throw InputError(pointer, fmt::format("expected the name of a node of the topology, found \"{}\"", name),
                   "`ringsim topology show` lists them");
}

Routing routing_in(const Topology& topology, const RoutingSpec& spec) {
  Routing routing{.policy = spec.policy, .seed = spec.seed, .table = {}};
  for (std::size_t i = 0; i < spec.table.size(); ++i) {
    const auto& [at, to, via] = spec.table[i];
    const std::string where = fmt::format("/table/{}", i);
    const NodeId here = node_named(topology, at, where + "/at"), next = node_named(topology, via, where + "/via");
    if (topology.node(here).host && topology.node(here).kind != NodeKind::nic)
      throw InputError(where + "/at", fmt::format("expected a switch of the fabric, or a NIC, found \"{}\"", at),
                       "within a host there are no tables");
    const auto leads = [&](LinkId id) { return topology.link(id).to == next; };
    const auto links = topology.links_from(here);
    if (std::none_of(links.begin(), links.end(), leads))
      throw InputError(where + "/via", fmt::format("expected a neighbour of {}, found \"{}\"", at, via));
    for (std::size_t other = 0; other < i; ++other)
      if (spec.table[other].at == at && spec.table[other].to == to)
        throw InputError(where, fmt::format("expected one entry at {} for {}, found a second one", at, to),
                         fmt::format("the first is /network/table/{}; leave one out", other));
    if (topology.node(next).kind == NodeKind::nic && via != to)
      throw InputError(where + "/via", fmt::format("expected a switch, found the NIC \"{}\"", via),
                       "a NIC passes nothing on");
    if (to == "*") {
      routing.table.push_back({here, no_node, next});
      continue;
    }
    const std::size_t before = routing.table.size();
    for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
      const Node& node = topology.node({n});
      const bool of_host = node.kind == NodeKind::nic && node.name.starts_with(to + ".");
      if (node.name == to || of_host) routing.table.push_back({here, {n}, next});
    }
    if (routing.table.size() == before) node_named(topology, to, where + "/to");
    if (const auto found = topology.find(to);
        found && !topology.hosts().empty() && topology.node(*found).kind != NodeKind::nic)
      throw InputError(where + "/to", fmt::format("expected a NIC, a node or \"*\", found \"{}\"", to),
                       "over the fabric data goes to NICs");
  }
  return routing;
}

std::vector<std::pair<std::string, std::string>> parameters_of(const Scenario& scenario) {
  std::vector<std::pair<std::string, std::string>> result;
  if (scenario.arguments.file) result.emplace_back("name", scenarios::in_quotes(scenario.arguments.file->name));
  for (const Parameter& parameter : scenario.algorithm->parameters) {
    if (!parameter.choices.empty()) {
      result.emplace_back(parameter.name, '"' + text(*scenario.algorithm, scenario.arguments, parameter.name) + '"');
    } else if (const auto value = number(*scenario.algorithm, scenario.arguments, parameter.name);
               value != parameter.fallback) {
      result.emplace_back(parameter.name, fmt::to_string(value));
    }
  }
  return result;
}

BottleneckReport report(const Topology& topology, const Bottleneck& found, Picoseconds duration) {
  BottleneckReport result;
  const auto total = static_cast<double>(duration.count());
  if (found.resource != no_resource) {
    result.link = topology.resource_name(found.resource);
    result.kind = to_string(topology.link(topology.resource(found.resource).link).kind);
    result.busy = static_cast<double>(found.busy.count()) / total;
  }
  result.latency = static_cast<double>(found.latency.count()) / total;
  return result;
}

// Most bytes that left one host for the fabric.
std::optional<Bytes> most_leaving(const Topology& topology, const Timeline& timeline) {
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

std::vector<LinkGroup> groups(const Topology& topology, const Timeline& timeline) {
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
    ++group.count;
    group.most = std::max(group.most, carried[r]);
    group.utilisation =
        std::max(group.utilisation, static_cast<double>(carried[r].count) /
                                        (static_cast<double>(resource.bandwidth.bytes_per_second) * seconds));
  }
  std::vector<LinkGroup> result;
  for (auto& [name, group] : found) result.push_back(std::move(group));
  std::stable_sort(result.begin(), result.end(),
                   [](const LinkGroup& a, const LinkGroup& b) { return a.utilisation > b.utilisation; });
  return result;
}

// What only the built topology can tell is the file's mistake all the same: says so with the file's name.
template <class Part>
auto blaming(const Scenario& scenario, const char* pointer, Part part) {
  try {
    return part();
  } catch (const ScheduleError&) {
    throw;  // names the schedule
  } catch (const InputError& error) {
    throw InputError(scenario.file + ": " + pointer + error.where(), error.message(), error.hint());
  }
}

}  // namespace

Topology topology_of(const Scenario& scenario) {
  return blaming(scenario, "/topology", [&] { return build(scenario.topology); });
}

Routing routing_of(const Topology& topology, const Scenario& scenario) {
  return blaming(scenario, "/network", [&] { return routing_in(topology, scenario.routing); });
}

CheckedSchedule schedule_of(const Scenario& scenario, const std::atomic<bool>* stop) {
  return blaming(scenario, "/collective",
                 [&] { return check(scenario.algorithm->make(scenario.request, scenario.arguments), {.stop = stop}); });
}

Prediction predict(const Scenario& scenario, const PredictOptions& options) {
  const Topology topology = topology_of(scenario);
  RunOptions run_options{.model = scenario.model,
                         .packet = scenario.packet,
                         .transport = scenario.transport,
                         .routing = routing_of(topology, scenario),
                         .placement = blaming(scenario, "/collective", [&] { return places(topology, scenario); }),
                         .fold = options.fold,
                         .stop = options.stop,
                         .progress = options.progress};
  const std::vector<NodeId> ranks = run_options.placement;
  const auto n_helpers = static_cast<std::size_t>(scenario.algorithm->helpers(scenario.arguments));
  const auto helpers = topology.helpers().subspan(0, std::min(n_helpers, topology.helpers().size()));
  run_options.placement.insert(run_options.placement.end(), helpers.begin(), helpers.end());

  const CheckedSchedule checked = schedule_of(scenario, options.stop);
  const Timeline timeline = blaming(scenario, "/topology", [&] { return run(topology, checked, run_options); });

  Prediction result;
  result.request = scenario.request;
  result.algorithm = scenario.algorithm->name;
  result.parameters = parameters_of(scenario);
  result.model = scenario.model;
  result.varied = scenario.varied;
  result.time = timeline.duration();
  result.algbw = gigabytes_per_second(scenario.request.bytes, result.time);
  result.busbw = result.algbw * busbw_factor(scenario.request.op, scenario.request.ranks);
  result.transfers = timeline.transfers;
  result.events = timeline.events;
  result.fingerprint = timeline.fingerprint;
  result.folded = timeline.folded;
  result.not_folded = timeline.not_folded;
  result.proof = checked.proof();
  result.form = closed_form(*scenario.algorithm, scenario.arguments, scenario.request,
                            uniform_of(topology, ranks, helpers, scenario.transport, run_options.routing));
  if (result.form && scenario.model == NetworkModel::packet) assume_packets(*result.form, scenario.packet);
  if (timeline.bottleneck) result.bottleneck = report(topology, *timeline.bottleneck, result.time);
  if (result.time.count() > 0) {
    if (const auto bytes = most_leaving(topology, timeline))
      result.inter_node = {*bytes, gigabytes_per_second(*bytes, result.time)};
    result.links = groups(topology, timeline);
  }
  return result;
}

}  // namespace ringsim
