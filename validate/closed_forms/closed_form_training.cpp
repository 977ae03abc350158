#include "validate/closed_forms/closed_form_training.hpp"

#include <algorithm>
#include <utility>

#include "scenarios/predict/predict.hpp"
#include "scenarios/predict/training.hpp"

namespace ringsim {

namespace {

/// In these all ranks begin and end an all-reduce together, if they have launched it together.
bool ends_together(const std::string& algorithm, int ranks) {
  const bool power = (ranks & (ranks - 1)) == 0;
  return algorithm == "ring" || (power && (algorithm == "halving_doubling" || algorithm == "recursive_doubling"));
}

}  // namespace

std::optional<ClosedForm> training_form(const Scenario& scenario, const Setup& setup) {
  const TrainingStep step = training_step_of(scenario);
  const PlacedCollective& placed = setup.collectives.front();
  const Job& job = placed.job;
  ClosedForm form{.formula = "max(f + B, max_j (ready_j + T_j + ... + T_n)) + u"};
  const auto add_reasons = [&](const std::vector<std::string>& because) {
    for (const std::string& each : because)
      if (std::find(form.because.begin(), form.because.end(), each) == form.because.end()) form.because.push_back(each);
  };
  std::vector<Picoseconds> low, high;
  if (!step.buckets.empty()) {
    const Uniform machine = uniform_of(setup.topology, placed.ranks, placed.endpoints(), scenario.transport,
                                       setup.routing, grid_of(*job.algorithm, job.arguments, job.request));
    for (const Bucket& bucket : step.buckets) {
      CollectiveRequest request = job.request;
      request.bytes = bucket.bytes;
      std::optional<ClosedForm> one = closed_form(*job.algorithm, job.arguments, request, machine);
      if (!one) return std::nullopt;
      assume_protocol(*one, *job.algorithm, job.arguments, request, machine, *scenario.protocol);
      assume_even_sizes(*one);
      if (scenario.model == NetworkModel::packet) assume_packets(*one, scenario.packet);
      low.push_back(add(one->low, step.launch));
      high.push_back(add(one->time, step.launch));
      form.steps += one->steps;
      if (&bucket == &step.buckets.front()) form.formula += ", T_j = t + " + one->formula;
      add_reasons(one->because);
    }
    if (!ends_together(job.algorithm->name, job.request.ranks))
      add_reasons({"ranks do not all end an all-reduce at one instant"});
  }
  if (step.host_launch.count() > 0 && !step.host_waits)
    add_reasons({"the host launches steps before the one before is done"});
  form.low = training_step_time(step, low);
  form.time = training_step_time(step, high);
  return form;
}

}  // namespace ringsim
