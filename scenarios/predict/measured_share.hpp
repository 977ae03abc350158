// One measured step of a plan as input: the share of the peak that its matrix products reach.
#pragma once

#include <functional>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/units.hpp"

namespace ringsim {

/// A plan's step without communication: the passes of its slowest stage for all micro-batches, the bubble
/// (p-1)/(m v) of an even pipeline, the update. A model of how a step depends on the speed of kernels, for
/// measured_share(); not a prediction.
Picoseconds plan_compute_step(const PlanTraining& plan);

/// Matrix products of a plan reach this share of the peak.
struct MeasuredShare {
  double gemm = 0;
  Picoseconds step{0};  ///< simulated with it
  int simulations = 0;
};

/// The share of the peak with which the simulated step takes as long as measured, within 0.1 %. `at`: the plan that was
/// measured, with matrix products at that share. The first share is that of plan_compute_step(); each simulation then
/// corrects it. Throws InputError (`where` empty) if products at the peak take longer than measured.
MeasuredShare measured_share(Picoseconds measured, const std::function<Scenario(double share)>& at,
                             const PredictOptions& options = {});

}  // namespace ringsim
