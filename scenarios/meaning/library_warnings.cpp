// Warnings of settings of a library that have no effect, and of variables whose effect is not modeled.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/meaning/meaning_library.hpp"
#include "topologies/nccl/nccl_variables.hpp"
#include "topologies/nccl_search/node_search.hpp"
#include "topologies/rccl/rccl_library.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;
using nccl::TunerAlgorithm;
using nccl::TunerProtocol;

/// Variables that NCCL reads only for what it has not chosen here, each with why. Not those that happen to change
/// nothing, as bounds of channels do that leave room.
std::vector<std::pair<const char*, std::string>> idle_variables(CollectiveOp op, const LibraryRun& run) {
  std::vector<std::pair<const char*, std::string>> out;
  if (run.machine.nodes == 1)
    out.emplace_back("NCCL_NET_GDR_C2C", "it applies to NICs, and there is only one node");
  else if (!run.machine.arm)
    out.emplace_back("NCCL_NET_GDR_C2C", "this machine has no chip-to-chip link between GPUs and CPUs");
  if (nccl::sends_to_peers(op)) {
    for (const char* name : {"NCCL_ALGO", "NCCL_NTHREADS", "NCCL_NVLS_ENABLE"})
      out.emplace_back(name, fmt::format("{} consists of sends and receives to peers", to_string(op)));
    if (run.machine.nodes == 1)
      for (const char* name : {"NCCL_NCHANNELS_PER_NET_PEER", "NCCL_P2P_NET_CHUNKSIZE"})
        out.emplace_back(name, "no peer is on another node");
    return out;
  }
  for (const char* name : {"NCCL_MIN_P2P_NCHANNELS", "NCCL_MAX_P2P_NCHANNELS", "NCCL_NCHANNELS_PER_NET_PEER",
                           "NCCL_P2P_LL_THRESHOLD", "NCCL_P2P_NET_CHUNKSIZE"})
    out.emplace_back(
        name, fmt::format("it applies to sends and receives between peers, which {} does not use", to_string(op)));
  const auto chosen = fmt::format("the library chooses {}", to_string(run.call.plan.algorithm));
  if (run.call.plan.algorithm == TunerAlgorithm::nvls || run.call.plan.algorithm == TunerAlgorithm::nvls_tree) {
    for (const char* name :
         {"NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NRINGS", "NCCL_MAX_NRINGS", "NCCL_NTHREADS"})
      out.emplace_back(name, chosen + ", but it applies to rings and trees");
    for (const char* name : {"NCCL_MIN_CTAS", "NCCL_MAX_CTAS"})
      out.emplace_back(name, chosen + ", and its limit on the thread blocks of NVLS is not modeled");
  } else if (run.call.plan.protocol == TunerProtocol::ll128) {
    out.emplace_back("NCCL_NTHREADS", "the library chooses LL128, but it applies to LL and Simple");
  }
  if (op != CollectiveOp::all_reduce)
    out.emplace_back("NCCL_NVLS_ENABLE", fmt::format("NVLS is not modeled for {}", to_string(op)));
  else if (run.machine.nvls.count < 2 || nccl::release_of_version(run.version) < nccl::Release::v2_18)
    out.emplace_back("NCCL_NVLS_ENABLE", "the machine has no NVLS in this release");
  return out;
}

/// A collective that the library does: of a job, or of a size that a training step exchanges.
struct LibraryUse {
  CollectiveOp op{};
  LibraryRun run;
  Bytes bytes{0};
};

/// All of them, the scenario's own first. One rank alone calls nothing.
std::vector<LibraryUse> uses_of(const Scenario& scenario) {
  std::vector<LibraryUse> out;
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    const LibraryRun* library = scenario.library_of(j);
    if (library == nullptr || library->machine.ranks() == 1) continue;
    const TrainingSpec* training = scenario.training_of(j);
    const CollectiveOp op = training != nullptr ? CollectiveOp::all_reduce : scenario.jobs[j].request.op;
    // The call of a plan is that of one of its exchanges.
    const bool is_an_exchange = training != nullptr && training->calls_in_groups() && !library->exchanges.empty();
    if (!is_an_exchange) out.push_back({op, *library, scenario.jobs[j].request.bytes});
    for (const auto& [exchange, call] : library->exchanges) {
      out.push_back({training->calls_in_groups() ? exchange.op : op, *library, exchange.bytes});
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

/// Warns if the library takes another algorithm than all that NCCL_ALGO names, because this machine has none of these,
/// and returns whether it did. It need not be the one that it would take without the variable.
bool warn_of_other_algorithm(const std::string& named, const LibraryUse& use, const Blame& blame, Scenario& scenario) {
  const LibraryRun& run = use.run;
  const auto allowed = nccl::read_algorithms(named, nccl::minor_of_version(run.version));
  if (!allowed.restricts(use.op)) return false;
  std::string none;
  for (const TunerAlgorithm each : allowed.at(use.op)) {
    if (each == run.call.plan.algorithm) return false;
    none += fmt::format("{}{}", none.empty() ? "" : ", ", to_string(each));
  }
  scenario.warnings.push_back(fmt::format("{}: {} {} does not have {} here and falls back to {}",
                                          blame.where("/library/env/NCCL_ALGO"), run.printed_name(), run.version, none,
                                          to_string(run.call.plan.algorithm)));
  return true;
}

/// What a rank does with its own part, which `devices.gpu` has the rates of: sends and additions go by the costs of the
/// library's kernels.
void warn_of_own_part(const Canonical& gpu, const std::vector<LibraryUse>& uses, const Blame& blame,
                      Scenario& scenario) {
  const auto warn = [&](const char* key, const char* what, bool (*does)(CollectiveOp)) {
    if (gpu.contains(key) &&
        std::none_of(uses.begin(), uses.end(), [&](const LibraryUse& use) { return does(use.op); }))
      scenario.warnings.push_back(fmt::format("{}: it has no effect, because in {}, no rank {} its own part",
                                              blame.where(fmt::format("/devices/gpu/{}", key)),
                                              to_string(uses.front().op), what));
  };
  warn("copy", "copies", copies_own_part);
  warn("reduce", "adds", adds_own_part);
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
          fmt::format("{}: it has no effect, because NCCL {} does not support it; 2.{} is the first release that does",
                      blame.where(fmt::format("/library/env/{}", name)), version, minor));
}

/// A file that varies a setting has the point without it among others.
bool file_varies(const Scenario& scenario, std::string_view path) {
  return std::any_of(scenario.varied.begin(), scenario.varied.end(),
                     [&](const auto& varied) { return varied.first == path; });
}

/// NCCL would use NICs between GPUs of a node, unless users say that it does not.
void warn_of_nics_in_node(const Json& written, const Blame& blame, Scenario& scenario) {
  if (!scenario.library || !scenario.library->machine.search) return;
  if (!scenario.library->machine.search->nics_join_gpus) return;
  const Json& library = written["library"];
  const char* name = "NCCL_NET_DISABLE_INTRA";
  const bool is_off = library.is_object() && library.contains("env") && library["env"].contains(name) &&
                      is_idle_at("1", library["env"][name]);
  if (!is_off)
    scenario.warnings.push_back(
        fmt::format("{}: NCCL would also use NICs between GPUs of one node, because they are faster than the link "
                    "between the CPU sockets; this is not modeled. The prediction is for NCCL_NET_DISABLE_INTRA=1; if "
                    "this variable is set on the machine, add it to library.env",
                    blame.where("/library")));
}

/// NCCL's: what has no effect of its variables.
void warn_of_nccl(const Canonical& canonical, const Json& written, const std::vector<LibraryUse>& uses,
                  const Blame& blame, Scenario& scenario) {
  const auto warn = [&](const std::string& pointer, const std::string& because) {
    scenario.warnings.push_back(fmt::format("{}: it has no effect, because {}", blame.where(pointer), because));
  };
  const Canonical& env = canonical["library"]["env"];
  // It decides which channels are found, and which graphs of a file count.
  const bool of_file = env.contains("NCCL_GRAPH_FILE") && env.value("NCCL_CROSS_NIC", "") == "0";
  const bool decides = scenario.library && scenario.library->machine.cross_nic_decides;
  if (env.contains("NCCL_CROSS_NIC") && !of_file && !decides && !file_varies(scenario, "library.env.NCCL_CROSS_NIC"))
    warn("/library/env/NCCL_CROSS_NIC", "NCCL finds the same channels without it");
  if (env.contains("NCCL_BUFFSIZE")) warn("/library/env/NCCL_BUFFSIZE", "it is not modeled");
  warn_of_nics_in_node(written, blame, scenario);
  warn_of_other_variables(written, uses, blame, scenario);
  warn_of_releases(env, canonical["library"]["version"], blame, scenario);
  if (uses.empty()) return;
  const auto idle = idle_variables(uses);
  for (const auto& [name, because] : idle)
    if (env.contains(name)) warn(fmt::format("/library/env/{}", name), because);
  const bool nvls_is_idle = std::any_of(
      idle.begin(), idle.end(), [](const auto& each) { return each.first == std::string_view("NCCL_NVLS_ENABLE"); });
  if (const std::string nvls = env.value("NCCL_NVLS_ENABLE", "0");
      nvls != "0" && !nvls_is_idle && !file_varies(scenario, "library.env.NCCL_NVLS_ENABLE"))
    warn("/library/env/NCCL_NVLS_ENABLE", "NVLS can be chosen without it");
  const auto names_other_functions = [&](const auto& allowed) {
    return std::none_of(uses.begin(), uses.end(), [&](const LibraryUse& use) { return allowed.restricts(use.op); });
  };
  const auto is_weighed = [](const LibraryUse& use) { return !nccl::sends_to_peers(use.op); };
  const bool any_weighed = std::any_of(uses.begin(), uses.end(), is_weighed);
  const int minor = nccl::minor_of_version(uses.front().run.version);
  constexpr const char* other_functions = "nothing here calls the functions that it names";
  if (env.contains("NCCL_PROTO") && names_other_functions(nccl::read_protocols(env["NCCL_PROTO"], minor)))
    warn("/library/env/NCCL_PROTO", other_functions);
  if (!env.contains("NCCL_ALGO") || !any_weighed) return;
  if (names_other_functions(nccl::read_algorithms(env["NCCL_ALGO"], minor)))
    warn("/library/env/NCCL_ALGO", other_functions);
  for (const LibraryUse& use : uses)
    if (is_weighed(use) && warn_of_other_algorithm(env["NCCL_ALGO"], use, blame, scenario)) return;
}

/// RCCL's: what has no effect of its variables, those that act here where they do not, and of all others those that
/// change times.
void warn_of_rccl(const Canonical& canonical, const Json& written, const std::vector<LibraryUse>& uses,
                  const Blame& blame, Scenario& scenario) {
  const Canonical& env = canonical["library"]["env"];
  const auto warn = [&](const std::string& variable, const std::string& because) {
    scenario.warnings.push_back(fmt::format("{}: {}", blame.where("/library/env/" + variable), because));
  };
  if (const Json& library = written["library"]; library.is_object() && library.contains("env")) {
    for (const auto& [name, value] : library["env"].items()) {
      const nccl::OtherVariable* known = nccl::find_other_variable(name);
      const bool idle = known != nullptr && (!known->changes_time || is_idle_at(known->idle, value));
      if (idle || env.contains(name) || canonical["transport"].contains(name)) continue;
      warn(name, "its effect on RCCL is not modeled");
    }
  }
  if (uses.empty()) return;
  const auto is_msccl = [](const LibraryUse& use) { return use.run.call.plan.algorithm == TunerAlgorithm::msccl; };
  const auto is_chosen = [&](const LibraryUse& use) { return !is_msccl(use) && !nccl::sends_to_peers(use.op); };
  if (std::none_of(uses.begin(), uses.end(), is_chosen))
    for (const char* name : {"NCCL_ALGO", "NCCL_PROTO"})
      if (env.contains(name))
        warn(name, fmt::format("it has no effect, because {}; with RCCL_MSCCL_ENABLE=0, RCCL's tuner chooses",
                               is_msccl(uses.front()) ? "an MSCCL schedule takes precedence at this size"
                                                      : "sends and receives to peers are used"));
  if (const auto chosen = std::find_if(uses.begin(), uses.end(), is_chosen);
      env.contains("NCCL_ALGO") && chosen != uses.end())
    (void)warn_of_other_algorithm(env["NCCL_ALGO"], *chosen, blame, scenario);
  if (env.contains("RCCL_MSCCL_ENABLE") && std::none_of(uses.begin(), uses.end(), [&](const LibraryUse& use) {
        return rccl::msccl_schedule(use.op, use.bytes, use.run.machine, {}) != nullptr;
      }))
    warn("RCCL_MSCCL_ENABLE", "it has no effect, because no MSCCL schedule applies here");
}

/// Links that are down or slower from the start on: the library of a job that begins then may not use them.
void warn_of_faults(const Canonical& faults, const char* library, const Blame& blame, Scenario& scenario) {
  // A library sees the links of devices ("node0.gpu0 -> node0.nvswitch0", "node0.nic1 -> leaf0"), not those between
  // switches.
  const auto is_seen = [](const std::string& link) { return link.find('.') != std::string::npos; };
  const auto is_cable = [](const std::string& link) {
    const std::size_t arrow = link.find(" -> ");
    return arrow != std::string::npos &&
           (link.find('.') > arrow || link.find('.', arrow) == std::string::npos);  // one end is a switch of the fabric
  };
  const bool goes_down = std::any_of(faults.begin(), faults.end(), [](const Canonical& fault) {
    return fault.value("state", "") == "down" && fault.value("at", std::int64_t{0}) == 0;
  });
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const Canonical& fault = faults[i];
    if (fault.value("at", std::int64_t{0}) > 0) continue;
    const bool is_down = fault.value("state", "") == "down";
    const std::string link = fault.value("link", "");
    if (!is_down && !(fault.contains("bandwidth") && is_seen(link))) continue;
    if (!is_down && goes_down) continue;  // of which is more to say
    const std::string where = blame.where(fmt::format("/faults/{}", i));
    if (!is_down && is_cable(link)) {
      scenario.warnings.push_back(
          fmt::format("{}: {} chooses rings, trees and NICs as if this fault did not exist, as in a job that is "
                      "already running. A job that starts later sees the rate of the port. To predict such a job "
                      "without this NIC, set NCCL_IB_HCA=^NIC",
                      where, library));
      return;
    }
    scenario.warnings.push_back(fmt::format(
        "{}: {} chooses rings, trees and NICs as if this fault did not exist, as in a job that is already running{}. "
        "For a job that starts later, describe the machine {} (`ringsim topology export SCENARIO {}-o "
        "machine.json`{}), and use it as topology.node_file instead of the fault",
        where, library, is_down ? " and survives it" : "", is_down ? "without the link" : "with fewer links or lanes",
        is_down ? "--without-dead-links " : "--to machine ",
        is_down ? "; for a NIC, NCCL_IB_HCA also works" : ", then change count or type of the link"));
    return;
  }
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
    const std::vector<LibraryUse> uses = uses_of(scenario);
    const bool is_rccl = canonical["library"]["name"] == "rccl";
    (is_rccl ? warn_of_rccl : warn_of_nccl)(canonical, written, uses, blame, scenario);
    if (!uses.empty() && says("gpu") && !file_varies(scenario, "collective.op"))
      warn_of_own_part(canonical["devices"]["gpu"], uses, blame, scenario);
    if (canonical.contains("faults")) warn_of_faults(canonical["faults"], is_rccl ? "RCCL" : "NCCL", blame, scenario);
    if (canonical.contains("harness"))
      for (const auto& [key, value] : canonical["harness"].items())
        if (key != "gpus_per_thread") warn(fmt::format("/harness/{}", key), "it is not modeled");
    if (says("cpu")) warn("/devices/cpu", "no CPU participates in the library's collectives");
    const auto gpu_says = [&](const char* key) { return says("gpu") && canonical["devices"]["gpu"].contains(key); };
    if (gpu_says("start")) warn("/devices/gpu/start", "the costs of the library's kernels already include it");
    const auto is_bound = [](const LibraryUse& use) {
      return is_bound_by_blocks(use.run.call.plan, use.run.call.channel);
    };
    if (gpu_says("channel") && scenario.library && std::none_of(uses.begin(), uses.end(), is_bound))
      warn("/devices/gpu/channel",
           "it limits only Simple rings and trees over NVLink; here the costs of the library already include it");
    return;
  }
  const std::string because = "no library kernels run without the key \"library\"";
  for (const char* key : {"launch", "launch_channel"})
    if (says("gpu") && canonical["devices"]["gpu"].contains(key)) warn(fmt::format("/devices/gpu/{}", key), because);
  if (canonical.contains("harness")) warn("/harness", because);
}

}  // namespace ringsim::scenarios
