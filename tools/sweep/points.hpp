// The points of a scenario, simulated on several threads and handed on in order.
#pragma once

#include <functional>

#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "validate/closed_forms/bound.hpp"
#include "validate/results/result.hpp"

namespace ringsim::tools {

/// Predicts every point, `jobs` at a time (0: one per core), and calls `take` with each result in the order of the
/// points, one at a time, as soon as it and all before it are there; a scenario's jobs have one each, after its own.
/// The results do not depend on `jobs`. All points are decoded first: a mistake in the last one shows before the first
/// one is simulated. Throws what predict() throws for the first point that fails; Interrupted when stop_requested is
/// set. `fold`: as PredictOptions::fold. `unserved`: takes those points that their algorithm cannot serve, in their
/// turn; without it they fail as others do. `bounds`: as for results_of().
/// `recording`: as PredictOptions::recording; requires one point. `phases` and
/// `explain`: as those of PredictOptions.
void predict_points(const ScenarioFile& file, int jobs, bool fold, const std::function<void(Result&&)>& take,
                    const std::function<void(const UnservedError&)>& unserved = {}, Bounds* bounds = nullptr,
                    Recording* recording = nullptr, bool phases = false, bool explain = false);

}  // namespace ringsim::tools
