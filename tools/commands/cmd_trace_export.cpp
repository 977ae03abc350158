// ringsim trace export: the program of a step as execution traces, a file per rank.
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "algorithms/traces/chakra_writer.hpp"
#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"

namespace ringsim::tools {

namespace {

struct TraceExportArguments {
  std::string scenario, folder;
  std::vector<std::string> set;
  bool to_chakra = true;
  bool force = false;  ///< replace files
};

void declare(Options& options, TraceExportArguments& arguments) {
  options.scenario(arguments.scenario, arguments.set);
  options.argument("DIR", arguments.folder, "folder of the traces: job.0.et, job.1.et ..., and job.groups.json").file =
      true;
  options.choice<bool>("--to", {{"chakra", true}}, arguments.to_chakra, "the format").fallback = "chakra";
  options.flag("--force", arguments.force, "replace files of these names");
}

/// Nothing is written if one of the files is there.
void expect_free(const std::vector<std::filesystem::path>& files) {
  for (const std::filesystem::path& file : files) {
    std::error_code error;
    if (std::filesystem::exists(file, error))
      throw InputError(file.string(), "expected the name of a new file, found a file", "--force replaces it");
  }
}

int export_trace(const TraceExportArguments& arguments) {
  const ScenarioText input = read_input(arguments.scenario);
  const ScenarioFile file = ScenarioFile::parse(input.text, input.name, arguments.set);
  require_one_point(file, "ringsim trace export " + shell_word(arguments.scenario), arguments.set);
  const Scenario scenario = file.point(0);
  Warnings warnings;
  warnings.say(scenario.warnings);
  if (!scenario.training || scenario.jobs.size() > 1 || scenario.training->async)
    throw InputError(file.name(),
                     "expected one training step, step of inference or trace, whose ranks wait for each other, found "
                     "something else",
                     "a trace has the step of one job");
  const PredictOptions options{.stop = &stop_requested, .progress = {}, .stage = {}, .max_memory = memory_limit()};
  const Setup setup = set_up(scenario, options.stop);
  TrainingRun run(scenario, setup.collectives.front(), options);
  traces::ChakraFiles made;
  try {
    made = traces::chakra_files(run.run().program());
  } catch (const InputError& error) {
    throw InputError(fmt::format("{}: /{}", file.name(), scenario.training->key()), error.message(), error.hint());
  }
  std::error_code error;
  const std::filesystem::path folder(arguments.folder);
  std::filesystem::create_directories(folder, error);
  std::vector<std::filesystem::path> files;
  for (std::size_t rank = 0; rank < made.ranks.size(); ++rank) files.push_back(folder / fmt::format("job.{}.et", rank));
  files.push_back(folder / "job.groups.json");
  if (!arguments.force) expect_free(files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    Output output(files[i].string());
    output.write_styled(i < made.ranks.size() ? made.ranks[i] : made.groups);
    output.finish();
  }
  for (const std::string& note : made.notes) say(fmt::format("note: {}\n", note));
  return good;
}

}  // namespace

Command trace_export_command() {
  return {.name = "trace export",
          .group = Group::check,
          .summary = "Write a step as execution traces, a file per rank",
          .example = "ringsim trace export scenarios/examples/explain/exposed-bucket.json traces",
          .details =
              "The step of a training, of inference or of a trace as Chakra execution traces, for ASTRA-sim or for "
              "\"trace\": {\"files\": \"DIR/job.{rank}.et\"} of a scenario: compute times and calls of one "
              "iteration, without the launches of calls.",
          .prepare = with<TraceExportArguments>(declare, export_trace)};
}

}  // namespace ringsim::tools
