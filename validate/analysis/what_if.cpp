#include "validate/analysis/what_if.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/scale_links.hpp"
#include "validate/analysis/idle_links.hpp"

namespace ringsim {

namespace {

constexpr const char* without_faults = "faults=null";

/// The option that multiplies the scenario's own calibration.scale_NAME by `factor`.
std::string scale(const Scenario& scenario, const std::string& name, double factor) {
  double own = 1;
  if (scenario.calibration) {
    const Calibration& calibration = *scenario.calibration;
    if (name == "compute") own = calibration.compute;
    if (name == "latency") own = calibration.classes.latency;
    for (const LinkClass each : link_classes)
      if (to_string(each) == name) own = calibration.classes.bandwidth[static_cast<std::size_t>(each)];
  }
  return fmt::format("calibration.scale_{}={}", name, std::round(own * factor * 1e6) / 1e6);  // as fine as a scenario's
}

WhatIf faster(const Scenario& scenario, const std::string& label, const std::string& name, double factor) {
  return {.of = WhatIf::Of::link_class, .label = label, .set = {scale(scenario, name, factor)}};
}

/// Several classes twice as fast: "nic and pcie 2x", "nic, pcie and infiniband 2x". `done` has each of them alone.
WhatIf all_faster(const std::vector<std::string>& kinds, const std::vector<WhatIf>& done) {
  WhatIf made{.of = WhatIf::Of::link_class, .label = {}, .set = {}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    made.label += (i == 0 ? "" : i + 1 == kinds.size() ? " and " : ", ") + kinds[i];
    const auto alone = std::find_if(done.begin(), done.end(), [&](const WhatIf& each) {
      return each.of == WhatIf::Of::link_class && each.label == kinds[i] + " 2x";
    });
    ensure(alone != done.end(), "each class of links is tried alone before it is tried with others");
    made.set.insert(made.set.end(), alone->set.begin(), alone->set.end());
  }
  made.label += " 2x";
  return made;
}

constexpr const char* every_label = "all links 2x";

/// The gain, as a share of the base's time, of the what-if of that label; 0 if it was not run.
double gain_of(const std::string& label, const Result& base, const std::vector<WhatIf>& done) {
  for (const WhatIf& each : done)
    if (each.of == WhatIf::Of::link_class && each.label == label && each.result) return -change_of(each, base);
  return 0;
}

/// Other seeds of a routing that draws, and the other routings. A collective's time by ecmp spreads widely, so a single
/// seed says little.
constexpr int routing_seeds = 5;  ///< that are run in all

void add_routings(const Scenario& scenario, const Result& base, std::vector<WhatIf>& all) {
  if (base.prediction.routing.empty()) return;
  const auto add = [&](const std::string& label, std::vector<std::string> set, bool is_advice = true) {
    all.push_back({.of = WhatIf::Of::routing, .label = label, .set = std::move(set), .is_advice = is_advice});
  };
  const Routing::Policy own = scenario.routing.policy;
  const std::string table = scenario.routing.table.empty() ? "" : "network.table=null";
  const auto with = [&](const std::string& routing, int seed) {
    std::vector<std::string> set{"network.routing=" + routing};
    if (routing == "ecmp") set.push_back(fmt::format("network.seed={}", seed));
    if (!table.empty()) set.push_back(table);
    return set;
  };
  if (own != Routing::Policy::fixed) add("static routing", with("static", 0));
  if (own != Routing::Policy::packet_spray) add("packets spread over all ways", with("packet_spray", 0));
  const bool draws = own == Routing::Policy::ecmp;
  int more = draws ? routing_seeds - 1 : routing_seeds;
  for (int seed = 0; more > 0; ++seed) {
    if (draws && static_cast<std::uint64_t>(seed) == scenario.routing.seed) continue;
    add(fmt::format("ecmp, seed {}", seed), with("ecmp", seed), /*is_advice=*/false);
    --more;
  }
}

/// Twice the rates that the scenario gives to devices of a kind.
void add_rates(const std::string& kind, const std::optional<DeviceRates>& rates, std::vector<WhatIf>& all) {
  if (!rates) return;
  const auto twice = [&](const char* key, const std::optional<Bandwidth>& rate) {
    if (!rate || rate->bytes_per_second > max_bandwidth.bytes_per_second / 2) return;  // a scenario takes no more
    all.push_back({.of = WhatIf::Of::link_class,
                   .label = fmt::format("{} {} 2x", kind, key),
                   .set = {fmt::format("devices.{}.{}={}", kind, key, format(Bandwidth{2 * rate->bytes_per_second}))}});
  };
  twice("reduce", rates->reduce);
  twice("copy", rates->copy);
  twice("channel", rates->channel);
}

/// The NIC that faults are about, "nic3" of "node5.nic3 -> leaf0", if nodes have others; empty if there are several, or
/// none.
std::string faulty_nic(const Scenario& scenario) {
  const auto* cluster = std::get_if<Cluster>(&scenario.topology);
  if (cluster == nullptr) return "";
  const auto is_nic = [&](const std::string& name) {
    return std::any_of(cluster->parts.begin(), cluster->parts.end(), [&](const Cluster::Part& part) {
      const auto& devices = part.machine->devices;
      return std::any_of(devices.begin(), devices.end(), [&](const Machine::Device& device) {
        return device.kind == NodeKind::nic && device.name == name;
      });
    });
  };
  std::set<std::string> found;
  for (const FaultSpec& fault : scenario.faults) {
    const std::size_t arrow = std::min(fault.link.find(" -> "), fault.link.size());  // else a node
    for (const std::string& end :
         {fault.link.substr(0, arrow), fault.link.substr(std::min(arrow + 4, fault.link.size()))})
      if (const std::string name = end.substr(end.find('.') + 1); is_nic(name)) found.insert(name);
  }
  const bool has_others = std::all_of(cluster->parts.begin(), cluster->parts.end(), [](const Cluster::Part& part) {
    const auto& devices = part.machine->devices;
    return std::count_if(devices.begin(), devices.end(),
                         [](const Machine::Device& device) { return device.kind == NodeKind::nic && device.port; }) > 1;
  });
  return found.size() == 1 && has_others ? *found.begin() : "";
}

std::vector<WhatIf> assumptions_of(const Scenario& scenario, const Prediction& base) {
  const Explanation& explanation = *base.explanation;
  std::vector<WhatIf> found;
  const auto without = [&](const std::string& label, std::vector<std::string> set) {
    found.push_back({.of = WhatIf::Of::assumption, .label = label, .set = std::move(set)});
  };
  if (!scenario.faults.empty()) without("without faults", {without_faults});
  if (!scenario.late.empty()) without("no late ranks", {"disturbance.late=null"});
  if (!scenario.slow.empty()) without("no slow ranks", {"disturbance.slow=null"});
  if (scenario.jitter.most.count() > 0) without("without jitter", {"disturbance.jitter=null"});
  if (!scenario.background.empty()) without("no background messages", {"disturbance.background=null"});
  if (scenario.jobs.size() > 1) without("no other collectives", {"jobs=null"});
  if (!scenario.library && (scenario.devices.gpu || scenario.devices.cpu))
    without("devices take no time", {"devices=null"});
  const bool uses_nics =
      std::find(explanation.kinds.begin(), explanation.kinds.end(), "nic") != explanation.kinds.end();
  const bool denied = denies_gpudirect(scenario.topology) && !scenario.transport.assumes_gpudirect;
  if (uses_nics && (denied || scenario.transport.gdr_level == PathType::loc))
    without("with GPUDirect",
            {"transport.NCCL_NET_GDR_LEVEL=null", "transport.gdr_level=null", "transport.gpudirect=true"});
  else if (!base.beyond_gpudirect.empty() && scenario.library)
    without("GPUDirect at any distance",
            {"transport.NCCL_NET_GDR_LEVEL=null", "transport.gdr_level=null", "library.env.NCCL_NET_GDR_LEVEL=SYS"});
  else if (!base.beyond_gpudirect.empty())
    without("GPUDirect at any distance", {"transport.NCCL_NET_GDR_LEVEL=null", "transport.gdr_level=SYS"});
  if (scenario.transport.acs) without("without ACS", {"transport.acs=null"});
  if (shares_all_links(scenario.model)) {
    without("only ports shared", {"network.model=ideal"});
    found.back().is_advice = false;
  }
  if (scenario.protocol->slots > 0 && !scenario.library) without("protocol none", {"transport.protocol=none"});
  if (found.size() > 1) {
    WhatIf all{.of = WhatIf::Of::assumption, .label = "all of these", .set = {}, .is_advice = false};
    for (const WhatIf& each : found) all.set.insert(all.set.end(), each.set.begin(), each.set.end());
    found.push_back(std::move(all));
  }
  // No part of "all of these", which repairs the NIC.
  if (const std::string nic = faulty_nic(scenario);
      scenario.library && scenario.library->name == "nccl" && !nic.empty())
    without(fmt::format("NCCL_IB_HCA=^={}, on all nodes", nic), {fmt::format("library.env.NCCL_IB_HCA=\"^={}\"", nic)});
  return found;
}

/// Algorithm and protocol: "uses Tree instead of Ring", "uses Tree with LL128 instead of Ring with Simple".
std::string changed_algorithm(const Prediction& before, const Prediction& after) {
  const bool algorithm = before.library_algorithm != after.library_algorithm;
  const bool protocol = before.library_protocol != after.library_protocol;
  if (!algorithm && !protocol) return "";
  const auto name = [&](const Prediction& p) {
    if (algorithm && protocol) return p.library_algorithm + " with " + p.library_protocol;
    return algorithm ? p.library_algorithm : p.library_protocol;
  };
  return fmt::format("uses {} instead of {}", name(after), name(before));
}

/// What the scenario's own warnings, the run and the links say of a change that did nothing.
std::string why_idle(const WhatIf& what_if, const Scenario& changed, const Scenario& base_scenario,
                     const Result& base) {
  const Prediction &before = base.prediction, &after = what_if.result->prediction;
  // For classes of links the table says it all: which of them have an effect.
  const auto of_links = [&] {
    if (what_if.of != WhatIf::Of::own || std::abs(change_of(what_if, base)) >= next_to_nothing) return std::string();
    if (!changed_algorithm(before, after).empty()) return std::string();  // it changed more than links
    return why_links_are_idle(base_scenario, before, changed, after, what_if.label.starts_with("topology"));
  };
  if (before.time != after.time) return of_links();
  for (const SettingEffect& each : after.settings)
    if (!each.idle.empty() &&
        std::find(before.settings.begin(), before.settings.end(), each) == before.settings.end()) {
      const std::string value = each.setting.substr(each.setting.rfind(": ") + 2);
      return what_if.label.ends_with('=' + value) ? each.idle : value + ": " + each.idle;
    }
  for (const std::string& warning : changed.warnings)
    if (std::find(base_scenario.warnings.begin(), base_scenario.warnings.end(), warning) ==
        base_scenario.warnings.end())
      return warning;
  if (changed.hash == base_scenario.hash) return "the scenario already has this setting";
  return of_links();
}

/// Rings, and channels unless rings tell their number: "finds 4 rings instead of 8". Another algorithm has other orders
/// anyway.
std::string changed_channels(const CollectiveRequest& before, const CollectiveRequest& after, bool same_algorithm) {
  const auto differ = [](auto now, auto then, const char* verb, const char* what) {
    return fmt::format("{} {} {}{} instead of {}", verb, now, what, now == 1 ? "" : "s", then);
  };
  const bool rings = same_algorithm && !before.orders.empty() && !after.orders.empty();
  if (rings && before.orders.size() != after.orders.size())
    return differ(after.orders.size(), before.orders.size(), "finds", "ring");
  if (before.channels != after.channels) return differ(after.channels, before.channels, "uses", "channel");
  const bool same_ranks = before.ranks == after.ranks;  // else their orders differ anyway
  return rings && same_ranks && before.orders != after.orders ? "finds other rings" : "";
}

}  // namespace

std::string changed_plan(const Prediction& before, const Prediction& after) {
  if (before.library.empty() || after.library.empty()) return "";
  const bool same_algorithm = before.library_algorithm == after.library_algorithm;
  std::vector<std::string> changes{changed_algorithm(before, after),
                                   changed_channels(before.request, after.request, same_algorithm)};
  std::erase(changes, "");
  if (changes.empty()) return "";
  return fmt::format("{} then {}", after.library.starts_with("rccl") ? "RCCL" : "NCCL", fmt::join(changes, " and "));
}

std::vector<WhatIf> what_ifs_of(const Scenario& scenario, const Result& base) {
  ensure(base.prediction.explanation.has_value(), "what-ifs are made for a prediction that was explained");
  const Explanation& explanation = *base.prediction.explanation;
  std::vector<WhatIf> all;
  for (const std::string& kind : explanation.kinds) {
    all.push_back(faster(scenario, kind + " 10 % faster", kind, 1.1));
    all.push_back(faster(scenario, kind + " 2x", kind, 2));
  }
  if (explanation.kinds.size() > 1)  // if several classes bind alike, a faster one alone changes nothing
    for (const auto& [label, factor] : {std::pair{"all links 10 % faster", 1.1}, std::pair{every_label, 2.0}}) {
      WhatIf every{.of = WhatIf::Of::link_class, .label = label, .set = {}, .is_advice = false};
      for (const std::string& kind : explanation.kinds) every.set.push_back(scale(scenario, kind, factor));
      all.push_back(std::move(every));
    }
  if (!explanation.kinds.empty()) {
    all.push_back(faster(scenario, "latencies 10 % less", "latency", 0.9));
    all.push_back(faster(scenario, "latencies halved", "latency", 0.5));
  }
  if (!scenario.library) {
    add_rates("gpu", scenario.devices.gpu, all);
    add_rates("cpu", scenario.devices.cpu, all);
  } else if (!base.prediction.training &&  // whose calls have rates of their own
             std::any_of(explanation.parts.begin(), explanation.parts.end(),
                         [](const ExplainedPart& part) { return part.kind == "channel"; })) {
    // Nothing to buy: how fast a thread block of the library's kernels moves data.
    const std::string twice = format(Bandwidth{2 * scenario.library->call.channel.bytes_per_second});
    all.push_back({.of = WhatIf::Of::link_class,
                   .label = "gpu channel 2x",
                   .set = {"devices.gpu.channel=" + twice},
                   .is_advice = false});
    WhatIf both{.of = WhatIf::Of::link_class,
                .label = "all links and gpu channel 2x",
                .set = {"devices.gpu.channel=" + twice},
                .is_advice = false};
    for (const std::string& kind : explanation.kinds) both.set.push_back(scale(scenario, kind, 2));
    all.push_back(std::move(both));
  }
  if (base.prediction.training) {
    all.push_back(faster(scenario, "compute 10 % faster", "compute", 1.1));
    all.push_back(faster(scenario, "compute 2x", "compute", 2));
    if (const Picoseconds launch = scenario.training->step.host_launch; launch.count() > 0)
      all.push_back({.of = WhatIf::Of::link_class,
                     .label = "host launches halved",
                     .set = {fmt::format("training.host.launch={}", format(launch / 2))}});
  }
  if (base.form)
    for (WhatIf& each : assumptions_of(scenario, base.prediction)) all.push_back(std::move(each));
  add_routings(scenario, base, all);
  return all;
}

std::vector<WhatIf> pairs_of(const Result& base, const std::vector<WhatIf>& done) {
  ensure(base.prediction.explanation.has_value(), "what-ifs are made for a prediction that was explained");
  const Explanation& explanation = *base.prediction.explanation;
  std::vector<WhatIf> pairs;
  if (base.prediction.time.count() == 0) return pairs;
  std::string holds;  // the class of the longest part that is a link's
  Picoseconds longest{0};
  for (const ExplainedPart& part : explanation.parts) {
    const bool is_scaled =
        std::find(explanation.kinds.begin(), explanation.kinds.end(), part.kind) != explanation.kinds.end();
    if (part.cause != "link" || !is_scaled) continue;  // rates of devices have what-ifs of their own
    if (holds.empty()) holds = part.kind;
    if (part.kind == holds) longest += part.time;
  }
  if (holds.empty()) return pairs;
  const double share = static_cast<double>(longest.count()) / static_cast<double>(base.prediction.time.count());
  const double promised = share / 2;  // if nothing else limited, links twice as fast would take half of their time
  if (gain_of(holds + " 2x", base, done) >= promised / 2) return pairs;
  for (const std::string& other : explanation.kinds)
    if (other != holds) pairs.push_back(all_faster({holds, other}, done));
  return pairs;
}

std::optional<WhatIf> series_of(const Result& base, const std::vector<WhatIf>& done,
                                const std::function<void(WhatIf&)>& run) {
  constexpr double nearly = 0.95, little = 0.5;  // of the gain of all
  const double all = gain_of(every_label, base, done);
  if (all < 0.01) return std::nullopt;
  for (const WhatIf& each : done)
    if (each.of == WhatIf::Of::link_class && each.is_advice && each.result && -change_of(each, base) >= little * all)
      return std::nullopt;
  std::vector<std::string> needed = base.prediction.explanation->kinds;
  std::optional<WhatIf> found, nearest;
  for (const std::string& kind : base.prediction.explanation->kinds) {
    if (needed.size() <= 2) break;
    std::vector<std::string> fewer;
    for (const std::string& each : needed)
      if (each != kind) fewer.push_back(each);
    WhatIf without = all_faster(fewer, done);
    run(without);
    if (!without.result) continue;
    if (-change_of(without, base) < nearly * all) {
      if (!nearest || change_of(without, base) < change_of(*nearest, base)) nearest = std::move(without);
      continue;
    }
    needed = std::move(fewer);
    found = std::move(without);
  }
  if (found || !nearest) return found;
  // Every class adds to the gain. All but one are still worth naming if they gain half of it, which nothing of `done`
  // does.
  return -change_of(*nearest, base) >= little * all ? nearest : std::nullopt;
}

Best best_of(const std::vector<const WhatIf*>& listed, const Result& base) {
  Best best;
  const auto take = [&](const WhatIf*& most, const WhatIf* each) {
    if (change_of(*each, base) < (most == nullptr ? 0 : change_of(*most, base))) most = each;
  };
  for (const WhatIf* each : listed) {
    if (!each->result) continue;
    take(best.of_all, each);
    if (each->is_advice) take(best.of_part, each);
  }
  // A fault that is repaired costs less than links of a whole class that are twice as fast. The share is chosen.
  constexpr double nearly = 0.95;
  for (const WhatIf* each : listed) {
    if (!each->result || each->set != std::vector<std::string>{without_faults}) continue;
    for (const WhatIf** most : {&best.of_all, &best.of_part})
      if (*most != nullptr && change_of(*each, base) <= nearly * change_of(**most, base)) *most = each;
  }
  return best;
}

std::optional<RoutingSpread> routing_spread_of(const Result& base, const std::vector<WhatIf>& done) {
  RoutingSpread spread{.routing = "ecmp"};
  std::vector<Picoseconds> times;
  if (base.prediction.routing.starts_with("ecmp")) times.push_back(base.prediction.time);
  for (const WhatIf& each : done)
    if (each.of == WhatIf::Of::routing && each.label.starts_with("ecmp") && each.result)
      times.push_back(each.result->prediction.time);
  if (times.size() < 2) return std::nullopt;
  std::sort(times.begin(), times.end());
  spread.seeds = static_cast<int>(times.size());
  spread.least = times.front();
  spread.median = times[times.size() / 2];
  spread.most = times.back();
  return spread;
}

double change_of(const WhatIf& what_if, const Result& base) {
  ensure(what_if.result.has_value(), "a what-if that was run has a result");
  const auto before = static_cast<double>(base.prediction.time.count());
  const auto after = static_cast<double>(what_if.result->prediction.time.count());
  return before > 0 ? after / before - 1 : 0;
}

void run_what_if(WhatIf& what_if, const std::string& text, const std::string& name, std::vector<std::string> set,
                 const Scenario& base_scenario, const Result& base, const PredictOptions& options) {
  set.insert(set.end(), what_if.set.begin(), what_if.set.end());
  try {
    const ScenarioFile file = ScenarioFile::parse(text, name, set);
    if (file.size() > 1)
      throw InputError("--whatif " + what_if.label, fmt::format("expected one value, found {} points", file.size()),
                       "repeat --whatif for several values");
    const Scenario changed = file.point(0);
    what_if.result = whole_of(results_of(changed, options));
    what_if.plan = changed_plan(base.prediction, what_if.result->prediction);
    what_if.idle = why_idle(what_if, changed, base_scenario, base);
  } catch (const InputError& error) {
    // The scenario with `set` alone was read before, so that an error of an option is one of this change.
    if (what_if.of == WhatIf::Of::own && error.where().starts_with("--set "))
      throw InputError("--whatif" + error.where().substr(5), error.message(), error.hint());
    if (what_if.of == WhatIf::Of::own) throw;
    what_if.refused = error.what();
  }
}

}  // namespace ringsim
