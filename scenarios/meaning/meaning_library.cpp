#include "scenarios/meaning/meaning_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "scenarios/meaning/library_decider.hpp"
#include "scenarios/meaning/meaning_jobs.hpp"
#include "scenarios/meaning/meaning_transport.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/catalog.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/nccl/nccl_costs.hpp"
#include "topologies/nccl/nccl_variables.hpp"
#include "topologies/nccl_search/node_search.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;
using nccl::TunerAlgorithm;
using nccl::TunerProtocol;

/// Most pieces in which a buffer goes down or up a tree: a bound on the work of the simulation.
constexpr std::int64_t most_segments = 4096;

/// Assumption: chunks go out as they fill, piece after piece, so that those behind in a tree or chain begin early:
/// pieces as small as that, at least as many as that where the size allows, and none larger than a chunk. Fitted to the
/// broadcasts of validate/measured/tables, whose time is a constant and one pass over the wire at all sizes.
constexpr std::int64_t least_piece = 8'192, pieces_in_flight = 32;

/// A slot of the library's buffer, as payload; and the chunk of its trees.
Bytes slot_of(TunerProtocol protocol, const Decider& by) {
  return by.rccl ? rccl::chunk_of(protocol) : nccl::chunk_of(protocol);
}
Bytes tree_chunk_of(const nccl::LibraryPlan& plan, Bytes bytes, const Decider& by) {
  return by.rccl ? rccl::tree_chunk(plan, bytes, by.machine)
                 : nccl::tree_chunk(plan, bytes, by.machine, by.settings.release);
}

std::int64_t segments_of(Bytes bytes, int channels, int ways, TunerProtocol protocol, const Decider& by,
                         bool whole_chunks = false) {
  const std::int64_t each = bytes.count / channels / ways, chunk = slot_of(protocol, by).count;
  const std::int64_t fine = whole_chunks ? 1 : std::min(each / least_piece, pieces_in_flight);
  return std::clamp<std::int64_t>(std::max(fine, (each + chunk - 1) / chunk), 1, most_segments);
}

/// Between nodes a chunk is passed on when all of it is there: NCCL's proxies post whole ones.
std::int64_t tree_segments(const nccl::LibraryPlan& plan, Bytes bytes, const Decider& by) {
  const std::int64_t each = bytes.count * by.machine.ports / plan.channels / 2,
                     chunk = tree_chunk_of(plan, bytes, by).count;
  return std::clamp<std::int64_t>((each + chunk - 1) / chunk, 1, most_segments);
}

/// The schedule that stands for what the library's kernels do.
Canonical algorithm_of(const nccl::LibraryPlan& plan, CollectiveOp op, Bytes bytes, const Decider& by) {
  const nccl::TunerMachine& machine = by.machine;
  const bool rooted = op == CollectiveOp::broadcast || op == CollectiveOp::reduce;
  switch (plan.algorithm) {
    case TunerAlgorithm::ring:
      if (!rooted) return {{"name", "ring"}};
      // Between nodes a proxy of Simple posts whole slices, here of a chunk each.
      return {{"name", "chain"},
              {"segments", segments_of(bytes, plan.channels, 1, plan.protocol, by,
                                       machine.nodes > 1 && plan.protocol == TunerProtocol::simple)}};
    case TunerAlgorithm::tree:
      if (machine.nodes > 1)
        return {{"name", "double_binary_tree"}, {"group", machine.gpus}, {"segments", tree_segments(plan, bytes, by)}};
      [[fallthrough]];
    case TunerAlgorithm::nvls_tree:  // the same trees between nodes; nccl_costs has what the switches save inside
      return {{"name", "double_binary_tree"},
              {"group", machine.gpus},
              {"segments", segments_of(bytes, plan.channels, 2, plan.protocol, by)}};
    case TunerAlgorithm::pat:
      return {{"name", "pat"}};
    case TunerAlgorithm::nvls:
      return {{"name", "in_switch"}, {"segments", segments_of(bytes, plan.channels, 1, plan.protocol, by)}};
    case TunerAlgorithm::msccl:  // each rank adds up a part and sends it to all
      return {{"name", "direct"}};
  }
  fail_invariant("a library's algorithms are six");
}

/// What fills a channel's step: of a ring a rank's part, of trees and chains a chunk.
Bytes chunk_in(const Canonical& algorithm, const nccl::LibraryPlan& plan, Bytes bytes, Bytes own, const Decider& by) {
  if (!algorithm.contains("segments")) return {own.count / plan.blocks};
  if (plan.algorithm == TunerAlgorithm::nvls_tree) return tree_chunk_of(plan, bytes, by);
  if (plan.algorithm == TunerAlgorithm::tree && by.machine.nodes > 1)
    return {std::min(bytes.count / plan.blocks, tree_chunk_of(plan, bytes, by).count)};
  return {std::min(bytes.count / plan.channels, slot_of(plan.protocol, by).count)};
}

/// What is sent to one peer.
Bytes to_a_peer(CollectiveOp op, Bytes bytes, const nccl::TunerMachine& machine) {
  return op == CollectiveOp::send_recv ? bytes : Bytes{bytes.count / machine.ranks()};
}

/// Sends and receives to `peers` at once. Channels beyond these would only share the same links.
nccl::LibraryPlan point_to_point(const nccl::SendPlan& sends, int peers, const nccl::TunerMachine& machine) {
  constexpr int most_simulated = 8;
  return {.algorithm = TunerAlgorithm::ring,
          .protocol = sends.protocol,
          .channels = std::min(machine.nodes > 1 ? sends.channels * machine.ports : sends.channels, most_simulated),
          .blocks = sends.channels,
          .running = static_cast<double>(std::min(sends.all, sends.channels * peers)),
          .launched = std::min(sends.all, sends.channels * peers)};
}

/// Assumption: what goes through host memory is read as it is written, line by line in LL, and in Simple in pieces as
/// small as that, because a block has several slices in flight: measured all_reduce of four RTX PRO 6000 takes no
/// longer than one pass over the slower side at all sizes.
Bytes host_piece(TunerProtocol protocol) { return {protocol == TunerProtocol::simple ? 65'536 : 4'096}; }

CollectiveOp op_named(const Canonical& collective, const Blame& blame, const std::string& pointer) {
  const auto name = collective["op"].get<std::string>();
  for (const CollectiveOp op : collective_ops()) {
    if (to_string(op) != name) continue;
    if (op == CollectiveOp::barrier || op == CollectiveOp::pairs)
      blame.fail(pointer + "/op", fmt::format("expected an operation that NCCL has, found {}", name),
                 "NCCL has all_reduce, all_gather, reduce_scatter, broadcast, reduce, and operations made of sends and "
                 "receives");
    return op;
  }
  fail_invariant("the table of fields names an op that nothing stands for: " + name);
}

nccl::LibraryPlan rccl_plan_of(CollectiveOp op, Bytes bytes, const Decider& by, const Blame& blame) {
  const std::optional<nccl::LibraryPlan> plan =
      rccl::library_plan(op, bytes, by.machine, by.rccl->settings, static_cast<int>(by.rccl->rings.channels.size()));
  if (!plan)
    blame.fail(
        "/library",
        fmt::format("expected an operation that is modeled for RCCL on {}, found {}",
                    by.machine.nodes > 1 ? "several nodes" : "one node", to_string(op)),
        fmt::format("use all_reduce, all_gather, reduce_scatter, broadcast or reduce, or on one node all_to_all; {}",
                    nccl::without_a_library));
  return *plan;
}

/// The library's choice; of one rank, which has nobody to talk to, any.
nccl::LibraryPlan plan_of(CollectiveOp op, Bytes bytes, const Decider& by, const Blame& blame) {
  if (by.rccl) return rccl_plan_of(op, bytes, by, blame);
  const nccl::TunerMachine& machine = by.machine;
  const nccl::LibrarySettings& settings = by.settings;
  const int ranks = machine.ranks();
  if (ranks == 1) return {.algorithm = TunerAlgorithm::ring, .protocol = TunerProtocol::simple};
  if (nccl::sends_to_peers(op))
    return point_to_point(nccl::send_plan(machine, to_a_peer(op, bytes, machine), settings),
                          op == CollectiveOp::send_recv ? 1 : ranks - 1, machine);
  const std::optional<nccl::LibraryPlan> plan = nccl::library_plan(op, bytes, machine, settings);
  if (!plan)
    blame.fail(
        "/library/env",
        fmt::format("expected an algorithm and a protocol that NCCL can use for {} here, found none", to_string(op)),
        "check NCCL_ALGO, NCCL_PROTO and NCCL_NVLS_ENABLE; NCCL_ALGO=allreduce:NVLS acts only on all-reduces");
  return *plan;
}

/// What is decided for one collective.
struct Decision {
  nccl::LibraryPlan plan;
  Canonical algorithm;
  nccl::LibraryCosts costs;
  Picoseconds own_pass{0};
};

nccl::LibraryCosts costs_of(const nccl::LibraryPlan& plan, const nccl::LibraryWork& work, const Decider& by) {
  return by.rccl ? rccl::library_costs(plan, work.op, work.chunk, by.rccl->link)
                 : nccl::library_costs(plan, by.machine, work, by.costs);
}

/// Bytes that one channel sends to one peer.
Bytes sent_by_a_channel(CollectiveOp op, Bytes bytes, const nccl::LibraryPlan& plan, const Decider& by) {
  const Bytes a_peer = to_a_peer(op, bytes, by.machine);
  return by.rccl ? Bytes{a_peer.count / plan.blocks} : nccl::send_plan(by.machine, a_peer, by.settings).a_channel;
}

Decision decision_of(CollectiveOp op, Bytes bytes, const Decider& by, const Blame& blame) {
  Decision out;
  out.plan = plan_of(op, bytes, by, blame);
  const bool sends = nccl::sends_to_peers(op);
  out.algorithm =
      by.machine.ranks() == 1 || sends ? Canonical{{"name", "direct"}} : algorithm_of(out.plan, op, bytes, by);
  const Bytes own{bytes.count / by.machine.ranks()};
  const Bytes chunk =
      sends ? sent_by_a_channel(op, bytes, out.plan, by) : chunk_in(out.algorithm, out.plan, bytes, own, by);
  const Bytes piece{bytes.count / out.plan.channels / 2 / out.algorithm.value("segments", std::int64_t{1})};
  out.costs = costs_of(out.plan,
                       {.op = op,
                        .bytes = bytes,
                        .chunk = chunk,
                        .piece = piece,
                        .release = by.settings.release,
                        .net_chunk = nccl::net_chunk_of(by.settings)},
                       by);
  if (by.gpu.contains("post")) out.costs.protocol.post = Picoseconds{0};  // the topology has it
  if (by.gpu.contains("channel") && is_bound_by_blocks(out.plan, out.costs.channel))
    out.costs.channel = nccl::channel_rate(out.plan, {by.gpu["channel"].get<std::int64_t>()});
  const std::int64_t rate = adds_own_part(op)     ? by.gpu.value("reduce", out.costs.reduce.bytes_per_second)
                            : copies_own_part(op) ? by.gpu.value("copy", out.costs.copy.bytes_per_second)
                                                  : std::int64_t{0};
  if (rate > 0 && by.machine.ranks() > 1) out.own_pass = transfer_time(own, {rate});
  return out;
}

/// True for rings and trees, of which each channel has its own.
bool is_by_channel(const nccl::LibraryPlan& plan) {
  return plan.algorithm != TunerAlgorithm::nvls && plan.algorithm != TunerAlgorithm::msccl;
}

/// The rings or trees of a plan: from NCCL_GRAPH_FILE, of NCCL's search, or because RCCL knows the machine. Else
/// nullptr.
const nccl::SearchGraph* graph_for(const nccl::LibraryPlan& plan, const Decider& by) {
  using Id = nccl::SearchGraph::Id;
  if (!is_by_channel(plan)) return nullptr;
  if (by.rccl) return plan.algorithm == TunerAlgorithm::ring ? &by.rccl->rings : &by.rccl->trees;
  const bool ring = plan.algorithm == TunerAlgorithm::ring;
  if (const nccl::SearchGraph* graph = by.graphs.file.find(ring ? Id::ring : Id::tree)) return graph;
  return !by.machine.search ? nullptr : ring ? &by.machine.search->ring : &by.machine.search->tree;
}

/// As many channels on each ring of a file, as fit_channels() has it for rings that are found.
int channels_of(const nccl::LibraryPlan& plan, const Decider& by) {
  if (plan.algorithm == TunerAlgorithm::nvls) return 1;
  const nccl::SearchGraph* graph = graph_for(plan, by);
  const int rings = graph == nullptr ? 1 : nccl::rings_in(*graph, by.machine.nodes, by.version);
  return plan.channels > rings ? plan.channels - plan.channels % rings : plan.channels;
}

/// The decision as the keys of a scenario. `place`: of algorithm and order.
void write_decision(const Decision& decision, CollectiveOp op, const Decider& by, Canonical& place,
                    Canonical& transport) {
  place["algorithm"] = decision.algorithm;
  if (by.machine.ranks() > 1 && !nccl::sends_to_peers(op)) {
    const bool by_channel = is_by_channel(decision.plan);
    if (by_channel) place["order"] = "channel_rings";
    if (by.machine.nodes > 1) transport["nics"] = by_channel ? "per_channel" : "nearest";
  } else if (by.machine.nodes > 1) {
    // A GPU's channels take turns at its NICs (src/transport/net.cc asks ncclTopoGetNetDev for the channel's).
    // One device of several ports spreads each message over them: here a channel for each.
    transport["nics"] = "per_channel";
  }
  transport["channels"] = channels_of(decision.plan, by);
  if (by.machine.through_host && by.machine.nodes == 1 && !by.own_staging)
    transport["staging"]["size"] = host_piece(decision.plan.protocol).count;
  const Picoseconds launch{by.gpu.value("launch", decision.costs.launch.count())};
  const Picoseconds of_channels{by.gpu.value("launch_channel", std::int64_t{0}) * (decision.plan.launched - 1)};
  transport["launch"] = (launch + of_channels + nccl::launch_of_others(by.in_turn, by.costs)).count();
}

/// Large enough for Simple to reach what it can.
constexpr Bytes size_of_search{std::int64_t{1} << 30};

/// The decision as a run needs it. `transport`: the scenario's.
LibraryCall call_of(const Decision& decision, CollectiveOp op, const Decider& by, Canonical transport) {
  Canonical place{{"order", ""}};
  write_decision(decision, op, by, place, transport);
  LibraryCall out{.plan = decision.plan};
  out.algorithm = find_algorithm(decision.algorithm["name"].get<std::string>());
  ensure(out.algorithm != nullptr, "a library's algorithm is one of the catalog");
  out.arguments = arguments_of(*out.algorithm, decision.algorithm);
  out.channels = transport["channels"].get<int>();
  out.channel_rings = place["order"] == "channel_rings";
  const bool one_port = by.machine.ports == 1;  // else NCCL's NICs, which a graph names, stand for several
  if (const nccl::SearchGraph* graph = graph_for(decision.plan, by);
      graph != nullptr && one_port && !nccl::sends_to_peers(op))
    out.graph = std::make_shared<const nccl::SearchGraph>(*graph);
  out.protocol = std::make_shared<const Protocol>(decision.costs.protocol);
  out.transport = transport_of(transport, op);
  if (out.graph && out.transport.nics == Transport::Nics::per_channel)
    out.transport.channel_nics = std::make_shared<const ChannelNics>(nccl::nics_of(*out.graph, out.channels));
  out.launch = Picoseconds{transport["launch"].get<std::int64_t>()} + decision.costs.once;
  out.starts_channels = by.gpu.value("launch_channel", std::int64_t{0}) > 0;
  out.own_pass = decision.own_pass;
  out.reached = {decision.costs.nvlink, decision.costs.pcie, decision.costs.network};
  out.channel = decision.costs.channel;
  return out;
}

LibraryRun library_run(const Canonical& library, const Decider& by) {
  LibraryRun out{.name = library["name"].get<std::string>(), .version = library["version"].get<std::string>()};
  out.machine = by.machine;
  out.graph_file = by.graphs.path;
  const nccl::LibraryPlan rings{.algorithm = TunerAlgorithm::ring,
                                .protocol = TunerProtocol::simple,
                                .channels = nccl::spread_over_ports(by.machine.ring.count, by.machine),
                                .blocks = by.machine.ring.count};
  const nccl::LibraryCosts costs = costs_of(rings,
                                            {.op = CollectiveOp::all_reduce,
                                             .bytes = size_of_search,
                                             .chunk = slot_of(TunerProtocol::simple, by),
                                             .release = by.settings.release},
                                            by);
  out.searched = {costs.nvlink, costs.pcie, costs.network};
  return out;
}

}  // namespace

bool is_bound_by_blocks(const nccl::LibraryPlan& plan, Bandwidth channel) {
  return channel.bytes_per_second > 0 && plan.protocol == TunerProtocol::simple;
}

void share_variables(Canonical& canonical, const Json& written, const Blame& blame) {
  const Canonical& env = canonical["library"]["env"];
  constexpr std::pair<const char*, const char*> same[] = {{"NCCL_NET_GDR_LEVEL", "gdr_level"},
                                                          {"NCCL_P2P_LEVEL", "p2p_level"},
                                                          {"NCCL_P2P_DISABLE", "p2p_level"},
                                                          {"NCCL_PXN_DISABLE", "pxn"}};
  for (const auto& [variable, key] : same) {
    if (!env.contains(variable)) continue;
    for (const char* said : {variable, key})
      if (written.contains("transport") && written["transport"].contains(said))
        blame.fail(fmt::format("/library/env/{}", variable), fmt::format("cannot be combined with /transport/{}", said),
                   "they set the same thing; remove one");
    canonical["transport"][variable] = env[variable];
  }
}

LibraryRun decide(const Canonical& canonical, const Json& written, const LibraryPlace& at, Scenario& scenario,
                  const Blame& blame, const Files& files) {
  const Decider by = decider_of(canonical, written, at.part, at.pointer, at.transport, scenario, blame, files);
  const CollectiveOp op = op_named(at.part, blame, at.pointer);
  const Bytes bytes{at.part["bytes"].get<std::int64_t>()};
  const Decision decision = decision_of(op, bytes, by, blame);
  LibraryRun out = library_run(canonical["library"], by);
  out.call = call_of(decision, op, by, at.transport);
  write_decision(decision, op, by, at.part, at.transport);
  at.transport["launch"] = out.call.launch.count();
  return out;
}

namespace {

/// Sizes of buckets; local_sgd exchanges all at once.
std::set<Bytes> exchanges_of(const TrainingSpec& training, const Blame& blame) {
  std::set<Bytes> out;
  switch (training.regime->kind) {
    case Regime::Kind::ddp:
      for (const Bucket& bucket : training.step.buckets) out.insert(bucket.bytes);
      return out;
    case Regime::Kind::local_sgd:
      return {training.gradients()};
    default:
      blame.fail("/library",
                 fmt::format("expected the regime ddp or local_sgd with a library, found {}", training.regime->name),
                 "these exchange data by all-reduce; the exchanges of the others are not modeled for NCCL");
  }
}

}  // namespace

namespace {

/// The names of a plan's ranks.
std::vector<std::string> names_of_ranks(const Canonical& training, const TopologySpec& topology) {
  if (training.contains("ranks")) return training["ranks"].get<std::vector<std::string>>();
  std::vector<std::string> names;
  if (const auto* cluster = std::get_if<Cluster>(&topology))
    for (int node = 0; node < cluster->parts.front().nodes; ++node)
      for (const Machine::Device& device : cluster->parts.front().machine->devices)
        if (device.kind == NodeKind::gpu) names.push_back(fmt::format("node{}.{}", node, device.name));
  return names;
}

/// The groups of a plan's exchanges as a collective has them; no `groups` if their names are not known.
Canonical in_groups_of(const TrainingSpec& spec, const PlanExchange& exchange, const std::vector<std::string>& names) {
  Canonical groups = Canonical::array();
  for (const std::vector<Actor>& group : spec.groups_of(exchange)) {
    groups.emplace_back();
    for (const Actor rank : group) groups.back().push_back(names.at(static_cast<std::size_t>(rank)));
  }
  return {{"groups", std::move(groups)}};
}

const char* name_of(PlanUse use) {
  switch (use) {
    case PlanUse::tensor:
      return "tensor parallel ranks";
    case PlanUse::data:
      return "data parallel ranks";
    case PlanUse::context:
    case PlanUse::ring:
    case PlanUse::ring_back:
      return "context parallel ranks";
    case PlanUse::expert:
      return "expert parallel ranks";
    case PlanUse::expert_data:
      return "ranks with the same experts";
    case PlanUse::shard:
      return "data parallel ranks that divide a model";
    case PlanUse::replica:
      return "data parallel ranks with the same part";
    case PlanUse::forward:
    case PlanUse::backward:
      return "neighbor stages";
    case PlanUse::embedding:
      return "first and last stage";
    case PlanUse::traced:
      return "a trace";
  }
  fail_invariant("a call has one of thirteen uses");
}

/// Decides for each group shape, operation and size of a plan or a trace. What the transport of the scenario shows is
/// the choice for the exchange of most bytes.
LibraryRun decide_plan(const Canonical& canonical, const Json& written, const TrainingSpec& spec,
                       const LibraryPlace& at, Scenario& scenario, const Blame& blame, const Files& files) {
  Decider by = decider_of(canonical, written, at.part, at.pointer, at.transport, scenario, blame, files);
  LibraryRun out = library_run(canonical["library"], by);
  const std::vector<std::string> names = names_of_ranks(at.part, scenario.topology);
  std::optional<std::pair<PlanUse, int>> known;
  const Canonical own = at.transport;
  Canonical transport, place{{"order", ""}};
  const PlanExchange* most = nullptr;
  const std::vector<PlanExchange> exchanges = spec.exchanges_in_groups();
  const std::string pointer = at.pointer + (spec.trace ? "" : "/parallel");
  for (const PlanExchange& exchange : exchanges) {
    if (known != std::pair{exchange.use, exchange.stage}) {
      known = {exchange.use, exchange.stage};
      const std::vector<std::string> warnings = scenario.warnings;
      transport = own;
      try {
        by = decider_of(canonical, written, in_groups_of(spec, exchange, names), pointer, transport, scenario, blame,
                        files);
      } catch (const InputError& error) {
        blame.fail(pointer,
                   fmt::format("{} (groups of {}, stage {})", error.message(), name_of(exchange.use), exchange.stage),
                   error.hint() + "; choose sizes or an order that place all groups identically");
      }
      scenario.warnings = warnings;  // those of the first call stand for all
    }
    const Decision decision = decision_of(exchange.op, exchange.bytes, by, blame);
    out.exchanges[exchange] = call_of(decision, exchange.op, by, transport);
    if (most != nullptr && exchange.bytes <= most->bytes) continue;
    most = &exchange;
    out.call = out.exchanges[exchange];
    at.transport = transport;
    write_decision(decision, exchange.op, by, place, at.transport);
    at.transport["launch"] = out.call.launch.count();
  }
  constexpr CollectiveOp any = CollectiveOp::all_reduce;
  if (most == nullptr) out.call = call_of(decision_of(any, {}, by, blame), any, by, at.transport);
  return out;
}

}  // namespace

LibraryRun decide_training(const Canonical& canonical, const Json& written, const TrainingSpec& training,
                           const LibraryPlace& at, Scenario& scenario, const Blame& blame, const Files& files) {
  if (training.calls_in_groups()) return decide_plan(canonical, written, training, at, scenario, blame, files);
  const std::set<Bytes> exchanges = exchanges_of(training, blame);
  const Decider by = decider_of(canonical, written, at.part, at.pointer, at.transport, scenario, blame, files);
  constexpr CollectiveOp op = CollectiveOp::all_reduce;
  LibraryRun out = library_run(canonical["library"], by);
  for (const Bytes bytes : exchanges)
    out.exchanges[all_reduce_of(bytes)] = call_of(decision_of(op, bytes, by, blame), op, by, at.transport);
  out.call = out.exchanges.rbegin()->second;
  write_decision(decision_of(op, *exchanges.rbegin(), by, blame), op, by, at.part["regime"], at.transport);
  return out;
}

namespace {

bool same_nics(const Transport& a, const Transport& b) {
  if (a.nics != b.nics || (a.channel_nics == nullptr) != (b.channel_nics == nullptr)) return false;
  return a.channel_nics == nullptr || *a.channel_nics == *b.channel_nics;
}

/// True if messages of both may have one CallPlan.
bool move_alike(const LibraryCall& a, const LibraryCall& b) {
  return *a.protocol == *b.protocol && same_nics(a.transport, b.transport) &&
         a.transport.gdr_level == b.transport.gdr_level && a.transport.p2p_level == b.transport.p2p_level &&
         a.transport.point_to_point == b.transport.point_to_point && a.transport.staging == b.transport.staging &&
         a.reached == b.reached && a.channel == b.channel &&
         (a.channel.bytes_per_second == 0 || a.channels == b.channels);
}

/// A call, and the job that was the first to have it.
struct KnownCall {
  LibraryCall call;
  std::size_t job = 0;
};

/// Kernels of several jobs run at the same time on thread blocks of their own, so calls whose channels have a limit are
/// those of one job.
void number(LibraryRun& run, std::size_t job, std::vector<KnownCall>& known) {
  const auto number_of = [&](LibraryCall& call) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const KnownCall& other) {
      return (other.job == job || call.channel.bytes_per_second == 0) && move_alike(call, other.call);
    });
    call.number = static_cast<int>(found - known.begin());
    if (found == known.end()) known.push_back({call, job});
  };
  number_of(run.call);
  for (auto& [exchange, call] : run.exchanges) number_of(call);
}

}  // namespace

void number_calls(Scenario& scenario) {
  if (!scenario.library) return;
  std::vector<KnownCall> known;
  number(*scenario.library, 0, known);
  for (std::size_t j = 1; j < scenario.jobs.size(); ++j) {
    Job& job = scenario.jobs[j];
    if (!job.library) continue;
    LibraryRun numbered = *job.library;
    number(numbered, j, known);
    job.library = std::make_shared<const LibraryRun>(std::move(numbered));
  }
}

}  // namespace ringsim::scenarios
