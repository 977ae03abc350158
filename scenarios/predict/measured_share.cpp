#include "scenarios/predict/measured_share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

double seconds(Picoseconds time) {
  return static_cast<double>(time.count()) / static_cast<double>(picoseconds_per_second);
}

const PlanTraining& plan_of(const Scenario& scenario) {
  ensure(scenario.training && scenario.training->plan, "a share is measured with a plan");
  return *scenario.training->plan;
}

}  // namespace

Picoseconds plan_compute_step(const PlanTraining& plan) {
  const PlanSpec& program = plan.program;
  Picoseconds longest{0}, update{0};
  for (std::size_t stage = 0; stage < program.layers.size(); ++stage) {
    Picoseconds passes{0};
    for (const std::vector<PlanLayer>& chunk : program.layers[stage])
      for (const PlanLayer& layer : chunk)
        for (const auto* pass : {&layer.forward, &layer.recompute, &layer.backward, &layer.weights})
          for (const PlanKernel& kernel : *pass) passes = add(passes, kernel.time);
    longest = std::max(longest, passes);
    update = std::max(update, program.update[stage]);
  }
  const Picoseconds bubble = longest * (static_cast<std::int64_t>(program.layers.size()) - 1) / program.chunks;
  return add(add(longest * program.micro_batches, bubble), update);
}

MeasuredShare measured_share(Picoseconds measured, const std::function<Scenario(double share)>& at,
                             const PredictOptions& options) {
  constexpr double close = 0.001, guess = 0.5, least = 0.001;
  constexpr int most_simulations = 8;
  const double target = seconds(measured);
  // A step is nearly linear in x = 1 / share: a + b x.
  const double fastest = seconds(plan_compute_step(plan_of(at(1)))),
               slope_of_model = (seconds(plan_compute_step(plan_of(at(guess)))) - fastest) / (1 / guess - 1);
  double slope = slope_of_model, x = slope > 0 ? 1 + (target - fastest) / slope : 1;
  double last_x = 0, last_time = 0;
  MeasuredShare out;
  while (out.simulations < most_simulations) {
    x = std::clamp(x, 1.0, 1 / least);
    out.gemm = 1 / x;
    out.step = predict(at(out.gemm), options).time;
    ++out.simulations;
    const double time = seconds(out.step);
    if (std::abs(time / target - 1) < close) return out;
    if (x == 1 && time > target)
      throw InputError(
          "",
          fmt::format(
              "expected a step time that is possible with matrix products at or below the peak, found {:.4g} s: with "
              "products at 100 % of the peak, the step takes {:.4g} s, including {:.4g} s of computation",
              target, time, fastest),
          "the peak or another share is too low, or another plan was measured");
    if (last_x > 0 && x != last_x && (time - last_time) / (x - last_x) > 0) slope = (time - last_time) / (x - last_x);
    last_x = x;
    last_time = time;
    if (slope <= 0) break;
    x += (target - time) / slope;
  }
  throw InputError("", fmt::format("expected a step time that is possible with some share of the peak, found {:.4g} s: "
                                   "with {:.1f} %, the step takes {:.4g} s",
                                   target, 100 * out.gemm, seconds(out.step)));
}

}  // namespace ringsim
