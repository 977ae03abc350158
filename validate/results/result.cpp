#include "validate/results/result.hpp"

#include <utility>

#include "sim/base/error.hpp"
#include "validate/closed_forms/bound.hpp"
#include "validate/closed_forms/form_of.hpp"

namespace ringsim {

std::vector<Result> results_of(const Scenario& scenario, const PredictOptions& options, Bounds* bounds) {
  if (bounds != nullptr) expect_collective(scenario);
  if (options.stage) options.stage("building the topology");
  const Setup setup = set_up(scenario, options.stop);
  std::vector<Result> rows(1);
  rows.front().prediction = predict(scenario, setup, options);
  for (Prediction& job : rows.front().prediction.jobs) rows.push_back({.prediction = std::move(job)});
  rows.front().prediction.jobs.clear();
  if (bounds != nullptr) {
    const std::vector<std::optional<Bound>> found = bounds->of(scenario, setup);
    for (std::size_t j = 0; j < rows.size(); ++j)
      if (found[j]) {
        rows[j].bound = found[j]->time;
        rows[j].latency_floor = found[j]->latency_floor;
      }
  }
  for (std::size_t j = 0; j < setup.collectives.size(); ++j) {  // the time of all jobs together has none
    rows[j].form = form_of(scenario, setup, j);
    if (options.element > 1 && scenario.training && rows[j].form && rows[j].form->holds() &&
        !rows[j].form->agrees(rows[j].prediction.time))
      rows[j].form->because.emplace_back("chunks lie on whole elements, not on single bytes");
    if (!options.schedules || !rows[j].form) continue;
    const Job& job = setup.collectives[j].job;
    if ((*options.schedules)[j].schedule.schedule().layout != job.algorithm->make(job.request, job.arguments).layout)
      rows[j].form->because.emplace_back("chunks lie on whole elements, not on single bytes");
  }
  return rows;
}

Result whole_of(std::vector<Result> rows) {
  if (!rows.back().prediction.is_total) return std::move(rows.front());
  Result whole = std::move(rows.back());
  whole.prediction.links = std::move(rows.front().prediction.links);
  whole.prediction.settings = std::move(rows.front().prediction.settings);
  return whole;
}

std::size_t n_results(const Scenario& scenario) { return scenario.jobs.size() + (scenario.has_total() ? 1 : 0); }

double error_of(const Result& result) {
  ensure(result.measured_us.has_value(), "a result that was measured has an error");
  return microseconds(result.prediction.time) / *result.measured_us - 1;
}

std::optional<double> of_bound(const Result& result) {
  if (!result.bound || result.prediction.time.count() <= 0) return std::nullopt;
  return static_cast<double>(result.bound->count()) / static_cast<double>(result.prediction.time.count());
}

std::optional<double> measured_of_bound(const Result& result) {
  if (!result.bound || !result.measured_us || *result.measured_us <= 0) return std::nullopt;
  return microseconds(*result.bound) / *result.measured_us;
}

}  // namespace ringsim
