// The schedules of a scenario's collectives, proved.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "scenarios/setup/blaming.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim {

namespace {

/// Made for as many bytes as there are elements, then stretched: chunks lie on whole elements.
Schedule in_elements(const Job& job, int element) {
  CollectiveRequest request = job.request;
  if (request.bytes.count % element != 0)
    throw InputError("/bytes", fmt::format("expected a multiple of {} bytes, found {}", element, format(request.bytes)),
                     fmt::format("each element has {} bytes", element));
  request.bytes.count /= element;
  if (request.chunk) request.chunk->count = std::max<std::int64_t>(1, request.chunk->count / element);
  return stretched(by_the_algorithm(job, [&] { return make_schedule(*job.algorithm, request, job.arguments); }),
                   element);
}

CheckedSchedule checked(const Scenario& scenario, const Job& job, const std::atomic<bool>* stop, int element) {
  return blaming(scenario, job.pointer, [&] {
    try {
      return check(in_elements(job, element), {.stop = stop});
    } catch (const ScheduleError& error) {
      if (!job.arguments.file) throw;
      throw ScheduleError(scenario.file + ": " + job.pointer + "/algorithm/file",
                          error.where() + ": " + error.message(), error.hint());
    }
  });
}

}  // namespace

CheckedSchedule schedule_of(const Scenario& scenario, const PlacedCollective& placed, const std::atomic<bool>* stop,
                            int element) {
  return checked(scenario, placed.job, stop, element);
}

void expect_collective(const Scenario& scenario) {
  if (scenario.training)
    throw InputError(
        fmt::format("{}: /{}", scenario.file, scenario.training->key()),
        fmt::format("expected a collective, found {}", scenario.training->what()),
        "this command needs a single schedule; to predict such steps, use `ringsim run` or `ringsim sweep`");
  for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
    const Job& job = scenario.jobs[j];
    if (job.training)
      throw InputError(
          fmt::format("{}: /jobs/{}/training", scenario.file, j - 1), "expected a collective, found a training step",
          "this command needs a single schedule; to predict training steps, use `ringsim run` or `ringsim sweep`");
    if (job.after.empty() && job.groups.empty()) continue;
    const bool comes_after = !job.after.empty();
    throw InputError(
        fmt::format("{}: {}", scenario.file, comes_after ? fmt::format("/jobs/{}/after", j - 1) : job.pointer),
        fmt::format("expected one collective, found {}", comes_after ? "a job after others" : "groups"),
        "this command needs a single schedule; to predict several, use `ringsim run`, `sweep` or `explain`");
  }
}

CheckedSchedule schedule_of(const Scenario& scenario, const std::atomic<bool>* stop) {
  expect_collective(scenario);
  // Only the tree of switches and rings for channels need the topology.
  if (!scenario.main().uses_fabric() && !scenario.main().channel_rings)
    return checked(scenario, scenario.main(), stop, 1);
  return schedule_of(scenario, collectives_of(scenario, topology_of(scenario), stop).front().front(), stop);
}

std::vector<PlacedSchedule> schedules_of_elements(const Scenario& scenario, int element,
                                                  const std::atomic<bool>* stop) {
  expect_collective(scenario);
  std::vector<PlacedSchedule> result;
  for (std::vector<PlacedCollective>& groups : collectives_of(scenario, topology_of(scenario), stop)) {
    PlacedCollective& placed = groups.front();
    CheckedSchedule schedule = checked(scenario, placed.job, stop, element);
    placed.ranks.insert(placed.ranks.end(), placed.helpers.begin(), placed.helpers.end());
    result.push_back(
        {scenario.jobs.size() == 1 ? "" : std::move(placed.job.name), std::move(schedule), std::move(placed.ranks)});
  }
  return result;
}

}  // namespace ringsim
