#include "scenarios/meaning/meaning_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "scenarios/meaning/enum_of.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/catalog.hpp"
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
  if (written.contains("training"))
    blame.fail("/library", "expected a collective with a library, found a training step",
               "its buckets would need a protocol each, which is not modelled yet: name an algorithm");
  if (written.contains("jobs") && !written["jobs"].empty())
    blame.fail("/jobs", "expected no other collectives next to a library, found some",
               "each would need a protocol of its own, which is not modelled yet");
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

/// The GPUs of each node by their local names, and on how many nodes.
struct Members {
  std::vector<std::string> gpus;
  int nodes = 1;
};

Members members_of(const Canonical& collective, const Cluster& cluster, const Blame& blame) {
  Members out;
  if (!collective.contains("ranks")) {
    for (const Machine::Device& device : cluster.parts.front().machine->devices)
      if (device.kind == NodeKind::gpu) out.gpus.push_back(device.name);
    out.nodes = cluster.parts.front().nodes;
    return out;
  }
  std::map<std::string, std::vector<std::string>> by_node;
  std::vector<std::string> order;
  for (const Canonical& name : collective["ranks"]) {
    const auto text = name.get<std::string>();
    const std::size_t dot = text.find('.');
    const std::string node = text.substr(0, dot);
    if (by_node.count(node) == 0) order.push_back(node);
    by_node[node].push_back(dot == std::string::npos ? text : text.substr(dot + 1));
  }
  out.gpus = by_node[order.front()];
  out.nodes = static_cast<int>(order.size());
  for (const auto& [node, gpus] : by_node)
    if (gpus != out.gpus)
      blame.fail("/collective/ranks",
                 fmt::format("expected the same GPUs of every node next to a library, found others of {} than of {}",
                             node, order.front()),
                 "how NCCL joins unlike nodes is not modelled");
  return out;
}

/// `level`: said_p2p_level(); NCCL's own where users say nothing.
nccl::TunerMachine machine_of(const Canonical& collective, const TopologySpec& topology,
                              const nccl::LibrarySettings& settings, std::optional<PathType>& level,
                              const Blame& blame) {
  const auto* cluster = std::get_if<Cluster>(&topology);
  if (cluster == nullptr || cluster->parts.size() != 1)
    blame.fail("/library",
               fmt::format("expected a topology of kind cluster with one kind of node next to a library, found {}",
                           cluster == nullptr ? "another kind" : "several kinds of nodes"),
               "NCCL decides by the GPUs, links and NICs of a machine");
  const Members members = members_of(collective, *cluster, blame);
  Bandwidth nic;
  if (cluster->fabric) nic = std::visit([](const auto& fabric) { return fabric.link.bandwidth; }, *cluster->fabric);
  const Machine& machine = *cluster->parts.front().machine;
  if (!level) level = nccl::p2p_level(machine, static_cast<int>(members.gpus.size()), settings.release);
  try {
    return nccl::tuner_machine(machine, members.gpus, members.nodes, nic, settings.release, level);
  } catch (const InputError& error) {
    blame.fail(collective.contains("ranks") ? "/collective/ranks" : "/topology", error.message(), error.hint());
  }
}

/// Assumption: chunks go out as they fill, piece after piece, so that those behind in a tree or chain begin early:
/// pieces as small as that, at least as many as that where the size allows, and none larger than a chunk. Fitted to the
/// broadcasts of validate/measured/tables, whose time is a constant and one pass over the wire at all sizes.
constexpr std::int64_t least_piece = 8'192, pieces_in_flight = 32;

std::int64_t segments_of(Bytes bytes, int channels, int ways, TunerProtocol protocol) {
  const std::int64_t each = bytes.count / channels / ways, chunk = nccl::chunk_of(protocol).count;
  const std::int64_t fine = std::min(each / least_piece, pieces_in_flight);
  return std::clamp<std::int64_t>(std::max(fine, (each + chunk - 1) / chunk), 1, most_segments);
}

/// The schedule that stands for what NCCL's kernels do.
Canonical algorithm_of(const nccl::LibraryPlan& plan, CollectiveOp op, Bytes bytes, const nccl::TunerMachine& machine) {
  const bool rooted = op == CollectiveOp::broadcast || op == CollectiveOp::reduce;
  switch (plan.algorithm) {
    case TunerAlgorithm::ring:
      if (!rooted) return {{"name", "ring"}};
      return {{"name", "chain"}, {"segments", segments_of(bytes, plan.channels, 1, plan.protocol)}};
    case TunerAlgorithm::tree:
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
Bytes chunk_in(const Canonical& algorithm, const nccl::LibraryPlan& plan, Bytes bytes, Bytes own) {
  if (!algorithm.contains("segments")) return {own.count / plan.channels};
  return {std::min(bytes.count / plan.channels, nccl::chunk_of(plan.protocol).count)};
}

/// Sends and receives to all peers at once.
nccl::LibraryPlan point_to_point(Bytes a_peer, const nccl::TunerMachine& machine,
                                 const nccl::LibrarySettings& settings) {
  nccl::LibraryPlan plan{.algorithm = TunerAlgorithm::ring, .protocol = TunerProtocol::simple};
  plan.channels = nccl::p2p_channels(machine, a_peer, settings);
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

/// The plan as the keys of a scenario.
void write_plan(const nccl::LibraryPlan& plan, CollectiveOp op, Bytes bytes, const nccl::TunerMachine& machine,
                Canonical& canonical) {
  Canonical &collective = canonical["collective"], &transport = canonical["transport"];
  if (machine.ranks() == 1 || nccl::sends_to_peers(op)) {
    collective["algorithm"] = {{"name", "direct"}};
  } else {
    collective["algorithm"] = algorithm_of(plan, op, bytes, machine);
    const bool by_channel = plan.algorithm != TunerAlgorithm::nvls;
    if (by_channel) collective["order"] = "channel_rings";
    if (machine.nodes > 1) transport["nics"] = by_channel ? "per_channel" : "nearest";
  }
  transport["channels"] = plan.algorithm == TunerAlgorithm::nvls ? 1 : plan.channels;
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

LibraryRun decide(Canonical& canonical, const Json& written, const TopologySpec& topology, const Blame& blame) {
  refuse_decided(written, blame);
  const Canonical& library = canonical["library"];
  const nccl::LibrarySettings settings = settings_of(library, blame);
  const CollectiveOp op = op_named(canonical["collective"], blame);
  const Bytes bytes{canonical["collective"]["bytes"].get<std::int64_t>()};
  std::optional<PathType> level = said_p2p_level(canonical, written);
  nccl::TunerMachine machine = machine_of(canonical["collective"], topology, settings, level, blame);
  canonical["transport"]["p2p_level"] = to_string(*level);
  if (library.contains("plugin")) machine.net_latency_us = nccl::latency_of_aws_ofi_nccl;

  LibraryRun out{.name = "nccl", .version = library["version"].get<std::string>()};
  out.plan = plan_of(op, bytes, machine, settings, blame);
  write_plan(out.plan, op, bytes, machine, canonical);

  const bool own_staging = written.contains("transport") && written["transport"].contains("staging");
  if (machine.through_host && machine.nodes == 1 && !own_staging)
    canonical["transport"]["staging"]["size"] = host_piece(out.plan.protocol).count;

  const Bytes own{bytes.count / machine.ranks()};
  const Bytes chunk = chunk_in(canonical["collective"]["algorithm"], out.plan, bytes, own);
  const nccl::LibraryCosts costs = nccl::library_costs(out.plan, machine, {.op = op, .bytes = bytes, .chunk = chunk});
  out.protocol = std::make_shared<const Protocol>(costs.protocol);
  out.nvlink = costs.nvlink;
  out.pcie = costs.pcie;
  const Canonical gpu = canonical.contains("devices") ? canonical["devices"]["gpu"] : Canonical::object();
  const int in_turn = canonical.contains("harness") ? canonical["harness"].value("gpus_per_thread", 1) : 1;
  const Picoseconds launch{gpu.value("launch", costs.launch.count())};
  canonical["transport"]["launch"] = (launch + nccl::launch_of_others(in_turn) + costs.once).count();
  const bool adds = op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter;
  const bool copies = op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all;
  const std::int64_t rate = adds     ? gpu.value("reduce", costs.reduce.bytes_per_second)
                            : copies ? gpu.value("copy", costs.copy.bytes_per_second)
                                     : std::int64_t{0};
  if (rate > 0 && machine.ranks() > 1) out.own_pass = transfer_time(own, {rate});
  return out;
}

void warn_of_library(const Canonical& canonical, const Blame& blame, Scenario& scenario) {
  const auto warn = [&](const std::string& pointer, const std::string& because) {
    scenario.warnings.push_back(fmt::format("{}: it has no effect, because {}", blame.where(pointer), because));
  };
  if (canonical.contains("library")) {
    for (const char* name : {"NCCL_CROSS_NIC", "NCCL_IB_HCA", "NCCL_BUFFSIZE"})
      if (canonical["library"]["env"].contains(name))
        warn(fmt::format("/library/env/{}", name), "what it changes is not modelled");
    if (canonical.contains("harness"))
      for (const auto& [key, value] : canonical["harness"].items())
        if (key != "gpus_per_thread") warn(fmt::format("/harness/{}", key), "what it changes is not modelled");
    return;
  }
  const std::string because = "no library's kernels run: the scenario has no key \"library\"";
  if (canonical.contains("devices") && !canonical["devices"]["gpu"].empty()) warn("/devices/gpu", because);
  if (canonical.contains("harness")) warn("/harness", because);
}

}  // namespace ringsim::scenarios
