#include "scenarios/meaning/meaning_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "scenarios/meaning/enum_of.hpp"
#include "scenarios/meaning/meaning_groups.hpp"
#include "scenarios/meaning/meaning_jobs.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/catalog.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/nccl/nccl_costs.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;
using nccl::TunerAlgorithm;
using nccl::TunerProtocol;

/// NCCL sends up to this many bytes to a peer by LL (NVIDIA/nccl 5067397c2676 src/enqueue.cc, NCCL_P2P_LL_THRESHOLD).
constexpr std::int64_t most_of_p2p_ll = 16'384;
/// Most pieces in which a buffer goes down or up a tree: a bound on the work of the simulation.
constexpr std::int64_t most_segments = 4096;

/// Keys that the library decides.
void refuse_decided(const Json& written, const Blame& blame) {
  const auto refuse = [&](const std::string& pointer, const char* key) {
    blame.fail(pointer, fmt::format("expected no {} next to a library, which decides it, found one", key),
               "leave it out, or leave \"library\" out");
  };
  if (written.contains("collective"))
    for (const char* key : {"algorithm", "order", "seed", "servers_on"})
      if (written["collective"].contains(key)) refuse(fmt::format("/collective/{}", key), key);
  if (written.contains("transport"))
    for (const char* key : {"protocol", "launch", "channels", "chunk", "nics"})
      if (written["transport"].contains(key)) refuse(fmt::format("/transport/{}", key), key);
  if (written.contains("training") && written["training"].contains("regime") &&
      written["training"]["regime"].is_object() && written["training"]["regime"].contains("algorithm"))
    refuse("/training/regime/algorithm", "algorithm");
}

/// What users say of GPUs that write into each other's memory; nothing: NCCL's own rule. Variables are resolved.
std::optional<PathType> said_p2p_level(const Canonical& canonical, const Json& written) {
  const PathType level = path_type(canonical["transport"]["p2p_level"].get<std::string>()).value();
  const Canonical& env = canonical["library"]["env"];
  bool said = level == PathType::loc || env.contains("NCCL_P2P_LEVEL");  // NCCL_P2P_DISABLE=0 says nothing
  for (const char* key : {"p2p_level", "NCCL_P2P_LEVEL"})
    said = said || (written.contains("transport") && written["transport"].contains(key));
  return said ? std::optional(level) : std::nullopt;
}

nccl::LibrarySettings settings_of(const Canonical& library, const Blame& blame) {
  const auto blamed = [&](const char* pointer, const auto& read) {
    try {
      return read();
    } catch (const InputError& error) {
      blame.fail(pointer, error.message(), error.hint());
    }
  };
  nccl::LibrarySettings out;
  out.release = blamed("/library/version", [&] { return nccl::release_of_version(library["version"]); });
  const Canonical& env = library["env"];
  if (env.contains("NCCL_ALGO"))
    out.algorithms = blamed("/library/env/NCCL_ALGO", [&] { return nccl::read_algorithms(env["NCCL_ALGO"]); });
  if (env.contains("NCCL_PROTO"))
    out.protocols = blamed("/library/env/NCCL_PROTO", [&] { return nccl::read_protocols(env["NCCL_PROTO"]); });
  if (env.contains("NCCL_MIN_NCHANNELS")) out.min_channels = env["NCCL_MIN_NCHANNELS"].get<int>();
  if (env.contains("NCCL_MAX_NCHANNELS")) out.max_channels = env["NCCL_MAX_NCHANNELS"].get<int>();
  if (out.min_channels && out.max_channels && *out.min_channels > *out.max_channels)
    blame.fail("/library/env/NCCL_MIN_NCHANNELS",
               fmt::format("expected at most NCCL_MAX_NCHANNELS, {}, found {}", *out.max_channels, *out.min_channels));
  if (env.contains("NCCL_NTHREADS")) out.threads = env["NCCL_NTHREADS"].get<int>();
  if (env.contains("NCCL_NVLS_ENABLE")) out.nvls = env["NCCL_NVLS_ENABLE"] != "0";
  return out;
}

/// What NCCL_GRAPH_FILE names.
struct GraphsSaid {
  std::string path;  ///< empty: nothing
  nccl::GraphFile file;
};

/// The GPUs of each node by their local names, and on how many nodes.
struct Members {
  std::vector<std::string> gpus;
  int nodes = 1;
};

/// `pointer`: where the ranks are named.
Members members_of(const Canonical& collective, const Cluster& cluster, const std::string& pointer,
                   const Blame& blame) {
  Members out;
  if (!collective.contains("ranks")) {
    for (const Machine::Device& device : cluster.parts.front().machine->devices)
      if (device.kind == NodeKind::gpu) out.gpus.push_back(device.name);
    out.nodes = cluster.parts.front().nodes;
    return out;
  }
  std::map<std::string, std::vector<std::string>> by_node;
  std::vector<std::string> order;
  const auto& devices = cluster.parts.front().machine->devices;
  for (std::size_t i = 0; i < collective["ranks"].size(); ++i) {
    const auto text = collective["ranks"][i].get<std::string>();
    const std::size_t dot = text.find('.');
    const auto is_it = [&](const Machine::Device& device) {
      return device.kind == NodeKind::gpu && dot != std::string::npos && text.substr(dot + 1) == device.name;
    };
    if (std::none_of(devices.begin(), devices.end(), is_it))
      blame.fail(fmt::format("{}/{}", pointer, i), fmt::format("expected the name of a gpu, found {}", in_quotes(text)),
                 "names are those of `ringsim topology show`, such as \"node0.gpu0\"");
    const std::string node = text.substr(0, dot);
    if (by_node.count(node) == 0) order.push_back(node);
    by_node[node].push_back(text.substr(dot + 1));
  }
  out.gpus = by_node[order.front()];
  out.nodes = static_cast<int>(order.size());
  for (const auto& [node, gpus] : by_node)
    if (gpus != out.gpus)
      blame.fail(pointer,
                 fmt::format("expected the same GPUs of every node next to a library, found others of {} than of {}",
                             node, order.front()),
                 "how NCCL joins unlike nodes is not modelled");
  return out;
}

/// `pointer`: where the ranks are named. `level`: said_p2p_level(); NCCL's own where users say nothing.
nccl::TunerMachine machine_of(const Canonical& collective, const std::string& pointer, const TopologySpec& topology,
                              const nccl::LibrarySettings& settings, std::optional<PathType>& level,
                              const Blame& blame) {
  const auto* cluster = std::get_if<Cluster>(&topology);
  if (cluster == nullptr || cluster->parts.size() != 1)
    blame.fail("/library",
               fmt::format("expected a topology of kind cluster with one kind of node next to a library, found {}",
                           cluster == nullptr ? "another kind" : "several kinds of nodes"),
               "NCCL decides by the GPUs, links and NICs of a machine");
  const Members members = members_of(collective, *cluster, pointer, blame);
  Bandwidth nic;
  if (cluster->fabric) nic = std::visit([](const auto& fabric) { return fabric.link.bandwidth; }, *cluster->fabric);
  const Machine& machine = *cluster->parts.front().machine;
  if (!level) level = nccl::p2p_level(machine, static_cast<int>(members.gpus.size()), settings.release);
  try {
    return nccl::tuner_machine(machine, members.gpus, members.nodes, nic, settings.release, level);
  } catch (const InputError& error) {
    blame.fail(collective.contains("ranks") ? pointer : "/topology", error.message(), error.hint());
  }
}

/// Assumption: chunks go out as they fill, piece after piece, so that those behind in a tree or chain begin early:
/// pieces as small as that, at least as many as that where the size allows, and none larger than a chunk. Fitted to the
/// broadcasts of validate/measured/tables, whose time is a constant and one pass over the wire at all sizes.
constexpr std::int64_t least_piece = 8'192, pieces_in_flight = 32;

std::int64_t segments_of(Bytes bytes, int channels, int ways, TunerProtocol protocol, bool whole_chunks = false) {
  const std::int64_t each = bytes.count / channels / ways, chunk = nccl::chunk_of(protocol).count;
  const std::int64_t fine = whole_chunks ? 1 : std::min(each / least_piece, pieces_in_flight);
  return std::clamp<std::int64_t>(std::max(fine, (each + chunk - 1) / chunk), 1, most_segments);
}

/// A library's settings, and the machine that it decides for.
struct Decider {
  nccl::LibrarySettings settings;
  nccl::TunerMachine machine;
  Canonical gpu = Canonical::object();  ///< devices.gpu, as the user states it
  int in_turn = 1;                      ///< GPUs that one thread launches for
  bool own_staging = false;             ///< the user states how data rests in host memory
  GraphsSaid graphs;                    ///< of NCCL_GRAPH_FILE
  std::string version;
};

/// Between nodes a chunk is passed on when all of it is there: NCCL's proxies post whole ones.
std::int64_t tree_segments(const nccl::LibraryPlan& plan, Bytes bytes, const Decider& by) {
  const std::int64_t each = bytes.count / plan.channels / 2,
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
    case TunerAlgorithm::nvls:
      return {{"name", "in_switch"}, {"segments", segments_of(bytes, plan.channels, 1, plan.protocol)}};
  }
  fail_invariant("NCCL's algorithms are four");
}

/// What fills a channel's step: of a ring a rank's part, of trees and chains a chunk.
Bytes chunk_in(const Canonical& algorithm, const nccl::LibraryPlan& plan, Bytes bytes, Bytes own, const Decider& by) {
  if (!algorithm.contains("segments")) return {own.count / plan.blocks};
  if (plan.algorithm == TunerAlgorithm::tree && by.machine.nodes > 1)
    return {std::min(bytes.count / plan.blocks, nccl::tree_chunk(plan, bytes, by.machine, by.settings.release).count)};
  return {std::min(bytes.count / plan.channels, nccl::chunk_of(plan.protocol).count)};
}

/// Sends and receives to all peers at once.
nccl::LibraryPlan point_to_point(Bytes a_peer, const nccl::TunerMachine& machine,
                                 const nccl::LibrarySettings& settings) {
  nccl::LibraryPlan plan{.algorithm = TunerAlgorithm::ring, .protocol = TunerProtocol::simple};
  plan.channels = plan.blocks = nccl::p2p_channels(machine, a_peer, settings);
  const auto& allowed = settings.protocols;
  const bool may = allowed.empty() || std::find(allowed.begin(), allowed.end(), TunerProtocol::ll) != allowed.end();
  if (may && a_peer.count <= most_of_p2p_ll * plan.channels) plan.protocol = TunerProtocol::ll;
  return plan;
}

/// Assumption: what goes through host memory is read as it is written, line by line in LL, and in Simple in pieces as
/// small as that, because a block has several slices in flight: measured all_reduce of four RTX PRO 6000 takes no
/// longer than one pass over the slower side at all sizes.
Bytes host_piece(TunerProtocol protocol) { return {protocol == TunerProtocol::simple ? 65'536 : 4'096}; }

CollectiveOp op_named(const Canonical& collective, const Blame& blame) {
  const auto name = collective["op"].get<std::string>();
  for (const CollectiveOp op : collective_ops()) {
    if (to_string(op) != name) continue;
    if (op == CollectiveOp::barrier || op == CollectiveOp::pairs)
      blame.fail(
          "/collective/op", fmt::format("expected an operation of NCCL, found {}", name),
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
    return point_to_point(op == CollectiveOp::send_recv ? bytes : Bytes{bytes.count / ranks}, machine, settings);
  const std::optional<nccl::LibraryPlan> plan = nccl::library_plan(op, bytes, machine, settings);
  if (!plan)
    blame.fail(
        "/library/env",
        fmt::format("expected an algorithm and a protocol by which NCCL does {} here, found none left", to_string(op)),
        "see NCCL_ALGO, NCCL_PROTO and NCCL_NVLS_ENABLE");
  return *plan;
}

/// The collective of its first group, with the names of that group as its ranks: what NCCL decides for it, all groups
/// do. So they must lie alike.
Canonical of_first_group(const Canonical& collective, const TopologySpec& topology, const Blame& blame) {
  const auto* cluster = std::get_if<Cluster>(&topology);
  const char* key = collective.contains("groups") ? "groups" : "split";
  if (!collective.contains(key) || cluster == nullptr || cluster->parts.size() != 1) return collective;
  std::vector<std::string> names = names_in_groups(collective);
  if (collective.contains("ranks")) names = collective["ranks"].get<std::vector<std::string>>();
  const Cluster::Part& part = cluster->parts.front();
  if (names.empty())
    for (int node = 0; node < part.nodes; ++node)
      for (const Machine::Device& device : part.machine->devices)
        if (device.kind == NodeKind::gpu) names.push_back(fmt::format("node{}.{}", node, device.name));
  const auto groups = groups_of(collective, names.size(), "/collective", blame);
  Canonical one = collective;
  int nodes = 0;                                   // of the group that was looked at before
  for (std::size_t g = groups.size(); g-- > 0;) {  // the first one comes last, and stays
    std::vector<std::string> own;
    for (const int place : groups[g]) own.push_back(names[static_cast<std::size_t>(place)]);
    one["ranks"] = std::move(own);
    const bool listed = collective.contains("groups");
    const Members members =
        members_of(one, *cluster, listed ? fmt::format("/collective/groups/{}", g) : "/collective/ranks", blame);
    if (nodes != 0 && members.nodes != nodes)
      blame.fail(
          fmt::format("/collective/{}", key),
          fmt::format("expected groups that lie alike next to a library, found group {} on {} and group {} on {} "
                      "nodes",
                      g, members.nodes, g + 1, nodes),
          "the library decides for the first group, and the others do the same");
    nodes = members.nodes;
  }
  return one;
}

/// Reads what NCCL_GRAPH_FILE names, and puts it in the place of what the search would find.
GraphsSaid take_graph_file(const Canonical& library, const Members& members, const Machine& machine,
                           const nccl::LibrarySettings& settings, nccl::TunerMachine& tuner, const Files& files) {
  GraphsSaid out;
  const Canonical& env = library["env"];
  if (!env.contains("NCCL_GRAPH_FILE")) return out;
  const Files::Content& content = files.read(env["NCCL_GRAPH_FILE"]["path"].get<std::string>());
  out.path = content.path;
  out.file = nccl::import_nccl_graph(content.text, content.path,
                                     nccl::graph_reading(nccl::graph_devices(machine, members.gpus), members.nodes,
                                                         library["version"].get<std::string>()));
  if (env.contains("NCCL_CROSS_NIC") && env["NCCL_CROSS_NIC"] == "0") nccl::leave_out_cross_nic(out.file, out.path);
  nccl::take_graphs(tuner, out.file, out.path, settings.release);
  return out;
}

/// `part`: "collective" or "training", which has the names of the ranks where not all GPUs take part. Writes the level
/// of peer access.
Decider decider_of(Canonical& canonical, const Json& written, const std::string& part, Scenario& scenario,
                   const Blame& blame, const Files& files) {
  const TopologySpec& topology = scenario.topology;
  refuse_decided(written, blame);
  const Canonical& library = canonical["library"];
  Decider out;
  out.settings = settings_of(library, blame);
  std::optional<PathType> level = said_p2p_level(canonical, written);
  const std::string names = canonical[part].contains("groups") ? "groups/0" : "ranks";
  const std::string pointer = fmt::format("/{}/{}", part, names);
  const Canonical first_group = of_first_group(canonical[part], topology, blame);
  out.machine = machine_of(first_group, pointer, topology, out.settings, level, blame);
  canonical["transport"]["p2p_level"] = to_string(*level);
  out.own_staging = written.contains("transport") && written["transport"].contains("staging");
  if (library.contains("plugin")) out.machine.net_latency_us = nccl::latency_of_aws_ofi_nccl;
  const Cluster& cluster = std::get<Cluster>(topology);
  out.version = library["version"].get<std::string>();
  out.graphs = take_graph_file(library, members_of(first_group, cluster, pointer, blame),
                               *cluster.parts.front().machine, out.settings, out.machine, files);
  const auto& warnings = out.graphs.file.warnings;
  scenario.warnings.insert(scenario.warnings.end(), warnings.begin(), warnings.end());
  if (canonical.contains("devices") && canonical["devices"].contains("gpu")) out.gpu = canonical["devices"]["gpu"];
  if (canonical.contains("harness")) out.in_turn = canonical["harness"].value("gpus_per_thread", 1);
  return out;
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
  out.algorithm = by.machine.ranks() == 1 || nccl::sends_to_peers(op) ? Canonical{{"name", "direct"}}
                                                                      : algorithm_of(out.plan, op, bytes, by);
  const Bytes own{bytes.count / by.machine.ranks()};
  const Bytes chunk = chunk_in(out.algorithm, out.plan, bytes, own, by);
  out.costs = nccl::library_costs(out.plan, by.machine,
                                  {.op = op, .bytes = bytes, .chunk = chunk, .release = by.settings.release});
  const bool adds = op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter;
  const bool copies = op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all;
  const std::int64_t rate = adds     ? by.gpu.value("reduce", out.costs.reduce.bytes_per_second)
                            : copies ? by.gpu.value("copy", out.costs.copy.bytes_per_second)
                                     : std::int64_t{0};
  if (rate > 0 && by.machine.ranks() > 1) out.own_pass = transfer_time(own, {rate});
  return out;
}

/// What the file says of the rings or trees that a plan takes; nullptr: nothing.
const nccl::SearchGraph* graph_for(const nccl::LibraryPlan& plan, const Decider& by) {
  using Id = nccl::SearchGraph::Id;
  if (plan.algorithm == TunerAlgorithm::nvls) return nullptr;
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
  }
  transport["channels"] = channels_of(decision.plan, by);
  if (by.machine.through_host && by.machine.nodes == 1 && !by.own_staging)
    transport["staging"]["size"] = host_piece(decision.plan.protocol).count;
  const Picoseconds launch{by.gpu.value("launch", decision.costs.launch.count())};
  transport["launch"] = (launch + nccl::launch_of_others(by.in_turn)).count();
}

/// Large enough for Simple to reach what it can.
constexpr Bytes size_of_search{std::int64_t{1} << 30};

LibraryRun library_run(const Decision& decision, CollectiveOp op, const Canonical& library, const Decider& by) {
  LibraryRun out{.name = "nccl", .version = library["version"].get<std::string>()};
  out.plan = decision.plan;
  out.machine = by.machine;
  if (const nccl::SearchGraph* graph = graph_for(decision.plan, by); graph != nullptr && !nccl::sends_to_peers(op))
    out.graph = std::make_shared<const nccl::SearchGraph>(*graph);
  out.graph_file = by.graphs.path;
  out.protocol = std::make_shared<const Protocol>(decision.costs.protocol);
  const auto shares = [](const nccl::LibraryCosts& costs) {
    return LibraryRun::Shares{costs.nvlink, costs.pcie, costs.network};
  };
  out.reached = shares(decision.costs);
  const nccl::LibraryPlan rings{.algorithm = TunerAlgorithm::ring,
                                .protocol = TunerProtocol::simple,
                                .channels = by.machine.ring.count,
                                .blocks = by.machine.ring.count};
  out.searched = shares(nccl::library_costs(rings, by.machine,
                                            {.op = CollectiveOp::all_reduce,
                                             .bytes = size_of_search,
                                             .chunk = nccl::chunk_of(TunerProtocol::simple),
                                             .release = by.settings.release}));
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
        blame.fail(fmt::format("/library/env/{}", variable),
                   fmt::format("expected either it or /transport/{}, found both", said),
                   "they set the same; leave one out");
    canonical["transport"][variable] = env[variable];
  }
}

LibraryRun decide(Canonical& canonical, const Json& written, Scenario& scenario, const Blame& blame,
                  const Files& files) {
  const Decider by = decider_of(canonical, written, "collective", scenario, blame, files);
  const CollectiveOp op = op_named(canonical["collective"], blame);
  const Bytes bytes{canonical["collective"]["bytes"].get<std::int64_t>()};
  const Decision decision = decision_of(op, bytes, by, blame);
  Canonical& transport = canonical["transport"];
  write_decision(decision, op, by, canonical["collective"], transport);
  transport["launch"] = transport["launch"].get<std::int64_t>() + decision.costs.once.count();
  LibraryRun out = library_run(decision, op, canonical["library"], by);
  out.own_pass = decision.own_pass;
  return out;
}

namespace {

/// Bucket sizes, and how many bytes go in buckets of each; of local_sgd all at once.
std::map<Bytes, Bytes> exchanges_of(const TrainingSpec& training, const Blame& blame) {
  std::map<Bytes, Bytes> out;
  switch (training.regime->kind) {
    case Regime::Kind::ddp:
      for (const Bucket& bucket : training.step.buckets) out[bucket.bytes] += bucket.bytes;
      return out;
    case Regime::Kind::local_sgd:
      return {{training.gradients(), training.gradients()}};
    default:
      blame.fail("/library",
                 fmt::format("expected the regime ddp or local_sgd with a library, found {}", training.regime->name),
                 "they exchange by all-reduce; of the others the exchanges are not modelled as NCCL does them");
  }
}

}  // namespace

LibraryRun decide_training(Canonical& canonical, const Json& written, Scenario& scenario, const Blame& blame,
                           const Files& files) {
  const TrainingSpec& training = *scenario.training;
  const std::map<Bytes, Bytes> exchanges = exchanges_of(training, blame);
  Decider by = decider_of(canonical, written, "training", scenario, blame, files);
  constexpr CollectiveOp op = CollectiveOp::all_reduce;
  // Two buckets may differ in protocol, but messages of a run have one. Most bytes decide.
  using Choice = std::pair<TunerAlgorithm, TunerProtocol>;
  std::map<Choice, Bytes> votes;
  Bytes all;
  for (const auto& [bytes, total] : exchanges) {
    const nccl::LibraryPlan plan = plan_of(op, bytes, by.machine, by.settings, blame);
    votes[{plan.algorithm, plan.protocol}] += total;
    all += total;
  }
  const auto most =
      std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  const auto [algorithm, protocol] = most->first;
  for (const auto& [choice, bytes] : votes)
    if (choice != most->first)
      scenario.warnings.push_back(fmt::format(
          "{}: NCCL would exchange {:.1f} % of the bytes by {} and {}; a step is simulated with one algorithm and "
          "protocol, {} and {}",
          blame.where("/library"), 100 * static_cast<double>(bytes.count) / static_cast<double>(all.count),
          to_string(choice.first), to_string(choice.second), to_string(algorithm), to_string(protocol)));
  by.settings.algorithms = {algorithm};
  by.settings.protocols = {protocol};

  const Decision largest = decision_of(op, exchanges.rbegin()->first, by, blame);
  Canonical& regime = canonical["training"]["regime"];
  write_decision(largest, op, by, regime, canonical["transport"]);
  LibraryRun out = library_run(largest, op, canonical["library"], by);
  const Algorithm* name = find_algorithm(largest.algorithm["name"].get<std::string>());
  ensure(name != nullptr, "a library's algorithm is one of the catalogue");
  for (const auto& [bytes, total] : exchanges) {
    const Decision decision = decision_of(op, bytes, by, blame);
    out.exchanges[bytes] = {.arguments = arguments_of(*name, decision.algorithm),
                            .channels = channels_of(decision.plan, by),
                            .beyond = decision.costs.once + decision.own_pass};
  }
  return out;
}

void warn_of_library(const Canonical& canonical, const Blame& blame, Scenario& scenario) {
  const auto warn = [&](const std::string& pointer, const std::string& because) {
    scenario.warnings.push_back(fmt::format("{}: it has no effect, because {}", blame.where(pointer), because));
  };
  const auto says = [&](const char* kind) {
    return canonical.contains("devices") && canonical["devices"].contains(kind);
  };
  if (canonical.contains("library")) {
    const Canonical& env = canonical["library"]["env"];
    // It decides which graphs of a file count.
    const bool on_file = env.contains("NCCL_GRAPH_FILE") && env.value("NCCL_CROSS_NIC", "") == "0";
    for (const char* name : {"NCCL_CROSS_NIC", "NCCL_BUFFSIZE"})
      if (env.contains(name) && !(on_file && name == std::string_view("NCCL_CROSS_NIC")))
        warn(fmt::format("/library/env/{}", name), "what it changes is not modelled");
    if (canonical.contains("harness"))
      for (const auto& [key, value] : canonical["harness"].items())
        if (key != "gpus_per_thread") warn(fmt::format("/harness/{}", key), "what it changes is not modelled");
    const std::string because = "the costs of the library's kernels have it already";
    if (says("cpu")) warn("/devices/cpu", "no CPU takes part in the library's collectives");
    for (const char* key : {"channel", "start"})
      if (says("gpu") && canonical["devices"]["gpu"].contains(key)) warn(fmt::format("/devices/gpu/{}", key), because);
    return;
  }
  const std::string because = "no library's kernels run: the scenario has no key \"library\"";
  if (says("gpu") && canonical["devices"]["gpu"].contains("launch")) warn("/devices/gpu/launch", because);
  if (canonical.contains("harness")) warn("/harness", because);
}

}  // namespace ringsim::scenarios
