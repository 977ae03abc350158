// What carries schedules out for real: one class a backend, chosen by replay_command().
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/predict/setup.hpp"
#include "tools/commands/commands.hpp"
#include "validate/replay/replay.hpp"
#include "validate/results/result.hpp"

namespace ringsim::tools {

/// One point of a scenario, to be replayed.
struct ReplayPoint {
  std::string key;  ///< the same in all processes that replay it together
  const Scenario& scenario;
  const std::vector<PlacedSchedule>& jobs;
  replay::Repeats repeats;
};

class ReplayBackend {
 public:
  virtual ~ReplayBackend() = default;
  /// Whether this process writes results; of several that were started apart, one does.
  virtual bool writes() const { return true; }
  /// The most ranks that it can carry, over all jobs; asked before anything is predicted.
  virtual int most_ranks() const { return std::numeric_limits<int>::max(); }
  /// What the backend itself predicts, beside the simulator. Asked before the replay.
  virtual std::optional<Result::Modelled> modelled(const ReplayPoint&) const { return std::nullopt; }
  /// Replays it. All processes call it for each point, in the same order. Where writes(): [job] what was measured;
  /// else empty. Throws InputError for a point that this backend cannot replay, EnvironmentError, Interrupted.
  virtual std::vector<replay::Measured> replay(const ReplayPoint& point) = 0;
};

/// Throws InputError for an option that only another backend heeds.
void refuse_foreign_options(const ReplayArguments& arguments);

/// The point's one schedule. Throws InputError where several jobs are to be replayed at the same time.
const CheckedSchedule& only(const ReplayPoint& point);

/// Predicts each point, replays it, and writes both. Throws InputError where a scenario disturbs its run by what a
/// replay does not do; `faults`: it does those.
int replay_points(const ScenarioFile& file, const ReplayArguments& arguments, ReplayBackend& backend,
                  bool faults = false);

}  // namespace ringsim::tools
