// ringsim replay: the schedules that are simulated, carried out for real; predicted next to measured.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/formats/result_text.hpp"
#include "tools/memory.hpp"
#include "tools/output/output.hpp"
#include "tools/output/warnings.hpp"
#include "tools/replay/replay_backend.hpp"
#include "tools/replay/replay_cuda.hpp"
#include "tools/replay/replay_mpi.hpp"
#include "tools/replay/replay_nccl.hpp"
#include "tools/replay/replay_tcp.hpp"
#include "tools/replay/replay_work.hpp"
#include "tools/stop.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::tools {

namespace {

// A simulated disturbance does not happen to a real run by itself.
void refuse_disturbed(const Scenario& scenario, bool faults) {
  const auto refuse = [&](const char* where, const char* what, const char* hint) {
    throw InputError(scenario.file + ": " + where, fmt::format("expected a run without disturbances, found {}", what),
                     hint);
  };
  if (!faults && !scenario.faults.empty())
    refuse("/faults", "faults", "`ringsim lab run` replays in a network whose links can fail");
  if (!scenario.late.empty() || !scenario.slow.empty() || scenario.jitter.most.count() > 0)
    refuse("/disturbance", "ranks that are late, slow or unsteady", "a replay cannot reproduce this");
  if (!scenario.background.empty())
    refuse("/disturbance/background", "background messages",
           "a replay sends only the messages of jobs; describe this traffic as another job");
  for (std::size_t i = 1; i < scenario.jobs.size(); ++i)
    if (scenario.jobs[i].start.count() > 0)
      refuse(fmt::format("/jobs/{}/start", i - 1).c_str(), "a job that starts later",
             "in a replay, all jobs start together");
}

void refuse_training_by(const Scenario& scenario, const ReplayBackend& backend) {
  if (scenario.training && scenario.training->inference() != nullptr)
    throw InputError(scenario.file + ": /inference",
                     "expected a collective or a training step, found an inference step",
                     "each layer depends on the data of the previous one, which a replay does not have");
  if (scenario.training && scenario.training->trace)
    throw InputError(scenario.file + ": /trace", "expected a collective or a training step, found a trace",
                     "a replay checks its data, which a trace does not describe");
  if (scenario.training && !backend.does_training())
    throw InputError(scenario.file + ": /training", "expected a collective, found a training step",
                     "GPUs replay only collectives; --backend tcp and --backend mpi also replay training steps");
}

void refuse_too_many(const Scenario& scenario, int most) {
  std::int64_t ranks = 0;
  for (const auto& job : scenario.jobs) ranks += job.request.ranks;
  if (ranks > most)
    throw InputError(
        scenario.file + (scenario.training ? ": /training" : ": /collective"),
        fmt::format("expected at most {} ranks (one process per rank on this machine), found {}", most, ranks),
        "to use several machines, add --hosts or --backend mpi");
}

void set_measured(Result& result, const replay::Measured& measured) {
  result.measured_us = microseconds(measured.median);
  result.replayed = {microseconds(measured.min), microseconds(measured.max), measured.checked, measured.wrong};
}

/// The prediction, and those of its jobs, with what was measured.
std::vector<Result> replay_point(const Scenario& scenario, const replay::Repeats& repeats, ReplayBackend& backend) {
  const ReplayWork work(scenario);
  PredictOptions options{.stop = &stop_requested, .max_memory = memory_limit(), .element = replay::element_bytes};
  if (work.program() == nullptr) options.schedules = &work.jobs();
  std::vector<Result> rows = results_of(scenario, options);  // beforehand
  const ReplayPoint point{scenario.hash, scenario, work.jobs(), repeats, work.program()};
  rows.front().modeled = backend.modeled(point);
  const std::vector<replay::Measured> measured = backend.replay(point);
  if (!backend.writes()) return {};
  ensure(measured.size() == rows.size(), "every job is measured");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    set_measured(rows[i], measured[i]);
    if (measured[i].wrong > 0)
      say(fmt::format("ringsim: wrong result: {} {}, {}: {} elements; the first is {}\n",
                      scenario.training ? scenario.training->regime->name : to_string(rows[i].prediction.request.op),
                      algorithm_text(rows[i].prediction), format(rows[i].prediction.request.bytes), measured[i].wrong,
                      measured[i].first_wrong));
  }
  return rows;
}

}  // namespace

void refuse_foreign_options(const ReplayArguments& arguments) {
  using enum ReplayArguments::Backend;
  const auto only = [](const char* option, const char* backend, const char* hint = "") {
    throw UsageError(option, fmt::format("expected this option only with --backend {}", backend), hint);
  };
  if (arguments.backend != tcp && !arguments.hosts.empty())
    only("--hosts", "tcp",
         arguments.backend == mpi || arguments.backend == nccl ? "mpirun --hostfile determines where processes run"
                                                               : "");
  if (arguments.backend != cuda && arguments.backend != nccl && arguments.streams) only("--streams", "cuda or nccl");
  if (arguments.backend != nccl && arguments.library) only("--library", "nccl");
  if (arguments.backend != cuda && arguments.copy_blocks > 0) only("--copy-blocks", "cuda");
  if (arguments.backend != cuda && !arguments.samples.empty()) only("--samples", "cuda");
}

const CheckedSchedule& only(const ReplayPoint& point) {
  if (point.jobs.size() == 1) return point.jobs.front().schedule;
  throw InputError("/jobs", fmt::format("expected one collective, found {}", point.jobs.size()),
                   "on GPUs, collectives are replayed one at a time; --backend tcp replays several");
}

int replay_points(const ScenarioFile& file, const ReplayArguments& arguments, ReplayBackend& backend, bool faults) {
  refuse_as_output(arguments.scenario, arguments.output);
  const Format format = format_by_ending(arguments.output, arguments.format, Format::table, result_endings());
  Warnings warnings;
  for (std::size_t i = 0; i < file.size(); ++i) {  // a mistake in the last shows before the first is replayed
    const Scenario scenario = file.point(i);
    warnings.say(scenario.warnings);
    refuse_disturbed(scenario, faults);
    refuse_training_by(scenario, backend);
    refuse_too_many(scenario, backend.most_ranks());
  }
  std::unique_ptr<Output> output;
  if (backend.writes()) output = std::make_unique<Output>(arguments.output);
  std::vector<Result> results;
  const bool by_line = format == Format::jsonl;
  const auto finish = [&] {
    if (!output) return;
    if (!by_line) output->write(report(file, results, format, false));
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
    throw Interrupted(fmt::format("{} of {} points done; next: {}", done, file.size(), how_far.what()));
  } catch (const EnvironmentError&) {
    if (done > 0) finish();
    throw;
  }
  finish();
  return wrong ? check_failed : good;
}

void declare_replay(Options& options, ReplayArguments& replay) {
  options.scenario(replay.scenario, replay.set);
  options.max_memory();
  options.whole("--repeats", "N", 1, 1000000, replay.repeats.timed, "the number of timed runs").fallback = "5";
  options.whole("--warmups", "N", 0, 1000000, replay.repeats.warmups, "the number of untimed runs before them")
      .fallback = "2";
  options.time("--timeout", replay.timeout, "the time limit for joining, for connecting, and for each run").fallback =
      "30 s";
  options.format(replay.format);
  options.output(replay.output);
}

namespace {

void declare(Options& options, ReplayArguments& replay) {
  using enum ReplayArguments::Backend;
  declare_replay(options, replay);
  options
      .choice<ReplayArguments::Backend>(
          "--backend", {{"tcp", tcp}, {"mpi", mpi}, {"cuda", cuda}, {"nccl", nccl}}, replay.backend,
          "tcp: sockets, one process per rank; mpi: MPI messages, under mpirun; cuda: GPUs; nccl: GPUs through NCCL, "
          "one GPU per rank, in one process or under mpirun")
      .required = true;
  options
      .file("--hosts", "FILE", replay.hosts,
            "a file with the host of each process, one per line; the first line is HOST:PORT")
      .needs = "--rank";
  options
      .whole(
          "--rank", "N", 0, 65535, [&replay](int rank) { replay.rank = rank; },
          "the number of this process in the --hosts file, counted from 0")
      .needs = "--hosts";
  options
      .file("--secret-file", "FILE", replay.secret_file,
            "with --hosts: a file with a secret of at least 16 bytes, the same on all hosts, which a process needs to "
            "join")
      .needs = "--hosts";
  options.flag("--streams", replay.streams, "on GPUs: launch each call separately instead of one graph");
  options.flag("--library", replay.library, "with nccl: run the collective of NCCL instead of the schedule");
  options.whole("--copy-blocks", "N", 1, 65535, replay.copy_blocks,
                "on GPUs: copy with kernels of N thread blocks instead of copy engines");
  options.file("--samples", "FILE", replay.samples,
               "on GPUs: also predict each point from the measurements in FILE, which `ringsim probe --samples` wrote");
}

int execute(const ReplayArguments& arguments) {
  if (arguments.backend == ReplayArguments::Backend::mpi) return replay_under_mpi(arguments);
  if (arguments.backend == ReplayArguments::Backend::nccl) return replay_by_nccl(arguments);
  refuse_foreign_options(arguments);
  const ScenarioFile file = load_scenario(arguments.scenario, arguments.set);
  const auto backend =
      arguments.backend == ReplayArguments::Backend::cuda ? make_cuda_backend(arguments) : make_tcp_backend(arguments);
  return replay_points(file, arguments, *backend);
}

}  // namespace

Command replay_command() {
  return {.name = "replay",
          .group = Group::replay,
          .summary = "Execute schedules on real hardware, check every value, and measure the time",
          .example = "ringsim replay scenarios/examples/replay/replay-star.json --backend tcp --repeats 10",
          .details = "",
          .prepare = with<ReplayArguments>(declare, execute)};
}

}  // namespace ringsim::tools
