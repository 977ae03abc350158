#include "tools/replay/replay_mpi.hpp"

#include <optional>

#include "sim/base/error.hpp"
#include "tools/command_line/guarded.hpp"
#include "tools/command_line/input.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/stop.hpp"
#include "validate/replay/mpi/mpi_exchange.hpp"

namespace ringsim::tools {

namespace {

class MpiBackend : public ReplayBackend {
 public:
  MpiBackend(replay::MpiSession& session, const ReplayArguments& arguments)
      : session_(session), timeout_(arguments.timeout) {}
  bool writes() const override { return session_.first(); }
  bool does_training() const override { return true; }
  std::vector<replay::Measured> replay(const ReplayPoint& point) override {
    std::vector<const Schedule*> schedules;
    for (const PlacedSchedule& job : point.jobs) schedules.push_back(&job.schedule.schedule());
    return replay_by_mpi(session_, {std::move(schedules), point.program, point.repeats, timeout_, &stop_requested});
  }

 private:
  replay::MpiSession& session_;
  std::chrono::nanoseconds timeout_;
};

/// `tells`: whether this process says what is wrong.
int replay(replay::MpiSession& session, const ReplayArguments& arguments,
           const std::function<std::unique_ptr<ReplayBackend>()>& make, bool& tells) {
  refuse_standard_input(arguments.scenario);
  refuse_foreign_options(arguments);
  std::optional<ScenarioFile> file;
  bool agreed = false;
  try {
    agreed = session.agree([&] {
      file.emplace(load_scenario(arguments.scenario, arguments.set));
      return file->hash();
    });
  } catch (...) {
    tells = true;
    throw;
  }
  if (!agreed) return good;  // the one that could not begin says why, and its exit code is to be mpirun's
  const auto backend = make();
  return replay_points(*file, arguments, *backend);
}

}  // namespace

int replay_under_mpi(const ReplayArguments& arguments) {
  const auto session = replay::MpiSession::join();
  if (!session) {
    throw InputError("--backend mpi", "expected to be started by MPI, found a single process",
                     "start one process per rank: mpirun -n 8 ringsim replay ...");
  }
  return replay_together(*session, arguments, [&] { return std::make_unique<MpiBackend>(*session, arguments); });
}

int replay_together(replay::MpiSession& session, const ReplayArguments& arguments,
                    const std::function<std::unique_ptr<ReplayBackend>()>& make) {
  bool tells = session.first();
  const Ending ending = ending_of([&] { return replay(session, arguments, make, tells); });
  // A mistake in the scenario is found by all processes alike: one says it, and all end well. What one process alone
  // has met, it says; the others wait for its messages, and have to be ended.
  const bool well = ending.code == good || ending.code == check_failed;
  const bool all = session.all_come(well);
  tells = tells || !all;
  if (tells && !ending.said.empty()) say(ending.said);
  if (!all) session.abort(ending.code);
  return tells ? ending.code : static_cast<int>(good);
}

}  // namespace ringsim::tools
