// What carries schedules out for real: one class per backend, chosen by `ringsim replay`.
#pragma once

#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "tools/command_line/command.hpp"
#include "validate/replay/replay.hpp"
#include "validate/results/result.hpp"

namespace ringsim::tools {

struct ReplayArguments {
  enum class Backend { tcp, mpi, cuda, nccl };
  std::string scenario;
  std::vector<std::string> set;
  Backend backend = Backend::tcp;
  replay::Repeats repeats;
  std::chrono::nanoseconds timeout = std::chrono::seconds(30);
  std::string hosts;        ///< a file; empty: all on this machine
  std::string secret_file;  ///< with `hosts`: what all of its processes know, and nobody else
  std::optional<int> rank;  ///< with `hosts`: which of its lines this process is
  bool streams = false;     ///< on GPUs: call by call instead of as a graph
  bool library = false;     ///< NCCL's own collective in place of the schedule
  std::string samples;  ///< on GPUs: what a probe wrote, for the model of what GPUs do at the same time; empty: none
  int copy_blocks = 0;  ///< on GPUs: copies by kernels of that many thread blocks; 0: by copy engines
  std::optional<Format> format;  ///< none: what the ending of `output` says, else a table
  std::string output;            ///< a file; empty or "-": stdout
};

/// The options of every replay: the scenario, repeats, the time limit, and where results go and how they look.
void declare_replay(Options& options, ReplayArguments& replay);

/// One point of a scenario, to be replayed.
struct ReplayPoint {
  std::string key;  ///< the same in all processes that replay it together
  const Scenario& scenario;
  const std::vector<PlacedSchedule>& jobs;
  replay::Repeats repeats;
  const replay::ReplayProgram* program = nullptr;  ///< as ReplayWork's
};

class ReplayBackend {
 public:
  virtual ~ReplayBackend() = default;
  /// True if this process writes results; of several that were started apart, one does.
  virtual bool writes() const { return true; }
  /// The most ranks that it can carry, over all jobs; asked before anything is predicted.
  virtual int most_ranks() const { return std::numeric_limits<int>::max(); }
  /// True if it carries out programs: timers in place of compute, and data that changes between messages.
  virtual bool does_training() const { return false; }
  /// What the backend itself predicts, in addition to the simulator. Asked before the replay.
  virtual std::optional<Result::Modeled> modeled(const ReplayPoint&) const { return std::nullopt; }
  /// Replays it. All processes call it for each point, in the same order. If writes(): [job] what was measured;
  /// else empty. Throws InputError for a point that this backend cannot replay, EnvironmentError, Interrupted.
  virtual std::vector<replay::Measured> replay(const ReplayPoint& point) = 0;
};

/// Throws UsageError for an option that only another backend heeds.
void refuse_foreign_options(const ReplayArguments& arguments);

/// The point's one schedule. Throws InputError if several jobs are to be replayed at the same time.
const CheckedSchedule& only(const ReplayPoint& point);

/// Predicts each point, replays it, and writes both. Throws InputError if a scenario disturbs its run by what a
/// replay does not do; `faults`: it does those.
int replay_points(const ScenarioFile& file, const ReplayArguments& arguments, ReplayBackend& backend,
                  bool faults = false);

}  // namespace ringsim::tools
