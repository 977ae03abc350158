// ringsim replay: the schedules that are simulated, carried out for real; predicted beside measured.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tools/commands/commands.hpp"
#include "tools/commands/replay_backend.hpp"
#include "tools/commands/replay_cuda.hpp"
#include "tools/commands/replay_mpi.hpp"
#include "tools/commands/replay_nccl.hpp"
#include "tools/commands/replay_tcp.hpp"
#include "tools/output/output.hpp"
#include "tools/output/report.hpp"
#include "tools/output/warnings.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::tools {

namespace {

// What befalls a simulated run befalls no real one by itself.
void refuse_disturbed(const Scenario& scenario, bool faults) {
  const auto refuse = [&](const char* where, const char* what, const char* hint) {
    throw InputError(scenario.file + ": " + where, fmt::format("expected a run that nothing disturbs, found {}", what),
                     hint);
  };
  if (!faults && !scenario.faults.empty())
    refuse("/faults", "faults", "`ringsim lab run` replays in a network whose links can fail");
  if (!scenario.late.empty() || !scenario.slow.empty() || scenario.jitter.most.count() > 0)
    refuse("/disturbance", "ranks that are late, slow or unsteady", "a replay cannot make them so");
  if (!scenario.background.empty())
    refuse("/disturbance/background", "background messages",
           "a replay sends what jobs send: let another job send them");
  for (std::size_t i = 1; i < scenario.jobs.size(); ++i)
    if (scenario.jobs[i].start.count() > 0)
      refuse(fmt::format("/jobs/{}/start", i - 1).c_str(), "a job that begins later", "in a replay all begin together");
}

void refuse_too_many(const Scenario& scenario, int most) {
  std::int64_t ranks = 0;
  for (const auto& job : scenario.jobs) ranks += job.request.ranks;
  if (ranks > most)
    throw InputError(scenario.file + ": /collective",
                     fmt::format("expected at most {} ranks, a process each on this machine, found {}", most, ranks),
                     "several machines carry more: --hosts, or --backend mpi");
}

void set_measured(Result& result, const replay::Measured& measured) {
  result.measured_us = microseconds(measured.median);
  result.replayed = {microseconds(measured.min), microseconds(measured.max), measured.wrong};
}

void require_all_replayable(const Scenario& scenario, const std::vector<PlacedSchedule>& jobs) {
  for (const PlacedSchedule& job : jobs) {
    try {
      replay::require_replayable(job.schedule);
    } catch (const InputError& error) {
      throw InputError(scenario.file + (job.job.empty() ? "" : ": job " + job.job), error.message(), error.hint());
    }
  }
}

/// The prediction, and those of its jobs, with what was measured.
std::vector<Result> replay_point(const Scenario& scenario, const replay::Repeats& repeats, ReplayBackend& backend) {
  const auto jobs = schedules_of_elements(scenario, replay::element_bytes, &stop_requested);
  require_all_replayable(scenario, jobs);
  std::vector<Result> rows = results_of(scenario, {.stop = &stop_requested, .schedules = &jobs});  // beforehand
  const ReplayPoint point{scenario.hash, scenario, jobs, repeats};
  rows.front().modelled = backend.modelled(point);
  const std::vector<replay::Measured> measured = backend.replay(point);
  if (!backend.writes()) return {};
  ensure(measured.size() == rows.size(), "each job is measured");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    set_measured(rows[i], measured[i]);
    if (measured[i].wrong > 0)
      say(fmt::format("ringsim: wrong: {} {}, {}: {} elements, the first is {}\n",
                      to_string(rows[i].prediction.request.op), algorithm_text(rows[i].prediction),
                      format(rows[i].prediction.request.bytes), measured[i].wrong, measured[i].first_wrong));
  }
  return rows;
}

}  // namespace

void refuse_foreign_options(const ReplayArguments& arguments) {
  using enum ReplayArguments::Backend;
  const auto only = [](const char* option, const char* backend, const char* hint = "") {
    throw InputError(option, fmt::format("expected it only with --backend {}", backend), hint);
  };
  if (arguments.backend != tcp && !arguments.hosts.empty())
    only("--hosts", "tcp",
         arguments.backend == mpi || arguments.backend == nccl ? "mpirun --hostfile says where processes run" : "");
  if (arguments.backend != cuda && arguments.backend != nccl && arguments.streams) only("--streams", "cuda or nccl");
  if (arguments.backend != nccl && arguments.library) only("--library", "nccl");
  if (arguments.backend != cuda && arguments.copy_blocks > 0) only("--copy-blocks", "cuda");
  if (arguments.backend != cuda && !arguments.samples.empty()) only("--samples", "cuda");
}

const CheckedSchedule& only(const ReplayPoint& point) {
  if (point.jobs.size() == 1) return point.jobs.front().schedule;
  throw InputError("/jobs", fmt::format("expected one collective, found {}", point.jobs.size()),
                   "on GPUs one is replayed at a time; --backend tcp replays several");
}

int replay_points(const ScenarioFile& file, const ReplayArguments& arguments, ReplayBackend& backend, bool faults) {
  refuse_as_output(arguments.scenario, arguments.output);
  Warnings warnings;
  for (std::size_t i = 0; i < file.size(); ++i) {  // a mistake in the last shows before the first is replayed
    const Scenario scenario = file.point(i);
    warnings.say(scenario.warnings);
    refuse_disturbed(scenario, faults);
    refuse_too_many(scenario, backend.most_ranks());
  }
  std::unique_ptr<Output> output;
  if (backend.writes()) output = std::make_unique<Output>(arguments.output);
  std::vector<Result> results;
  const bool by_line = arguments.format == Format::jsonl;
  const auto finish = [&] {
    if (!output) return;
    if (!by_line) output->write(report(file, results, arguments.format, false));
    output->finish();
  };
  std::size_t done = 0;
  bool wrong = false;
  try {
    for (; done < file.size(); ++done) {
      for (Result& row : replay_point(file.point(done), arguments.repeats, backend)) {
        wrong = wrong || row.replayed->wrong > 0;
        if (by_line) output->write(report_line(file, row, false));
        results.push_back(std::move(row));
      }
    }
  } catch (const Interrupted& how_far) {
    if (done > 0) finish();  // what is done is not lost
    throw Interrupted(fmt::format("{} of {} points done; the next one: {}", done, file.size(), how_far.what()));
  } catch (const EnvironmentError&) {
    if (done > 0) finish();
    throw;
  }
  finish();
  return wrong ? check_failed : good;
}

int replay_command(const ReplayArguments& arguments) {
  if (arguments.backend == ReplayArguments::Backend::mpi) return replay_under_mpi(arguments);
  if (arguments.backend == ReplayArguments::Backend::nccl) return replay_by_nccl(arguments);
  const ScenarioFile file = ScenarioFile::load(arguments.scenario, arguments.set);
  refuse_foreign_options(arguments);
  const auto backend =
      arguments.backend == ReplayArguments::Backend::cuda ? make_cuda_backend(arguments) : make_tcp_backend(arguments);
  return replay_points(file, arguments, *backend);
}

}  // namespace ringsim::tools
