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

std::int64_t segments_of(Bytes bytes, int channels, int ways, TunerProtocol protocol, bool whole_chunks = false) {
  const std::int64_t each = bytes.count / channels / ways, chunk = nccl::chunk_of(protocol).count;
  const std::int64_t fine = whole_chunks ? 1 : std::min(each / least_piece, pieces_in_flight);
  return std::clamp<std::int64_t>(std::max(fine, (each + chunk - 1) / chunk), 1, most_segments);
}

/// Between nodes a chunk is passed on when all of it is there: NCCL's proxies post whole ones.
std::int64_t tree_segments(const nccl::LibraryPlan& plan, Bytes bytes, const Decider& by) {
  const std::int64_t each = bytes.count * by.machine.ports / plan.channels / 2,
                     chunk = tree_chunk(plan, bytes, by.machine, by.settings.release).count;
  return std::clamp<std::int64_t>((each + chunk - 1) / chunk, 1, most_segments);
}

/// The schedule that stands for what NCCL's kernels do.
Canonical algorithm_of(const nccl::LibraryPlan& plan, CollectiveOp op, Bytes bytes, const Decider& by) {
  const nccl::TunerMachine& machine = by.machine;
  const bool rooted = op == CollectiveOp::broadcast || op == CollectiveOp::reduce;
  switch (plan.algorithm) {
    case TunerAlgorithm::ring:
      if (!rooted) return {{"name", "ring"}};
      // Between nodes a proxy of Simple posts whole slices, here of a chunk each.
      return {{"name", "chain"},
              {"segments", segments_of(bytes, plan.channels, 1, plan.protocol,
                                       machine.nodes > 1 && plan.protocol == TunerProtocol::simple)}};
    case TunerAlgorithm::tree:
      if (machine.nodes > 1)
        return {{"name", "double_binary_tree"}, {"group", machine.gpus}, {"segments", tree_segments(plan, bytes, by)}};
      [[fallthrough]];
    case TunerAlgorithm::nvls_tree:  // the same trees between nodes; nccl_costs has what the switches save inside
      return {{"name", "double_binary_tree"},
              {"group", machine.gpus},
              {"segments", segments_of(bytes, plan.channels, 2, plan.protocol)}};
    case TunerAlgorithm::pat:
      return {{"name", "pat"}};
    case TunerAlgorithm::nvls:
      return {{"name", "in_switch"}, {"segments", segments_of(bytes, plan.channels, 1, plan.protocol)}};
  }
  fail_invariant("NCCL's algorithms are five");
}

/// What fills a channel's step: of a ring a rank's part, of trees and chains a chunk.
Bytes chunk_in(const Canonical& algorithm, const nccl::LibraryPlan& plan, Bytes bytes, Bytes own, const Decider& by) {
  if (!algorithm.contains("segments")) return {own.count / plan.blocks};
  if (plan.algorithm == TunerAlgorithm::nvls_tree)
    return nccl::tree_chunk(plan, bytes, by.machine, by.settings.release);
  if (plan.algorithm == TunerAlgorithm::tree && by.machine.nodes > 1)
    return {std::min(bytes.count / plan.blocks, nccl::tree_chunk(plan, bytes, by.machine, by.settings.release).count)};
  return {std::min(bytes.count / plan.channels, nccl::chunk_of(plan.protocol).count)};
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
      blame.fail(
          pointer + "/op", fmt::format("expected an operation of NCCL, found {}", name),
          "NCCL has all_reduce, all_gather, reduce_scatter, broadcast, reduce, and what sends and receives make");
    return op;
  }
  fail_invariant("the table of fields names an op that nothing stands for: " + name);
}

/// The tuner's choice; of one rank, which has nobody to talk to, any.
nccl::LibraryPlan plan_of(CollectiveOp op, Bytes bytes, const nccl::TunerMachine& machine,
                          const nccl::LibrarySettings& settings, const Blame& blame) {
  const int ranks = machine.ranks();
  if (ranks == 1) return {.algorithm = TunerAlgorithm::ring, .protocol = TunerProtocol::simple};
  if (nccl::sends_to_peers(op))
    return point_to_point(nccl::send_plan(machine, to_a_peer(op, bytes, machine), settings),
                          op == CollectiveOp::send_recv ? 1 : ranks - 1, machine);
  const std::optional<nccl::LibraryPlan> plan = nccl::library_plan(op, bytes, machine, settings);
  if (!plan)
    blame.fail(
        "/library/env",
        fmt::format("expected an algorithm and a protocol by which NCCL does {} here, found none left", to_string(op)),
        "see NCCL_ALGO, NCCL_PROTO and NCCL_NVLS_ENABLE");
  return *plan;
}

bool adds_own_part(CollectiveOp op) { return op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter; }
bool copies_own_part(CollectiveOp op) { return op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all; }

/// True if the rate of a thread block limits a channel, of which a scenario may state the rate.
bool is_bound_by_blocks(const nccl::LibraryPlan& plan, Bandwidth channel) {
  return channel.bytes_per_second > 0 && plan.protocol == TunerProtocol::simple;
}

/// What is decided for one collective.
struct Decision {
  nccl::LibraryPlan plan;
  Canonical algorithm;
  nccl::LibraryCosts costs;
  Picoseconds own_pass{0};
};

Decision decision_of(CollectiveOp op, Bytes bytes, const Decider& by, const Blame& blame) {
  Decision out;
  out.plan = plan_of(op, bytes, by.machine, by.settings, blame);
  const bool sends = nccl::sends_to_peers(op);
  out.algorithm =
      by.machine.ranks() == 1 || sends ? Canonical{{"name", "direct"}} : algorithm_of(out.plan, op, bytes, by);
  const Bytes own{bytes.count / by.machine.ranks()};
  const Bytes chunk = sends ? nccl::send_plan(by.machine, to_a_peer(op, bytes, by.machine), by.settings).a_channel
                            : chunk_in(out.algorithm, out.plan, bytes, own, by);
  const Bytes piece{bytes.count / out.plan.channels / 2 / out.algorithm.value("segments", std::int64_t{1})};
  out.costs = nccl::library_costs(out.plan, by.machine,
                                  {.op = op,
                                   .bytes = bytes,
                                   .chunk = chunk,
                                   .piece = piece,
                                   .release = by.settings.release,
                                   .net_chunk = nccl::net_chunk_of(by.settings)},
                                  by.costs);
  if (by.gpu.contains("post")) out.costs.protocol.post = Picoseconds{0};  // the topology has it
  if (by.gpu.contains("channel") && is_bound_by_blocks(out.plan, out.costs.channel))
    out.costs.channel = nccl::channel_rate(out.plan, {by.gpu["channel"].get<std::int64_t>()});
  const std::int64_t rate = adds_own_part(op)     ? by.gpu.value("reduce", out.costs.reduce.bytes_per_second)
                            : copies_own_part(op) ? by.gpu.value("copy", out.costs.copy.bytes_per_second)
                                                  : std::int64_t{0};
  if (rate > 0 && by.machine.ranks() > 1) out.own_pass = transfer_time(own, {rate});
  return out;
}

/// What is known of the rings or trees that a plan takes, by the file or because they cross NICs; nullptr: nothing.
const nccl::SearchGraph* graph_for(const nccl::LibraryPlan& plan, const Decider& by) {
  using Id = nccl::SearchGraph::Id;
  if (plan.algorithm == TunerAlgorithm::nvls) return nullptr;
  if (plan.algorithm == TunerAlgorithm::ring && by.graphs.crossing) return &*by.graphs.crossing;
  return by.graphs.file.find(plan.algorithm == TunerAlgorithm::ring ? Id::ring : Id::tree);
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
    const bool by_channel = decision.plan.algorithm != TunerAlgorithm::nvls;
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
  out.own_pass = decision.own_pass;
  out.reached = {decision.costs.nvlink, decision.costs.pcie, decision.costs.network};
  out.channel = decision.costs.channel;
  return out;
}

LibraryRun library_run(const Canonical& library, const Decider& by) {
  LibraryRun out{.name = "nccl", .version = library["version"].get<std::string>()};
  out.machine = by.machine;
  out.graph_file = by.graphs.path;
  if (by.graphs.crossing) out.crossing = std::make_shared<const nccl::SearchGraph>(*by.graphs.crossing);
  const nccl::LibraryPlan rings{.algorithm = TunerAlgorithm::ring,
                                .protocol = TunerProtocol::simple,
                                .channels = nccl::spread_over_ports(by.machine.ring.count, by.machine),
                                .blocks = by.machine.ring.count};
  const nccl::LibraryCosts costs = nccl::library_costs(rings, by.machine,
                                                       {.op = CollectiveOp::all_reduce,
                                                        .bytes = size_of_search,
                                                        .chunk = nccl::chunk_of(TunerProtocol::simple),
                                                        .release = by.settings.release},
                                                       by.costs);
  out.searched = {costs.nvlink, costs.pcie, costs.network};
  return out;
}

}  // namespace

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
                   "they set the same; leave one out");
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
                 "they exchange by all-reduce; of the others the exchanges are not modeled as NCCL does them");
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
Canonical in_groups_of(const PlanSpec& plan, const PlanExchange& exchange, const std::vector<std::string>& names) {
  Canonical groups = Canonical::array();
  for (const std::vector<Actor>& group : plan_groups(plan, exchange.use, exchange.stage)) {
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
  }
  fail_invariant("a call has one of ten uses");
}

/// Decides for each group shape, operation and size of a plan. What the transport of the scenario shows is the choice
/// for the exchange of most bytes.
LibraryRun decide_plan(const Canonical& canonical, const Json& written, const PlanSpec& plan, const LibraryPlace& at,
                       Scenario& scenario, const Blame& blame, const Files& files) {
  Decider by = decider_of(canonical, written, at.part, at.pointer, at.transport, scenario, blame, files);
  LibraryRun out = library_run(canonical["library"], by);
  const std::vector<std::string> names = names_of_ranks(at.part, scenario.topology);
  std::optional<std::pair<PlanUse, int>> known;
  const Canonical own = at.transport;
  Canonical transport, place{{"order", ""}};
  const PlanExchange* most = nullptr;
  const std::vector<PlanExchange> exchanges = plan_exchanges(plan);
  for (const PlanExchange& exchange : exchanges) {
    if (known != std::pair{exchange.use, exchange.stage}) {
      known = {exchange.use, exchange.stage};
      const std::vector<std::string> warnings = scenario.warnings;
      transport = own;
      try {
        by = decider_of(canonical, written, in_groups_of(plan, exchange, names), at.pointer + "/parallel", transport,
                        scenario, blame, files);
      } catch (const InputError& error) {
        blame.fail(at.pointer + "/parallel",
                   fmt::format("{} (groups of {}, stage {})", error.message(), name_of(exchange.use), exchange.stage),
                   error.hint() + "; take sizes or an order by which the groups lie alike");
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
  if (training.plan) return decide_plan(canonical, written, training.plan->program, at, scenario, blame, files);
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

namespace {

/// Variables that NCCL reads only for what it has not chosen here, each with why. Not those that happen to change
/// nothing, as bounds of channels do that leave room.
std::vector<std::pair<const char*, std::string>> idle_variables(CollectiveOp op, const LibraryRun& run) {
  std::vector<std::pair<const char*, std::string>> out;
  if (run.machine.nodes == 1)
    out.emplace_back("NCCL_NET_GDR_C2C", "there is one node, and it is about NICs");
  else if (!run.machine.arm)
    out.emplace_back("NCCL_NET_GDR_C2C", "no chip-to-chip link joins GPUs and CPUs here");
  if (nccl::sends_to_peers(op)) {
    for (const char* name : {"NCCL_ALGO", "NCCL_NTHREADS", "NCCL_NVLS_ENABLE"})
      out.emplace_back(name, fmt::format("{} is sends and receives to peers", to_string(op)));
    if (run.machine.nodes == 1)
      for (const char* name : {"NCCL_NCHANNELS_PER_NET_PEER", "NCCL_P2P_NET_CHUNKSIZE"})
        out.emplace_back(name, "no peer is on another node");
    return out;
  }
  for (const char* name : {"NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS", "NCCL_NCHANNELS_PER_NET_PEER",
                           "NCCL_P2P_LL_THRESHOLD", "NCCL_P2P_NET_CHUNKSIZE"})
    out.emplace_back(name, fmt::format("it is about sends and receives to peers, and {} is none", to_string(op)));
  const auto chosen = fmt::format("the library chooses {}", to_string(run.call.plan.algorithm));
  if (run.call.plan.algorithm == TunerAlgorithm::nvls || run.call.plan.algorithm == TunerAlgorithm::nvls_tree) {
    for (const char* name :
         {"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS", "NCCL_NTHREADS"})
      out.emplace_back(name, chosen + ", and it is about rings and trees");
    for (const char* name : {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"})
      out.emplace_back(name, chosen + ", and how it bounds the thread blocks of NVLS is not modeled");
  } else if (run.call.plan.protocol == TunerProtocol::ll128) {
    out.emplace_back("NCCL_NTHREADS", "the library chooses LL128, and it is about LL and Simple");
  }
  if (op != CollectiveOp::all_reduce)
    out.emplace_back("NCCL_NVLS_ENABLE", fmt::format("of {} NVLS is not modeled", to_string(op)));
  else if (run.machine.nvls.count < 2 || nccl::release_of_version(run.version) < nccl::Release::v2_18)
    out.emplace_back("NCCL_NVLS_ENABLE", "the machine has no NVLS by this release");
  return out;
}

/// A collective that the library does: of a job, or of a size that a training step exchanges.
struct LibraryUse {
  CollectiveOp op{};
  LibraryRun run;
};

/// All of them, the scenario's own first. One rank alone calls nothing.
std::vector<LibraryUse> uses_of(const Scenario& scenario) {
  std::vector<LibraryUse> out;
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    const LibraryRun* library = scenario.library_of(j);
    if (library == nullptr || library->machine.ranks() == 1) continue;
    const CollectiveOp op = scenario.training_of(j) != nullptr ? CollectiveOp::all_reduce : scenario.jobs[j].request.op;
    out.push_back({op, *library});
    for (const auto& [exchange, call] : library->exchanges) {
      out.push_back({scenario.training_of(j)->plan ? exchange.op : op, *library});
      out.back().run.call = call;
    }
  }
  return out;
}

/// Variables that none of them reads, with why the first does not.
std::vector<std::pair<const char*, std::string>> idle_variables(const std::vector<LibraryUse>& uses) {
  auto idle = idle_variables(uses.front().op, uses.front().run);
  for (const LibraryUse& use : uses) {
    const auto its = idle_variables(use.op, use.run);
    std::erase_if(idle, [&](const auto& each) {
      return std::none_of(its.begin(), its.end(),
                          [&](const auto& other) { return std::string_view(other.first) == each.first; });
    });
  }
  return idle;
}

/// NCCL takes others than all that NCCL_ALGO names, if this machine has none of these. Not always those that it would
/// take without the variable.
void warn_of_other_algorithm(const std::string& named, const LibraryRun& run, const Blame& blame, Scenario& scenario) {
  std::string none;
  for (const TunerAlgorithm each : nccl::read_algorithms(named)) {
    if (each == run.call.plan.algorithm) return;
    none += fmt::format("{}{}", none.empty() ? "" : ", ", to_string(each));
  }
  scenario.warnings.push_back(fmt::format("{}: NCCL {} has no {} here and falls back to {}",
                                          blame.where("/library/env/NCCL_ALGO"), run.version, none,
                                          to_string(run.call.plan.algorithm)));
}

/// What a rank does with its own part, which `devices.gpu` has the rates of: sends and additions go by the costs of the
/// library's kernels.
void warn_of_own_part(const Canonical& gpu, const std::vector<LibraryUse>& uses, const Blame& blame,
                      Scenario& scenario) {
  const auto warn = [&](const char* key, const char* what, bool (*does)(CollectiveOp)) {
    if (gpu.contains(key) &&
        std::none_of(uses.begin(), uses.end(), [&](const LibraryUse& use) { return does(use.op); }))
      scenario.warnings.push_back(fmt::format("{}: it has no effect, because in {} no rank {} its own part",
                                              blame.where(fmt::format("/devices/gpu/{}", key)),
                                              to_string(uses.front().op), what));
  };
  warn("copy", "copies", copies_own_part);
  warn("reduce", "adds up", adds_own_part);
}

/// True if a variable of that value changes nothing in NCCL either: "0" of NCCL_SHM_DISABLE.
bool is_idle_at(std::string_view values, const Json& written) {
  const std::string value = written.is_string() ? written.get<std::string>() : written.dump();
  for (std::size_t at = 0; at < values.size();) {
    const std::size_t comma = std::min(values.find(',', at), values.size());
    if (values.substr(at, comma - at) == value) return true;
    at = comma + 1;
  }
  return false;
}

/// True if NCCL does not read that variable's setting on this machine: no collective leaves its node, or GPUs of a node
/// exchange nothing through host memory (NVIDIA/nccl 5067397c2676 src/transport.cc, selectTransport: peer access, then
/// shared memory, then the network).
bool is_idle_here(std::string_view variable, const std::vector<LibraryUse>& uses, PathType p2p_level,
                  bool shared_memory) {
  const bool all_reach = p2p_level > PathType::loc && std::none_of(uses.begin(), uses.end(), [](const LibraryUse& use) {
                           return use.run.machine.through_host;
                         });
  const bool one_node =
      std::all_of(uses.begin(), uses.end(), [](const LibraryUse& use) { return use.run.machine.nodes == 1; });
  if (variable.starts_with("NCCL_SHM_")) return all_reach;
  const bool is_of_network =
      variable.starts_with("NCCL_IB_") || variable.starts_with("NCCL_NET") || variable.starts_with("NCCL_GDR");
  return is_of_network && one_node && (all_reach || shared_memory);
}

/// Variables that change times in NCCL, and none here. Those that NCCL does not read on this machine pass in silence:
/// command lines have them for all machines.
void warn_of_other_variables(const Json& written, const std::vector<LibraryUse>& uses, const Blame& blame,
                             Scenario& scenario) {
  const Json& library = written["library"];
  if (!library.is_object() || !library.contains("env") || !library["env"].is_object()) return;
  const Json& env = library["env"];
  const bool shared_memory = !env.contains("NCCL_SHM_DISABLE") || is_idle_at("0", env["NCCL_SHM_DISABLE"]);
  for (const auto& [name, value] : env.items()) {
    const nccl::OtherVariable* known = nccl::find_other_variable(name);
    if (known == nullptr || !known->changes_time || is_idle_at(known->idle, value)) continue;
    if (!uses.empty() && is_idle_here(name, uses, scenario.transport.p2p_level, shared_memory)) continue;
    scenario.warnings.push_back(fmt::format("{}: its effect is not modeled: {}{}{}",
                                            blame.where(fmt::format("/library/env/{}", name)), known->what,
                                            known->instead.empty() ? "" : "; ", known->instead));
  }
}

/// Variables that the release does not know.
void warn_of_releases(const Canonical& env, const std::string& version, const Blame& blame, Scenario& scenario) {
  constexpr std::pair<const char*, int> since[] = {{"NCCL_P2P_NET_CHUNKSIZE", 14}, {"NCCL_MIN_CTAS", 17},
                                                   {"NCCL_MAX_CTAS", 17},          {"NCCL_NCHANNELS_PER_NET_PEER", 12},
                                                   {"NCCL_P2P_LL_THRESHOLD", 14},  {"NCCL_NET_GDR_C2C", 26}};
  for (const auto& [name, minor] : since)
    if (env.contains(name) && nccl::minor_of_version(version) < minor)
      scenario.warnings.push_back(
          fmt::format("{}: it has no effect, because NCCL {} does not know it; 2.{} is the "
                      "first release that does",
                      blame.where(fmt::format("/library/env/{}", name)), version, minor));
}

/// A file that varies a setting has the point without it among others.
bool file_varies(const Scenario& scenario, std::string_view path) {
  return std::any_of(scenario.varied.begin(), scenario.varied.end(),
                     [&](const auto& varied) { return varied.first == path; });
}

}  // namespace

void warn_of_library(const Canonical& canonical, const Json& written, const Blame& blame, Scenario& scenario) {
  const auto warn = [&](const std::string& pointer, const std::string& because) {
    scenario.warnings.push_back(fmt::format("{}: it has no effect, because {}", blame.where(pointer), because));
  };
  const auto says = [&](const char* kind) {
    return canonical.contains("devices") && canonical["devices"].contains(kind);
  };
  if (canonical.contains("library")) {
    const Canonical& env = canonical["library"]["env"];
    // It decides which rings are found, and which graphs of a file count.
    const bool counts =
        env.value("NCCL_CROSS_NIC", "") == "0" &&
        (env.contains("NCCL_GRAPH_FILE") || (scenario.library && scenario.library->machine.may_cross_nics));
    for (const char* name : {"NCCL_CROSS_NIC", "NCCL_BUFFSIZE"})
      if (env.contains(name) && !(counts && name == std::string_view("NCCL_CROSS_NIC")))
        warn(fmt::format("/library/env/{}", name), "what it changes is not modeled");
    const std::vector<LibraryUse> uses = uses_of(scenario);
    warn_of_other_variables(written, uses, blame, scenario);
    warn_of_releases(env, canonical["library"]["version"], blame, scenario);
    if (!uses.empty()) {
      const auto idle = idle_variables(uses);
      for (const auto& [name, because] : idle)
        if (env.contains(name)) warn(fmt::format("/library/env/{}", name), because);
      const bool nvls_is_idle = std::any_of(idle.begin(), idle.end(), [](const auto& each) {
        return each.first == std::string_view("NCCL_NVLS_ENABLE");
      });
      if (const std::string nvls = env.value("NCCL_NVLS_ENABLE", "0");
          nvls != "0" && !nvls_is_idle && !file_varies(scenario, "library.env.NCCL_NVLS_ENABLE"))
        warn("/library/env/NCCL_NVLS_ENABLE", "NVLS may be chosen without it, too");
      const auto chosen =
          std::find_if(uses.begin(), uses.end(), [](const LibraryUse& use) { return !nccl::sends_to_peers(use.op); });
      if (env.contains("NCCL_ALGO") && chosen != uses.end())
        warn_of_other_algorithm(env["NCCL_ALGO"], chosen->run, blame, scenario);
      if (says("gpu") && !file_varies(scenario, "collective.op"))
        warn_of_own_part(canonical["devices"]["gpu"], uses, blame, scenario);
    }
    if (canonical.contains("harness"))
      for (const auto& [key, value] : canonical["harness"].items())
        if (key != "gpus_per_thread") warn(fmt::format("/harness/{}", key), "what it changes is not modeled");
    if (says("cpu")) warn("/devices/cpu", "no CPU takes part in the library's collectives");
    const auto gpu_says = [&](const char* key) { return says("gpu") && canonical["devices"]["gpu"].contains(key); };
    if (gpu_says("start")) warn("/devices/gpu/start", "the costs of the library's kernels have it already");
    const auto is_bound = [](const LibraryUse& use) {
      return is_bound_by_blocks(use.run.call.plan, use.run.call.channel);
    };
    if (gpu_says("channel") && scenario.library && std::none_of(uses.begin(), uses.end(), is_bound))
      warn("/devices/gpu/channel",
           "what thread blocks send counts in rings and trees by Simple over NVLink; here the library's costs have it");
    return;
  }
  const std::string because = "no library's kernels run: the scenario has no key \"library\"";
  for (const char* key : {"launch", "launch_channel"})
    if (says("gpu") && canonical["devices"]["gpu"].contains(key)) warn(fmt::format("/devices/gpu/{}", key), because);
  if (canonical.contains("harness")) warn("/harness", because);
}

}  // namespace ringsim::scenarios
