// ringsim trace export: a step in the formats of other tools, a file per rank.
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "algorithms/traces/chakra_writer.hpp"
#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "sim/base/watch.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/memory.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"
#include "tools/traces/kineto_file.hpp"
#include "tools/traces/trace_file.hpp"

namespace ringsim::tools {

namespace {

struct TraceExportArguments {
  std::string scenario;
  std::vector<std::string> set;
  std::string file;
  bool force = false;  ///< replace files

  bool is_chakra() const { return file.ends_with(".et"); }
};

constexpr std::string_view rank_mark = "{rank}";

void declare_trace_export(Options& options, TraceExportArguments& arguments) {
  options.scenario(arguments.scenario, arguments.set);
  options.argument("FILE", arguments.file,
                   "the files to write, one per rank; {rank} is replaced by the rank; .json and .json.gz are PyTorch "
                   "profiler traces, .et are Chakra execution traces");
  options.flag("--force", arguments.force, "overwrite existing files");
}

/// FILE with each mark replaced by that.
std::string named(const TraceExportArguments& arguments, const std::string& by) {
  std::string file = arguments.file;
  for (std::size_t at = 0; (at = file.find(rank_mark, at)) != std::string::npos; at += by.size())
    file.replace(at, rank_mark.size(), by);
  return file;
}

/// [rank] Throws UsageError if they would be one file.
std::vector<std::string> rank_files(const TraceExportArguments& arguments, int ranks) {
  if (ranks > 1 && arguments.file.find(rank_mark) == std::string::npos)
    throw UsageError("FILE",
                     fmt::format("expected {} in the name, because each of {} ranks gets its own file, found \"{}\"",
                                 rank_mark, ranks, arguments.file),
                     arguments.is_chakra() ? "'job.{rank}.et'" : "'step.rank{rank}.json.gz'");
  std::vector<std::string> files;
  for (int rank = 0; rank < ranks; ++rank) files.push_back(named(arguments, fmt::to_string(rank)));
  return files;
}

/// Nothing is written if one of the files is there, or is the scenario.
void expect_free(const TraceExportArguments& arguments, const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    refuse_as_output(arguments.scenario, file);
    std::error_code error;
    if (!arguments.force && std::filesystem::exists(file, error))
      throw InputError(file, "expected the name of a new file, found an existing file", "use --force to overwrite it");
  }
}

void make_folders(const std::vector<std::string>& files) {
  for (const std::string& file : files) {
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    std::error_code error;
    if (!folder.empty()) std::filesystem::create_directories(folder, error);  // if it fails, writing says so
  }
}

void write_files(const KinetoTraces& traces, const std::vector<std::string>& files) {
  ProgressLine progress(files.size());
  progress.now("writing files");
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    throw_if_stopped(&stop_requested,
                     fmt::format("files were being written; {} of {} are complete", rank, files.size()));
    write_packed(traces.of(static_cast<std::uint32_t>(rank)), files[rank]);
    progress.add(1);
  }
}

/// Files of one step have no next step that could hide gathers of weights.
void note_gathers(const Scenario& scenario) {
  if (scenario.training && scenario.training->plan && scenario.training->plan->program.overlaps_gather)
    say("note: the files contain one step, in which gathers of weights (param_gather) do not overlap with the next "
        "step; a replay takes longer than a step of several\n");
}

void export_kineto(const TraceExportArguments& arguments, const Scenario& scenario, const Setup& setup,
                   const std::vector<std::string>& files) {
  expect_free(arguments, files);
  Recording recording;
  recording.keep_kernels = true;
  Prediction prediction;
  {
    ProgressLine progress(1);
    prediction = predict(scenario, setup,
                         {.stop = &stop_requested,
                          .progress = [&](double done) { progress.now(fmt::format("{:.0f} %", 100 * done)); },
                          .max_memory = memory_limit(),
                          .recording = &recording});
  }
  Warnings().say(prediction.warnings);
  KinetoJob job{.ranks = files.size(), .nccl_version = ""};
  if (constexpr std::string_view nccl = "nccl "; prediction.library.starts_with(nccl))
    job.nccl_version = prediction.library.substr(nccl.size());
  make_folders(files);
  write_files(KinetoTraces(recording, job), files);
  note_gathers(scenario);
  say(fmt::format("{} files, step time {:.6g} us\n", files.size(), microseconds(prediction.time)));
}

/// Its groups are a file of their own, as ASTRA-sim wants it: "job.{rank}.et" has "job.groups.json".
void export_chakra(const TraceExportArguments& arguments, const std::string& name, const Scenario& scenario,
                   const Setup& setup, std::vector<std::string> files) {
  if (!scenario.training || scenario.jobs.size() > 1 || scenario.training->async)
    throw InputError(
        name,
        "expected one training step, inference step or trace in which ranks wait for each other, found something else",
        "a trace contains the step of one job");
  const std::string groups = named(arguments, "groups");
  files.push_back(groups.substr(0, groups.size() - std::string_view(".et").size()) + ".json");
  expect_free(arguments, files);
  TrainingRun run(scenario, setup.collectives.front(), {.stop = &stop_requested, .max_memory = memory_limit()});
  traces::ChakraFiles made;
  try {
    made = traces::chakra_files(run.run().program());
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: /{}", name, scenario.training->key()), error.message(), error.hint());
  }
  ensure(made.ranks.size() + 1 == files.size(), "every rank has a file");
  make_folders(files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    Output output(files[i]);
    output.write_styled(i < made.ranks.size() ? made.ranks[i] : made.groups);
    output.finish();
  }
  for (const std::string& note : made.notes) say(fmt::format("note: {}\n", note));
  note_gathers(scenario);
  say(fmt::format("{} files, with the groups in {}\n", made.ranks.size(), files.back()));
}

int export_trace(const TraceExportArguments& arguments) {
  if (!arguments.is_chakra() && !arguments.file.ends_with(".json") && !arguments.file.ends_with(".json.gz"))
    throw UsageError("FILE",
                     fmt::format("expected a file named *.json, *.json.gz or *.et, found \"{}\"", arguments.file));
  const ScenarioText input = read_input(arguments.scenario);
  const ScenarioFile file = ScenarioFile::parse(input.text, input.name, arguments.set);
  require_one_point(file, "ringsim trace export " + shell_word(arguments.scenario) + ' ' + shell_word(arguments.file),
                    arguments.set);
  const Scenario scenario = file.point(0);
  Warnings().say(scenario.warnings);
  const Setup setup = set_up(scenario, &stop_requested);
  std::vector<std::string> files = rank_files(arguments, setup.collectives.front().job.request.ranks);
  if (arguments.is_chakra())
    export_chakra(arguments, file.name(), scenario, setup, std::move(files));
  else
    export_kineto(arguments, scenario, setup, files);
  return good;
}

}  // namespace

Command trace_export_command() {
  return {.name = "trace export",
          .group = Group::check,
          .summary = "Write a step as PyTorch profiler traces or Chakra traces",
          .example = "ringsim trace export scenarios/examples/training/llama3-8b.json 'step.rank{rank}.json.gz'",
          .details =
              "The extension of FILE determines the format. With .json and .json.gz, writes the last training step as "
              "the PyTorch profiler does, readable by `ringsim trace show`. These files contain kernels, and "
              "collectives with their operation, size and group; times are rounded to ns, and sizes are in elements of "
              "one byte. With .et, writes one iteration of training, inference or a trace as Chakra execution traces, "
              "for ASTRA-sim or for \"trace\": {\"files\": \"job.{rank}.et\"} in a scenario. These files contain "
              "compute times and calls, but not the launches of calls.",
          .prepare = with<TraceExportArguments>(declare_trace_export, export_trace)};
}

}  // namespace ringsim::tools
