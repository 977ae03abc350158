// ringsim trace export: a predicted step in the formats of other tools.
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"
#include "tools/traces/kineto_file.hpp"
#include "tools/traces/trace_file.hpp"

namespace ringsim::tools {

namespace {

enum class TraceExportFormat : std::uint8_t { kineto };

struct TraceExportArguments {
  std::string scenario;
  std::vector<std::string> set;
  TraceExportFormat to = TraceExportFormat::kineto;
  std::string file;
};

constexpr std::string_view rank_mark = "{rank}";

void declare_trace_export(Options& options, TraceExportArguments& arguments) {
  options.scenario(arguments.scenario, arguments.set);
  options.argument("FILE", arguments.file, "a file per rank: {rank} becomes its number; .json or .json.gz");
  options
      .choice("--to", std::vector<std::pair<std::string, TraceExportFormat>>{{"kineto", TraceExportFormat::kineto}},
              arguments.to, "the format: traces of PyTorch's profiler")
      .fallback = "kineto";
}

std::string rank_file(const std::string& pattern, std::size_t rank) {
  const std::size_t at = pattern.find(rank_mark);
  return at == std::string::npos ? pattern : pattern.substr(0, at) + fmt::to_string(rank) + pattern.substr(at + 6);
}

int export_trace(const TraceExportArguments& arguments) {
  if (!arguments.file.ends_with(".json") && !arguments.file.ends_with(".json.gz"))
    throw UsageError("FILE", fmt::format("expected a file named *.json or *.json.gz, found \"{}\"", arguments.file));
  const ScenarioText input = read_input(arguments.scenario);
  const ScenarioFile file = ScenarioFile::parse(input.text, input.name, arguments.set);
  require_one_point(file, "ringsim trace export " + shell_word(arguments.scenario) + ' ' + shell_word(arguments.file),
                    arguments.set);
  const Scenario scenario = file.point(0);
  Warnings().say(scenario.warnings);
  Recording recording;
  recording.keep_kernels = true;
  Prediction prediction;
  {
    ProgressLine progress(1);
    prediction = predict(scenario, {.stop = &stop_requested,
                                    .progress = [&](double done) { progress.now(fmt::format("{:.0f} %", 100 * done)); },
                                    .recording = &recording});
  }
  Warnings().say(prediction.warnings);
  const auto ranks = static_cast<std::size_t>(prediction.request.ranks);
  if (ranks > 1 && arguments.file.find(rank_mark) == std::string::npos)
    throw UsageError("FILE",
                     fmt::format("expected {} in the name, for {} ranks have a file each, found \"{}\"", rank_mark,
                                 ranks, arguments.file),
                     "'step.rank{rank}.json.gz'");
  KinetoJob job{.ranks = ranks, .nccl_version = ""};
  if (constexpr std::string_view nccl = "nccl "; prediction.library.starts_with(nccl))
    job.nccl_version = prediction.library.substr(nccl.size());
  for (std::size_t rank = 0; rank < ranks; ++rank)
    refuse_as_output(arguments.scenario, rank_file(arguments.file, rank));
  for (std::size_t rank = 0; rank < ranks; ++rank)
    write_packed(kineto_trace(recording, job, static_cast<std::uint32_t>(rank)), rank_file(arguments.file, rank));
  say(fmt::format("{} files, a step of {:.6g} us\n", ranks, microseconds(prediction.time)));
  return good;
}

}  // namespace

Command trace_export_command() {
  return {
      .name = "trace export",
      .group = Group::check,
      .summary = "Write a predicted training step as PyTorch's profiler would",
      .example = "ringsim trace export scenarios/examples/training/llama3-8b.json 'step.rank{rank}.json.gz'",
      .details =
          "One file per rank of the last step: its kernels, those of collectives with operation, size and group, as "
          "PyTorch's profiler writes them and `ringsim trace show` reads them. Times are rounded to ns; sizes are "
          "elements of one byte.",
      .prepare = with<TraceExportArguments>(declare_trace_export, export_trace)};
}

}  // namespace ringsim::tools
