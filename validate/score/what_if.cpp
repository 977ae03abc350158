#include "validate/score/what_if.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "validate/score/idle_links.hpp"

namespace ringsim {

namespace {

/// `name`: of the factor `calibration.scale_NAME`.
WhatIf faster(const std::string& label, const std::string& key, const char* factor) {
  return {.of = WhatIf::Of::link_class, .label = label, .set = {fmt::format("calibration.scale_{}={}", key, factor)}};
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

std::vector<WhatIf> assumptions_of(const Scenario& scenario, const Why& why) {
  std::vector<WhatIf> found;
  const auto without = [&](const std::string& label, std::vector<std::string> set) {
    found.push_back({.of = WhatIf::Of::assumption, .label = label, .set = std::move(set)});
  };
  if (!scenario.faults.empty()) without("without faults", {"faults=null"});
  if (!scenario.late.empty()) without("no rank late", {"disturbance.late=null"});
  if (!scenario.slow.empty()) without("no rank slow", {"disturbance.slow=null"});
  if (scenario.jitter.most.count() > 0) without("without jitter", {"disturbance.jitter=null"});
  if (!scenario.background.empty()) without("no background messages", {"disturbance.background=null"});
  if (scenario.jobs.size() > 1) without("no other collectives", {"jobs=null"});
  if (!scenario.library && (scenario.devices.gpu || scenario.devices.cpu))
    without("devices work in no time", {"devices=null"});
  const bool uses_nics = std::find(why.kinds.begin(), why.kinds.end(), "nic") != why.kinds.end();
  if (scenario.transport.gdr_level == PathType::loc && uses_nics)
    without("with GPUDirect",
            {"transport.NCCL_NET_GDR_LEVEL=null", "transport.gdr_level=null", "transport.gpudirect=true"});
  if (shares_all_links(scenario.model)) {
    without("nothing shared but ports", {"network.model=ideal"});
    found.back().is_advice = false;
  }
  if (scenario.protocol->slots > 0 && !scenario.library) without("protocol none", {"transport.protocol=none"});
  if (found.size() > 1) {
    WhatIf all{.of = WhatIf::Of::assumption, .label = "all of these", .set = {}, .is_advice = false};
    for (const WhatIf& each : found) all.set.insert(all.set.end(), each.set.begin(), each.set.end());
    found.push_back(std::move(all));
  }
  return found;
}

/// What the scenario's own warnings, the run and the links say of a change that did nothing.
std::string why_idle(const WhatIf& what_if, const Scenario& changed, const Scenario& base_scenario,
                     const Result& base) {
  const Prediction &before = base.prediction, &after = what_if.result->prediction;
  // Of classes of links the table says it all: which do something.
  const auto of_links = [&] {
    if (what_if.of != WhatIf::Of::own || std::abs(change_of(what_if, base)) >= next_to_nothing) return std::string();
    return why_links_are_idle(base_scenario, before, changed, after, what_if.label.starts_with("topology"));
  };
  if (before.time != after.time) return of_links();
  if (changed.hash == base_scenario.hash) return "the scenario says the same already";
  for (const SettingEffect& each : after.settings)
    if (!each.idle.empty() && std::find(before.settings.begin(), before.settings.end(), each) == before.settings.end())
      return each.setting.substr(each.setting.rfind(": ") + 2) + ": " + each.idle;
  for (const std::string& warning : changed.warnings)
    if (std::find(base_scenario.warnings.begin(), base_scenario.warnings.end(), warning) ==
        base_scenario.warnings.end())
      return warning;
  return of_links();
}

}  // namespace

std::vector<WhatIf> what_ifs_of(const Scenario& scenario, const Result& base) {
  ensure(base.prediction.why.has_value(), "what-ifs are made for a prediction that was explained");
  const Why& why = *base.prediction.why;
  std::vector<WhatIf> all;
  for (const std::string& kind : why.kinds) {
    all.push_back(faster(kind + " 10 % faster", kind, "1.1"));
    all.push_back(faster(kind + " 2x", kind, "2"));
  }
  if (why.kinds.size() > 1)  // where several classes bind alike, a faster one alone changes nothing
    for (const auto& [label, factor] : {std::pair{"all links 10 % faster", "1.1"}, std::pair{"all links 2x", "2"}}) {
      WhatIf every{.of = WhatIf::Of::link_class, .label = label, .set = {}, .is_advice = false};
      for (const std::string& kind : why.kinds)
        every.set.push_back(fmt::format("calibration.scale_{}={}", kind, factor));
      all.push_back(std::move(every));
    }
  if (!why.kinds.empty()) {
    all.push_back(faster("latencies 10 % less", "latency", "0.9"));
    all.push_back(faster("latencies halved", "latency", "0.5"));
  }
  if (!scenario.library) {
    add_rates("gpu", scenario.devices.gpu, all);
    add_rates("cpu", scenario.devices.cpu, all);
  }
  if (base.prediction.training) {
    all.push_back(faster("compute 10 % faster", "compute", "1.1"));
    all.push_back(faster("compute 2x", "compute", "2"));
    if (const Picoseconds launch = scenario.training->step.host_launch; launch.count() > 0)
      all.push_back({.of = WhatIf::Of::link_class,
                     .label = "host launches halved",
                     .set = {fmt::format("training.host.launch={}", format(launch / 2))}});
  }
  if (base.form)
    for (WhatIf& each : assumptions_of(scenario, why)) all.push_back(std::move(each));
  return all;
}

std::vector<WhatIf> pairs_of(const Result& base, const std::vector<WhatIf>& done) {
  ensure(base.prediction.why.has_value(), "what-ifs are made for a prediction that was explained");
  const std::vector<std::string>& kinds = base.prediction.why->kinds;
  const bool one_helps = std::any_of(done.begin(), done.end(), [&](const WhatIf& each) {
    return each.of == WhatIf::Of::link_class && each.is_advice && each.result && change_of(each, base) <= -0.01;
  });
  std::vector<WhatIf> pairs;
  if (one_helps) return pairs;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    for (std::size_t j = i + 1; j < kinds.size(); ++j) {
      WhatIf pair = faster(fmt::format("{} and {} 2x", kinds[i], kinds[j]), kinds[i], "2");
      pair.set.push_back(fmt::format("calibration.scale_{}=2", kinds[j]));
      pairs.push_back(std::move(pair));
    }
  return pairs;
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
                       "repeat --whatif");
    const Scenario changed = file.point(0);
    what_if.result = whole_of(results_of(changed, options));
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
