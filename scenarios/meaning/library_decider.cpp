#include "scenarios/meaning/library_decider.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/meaning/enum_of.hpp"
#include "scenarios/meaning/library_members.hpp"
#include "scenarios/meaning/meaning_jobs.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/catalog.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/nccl/nccl_costs.hpp"
#include "topologies/rccl/rccl_machine.hpp"

namespace ringsim::scenarios {

using Canonical = nlohmann::json;

void refuse_decided(const Json& written, const Blame& blame) {
  const auto refuse = [&](const std::string& pointer) {
    std::string path = pointer.substr(1);
    std::replace(path.begin(), path.end(), '/', '.');
    blame.fail(pointer, "cannot be combined with a library, which chooses it",
               fmt::format("remove it (--set {}=null), or remove \"library\" (--set library=null)", path));
  };
  const auto refuse_in = [&](const Json& job, const std::string& pointer) {
    if (job.contains("collective"))
      for (const char* key : {"algorithm", "order", "seed", "servers_on"})
        if (job["collective"].contains(key)) refuse(fmt::format("{}/collective/{}", pointer, key));
    if (job.contains("training") && job["training"].contains("regime") && job["training"]["regime"].is_object() &&
        job["training"]["regime"].contains("algorithm"))
      refuse(pointer + "/training/regime/algorithm");
    if (job.contains("inference") && job["inference"].contains("parallel") &&
        job["inference"]["parallel"].is_object() && job["inference"]["parallel"].contains("algorithm"))
      refuse(pointer + "/inference/parallel/algorithm");
    if (job.contains("trace") && job["trace"].contains("algorithm")) refuse(pointer + "/trace/algorithm");
  };
  refuse_in(written, "");
  for (std::size_t i = 0; written.contains("jobs") && i < written["jobs"].size(); ++i)
    refuse_in(written["jobs"][i], fmt::format("/jobs/{}", i));
  if (written.contains("transport"))
    for (const char* key : {"protocol", "launch", "channels", "chunk", "nics"})
      if (written["transport"].contains(key)) refuse(fmt::format("/transport/{}", key));
}

namespace {

/// RCCL decides: by the variables that it shares with NCCL, and RCCL_MSCCL_ENABLE.
Decider rccl_decider_of(const Canonical& canonical, const Canonical& part, const std::string& pointer,
                        const Scenario& scenario, const Blame& blame) {
  const auto blamed = [&](const std::string& where, const auto& read) {
    try {
      return read();
    } catch (const InputError& error) {
      blame.fail(where, error.message(), error.hint());
    }
  };
  const Canonical &library = canonical["library"], &env = library["env"];
  Decider out;
  out.version = library["version"].get<std::string>();
  RcclDecider& own = out.rccl.emplace();
  // A release whose variables name no functions.
  const int minor = nccl::minor_of_version(std::string(rccl::modeled_version));
  constexpr CollectiveOp any = CollectiveOp::all_reduce;
  if (env.contains("NCCL_ALGO"))
    own.settings.algorithms =
        blamed("/library/env/NCCL_ALGO", [&] { return nccl::read_algorithms(env["NCCL_ALGO"], minor).at(any); });
  if (env.contains("NCCL_PROTO"))
    own.settings.protocols =
        blamed("/library/env/NCCL_PROTO", [&] { return nccl::read_protocols(env["NCCL_PROTO"], minor).at(any); });
  own.settings.msccl = env.value("RCCL_MSCCL_ENABLE", "1") != "0";
  const Canonical first_group = of_first_group(part, pointer, scenario.topology, blame);
  const Cluster& cluster = one_kind(scenario.topology, blame);
  const std::string ranks = fmt::format("{}/{}", pointer, part.contains("groups") ? "groups/0" : "ranks");
  const Members members = members_of(first_group, cluster, ranks, blame);
  rccl::KnownMachine known = blamed(first_group.contains("ranks") ? ranks : "/topology", [&] {
    return rccl::known_machine(*cluster.parts.front().machine, members.gpus, members.nodes, cables_of(cluster));
  });
  blamed("/library/version", [&] { return rccl::require_modeled(out.version), 0; });
  out.machine = known.tuner;
  own.rings = std::move(known.rings);
  own.trees = std::move(known.trees);
  own.link = known.link;
  if (canonical.contains("devices") && canonical["devices"].contains("gpu")) out.gpu = canonical["devices"]["gpu"];
  if (canonical.contains("harness") && in_turn_of(canonical["harness"], gpus_called(part, cluster), blame) > 1)
    blame.fail("/harness/gpus_per_thread", "expected one GPU per thread with RCCL, found several",
               "the time that a thread needs to call several GPUs in turn is not known for RCCL; remove the key");
  return out;
}

/// What users say of GPUs that write into each other's memory; nothing: NCCL's own rule. Variables are resolved.
std::optional<PathType> said_p2p_level(const Canonical& canonical, const Canonical& transport, const Json& written) {
  const PathType level = path_type(transport["p2p_level"].get<std::string>()).value();
  const Canonical& env = canonical["library"]["env"];
  bool said = level == PathType::loc || env.contains("NCCL_P2P_LEVEL");  // NCCL_P2P_DISABLE=0 says nothing
  for (const char* key : {"p2p_level", "NCCL_P2P_LEVEL"})
    said = said || (written.contains("transport") && written["transport"].contains(key));
  return said ? std::optional(level) : std::nullopt;
}

/// What users say of how far GPUDirect reaches; nothing: NCCL's own rule. Variables are resolved.
std::optional<PathType> said_gdr_level_of(const Canonical& canonical, const Canonical& transport, const Json& written) {
  bool said = canonical["library"]["env"].contains("NCCL_NET_GDR_LEVEL");
  for (const char* key : {"gdr_level", "NCCL_NET_GDR_LEVEL", "gpudirect"})
    said = said || (written.contains("transport") && written["transport"].contains(key));
  return said ? path_type(transport["gdr_level"].get<std::string>()) : std::nullopt;
}

std::optional<bool> flag_said(const Canonical& env, const char* variable) {
  return env.contains(variable) ? std::optional(env[variable] == "1") : std::nullopt;
}

int said_cross_nic(const Canonical& env) {
  const std::string said = env.value("NCCL_CROSS_NIC", "2");
  return said == "0" ? 0 : said == "1" ? 1 : 2;
}

/// How far GPUDirect reaches by that release, on this machine.
PathType gdr_level_of(const Canonical& canonical, const Canonical& transport, const Json& written,
                      const Machine& machine, int minor) {
  const std::optional<bool> c2c = flag_said(canonical["library"]["env"], "NCCL_NET_GDR_C2C");
  if (const std::optional<PathType> said = said_gdr_level_of(canonical, transport, written))
    return nccl::said_gdr_level(*said, minor, c2c, nccl::has_chip_to_chip(machine));
  return nccl::gdr_level(minor, c2c);
}

/// What a release does with a number that it has no use for, as a warning.
void warn_of_variable(const char* variable, const std::string& what, const Blame& blame, Scenario& scenario) {
  scenario.warnings.push_back(fmt::format("{}: {}", blame.where(fmt::format("/library/env/{}", variable)), what));
}

/// The first of these variables that is there; no more than the release has room for, as NCCL cuts it down
/// (src/graph/connect.cc, ncclMinNchannels). NCCL_..._CTAS: from 2.17 on.
std::optional<int> channels_said(const Canonical& library, std::initializer_list<const char*> variables,
                                 const Blame& blame, Scenario& scenario) {
  const Canonical& env = library["env"];
  const auto version = library["version"].get<std::string>();
  for (const char* variable : variables) {
    if (!env.contains(variable)) continue;
    const int said = env[variable].get<int>(), most = nccl::most_channels_of(version);
    if (said > most)
      warn_of_variable(
          variable,
          fmt::format("treated as {}, because NCCL {} supports no more channels; found {}", most, version, said), blame,
          scenario);
    return std::min(said, most);
  }
  return std::nullopt;
}

/// The bounds of channels. CTAs bound them, too, if the release knows them (src/graph/connect.cc, ncclTopoPostset).
void take_bounds(const Canonical& library, const Blame& blame, Scenario& scenario, nccl::LibrarySettings& out) {
  out.min_channels = channels_said(library, {"NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS"}, blame, scenario);
  out.max_channels = channels_said(library, {"NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS"}, blame, scenario);
  if (out.minor >= 17) {
    const auto least = channels_said(library, {"NCCL_MIN_CTAS"}, blame, scenario);
    const auto most = channels_said(library, {"NCCL_MAX_CTAS"}, blame, scenario);
    if (least) out.min_channels = std::max(*least, out.min_channels.value_or(1));
    if (most) out.max_channels = std::min(*most, out.max_channels.value_or(*most));
  }
  if (out.min_channels && out.max_channels && *out.min_channels > *out.max_channels) {
    const Canonical& env = library["env"];
    std::string pointer = "/library/env/NCCL_MIN_NCHANNELS", other;
    for (const char* variable : {"NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS", "NCCL_MIN_CTAS"})
      if (env.contains(variable) && env[variable].get<int>() >= *out.min_channels)
        pointer = fmt::format("/library/env/{}", variable);
    for (const char* variable : {"NCCL_MAX_CTAS", "NCCL_MAX_NRINGS", "NCCL_MAX_NCHANNELS"})
      if (env.contains(variable) && env[variable].get<int>() == *out.max_channels) other = variable;
    blame.fail(pointer, fmt::format("expected at most {}, {}, found {}", other, *out.max_channels, *out.min_channels));
  }
}

/// Of sends and receives.
void take_send_channels(const Canonical& library, const Blame& blame, Scenario& scenario, nccl::LibrarySettings& out) {
  const Canonical& env = library["env"];
  out.min_p2p_channels = channels_said(library, {"NCCL_MIN_P2P_NCHANNELS"}, blame, scenario);
  out.max_p2p_channels = channels_said(library, {"NCCL_MAX_P2P_NCHANNELS"}, blame, scenario);
  out.channels_per_net_peer = channels_said(library, {"NCCL_NCHANNELS_PER_NET_PEER"}, blame, scenario);
  if (env.contains("NCCL_P2P_LL_THRESHOLD") && out.minor >= 14)
    out.ll_threshold = env["NCCL_P2P_LL_THRESHOLD"].get<std::int64_t>();
  if (env.contains("NCCL_P2P_NET_CHUNKSIZE")) out.net_chunk = env["NCCL_P2P_NET_CHUNKSIZE"].get<std::int64_t>();
}

/// NCCL takes the most threads instead of a number that does not come out at whole warps (src/graph/tuning.cc,
/// getNthreads).
std::optional<int> threads_said(const Canonical& env, const Blame& blame, Scenario& scenario) {
  constexpr int warp = 32, most = 512;
  if (!env.contains("NCCL_NTHREADS")) return std::nullopt;
  const int said = env["NCCL_NTHREADS"].get<int>();
  if (said % warp == 0) return said;
  warn_of_variable("NCCL_NTHREADS",
                   fmt::format("treated as {}, because NCCL accepts only multiples of {}; found {}", most, warp, said),
                   blame, scenario);
  return most;
}

nccl::LibrarySettings settings_of(const Canonical& library, const Blame& blame, Scenario& scenario) {
  const auto blamed = [&](const char* pointer, const auto& read) {
    try {
      return read();
    } catch (const InputError& error) {
      blame.fail(pointer, error.message(), error.hint());
    }
  };
  nccl::LibrarySettings out;
  out.release = blamed("/library/version", [&] { return nccl::release_of_version(library["version"]); });
  out.minor = nccl::minor_of_version(library["version"]);
  if (nccl::is_before_oldest(library["version"]))
    scenario.warnings.push_back(
        fmt::format("{}: {} is simulated with the rules of {}, the oldest release that is modeled",
                    blame.where("/library/version"), library["version"].get<std::string>(), nccl::oldest_version));
  const Canonical& env = library["env"];
  if (env.contains("NCCL_ALGO"))
    out.algorithms =
        blamed("/library/env/NCCL_ALGO", [&] { return nccl::read_algorithms(env["NCCL_ALGO"], out.minor); });
  if (env.contains("NCCL_PROTO"))
    out.protocols =
        blamed("/library/env/NCCL_PROTO", [&] { return nccl::read_protocols(env["NCCL_PROTO"], out.minor); });
  take_bounds(library, blame, scenario, out);
  take_send_channels(library, blame, scenario, out);
  out.threads = threads_said(env, blame, scenario);
  if (env.contains("NCCL_NVLS_ENABLE")) out.nvls = env["NCCL_NVLS_ENABLE"] != "0";
  return out;
}

/// `pointer`: of what an error is blamed on.
nccl::TunerMachine machine_of(const Members& members, const std::string& pointer, const Cluster& cluster,
                              const nccl::LibrarySettings& settings, const nccl::SearchSettings& search,
                              const Blame& blame) {
  const Machine& machine = *cluster.parts.front().machine;
  try {
    return nccl::tuner_machine(machine, members.gpus, members.nodes, cables_of(cluster), settings.release, search);
  } catch (const InputError& error) {
    blame.fail(pointer, error.message(), error.hint());
  }
}

/// Reads what NCCL_GRAPH_FILE names, and puts it in the place of what the search would find.
LibraryGraphs take_graph_file(const Canonical& library, const Members& members, const Machine& machine,
                              const nccl::LibrarySettings& settings, nccl::TunerMachine& tuner, const Files& files) {
  LibraryGraphs out;
  const Canonical& env = library["env"];
  if (!env.contains("NCCL_GRAPH_FILE")) return out;
  const Files::Content& content = files.read(env["NCCL_GRAPH_FILE"]["path"].get<std::string>(),
                                             {"NCCL's graph XML, which has <graphs>", {"<graphs"}});
  out.path = content.path;
  out.file = nccl::import_nccl_graph(content.text, content.path,
                                     nccl::graph_reading(nccl::graph_devices(machine, members.gpus), members.nodes,
                                                         library["version"].get<std::string>()));
  if (env.contains("NCCL_CROSS_NIC") && env["NCCL_CROSS_NIC"] == "0") nccl::leave_out_cross_nic(out.file, out.path);
  nccl::take_graphs(tuner, out.file, out.path, settings.release);
  return out;
}

}  // namespace

Decider decider_of(const Canonical& canonical, const Json& written, const Canonical& part, const std::string& where,
                   Canonical& transport, Scenario& scenario, const Blame& blame, const Files& files) {
  const Canonical& library = canonical["library"];
  if (library["name"] == "rccl") return rccl_decider_of(canonical, part, where, scenario, blame);
  Decider out;
  out.settings = settings_of(library, blame, scenario);
  std::optional<PathType> level = said_p2p_level(canonical, transport, written);
  const std::string pointer = fmt::format("{}/{}", where, part.contains("groups") ? "groups/0" : "ranks");
  const Canonical first_group = of_first_group(part, where, scenario.topology, blame);
  const Cluster& cluster = one_kind(scenario.topology, blame);
  const Members members = members_of(first_group, cluster, pointer, blame);
  const Machine& machine = *cluster.parts.front().machine;
  if (!level) level = nccl::p2p_level(machine, static_cast<int>(members.gpus.size()), out.settings.release);
  const PathType gdr_level = gdr_level_of(canonical, transport, written, machine, out.settings.minor);
  transport["p2p_level"] = to_string(*level);
  transport["gdr_level"] = to_string(gdr_level);
  out.machine = machine_of(members, first_group.contains("ranks") ? pointer : "/topology", cluster, out.settings,
                           {.p2p_level = level,
                            .gdr_level = gdr_level,
                            .cross_nic = said_cross_nic(library["env"]),
                            .pxn = transport["pxn"].get<bool>()},
                           blame);
  out.own_staging = written.contains("transport") && written["transport"].contains("staging");
  if (library.contains("plugin") || out.machine.provider == nccl::NicProvider::efa) {
    out.machine.net_latency_us = nccl::latency_of_aws_ofi_nccl(out.machine);
    if (!library["env"].contains("NCCL_P2P_NET_CHUNKSIZE"))
      out.settings.net_chunk = nccl::net_chunk_of_aws_ofi_nccl(out.machine);
  }
  out.version = library["version"].get<std::string>();
  if (library.contains("costs")) {
    FileKind kind{"cost constants, named as in `ringsim list costs --format json`", {}};
    nccl::CostConstants constants = nccl::fitted_costs();
    nccl::for_each_constant(constants,
                            [&](const std::string& name, double) { kind.marks.push_back('"' + name + '"'); });
    const Files::Content& content = files.read(library["costs"]["path"].get<std::string>(), kind);
    out.costs = nccl::read_costs(content.text, content.path);
  }
  out.graphs = take_graph_file(library, members, machine, out.settings, out.machine, files);
  if (out.machine.ports > 1 && !out.graphs.path.empty())
    warn_of_variable(
        "NCCL_GRAPH_FILE",
        fmt::format(
            "it affects only NCCL's choice, not the rings: each NIC in the file represents {} adapters in the topology",
            out.machine.ports),
        blame, scenario);
  const auto& warnings = out.graphs.file.warnings;
  scenario.warnings.insert(scenario.warnings.end(), warnings.begin(), warnings.end());
  if (canonical.contains("devices") && canonical["devices"].contains("gpu")) out.gpu = canonical["devices"]["gpu"];
  if (out.gpu.contains("post")) {  // it also bounds what a GPU sends in chunks
    const double us = microseconds(Picoseconds{out.gpu["post"].get<std::int64_t>()});
    for (double* post : {&out.costs.post_400, &out.costs.post, &out.costs.post_cxi, &out.costs.post_efa}) *post = us;
  }
  if (canonical.contains("harness")) out.in_turn = in_turn_of(canonical["harness"], gpus_called(part, cluster), blame);
  return out;
}

}  // namespace ringsim::scenarios
