// Other points next to one: what a faster class of links would change, and what each broken assumption costs.
#pragma once

#include <functional>
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
    routing,     ///< the fabric chooses among equally short ways by other rules, or (no advice) by another seed
    own,         ///< the user's
  } of = Of::own;
  std::string label;             ///< "nic 2x", "without faults"
  std::vector<std::string> set;  ///< "calibration.scale_nic=2"
  bool is_advice = true;  ///< changes a part of the machine or scenario; false: all at once, or links without sharing

  std::optional<Result> result;  ///< nothing if the change cannot be made
  std::string refused;           ///< then: why
  std::string idle;              ///< why it changes nothing, or next_to_nothing, if that is known
  std::string plan;              ///< changed_plan() of the base's prediction and its own
};

/// A change of the time by less than this share is no change for somebody who hoped for one.
inline constexpr double next_to_nothing = 0.001;

/// A library's decisions that differ between two predictions: "NCCL then finds 4 rings instead of 8". A library
/// searches again on links of other speeds, so a faster link may make a collective slower. Empty if the decisions are
/// equal, or if either prediction is without a library.
std::string changed_plan(const Prediction& before, const Prediction& after);

/// What to run besides `base`, whose prediction has an explanation: each class of links that carries data, and all
/// latencies, a tenth and twice as fast, of training also the computation; the scenario without each thing that its
/// closed form does not account for, then without all of them; and, if the fabric had a choice of ways, other routing.
std::vector<WhatIf> what_ifs_of(const Scenario& scenario, const Result& base);

/// What to run after `done`, the what-ifs of what_ifs_of() that were run: the class of links that holds the critical
/// path longest together with each other class, twice as fast, if alone it gains less than half of what its share of
/// the path promises. Links in series limit alike: then a faster class alone changes nothing.
std::vector<WhatIf> pairs_of(const Result& base, const std::vector<WhatIf>& done);

/// The fewest classes of links that gain nearly as much, twice as fast, as all of them: found by leaving out one class
/// after another. If none can be left out, all but the one that matters least, if they gain half as much as all. `run`
/// sets the result of a what-if. Nothing if a class or a pair of `done` gains half as much as all, or if all gain less
/// than a hundredth.
std::optional<WhatIf> series_of(const Result& base, const std::vector<WhatIf>& done,
                                const std::function<void(WhatIf&)>& run);

/// The time of a what-if over that of the base, less 1. Requires a result; 0 if both are 0.
double change_of(const WhatIf& what_if, const Result& base);

/// What is said to help most, out of what-ifs that are listed next to it.
struct Best {
  const WhatIf* of_all = nullptr;   ///< which gains most; nullptr: none gains anything
  const WhatIf* of_part = nullptr;  ///< which gains most of those that are advice
};
/// The best of `listed`, which must outlive the result; the first of equal ones.
Best best_of(const std::vector<const WhatIf*>& listed, const Result& base);

/// How far the time depends on the seed by which the fabric's routing draws: over the base and the what-ifs of other
/// seeds, if the base draws; else over the what-ifs with ecmp. Nothing if there are none.
struct RoutingSpread {
  std::string routing;                       ///< "ecmp"
  int seeds = 0;                             ///< how many were run
  Picoseconds least{0}, median{0}, most{0};  ///< of an even number the upper one of the two in the middle
};
std::optional<RoutingSpread> routing_spread_of(const Result& base, const std::vector<WhatIf>& done);

/// Simulates a what-if: the scenario's text with `set` and its own changes, as `ringsim run --set` would. A change of
/// Of::own that is wrong throws what ScenarioFile::parse() throws; any other is refused, with its reason.
/// `base_scenario`: what it is compared with. Requires one point.
void run_what_if(WhatIf& what_if, const std::string& text, const std::string& name, std::vector<std::string> set,
                 const Scenario& base_scenario, const Result& base, const PredictOptions& options);

}  // namespace ringsim
