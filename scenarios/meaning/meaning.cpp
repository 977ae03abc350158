#include "scenarios/meaning/meaning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "algorithms/training/optimizer.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/meaning/enum_of.hpp"
#include "scenarios/meaning/library_decider.hpp"
#include "scenarios/meaning/meaning_calibration.hpp"
#include "scenarios/meaning/meaning_devices.hpp"
#include "scenarios/meaning/meaning_disturbance.hpp"
#include "scenarios/meaning/meaning_inference.hpp"
#include "scenarios/meaning/meaning_jobs.hpp"
#include "scenarios/meaning/meaning_library.hpp"
#include "scenarios/meaning/meaning_nics.hpp"
#include "scenarios/meaning/meaning_topology.hpp"
#include "scenarios/meaning/meaning_trace.hpp"
#include "scenarios/meaning/meaning_training.hpp"
#include "scenarios/meaning/meaning_transport.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"
#include "sim/topology/routes.hpp"
#include "topologies/catalog.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/machine_gpus.hpp"

namespace ringsim::scenarios {

using Canonical = nlohmann::json;

namespace {

/// Refuses keys that cannot be combined with a training step (of the scenario or of a job) or with inference.
void check_beside_training(const Canonical& canonical, const Blame& blame) {
  if (!canonical.contains("disturbance")) return;
  for (const char* key : {"slow", "jitter"})
    if (canonical["disturbance"].contains(key) && (canonical.contains("inference") || canonical.contains("trace")))
      blame.fail(fmt::format("/disturbance/{}", key),
                 fmt::format("cannot be combined with {}", canonical.contains("trace") ? "a trace" : "inference"),
                 "it would delay every step of every message");
    else if (canonical["disturbance"].contains(key))
      blame.fail(fmt::format("/disturbance/{}", key), "cannot be combined with a training step",
                 "it would delay every step of every message; to slow down the computation, use training.slow and "
                 "training.jitter");
}

/// A level by name, or by the numbers of older NCCLs: 0 never, 1 one switch, 2 several, 3 the host bridge, 4 and 5
/// sockets (docs.nvidia.com, NCCL environment variables; 4 is the NUMA node, which PathType counts as PHB or SYS).
PathType level_of(const std::string& text) {
  constexpr PathType numbers[] = {PathType::loc, PathType::pix, PathType::pxb,
                                  PathType::phb, PathType::sys, PathType::sys};
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '5') return numbers[text[0] - '0'];
  const auto level = path_type(text);
  ensure(level.has_value(), "the table of fields names path types");
  return *level;
}

/// Two spellings of one setting: only one may be used.
void check_spellings(const Json& written, const Blame& blame) {
  if (written.contains("network") && written["network"].contains("packet") &&
      written["network"].value("model", "fair") != "packet")
    blame.fail(
        "/network/packet",
        fmt::format("expected packet settings only with the model packet, found the model {}",
                    written["network"].value("model", "fair")),
        R"(to compare models, write "network": [{"model": "fair"}, {"model": "packet", "packet": {"mtu": "1 KiB"}}])");
  if (!written.contains("transport")) return;
  const Json& said = written["transport"];
  constexpr std::pair<const char*, const char*> same[] = {{"gdr_level", "NCCL_NET_GDR_LEVEL"},
                                                          {"p2p_level", "NCCL_P2P_LEVEL"},
                                                          {"p2p_level", "NCCL_P2P_DISABLE"},
                                                          {"NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE"},
                                                          {"pxn", "NCCL_PXN_DISABLE"}};
  const auto refuse = [&](const char* one, const char* other) {
    blame.fail(fmt::format("/transport/{}", other), fmt::format("cannot be combined with {}", one),
               "they set the same thing; remove one");
  };
  for (const auto& [one, other] : same)
    if (said.contains(one) && said.contains(other)) refuse(one, other);
  for (const char* level : {"gdr_level", "NCCL_NET_GDR_LEVEL"})
    if (said.contains("gpudirect") && said.contains(level) &&
        (said["gpudirect"] == false ||
         level_of(said[level].is_string() ? said[level].get<std::string>() : said[level].dump()) == PathType::loc))
      refuse("gpudirect", level);
}

void check_buffer(const PacketOptions& packet, const Blame& blame) {
  if (packet.buffer && *packet.buffer < packet.mtu)
    blame.fail("/network/packet/buffer", fmt::format("expected room for at least one packet, {}, found {}",
                                                     format(packet.mtu), format(*packet.buffer)));
}

/// What the network of the machines' widest ports does: NCCL takes those.
Routing::Policy policy_of_ports(const Cluster& cluster, const Blame& blame, std::vector<std::string>& warnings) {
  std::optional<Routing::Policy> found;
  for (const Cluster::Part& part : cluster.parts) {
    const LinkSpec* widest = nullptr;
    for (const Machine::Device& device : part.machine->devices)
      if (device.port && !device.idle && (widest == nullptr || widest->bandwidth < device.port->bandwidth))
        widest = &*device.port;
    if (widest == nullptr) continue;
    const Routing::Policy own = routing_of_port(*widest);
    if (found && *found != own) {
      warnings.push_back(
          fmt::format("{}: the NICs of the machines use different networks, {} and {}; static routing is used",
                      blame.where("/network/routing"), to_string(*found), to_string(own)));
      return Routing::Policy::fixed;
    }
    found = own;
  }
  return found.value_or(Routing::Policy::fixed);
}

RoutingSpec routing_of(const Canonical& network, const TopologySpec& topology, const Blame& blame,
                       std::vector<std::string>& warnings) {
  using Policy = Routing::Policy;
  RoutingSpec out;
  const auto* cluster = std::get_if<Cluster>(&topology);
  out.is_auto = network["routing"] == "auto";
  if (!out.is_auto)
    out.policy = enum_of<Policy>(network["routing"], {{"static", Policy::fixed},
                                                      {"ecmp", Policy::ecmp},
                                                      {"flow_spray", Policy::flow_spray},
                                                      {"packet_spray", Policy::packet_spray}});
  else if (cluster != nullptr && cluster->fabric && !std::holds_alternative<StarFabric>(*cluster->fabric) &&
           !network.contains("table"))  // on a star each message has one way
    out.policy = policy_of_ports(*cluster, blame, warnings);
  if (!network.contains("table")) return out;
  if (out.policy != Policy::fixed) {
    blame.fail("/network/table", fmt::format("expected a table only with static routing, found {}",
                                             network["routing"].get<std::string>()));
  }
  const Field& row = find(field_at("network").members, "table")->members.front();
  for (const Canonical& entry : network["table"]) read_members(row, entry, out.table.emplace_back());
  return out;
}

/// Changes an object, or each of a list of them, as a file may have.
template <class Change>
void in_each(Canonical& value, Change change) {
  if (value.is_object()) return change(value);
  if (!value.is_array()) return;
  for (Canonical& each : value)
    if (each.is_object()) change(each);
}

/// What says nothing is no part of the question.
void drop_empty_devices(Canonical& canonical) {
  if (canonical.contains("devices") && canonical["devices"].is_object()) {
    for (const char* kind : {"gpu", "cpu"})
      if (canonical["devices"].contains(kind) && canonical["devices"][kind].empty()) canonical["devices"].erase(kind);
    if (canonical["devices"].empty()) canonical.erase("devices");
  }
  if (canonical.contains("harness") && canonical["harness"].is_object() && canonical["harness"].empty())
    canonical.erase("harness");
}

void use_one_op(Canonical& collective) {
  Canonical& op = collective["op"];
  // As algorithms are written anyhow: nothing is asked.
  const bool apart = op == "all_to_all" || op == "pairs" || op == "send_recv";
  if (op.is_string() && collective.value("in_place", Canonical()) == !apart) collective.erase("in_place");
}

void use_one_level(Canonical& transport) {
  const auto take = [&](const char* nccl, const auto& use) {
    if (!transport.contains(nccl) || !transport[nccl].is_string()) return;  // of a file: perhaps a list
    use(transport[nccl].get<std::string>());
    transport.erase(nccl);
  };
  take("NCCL_NET_GDR_LEVEL", [&](const std::string& level) { transport["gdr_level"] = to_string(level_of(level)); });
  take("NCCL_P2P_LEVEL", [&](const std::string& level) { transport["p2p_level"] = to_string(level_of(level)); });
  take("NCCL_P2P_DISABLE", [&](const std::string& flag) {
    if (flag == "1") transport["p2p_level"] = "LOC";
  });
  take("NCCL_PXN_DISABLE", [&](const std::string& flag) { transport["pxn"] = flag == "0"; });
  if (transport.contains("acs") && transport["acs"] == false) transport.erase("acs");  // as all machines are
  if (transport.value("gpudirect", Canonical()) != false) return;
  transport["gdr_level"] = "LOC";
  transport.erase("gpudirect");
}

/// True if its machines come from files, which may deny GPUDirect to their devices; presets do not.
bool may_deny_gpudirect(const Canonical& topology) {
  if (topology.is_array()) return std::any_of(topology.begin(), topology.end(), may_deny_gpudirect);
  if (!topology.is_object()) return false;
  return topology.contains("file") || topology.contains("node_file") ||
         (topology.contains("parts") && may_deny_gpudirect(topology["parts"]));
}

}  // namespace

void use_one_spelling(Canonical& canonical) {
  if (canonical.contains("collective")) in_each(canonical["collective"], use_one_op);
  drop_empty_disturbance(canonical);
  drop_empty_devices(canonical);
  if (canonical.contains("jobs") && canonical["jobs"].is_array())
    for (Canonical& job : canonical["jobs"])
      if (job.is_object() && job.contains("collective")) in_each(job["collective"], use_one_op);
  // Other models have no packets, so their settings are no part of the question.
  if (Canonical& network = canonical["network"]; network.is_object() && network.contains("model")) {
    const Canonical& model = network["model"];
    if (model != "packet" && std::find(model.begin(), model.end(), "packet") == model.end()) network.erase("packet");
  }
  in_each(canonical["transport"], use_one_level);
  if (!may_deny_gpudirect(canonical["topology"]))
    in_each(canonical["transport"], [](Canonical& transport) {
      if (transport.value("gpudirect", Canonical()) == true) transport.erase("gpudirect");
    });
}

namespace {
/// True if the file varies the value at a dotted path, something in it, or a value that it is part of.
bool is_varied(const Scenario& scenario, const std::string& path) {
  const auto within = [](const std::string& inner, const std::string& outer) {
    return inner == outer || inner.starts_with(outer + ".");
  };
  return std::any_of(scenario.varied.begin(), scenario.varied.end(),
                     [&](const auto& varied) { return within(varied.first, path) || within(path, varied.first); });
}

/// Delays of nothing. Where the file varies one, it is the point without.
void warn_of_no_delay(const Blame& blame, Scenario& scenario, bool has_jitter) {
  const auto warn = [&](const std::string& list, const std::vector<RankDelay>& delays, const char* key) {
    for (std::size_t i = 0; i < delays.size(); ++i) {
      if (delays[i].time.count() > 0 || is_varied(scenario, fmt::format("disturbance.{}.{}", list, i))) continue;
      scenario.warnings.push_back(fmt::format("{}: it has no effect, because the delay is 0",
                                              blame.where(fmt::format("/disturbance/{}/{}/{}", list, i, key))));
    }
  };
  warn("late", scenario.late, "by");
  warn("slow", scenario.slow, "step_delay");
  if (has_jitter && scenario.jitter.most.count() == 0 && !is_varied(scenario, "disturbance.jitter"))
    scenario.warnings.push_back(
        fmt::format("{}: it has no effect, because the longest delay is 0", blame.where("/disturbance/jitter/most")));
}
}  // namespace

void warn_of_idle_settings(const Canonical& canonical, const Json& written, const Blame& blame, Scenario& scenario) {
  warn_of_library(canonical, written, blame, scenario);
  warn_of_no_delay(blame, scenario, canonical.contains("disturbance") && canonical["disturbance"].contains("jitter"));
  const auto warn = [&](const char* part, const char* user, const std::string& because) {
    if (!written.contains(part) || !written[part].contains("seed")) return;
    // Where the file varies what would draw from it, the seed is for its other points.
    const std::string key = fmt::format("{}.{}", part, user);
    for (const auto& [varied, value] : scenario.varied)
      if (varied == key) return;
    scenario.warnings.push_back(
        fmt::format("{}: it has no effect, because {}", blame.where(fmt::format("/{}/seed", part)), because));
  };
  if (const std::string order =
          canonical.contains("collective") ? canonical["collective"]["order"].get<std::string>() : "given";
      order != "shuffled")
    warn("collective", "order", "order is " + order + ", not shuffled");
  const Routing::Policy routing = scenario.routing.policy;
  if (routing != Routing::Policy::ecmp && routing != Routing::Policy::flow_spray)
    warn("network", "routing", "routing is neither ecmp nor flow_spray");
}

namespace {
/// GPUs and NICs whose file denies them GPUDirect, unless nothing leaves a node or GPUDirect is off for all.
void warn_of_denied_gpudirect(const Blame& blame, Scenario& scenario) {
  const auto* cluster = std::get_if<Cluster>(&scenario.topology);
  if (cluster == nullptr || !cluster->fabric || scenario.transport.gdr_level == PathType::loc) return;
  for (const Cluster::Part& part : cluster->parts) {
    const std::string denied = without_gpudirect(*part.machine);
    if (denied.empty()) continue;
    scenario.warnings.push_back(scenario.transport.assumes_gpudirect
                                    ? fmt::format("{}: {} has {}; GPUDirect is used anyway",
                                                  blame.where("/transport/gpudirect"), part.machine->name, denied)
                                    : fmt::format("{}: {}", part.machine->name, what_denied_gpudirect_means(denied)));
  }
}

/// Speeds of kernels that are those of another GPU, or of another precision: their source says so, or the GPU cannot be
/// so fast.
void warn_of_other_gpu(const Canonical& canonical, const Blame& blame, Scenario& scenario) {
  const auto* cluster = std::get_if<Cluster>(&scenario.topology);
  if (cluster == nullptr || !scenario.training) return;
  const std::string pointer = fmt::format("/{}/workload/compute", scenario.training->key());
  const Canonical::json_pointer source(pointer + "/source");
  const std::string said = canonical.contains(source) ? canonical[source].get<std::string>() : "";
  const auto peak = static_cast<double>(scenario.training->peak);
  const Canonical::json_pointer precision(fmt::format("/{}/workload/precision", scenario.training->key()));
  const bool of_fp32 = canonical.contains(precision) && canonical[precision] == "fp32";
  constexpr double rounding = 0.01;  // data sheets' 494.7 TFLOP/s are also written as 495
  const auto warn = [&](const std::string& what) {
    scenario.warnings.push_back(fmt::format("{}: {}; set the speeds of its GPU", blame.where(pointer), what));
  };
  for (const Cluster::Part& part : cluster->parts) {
    const std::optional<double> most = most_flops_of(*part.machine);
    if (const std::string own = machine_without(*part.machine, said); !own.empty())
      warn(fmt::format("these are the speeds of another GPU ({}), but the topology has {}", in_quotes(said), own));
    else if (most && peak > *most)
      warn(fmt::format("a peak of {:.0f} TFLOP/s is that of another GPU: no GPU like those of {} has more than {:.0f}",
                       1e-12 * peak, part.machine->name, 1e-12 * *most));
    else if (const std::optional<double> fp32 = most_fp32_flops_of(*part.machine);
             fp32 && of_fp32 && peak > *fp32 * (1 + rounding))
      scenario.warnings.push_back(
          fmt::format("{}: a peak of {:.0f} TFLOP/s is that of 16-bit products, but the precision is fp32, in which "
                      "GPUs like those "
                      "of {} reach at most {:.4g} TFLOP/s (TF32, if they have it); set peak to that, or, if products "
                      "run in 16 bits "
                      "(autocast), precision to bf16",
                      blame.where(pointer), 1e-12 * peak, part.machine->name, 1e-12 * *fp32));
  }
}

/// Equal parts over unequal NICs: the slowest, such as a port for management, decides.
void warn_of_unequal_nics(const Blame& blame, Scenario& scenario) {
  const auto* cluster = std::get_if<Cluster>(&scenario.topology);
  if (cluster == nullptr || scenario.transport.nics != Transport::Nics::all || !cluster->fabric) return;
  for (const Cluster::Part& part : cluster->parts) {
    std::optional<Bandwidth> least, most;
    for (const Machine::Device& device : part.machine->devices) {
      if (!device.port) continue;
      least = std::min(least.value_or(device.port->bandwidth), device.port->bandwidth);
      most = std::max(most.value_or(device.port->bandwidth), device.port->bandwidth);
    }
    if (!least || *least == *most) continue;
    scenario.warnings.push_back(
        fmt::format("{}: all splits each message into equal parts, but the NICs of {} have {} to {}, so the slowest "
                    "one limits the transfer; nearest uses the fastest one, as NCCL does",
                    blame.where("/transport/nics"), part.machine->name, format(*least), format(*most)));
  }
}

/// Static routing takes D-mod-k's tables where a fabric has levels. A graph has none, and its switches take the first
/// of equal ways for all messages.
void warn_of_one_way_for_all(const Blame& blame, Scenario& scenario) {
  constexpr std::size_t most_pairs = 64;  // of ranks that are looked at, twice: near ones and far ones
  if (!std::holds_alternative<Graph>(scenario.topology) || scenario.routing.policy != Routing::Policy::fixed ||
      !scenario.routing.table.empty())
    return;
  try {
    const Topology topology = build(scenario.topology);
    const auto ranks = topology.ranks();
    Routes routes(topology, scenario.transport, {.policy = Routing::Policy::ecmp, .seed = 0, .table = {}});
    const std::size_t step = std::max<std::size_t>(1, ranks.size() / most_pairs);
    for (std::size_t i = step; i < ranks.size(); i += step) {
      for (const NodeId from : {ranks[i - 1], ranks.front()}) {
        const std::uint32_t ways = routes.find(from, ranks[i]).turns;
        if (ways < 2) continue;
        scenario.warnings.push_back(fmt::format(
            "{}: in a graph, static routing sends all messages over the first of several equally short paths, in link "
            "order; {} to {} has {} and uses one. ecmp and flow_spray spread messages over all of them",
            blame.where("/network/routing"), topology.node(from).name, topology.node(ranks[i]).name, ways));
        return;
      }
    }
  } catch (const InputError&) {
    return;  // the run says what is wrong with the graph
  }
}

/// Refuses flow_spray if the channels tell the messages of a pair apart.
void expect_no_flow_spray(const Scenario& scenario, const Blame& blame) {
  if (!scenario.library || scenario.routing.policy != Routing::Policy::flow_spray) return;
  const std::vector<const LibraryCall*> calls = calls_of(scenario);
  if (scenario.transport.nics != Transport::Nics::per_channel && calls.size() == 1 &&
      calls.front()->channel.bytes_per_second == 0)
    return;
  blame.fail("/network/routing", "expected a policy other than flow_spray with a library, found flow_spray",
             "flow_spray distinguishes messages of a pair by their number, but a library's NICs, protocols and thread "
             "blocks are distinguished by its channels; packet_spray spreads every message over all paths");
}

}  // namespace

namespace {

void expect_one_kind(const Canonical& canonical, const Blame& blame) {
  std::string found;
  int n = 0;
  for (const char* key : {"collective", "training", "inference", "trace"})
    if (canonical.contains(key)) found += fmt::format("{}{}", n++ == 0 ? "" : " and ", key);
  if (n != 1)
    blame.fail(
        "",
        fmt::format("expected one of the keys \"collective\", \"training\", \"inference\" and \"trace\", found {}",
                    n == 0 ? "none" : found),
        "collective: one collective; training: a training step; inference: an inference step; trace: a step of a real "
        "job");
}

/// In the order of ranks; none if the scenario names those of the step.
std::vector<std::string> names_of_gpus(const TopologySpec& spec, const Canonical& step, const Blame& blame) {
  std::vector<std::string> names;
  if (step.contains("ranks")) return names;
  try {
    const Topology topology = build(spec);
    for (const NodeId rank : topology.ranks()) names.push_back(topology.node(rank).name);
  } catch (const InputError& error) {
    blame.fail("/topology" + error.where(), error.message(), error.hint());
  }
  return names;
}

/// Warns of an optimizer with state whose update takes no time, unless the file sets that time. A measured step already
/// contains the update.
void warn_of_free_update(const Json& written, const TrainingSpec& training, const Blame& blame,
                         std::vector<std::string>& warnings) {
  if (training.plan || moment_bytes(training.optimizer) == 0 || training.step.update.count() > 0) return;
  const auto says = [](const Json& part, const char* key) { return part.is_object() && part.contains(key); };
  const Json& workload = written["workload"];
  if (says(written["optimizer"], "time") || (says(workload, "compute") && says(workload["compute"], "step"))) return;
  const int moved =
      optimizer_bytes(training.optimizer, training.bytes_per_parameter, training.bytes_per_parameter).moved;
  warnings.push_back(blame.where("/training/optimizer") +
                     fmt::format(": the update of {} takes no time, because optimizer.time is not set; an update moves "
                                 "{} B per parameter, {:.2f} GB for all of {}",
                                 training.optimizer, moved, 1e-9 * static_cast<double>(training.parameters) * moved,
                                 training.workload));
}

}  // namespace

Scenario scenario_of(const Canonical& asked, const Json& written, const Blame& blame, const Files& files) {
  Scenario out;
  Canonical decided;  // copied only where a library or the ranks of a step are written into it
  const bool by_library = asked.contains("library"), serves = asked.contains("inference"),
             replays = asked.contains("trace");
  const bool is_changed = by_library || serves || replays;
  if (is_changed) decided = asked;
  const Canonical& canonical = is_changed ? decided : asked;
  out.topology = topology_of(canonical["topology"], blame, files);
  if (const auto* cluster = std::get_if<Cluster>(&out.topology)) {
    for (const Cluster::Part& part : cluster->parts) {
      const auto& warnings = part.machine->warnings;
      out.warnings.insert(out.warnings.end(), warnings.begin(), warnings.end());
    }
  }
  const std::size_t gpus = gpus_of(out.topology, blame);

  expect_one_kind(canonical, blame);
  if (serves) {
    name_serving_ranks(decided["inference"], names_of_gpus(out.topology, canonical["inference"], blame), blame);
    out.training = inference_of(canonical["inference"], compute_scale_of(canonical), blame, out.warnings);
  }
  if (replays) {
    name_traced_ranks(decided["trace"], names_of_gpus(out.topology, canonical["trace"], blame), blame, files);
    out.training = trace_of(canonical["trace"], compute_scale_of(canonical), blame, files, out.warnings);
  }
  if (canonical.contains("training")) {
    out.training = training_of(canonical["training"], gpus, compute_scale_of(canonical), blame, out.warnings);
    warn_of_free_update(written["training"], *out.training, blame, out.warnings);
    for (const char* key : {"steps", "warmup"})
      if (out.training->async && written["training"].contains(key))
        out.warnings.push_back(blame.where(fmt::format("/training/{}", key)) +
                               ": has no effect: mode async counts updates and warmup_updates");
  }
  DecideJob decide_job;
  if (by_library && out.training && out.training->regime->kind == Regime::Kind::single) {
    if (written.contains("jobs") && !written["jobs"].empty())
      blame.fail("/training/regime",
                 "expected a regime that exchanges data, for use with a library and jobs, found single",
                 "remove the library and set the algorithms of the jobs");
    out.warnings.push_back(blame.where("/library") +
                           ": it has no effect with the regime single, which exchanges no data");
  } else if (by_library) {
    refuse_decided(written, blame);
    share_variables(decided, written, blame);
    use_one_level(decided["transport"]);  // its variables are spelled as NCCL's
    select_nics(decided, out.topology, blame, out.warnings);
    decide_job = [&, transport = decided["transport"]](Canonical& job, const std::string& pointer,
                                                       const TrainingSpec* training, Canonical& own_transport) {
      own_transport = transport;
      const LibraryPlace at{.part = job, .pointer = pointer, .transport = own_transport};
      return training != nullptr ? decide_training(decided, written, *training, at, out, blame, files)
                                 : decide(decided, written, at, out, blame, files);
    };
    out.library = decide_job(decided[out.training ? out.training->key() : "collective"],
                             fmt::format("/{}", out.training ? out.training->key() : "collective"),
                             out.training ? &*out.training : nullptr, decided["transport"]);
  }
  take_jobs(canonical, written, gpus, decide_job, blame, files, out);
  number_calls(out);
  if (out.trains()) check_beside_training(canonical, blame);
  if (out.training && out.training->async && out.main().request.channels > 1)
    out.warnings.push_back(blame.where("/transport/channels") +
                           ": has no effect: with mode async, each shard is sent in one message");

  check_spellings(written, blame);
  out.transport =
      out.library ? out.library->call.transport : transport_of(canonical["transport"], out.main().request.op);
  if (written.contains("transport") && written["transport"].contains("gpudirect"))
    out.said_gpudirect = written["transport"]["gpudirect"].get<bool>();
  out.protocol = out.library ? out.library->call.protocol.get()
                             : find_protocol(canonical["transport"]["protocol"].get<std::string>());
  if (canonical["transport"].contains("launch"))
    out.launch = Picoseconds{canonical["transport"]["launch"].get<std::int64_t>()};
  out.routing = routing_of(canonical["network"], out.topology, blame, out.warnings);
  read_members(field_at("network"), canonical["network"], out);
  if (moves_packets(out.model)) check_buffer(out.packet, blame);
  expect_no_flow_spray(out, blame);
  if (out.transport.nics == Transport::Nics::per_channel && out.routing.policy == Routing::Policy::flow_spray)
    blame.fail("/transport/nics", "expected nearest or all with routing flow_spray, found per_channel",
               "flow_spray distinguishes messages of a pair by their number, per_channel by their channel");
  warn_of_denied_gpudirect(blame, out);
  warn_of_other_gpu(canonical, blame, out);
  warn_of_unequal_nics(blame, out);
  warn_of_one_way_for_all(blame, out);
  out.devices = devices_of(canonical, blame, out);
  if (out.library) {  // which has decided by the others
    if (out.devices.gpu) out.devices.gpu = DeviceRates{.post = out.devices.gpu->post};
    out.devices.cpu.reset();
  }
  take_disturbance(canonical, blame, out);
  take_calibration(canonical, blame, files, out);
  return out;
}

}  // namespace ringsim::scenarios
