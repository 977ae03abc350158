// Other points next to one: what a faster class of links would change, and what each broken assumption costs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "validate/results/result.hpp"

namespace ringsim {

/// One change of a scenario, as options of --set, and what came of it.
struct WhatIf {
  enum class Of {
    link_class,  ///< links of one class, all latencies, or what a training step computes and launches are faster
    assumption,  ///< something that no closed form accounts for is taken away
    own,         ///< the user's
  } of = Of::own;
  std::string label;             ///< "nic 2x", "without faults"
  std::vector<std::string> set;  ///< "calibration.scale_nic=2"
  bool is_advice = true;         ///< one change that somebody could make: not all at once, not links without sharing

  std::optional<Result> result;  ///< nothing if the change cannot be made
  std::string refused;           ///< then: why
  std::string idle;              ///< why it changes nothing, or next_to_nothing, where that is known
};

/// A change of the time by less than this share is no change for somebody who hoped for one.
inline constexpr double next_to_nothing = 0.001;

/// What to run besides `base`, whose prediction has a Why: each class of links that carries data, and all latencies, a
/// tenth and twice as fast, of training also the computation; and the scenario without each thing that its closed form
/// does not account for, then without all of them.
std::vector<WhatIf> what_ifs_of(const Scenario& scenario, const Result& base);

/// What to run after `done`, the what-ifs of what_ifs_of() that were run: each two classes of links twice as fast, if
/// no class alone gains a hundredth of the time. Where two bind alike, a faster one changes nothing.
std::vector<WhatIf> pairs_of(const Result& base, const std::vector<WhatIf>& done);

/// The time of a what-if over that of the base, less 1. Requires a result; 0 where both are 0.
double change_of(const WhatIf& what_if, const Result& base);

/// Simulates a what-if: the scenario's text with `set` and its own changes, as `ringsim run --set` would. A change of
/// Of::own that is wrong throws what ScenarioFile::parse() throws; any other is refused, with its reason.
/// `base_scenario`: what it is compared with. Requires one point.
void run_what_if(WhatIf& what_if, const std::string& text, const std::string& name, std::vector<std::string> set,
                 const Scenario& base_scenario, const Result& base, const PredictOptions& options);

}  // namespace ringsim
