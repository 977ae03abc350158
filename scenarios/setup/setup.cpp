#include "scenarios/setup/setup.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "algorithms/stored_schedule.hpp"
#include "scenarios/setup/blaming.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/figures.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/nccl_search/node_search.hpp"
#include "topologies/search/channel_rings.hpp"
#include "topologies/search/reduction_tree.hpp"
#include "topologies/search/ring_order.hpp"

namespace ringsim {

NodeId gpu_named(const Topology& topology, const std::string& name, const std::string& pointer) {
  const auto node = topology.find(name);
  if (node && topology.node(*node).kind == NodeKind::gpu) return *node;
  throw InputError(
      pointer, fmt::format("expected the name of a GPU, found \"{}\"", name),
      fmt::format("GPUs are named {} to {}; `ringsim topology show` lists them",
                  topology.node(topology.ranks().front()).name, topology.node(topology.ranks().back()).name));
}

namespace {

std::vector<NodeId> places(const Topology& topology, const Job& job) {
  std::vector<NodeId> result;
  if (job.ranks.empty()) result.assign(topology.ranks().begin(), topology.ranks().end());
  const std::size_t of_group = job.groups.empty() || job.by_rule ? 0 : job.groups.front().size();
  for (std::size_t i = 0; i < job.ranks.size(); ++i)
    result.push_back(gpu_named(
        topology, job.ranks[i],
        of_group > 0 ? fmt::format("/groups/{}/{}", i / of_group, i % of_group) : fmt::format("/ranks/{}", i)));
  if (job.shuffle) {  // Fisher and Yates; the standard's own shuffle differs between libraries
    std::mt19937_64 random(*job.shuffle);
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
                     ring.is_best ? "" : " (the search stopped before ruling out a wider one)");
}

/// True if the graph of a call is what NCCL's search found for the GPUs of one communicator.
bool is_searched(const LibraryRun& library) { return library.name == "nccl" && library.graph_file.empty(); }

/// Rings for the channels of a library's call: of the graph that it takes, or found among `links` if there is none, or
/// the ranks are on other GPUs than the communicator that NCCL's search was made for.
ChannelRings rings_of_call(const Topology& links, const LibraryRun& library, const LibraryCall& call,
                           const std::vector<NodeId>& ranks, const Transport& transport,
                           const std::atomic<bool>* stop) {
  if (!call.graph || (is_searched(library) && !nccl::is_on_gpus_of(*call.graph, links, ranks)))
    return channel_rings(links, ranks, transport, stop);
  const double each = library.machine.nodes > 1 ? call.graph->between : call.graph->inside;
  return {.orders = nccl::rings_of(*call.graph, links, ranks, library.graph_file, library.version),
          .each = {static_cast<std::int64_t>(1e9 * each)},
          .channels = static_cast<int>(call.graph->channels.size())};
}

/// A library's call for a collective; nullptr: there is no library.
struct CalledBy {
  const LibraryRun* library = nullptr;
  const LibraryCall* call = nullptr;
};

/// Gives each channel a ring of its own, and says which they are. `links`: among which they are searched for.
std::string take_channel_rings(const Topology& links, const Scenario& scenario, const CalledBy& by,
                               const std::vector<NodeId>& ranks, CollectiveRequest& request,
                               const std::atomic<bool>* stop) {
  ChannelRings rings = by.library == nullptr
                           ? channel_rings(links, ranks, scenario.transport, stop)
                           : rings_of_call(links, *by.library, *by.call, ranks, by.call->transport, stop);
  std::string text = fmt::format("{} ring{}", rings.orders.size(), rings.orders.size() == 1 ? "" : "s");
  if (static_cast<std::size_t>(request.channels) > rings.orders.size())
    text += fmt::format(" for {} channels", request.channels);
  if (ranks.size() > 1) text += fmt::format(" of {} each", rate_text(rings.each));
  for (std::size_t k = 0; k < rings.orders.size(); ++k) {
    text += fmt::format("; {}:", k);
    for (const Actor rank : rings.orders[k]) text += ' ' + fmt::to_string(rank);
  }
  request.orders = std::move(rings.orders);
  if (by.library != nullptr) fit_channels(request);
  return text;
}

/// The switches that join the ranks; those of a file's schedule must be joined as the file says.
ReductionTree tree_for(const Job& job, const Topology& topology, const std::vector<NodeId>& ranks) {
  ReductionTree tree = reduction_tree(topology, ranks);
  if (job.arguments.file == nullptr) return tree;
  const std::vector<Actor>&is = tree.parents, &wanted = job.arguments.file->tree;
  if (is == wanted) return tree;
  const auto differs = [&](const std::string& expected, const std::string& found) {
    return InputError("",
                      fmt::format("expected switches that connect the ranks as in {}, {}, found {}",
                                  job.arguments.file->name, expected, found),
                      "use the topology and the order of ranks that the schedule was made for");
  };
  if (is.size() != wanted.size())
    throw differs(fmt::to_string(wanted.size() - ranks.size()), fmt::to_string(is.size() - ranks.size()));
  const auto actor = static_cast<std::size_t>(std::mismatch(is.begin(), is.end(), wanted.begin()).first - is.begin());
  const auto below = [&](Actor parent) {
    return parent < 0 ? fmt::format("actor {} at the top", actor) : fmt::format("actor {} below {}", actor, parent);
  };
  throw differs(below(wanted[actor]), below(is[actor]));
}

/// The topology of a run, and its links as a search for rings sees them.
struct Seen {
  const Topology& topology;
  const Topology& links;
};

/// A collective on these ranks.
PlacedCollective placed_on(std::vector<NodeId> ranks, const Seen& seen, const Scenario& scenario, Job job,
                           const CalledBy& by, const std::atomic<bool>* stop) {
  const Topology& topology = seen.topology;
  PlacedCollective placed{
      .job = std::move(job), .ranks = std::move(ranks), .helpers = {}, .ring = {}, .exchanges = {}, .exchange = {}};
  return blaming(scenario, placed.job.pointer, [&] {
    if (placed.job.best_ring) placed.ring = put_in_best_ring(seen.links, scenario.transport, placed.ranks);
    if (placed.job.channel_rings)
      placed.ring = take_channel_rings(seen.links, scenario, by, placed.ranks, placed.job.request, stop);
    if (placed.job.uses_fabric()) {
      ReductionTree tree = by_the_algorithm(placed.job, [&] { return tree_for(placed.job, topology, placed.ranks); });
      placed.job.request.tree = std::move(tree.parents);
      placed.helpers = std::move(tree.switches);
    }
    return placed;
  });
}

/// The exchanges of a training step by a library. Those by one graph, or by the search, have the same rings.
void place_exchanges(const Seen& seen, const Scenario& scenario, const LibraryRun& library, PlacedCollective& placed,
                     const std::atomic<bool>* stop) {
  std::vector<std::pair<const LibraryCall*, std::vector<std::vector<Actor>>>> known;
  for (const auto& exchange : library.exchanges) {
    const LibraryCall& call = exchange.second;
    Job job = placed.job;
    job.algorithm = call.algorithm;
    job.arguments = call.arguments;
    job.request.bytes = exchange.first.bytes;
    job.request.channels = call.channels;
    job.request.orders.clear();
    job.request.tree.clear();
    const auto same = std::find_if(known.begin(), known.end(), [&](const auto& other) {
      const auto &a = call.graph, &b = other.first->graph;
      return (!a && !b) || (a && b && *a == *b);
    });
    if (call.channel_rings && same != known.end()) {
      job.request.orders = same->second;
      fit_channels(job.request);
      job.channel_rings = false;
    } else {
      job.channel_rings = call.channel_rings;
    }
    placed.exchanges.push_back(placed_on(placed.ranks, seen, scenario, std::move(job), {&library, &call}, stop));
    PlacedCollective& made = placed.exchanges.back();
    if (call.channel_rings && same == known.end()) known.emplace_back(&call, made.job.request.orders);
    made.job.channel_rings = call.channel_rings;
    if (!made.helpers.empty()) placed.helpers = made.helpers;  // the switches that join the ranks, whichever need them
  }
}

/// The collective of an exchange's groups: as the library decides, else by the scenario's algorithm, if that is not for
/// all-reduces alone.
Job job_of_exchange(const Job& main, const PlanExchange& exchange, int ranks, const LibraryCall* call,
                    const TrainingSpec& spec) {
  Job job = main;
  const bool only_all_reduce = spec.plan && spec.plan->program.forward_only;
  job.ranks.clear();
  job.shuffle.reset();
  const bool is_send = exchange.op == CollectiveOp::send_recv;
  const bool may_lack = spec.trace || exchange.op == CollectiveOp::all_to_all;  // plans know what their algorithm does
  const bool is_served = exchange.op == CollectiveOp::all_reduce ||
                         (!only_all_reduce && (!may_lack || main.algorithm->supports(exchange.op)));
  job.request.op = is_send && !is_ring(exchange.use) ? CollectiveOp::broadcast : exchange.op;
  job.request.bytes = exchange.bytes;
  job.request.ranks = ranks;
  job.request.root = 0;
  job.request.orders.clear();
  job.request.tree.clear();
  job.request.grid.clear();
  job.best_ring = job.channel_rings = false;
  if (call != nullptr) {
    job.algorithm = call->algorithm;
    job.arguments = call->arguments;
    job.request.channels = call->channels;
    job.channel_rings = call->channel_rings;
  }
  if (is_send || (call == nullptr && !is_served)) {
    job.algorithm = find_algorithm("direct");
    job.arguments = {};
    job.channel_rings = false;
  }
  return job;
}

/// All exchanges of a plan or a trace, group by group. Groups of an exchange lie alike, so they have the same rings;
/// switches are looked for in each.
void place_plan(const Seen& seen, const Scenario& scenario, const TrainingSpec& spec, const LibraryRun* library,
                PlacedCollective& placed, const std::atomic<bool>* stop) {
  for (const PlanExchange& exchange : spec.exchanges_in_groups()) {
    const LibraryCall* call = library == nullptr ? nullptr : &library->exchanges.at(exchange);
    std::optional<PlacedCollective> known;
    for (const std::vector<Actor>& group : spec.groups_of(exchange)) {
      std::vector<NodeId> members;
      for (const Actor rank : group) members.push_back(placed.ranks[static_cast<std::size_t>(rank)]);
      if (known && !known->job.uses_fabric()) {
        known->ranks = std::move(members);
        placed.exchanges.push_back(*known);
        continue;
      }
      Job job = job_of_exchange(placed.job, exchange, static_cast<int>(group.size()), call, spec);
      known = placed_on(std::move(members), seen, scenario, std::move(job), {library, call}, stop);
      known->exchange = exchange;
      placed.exchanges.push_back(*known);
    }
  }
}

/// [group]
std::vector<PlacedCollective> placed_job(const Seen& seen, const Scenario& scenario, std::size_t j,
                                         const std::atomic<bool>* stop) {
  const Job& job = scenario.jobs[j];
  const TrainingSpec* spec = scenario.training_of(j);
  std::vector<NodeId> ranks = blaming(scenario, job.pointer, [&] { return places(seen.topology, job); });
  if (spec != nullptr && spec->regime->kind == Regime::Kind::single) ranks.resize(1);
  const LibraryRun* library = scenario.library_of(j);
  const CalledBy by{library, library == nullptr ? nullptr : &library->call};
  if (job.groups.empty()) {
    std::vector<PlacedCollective> one{placed_on(std::move(ranks), seen, scenario, job, by, stop)};
    if (spec != nullptr && spec->calls_in_groups())
      place_plan(seen, scenario, *spec, library, one.front(), stop);
    else if (library != nullptr)
      place_exchanges(seen, scenario, *library, one.front(), stop);
    return one;
  }
  std::vector<PlacedCollective> placed;
  Job of_group = job;  // there may be thousands
  of_group.groups.clear();
  of_group.ranks.clear();
  for (const std::vector<int>& group : job.groups) {
    std::vector<NodeId> members;
    for (const int place : group) members.push_back(ranks[static_cast<std::size_t>(place)]);
    placed.push_back(placed_on(std::move(members), seen, scenario, of_group, by, stop));
  }
  return placed;
}

/// The nodes of servers on CPUs: the first CPU of each host, then the second (a CPU without a host counts as one host);
/// its memory, if it has some.
std::vector<NodeId> cpu_places(const Topology& topology) {
  std::vector<std::pair<std::size_t, NodeId>> cpus;  // how many of the host come before, and which
  std::map<std::optional<std::uint32_t>, std::size_t> seen;
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    const Node& node = topology.node({n});
    if (node.kind == NodeKind::cpu) cpus.emplace_back(seen[node.host]++, NodeId{n});
  }
  std::stable_sort(cpus.begin(), cpus.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<NodeId> found;
  for (const auto& [turn, cpu] : cpus) {
    found.push_back(cpu);
    for (const LinkId link : topology.links_from(cpu))
      if (const NodeId to = topology.link(link).to; topology.node(to).kind == NodeKind::memory) found.back() = to;
  }
  return found;
}

/// The servers of a job's groups, one group after the other.
void place_on_cpus(const Topology& topology, const Scenario& scenario, std::vector<PlacedCollective>& groups) {
  const std::vector<NodeId> cpus = cpu_places(topology);
  const Job& job = groups.front().job;
  const auto n = static_cast<std::size_t>(job.algorithm->helpers(job.arguments));
  if (n * groups.size() > cpus.size())
    throw UnservedError(
        job.algorithm->name, scenario.file + ": " + job.pointer + "/servers_on",
        fmt::format("expected at most as many servers as CPUs, {}, found {}", cpus.size(), n * groups.size()),
        "`ringsim topology show` lists the nodes");
  auto next = cpus.begin();
  for (PlacedCollective& group : groups) {
    group.helpers.assign(next, next + static_cast<std::ptrdiff_t>(n));
    next += static_cast<std::ptrdiff_t>(n);
  }
}

}  // namespace

namespace {

/// The topology with links at these shares of their rates.
Topology topology_at(const Scenario& scenario, const LibraryCall::Shares& reached) {
  Topology topology = blaming(scenario, "/topology", [&] { return build(scenario.topology); });
  ClassScales scales = scenario.calibration ? scenario.calibration->classes : ClassScales{};
  for (const LinkClass joins_gpus : {LinkClass::nvlink, LinkClass::xgmi})
    scales.bandwidth[static_cast<std::size_t>(joins_gpus)] *= reached.nvlink;
  scales.bandwidth[static_cast<std::size_t>(LinkClass::pcie)] *= reached.pcie;
  scales.bandwidth[static_cast<std::size_t>(LinkClass::nic)] *= reached.network;
  if (scales == ClassScales{}) return topology;
  return blaming(scenario, "/calibration", [&] { return scaled(topology, scales); });
}

/// What the kernels of any of its calls reach of each class of links.
LibraryCall::Shares most_reached(const std::vector<const LibraryCall*>& calls) {
  if (calls.empty()) return {};
  LibraryCall::Shares most = calls.front()->reached;
  for (const LibraryCall* call : calls) {
    most.nvlink = std::max(most.nvlink, call->reached.nvlink);
    most.pcie = std::max(most.pcie, call->reached.pcie);
    most.network = std::max(most.network, call->reached.network);
  }
  return most;
}

}  // namespace

Topology topology_for_search(const Scenario& scenario) {
  if (scenario.library) return topology_at(scenario, scenario.library->searched);
  const Topology topology = topology_at(scenario, {});
  return scenario.faults.empty() ? topology : topology_at_start(topology, scenario);
}

Topology topology_without_kernels(const Scenario& scenario) { return topology_at(scenario, {}); }

Topology topology_of(const Scenario& scenario) { return topology_at(scenario, most_reached(calls_of(scenario))); }

std::vector<CallPlan> call_plans(const Scenario& scenario, const Topology& topology) {
  const std::vector<const LibraryCall*> calls = calls_of(scenario);
  if (calls.size() < 2)
    return {{.protocol = scenario.protocol, .transport = transport_for(*scenario.protocol, scenario.transport)}};
  const LibraryCall::Shares most = most_reached(calls);
  std::vector<CallPlan> plans;
  int device_channels = 0;
  for (const LibraryCall* call : calls) {
    CallPlan& plan = plans.emplace_back();
    plan.protocol = call->protocol.get();
    plan.transport = transport_for(*plan.protocol, call->transport);
    plan.first_device_channel = device_channels;
    plan.n_device_channels = call->channel.bytes_per_second > 0 ? call->channels : 0;
    device_channels += plan.n_device_channels;
    if (call->reached == most) continue;
    const Topology slower = topology_at(scenario, call->reached);
    for (std::uint32_t l = 0; l < slower.n_links(); ++l)
      plan.costs.push_back(static_cast<double>(topology.link({l}).bandwidth.bytes_per_second) /
                           static_cast<double>(slower.link({l}).bandwidth.bytes_per_second));
  }
  return plans;
}

namespace {
/// One more than the highest number of a channel.
int channels_of(const std::vector<CheckedSchedule>& schedules) {
  int channels = 1;
  Step step;
  for (const CheckedSchedule& checked : schedules) {
    const Schedule& schedule = checked.schedule();
    const bool alike = schedule.symmetry.claimed() && checked.proof().by == Proof::By::symmetry;
    for (Actor actor = 0; actor < (alike ? 1 : schedule.actors); ++actor) {
      for (Lane lane = 0; lane < schedule.lanes; ++lane) {
        for (int i = 0; i < schedule.n_steps(actor, lane); ++i) {
          step.clear();
          schedule.step(actor, lane, i, step);
          for (const Op& op : step.ops) channels = std::max(channels, op.channel + 1);
        }
      }
    }
  }
  return channels;
}

/// The one link of that name, not a node with all of its links.
LinkId link_over(const Topology& topology, const std::string& name) {
  const std::vector<LinkId> links = links_named(topology, name, "");
  if (topology.link_name(links.front()) == name) return links.front();
  throw InputError("", fmt::format("expected a link, FROM -> TO, found the node \"{}\"", name),
                   fmt::format("such as \"{}\"", topology.link_name(links.front())));
}
}  // namespace

namespace {
bool limits_channels(const Scenario& scenario) {
  const std::vector<const LibraryCall*> calls = calls_of(scenario);
  return std::any_of(calls.begin(), calls.end(),
                     [](const LibraryCall* call) { return call->channel.bytes_per_second > 0; });
}
}  // namespace

bool has_rates(const Scenario& scenario) {
  if (scenario.library)  // its costs have what kernels take besides
    return limits_channels(scenario) || (scenario.devices.gpu && scenario.devices.gpu->post.count() > 0);
  if (scenario.devices.gpu || scenario.devices.cpu) return true;
  const auto* graph = std::get_if<Graph>(&scenario.topology);
  return graph != nullptr && std::any_of(graph->nodes.begin(), graph->nodes.end(),
                                         [](const Graph::NodeSpec& node) { return node.rates.has_value(); });
}

Topology rated(const Topology& topology, const Scenario& scenario, const std::vector<CheckedSchedule>& schedules) {
  if (!has_rates(scenario)) return topology;
  if (scenario.library) {
    DeviceRates gpu;
    for (const LibraryCall* call : calls_of(scenario))
      if (call->channel.bytes_per_second > 0)
        gpu.channels.insert(gpu.channels.end(), static_cast<std::size_t>(call->channels), call->channel);
    if (scenario.devices.gpu) gpu.post = scenario.devices.gpu->post;
    const auto of_gpus = [&](NodeId id) {
      return topology.node(id).kind == NodeKind::gpu ? std::optional(gpu) : std::nullopt;
    };
    return topology.with_rates(of_gpus, 0);
  }
  const auto* graph = std::get_if<Graph>(&scenario.topology);
  const DeviceSpec& kinds = scenario.devices;
  const auto of_kind = [&](NodeKind kind) -> std::optional<DeviceRates> {
    if (kind == NodeKind::gpu) return kinds.gpu;
    return kind == NodeKind::cpu || kind == NodeKind::memory ? kinds.cpu : std::nullopt;
  };
  // The nodes of a graph are built in the order listed.
  const auto own = [&](NodeId id) {
    return graph != nullptr && graph->nodes[id.value].rates ? &graph->nodes[id.value] : nullptr;
  };
  const auto rates = [&](NodeId id) -> std::optional<DeviceRates> {
    const Graph::NodeSpec* node = own(id);
    if (node == nullptr) return of_kind(topology.node(id).kind);
    DeviceRates found = *node->rates;
    if (node->over.empty()) return found;
    const std::string pointer = fmt::format("/topology/nodes/{}/rates/over", id.value);
    found.over = blaming(scenario, pointer, [&] { return link_over(topology, node->over); });
    return found;
  };
  bool any_channel = false;
  for (std::uint32_t n = 0; n < topology.n_nodes() && !any_channel; ++n) {
    const Graph::NodeSpec* node = own({n});
    const std::optional<DeviceRates> found = node != nullptr ? node->rates : of_kind(topology.node({n}).kind);
    any_channel = found && found->channel;
  }
  // Every step of a schedule is looked at for it.
  return topology.with_rates(rates, any_channel ? channels_of(schedules) : 1);
}

std::vector<std::vector<PlacedCollective>> collectives_of(const Scenario& scenario, const Topology& topology,
                                                          const std::atomic<bool>* stop) {
  std::vector<std::vector<PlacedCollective>> placed;
  std::optional<Topology> at_start;     // with its faults
  std::optional<Topology> as_searched;  // by the library of the job
  LibraryCall::Shares searched;
  // Helpers that are neither switches nor on CPUs take the extra ports in order.
  std::size_t helpers = 0;
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    const Job& job = scenario.jobs[j];
    const LibraryRun* library = scenario.library_of(j);
    const auto searches = [&](const LibraryCall& call) {
      return call.channel_rings && (!call.graph || is_searched(*library));
    };
    const bool by_library =
        library != nullptr &&
        (searches(library->call) || std::any_of(library->exchanges.begin(), library->exchanges.end(),
                                                [&](const auto& exchange) { return searches(exchange.second); }));
    if (by_library && (!as_searched || searched != library->searched)) {
      as_searched = topology_at(scenario, library->searched);
      searched = library->searched;
    }
    const bool orders_by_links = library == nullptr && (job.best_ring || job.channel_rings) && !scenario.faults.empty();
    if (orders_by_links && !at_start) at_start = topology_at_start(topology, scenario);
    const Seen seen{topology, by_library ? *as_searched : orders_by_links ? *at_start : topology};
    placed.push_back(placed_job(seen, scenario, j, stop));
    if (placed.back().front().uses_fabric()) continue;
    if (job.servers_on_cpu) {
      place_on_cpus(topology, scenario, placed.back());
      continue;
    }
    for (PlacedCollective& each : placed.back()) {
      const auto n = static_cast<std::size_t>(job.algorithm->helpers(job.arguments));
      const auto found = topology.helpers().subspan(std::min(helpers, topology.helpers().size()));
      each.helpers.assign(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(std::min(n, found.size())));
      helpers += n;
    }
  }
  return placed;
}

std::shared_ptr<const nccl::SearchGraph> ring_graph_of(const Scenario& scenario) {
  if (!scenario.library) return nullptr;
  const LibraryRun& library = *scenario.library;
  if (library.call.graph && library.call.graph->id == nccl::SearchGraph::Id::ring) return library.call.graph;
  if (!is_searched(library) || !library.machine.search || library.machine.ports > 1) return library.call.graph;
  return {library.machine.search, &library.machine.search->ring};
}

ChannelRings rings_for(const Topology& topology, const Scenario& scenario, const std::vector<NodeId>& ranks,
                       const Transport& transport, const std::atomic<bool>* stop) {
  if (!scenario.library) return channel_rings(topology, ranks, transport, stop);
  LibraryCall call = scenario.library->call;
  call.graph = ring_graph_of(scenario);
  return rings_of_call(topology, *scenario.library, call, ranks, transport, stop);
}

void fit_channels(CollectiveRequest& request) {
  const auto n = static_cast<int>(request.orders.size());
  if (n > 0 && request.channels > n) request.channels -= request.channels % n;
}

Setup set_up(const Scenario& scenario, const std::atomic<bool>* stop) {
  Setup setup;
  setup.topology = topology_of(scenario);
  setup.routing = routing_of(setup.topology, scenario);
  for (std::vector<PlacedCollective>& groups : collectives_of(scenario, setup.topology, stop)) {
    setup.collectives.push_back(std::move(groups.front()));
    groups.erase(groups.begin());
    setup.other_groups.push_back(std::move(groups));
  }
  return setup;
}

std::string ring_order_of(const Scenario& scenario) {
  if (!scenario.main().best_ring && !scenario.main().channel_rings) return "";
  return collectives_of(scenario, topology_of(scenario)).front().front().ring;
}

}  // namespace ringsim
