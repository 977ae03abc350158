#include "validate/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <utility>

#include "sim/error.hpp"
#include "sim/quantity.hpp"
#include "sim/run.hpp"
#include "topologies/reduction_tree.hpp"
#include "topologies/ring_order.hpp"

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

/// Puts the ranks into the order of the best ring, and says which it is.
std::string put_in_best_ring(const Topology& topology, const Transport& transport, std::vector<NodeId>& ranks) {
  const RingOrder ring = best_ring(topology, ranks, transport);
  std::vector<NodeId> ordered;
  std::string text;
  for (const std::size_t rank : ring.order) {
    ordered.push_back(ranks[rank]);
    text += topology.node(ranks[rank]).name + " -> ";
  }
  ranks = std::move(ordered);
  return fmt::format("{}{}, narrowest hop {}{}", text, topology.node(ranks.front()).name, format(ring.narrowest),
                     ring.is_best ? "" : " (the search was broken off before a wider one was ruled out)");
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
  for (const Parameter& parameter : scenario.algorithm->parameters) {
    if (!parameter.choices.empty() || !parameter.example.empty()) {
      const std::string value = text(*scenario.algorithm, scenario.arguments, parameter.name);
      if (!value.empty()) result.emplace_back(parameter.name, '"' + value + '"');
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

namespace {

/// What the algorithm is asked, and where its actors sit.
struct Cast {
  CollectiveRequest request;
  std::vector<NodeId> ranks, helpers;
  std::string ring;  // as ring_order_of()
};

Cast cast_of(const Topology& topology, const Scenario& scenario) {
  Cast cast{scenario.request, blaming(scenario, "/collective", [&] { return places(topology, scenario); }), {}, {}};
  if (scenario.best_ring)
    cast.ring =
        blaming(scenario, "/collective", [&] { return put_in_best_ring(topology, scenario.transport, cast.ranks); });
  if (scenario.algorithm->in_fabric) {
    ReductionTree tree = blaming(scenario, "/collective", [&] { return reduction_tree(topology, cast.ranks); });
    cast.request.tree = std::move(tree.parents);
    cast.helpers = std::move(tree.switches);
  } else {
    const auto n = static_cast<std::size_t>(scenario.algorithm->helpers(scenario.arguments));
    const auto helpers = topology.helpers().subspan(0, std::min(n, topology.helpers().size()));
    cast.helpers.assign(helpers.begin(), helpers.end());
  }
  return cast;
}

CheckedSchedule checked(const Scenario& scenario, const CollectiveRequest& request, const std::atomic<bool>* stop) {
  return blaming(scenario, "/collective",
                 [&] { return check(scenario.algorithm->make(request, scenario.arguments), {.stop = stop}); });
}

/// Switches that take part are no ports of their own.
std::vector<NodeId> endpoints(const Scenario& scenario, const Cast& cast) {
  return scenario.algorithm->in_fabric ? std::vector<NodeId>{} : cast.helpers;
}

}  // namespace

std::string ring_order_of(const Scenario& scenario) {
  return scenario.best_ring ? cast_of(topology_of(scenario), scenario).ring : "";
}

CheckedSchedule schedule_of(const Scenario& scenario, const std::atomic<bool>* stop) {
  // Only the tree of switches needs the topology.
  if (!scenario.algorithm->in_fabric) return checked(scenario, scenario.request, stop);
  return checked(scenario, cast_of(topology_of(scenario), scenario).request, stop);
}

Prediction predict(const Scenario& scenario, const PredictOptions& options) {
  const Topology topology = topology_of(scenario);
  const Cast cast = cast_of(topology, scenario);
  RunOptions run_options{.model = scenario.model,
                         .packet = scenario.packet,
                         .transport = scenario.transport,
                         .routing = routing_of(topology, scenario),
                         .placement = cast.ranks,
                         .fold = options.fold,
                         .stop = options.stop,
                         .progress = options.progress};
  run_options.placement.insert(run_options.placement.end(), cast.helpers.begin(), cast.helpers.end());

  const CheckedSchedule schedule = checked(scenario, cast.request, options.stop);
  const Timeline timeline = blaming(scenario, "/topology", [&] { return run(topology, schedule, run_options); });

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
  result.ring = cast.ring;
  result.proof = schedule.proof();
  result.form =
      closed_form(*scenario.algorithm, scenario.arguments, scenario.request,
                  uniform_of(topology, cast.ranks, endpoints(scenario, cast), scenario.transport, run_options.routing,
                             grid_of(*scenario.algorithm, scenario.arguments, scenario.request)));
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
