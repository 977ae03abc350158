// ringsim explain: why one point takes the time it takes, and what would change it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/explanations/explain_text.hpp"
#include "tools/memory.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/reports/run_what_ifs.hpp"
#include "tools/stop.hpp"
#include "tools/traces/recording.hpp"

namespace ringsim::tools {

namespace {

struct ExplainArguments {
  std::string scenario;
  std::vector<std::string> set;
  MachineWords machine;  ///< if the scenario is a machine: how many, and what joins them
  std::vector<std::string> what_ifs;
  std::optional<bool> said_json;
  bool json = false;   ///< `said_json`, or what the ending of `output` says
  std::string output;  ///< a file; empty or "-": stdout
  int jobs = 0;        ///< what-ifs at a time; 0: one per core
  RecordingArguments recording;

  void settle() { json = format_by_ending(output, said_json, false, {{".json", true}}); }
};

void declare(Options& options, ExplainArguments& explain) {
  options.scenario(explain.scenario, explain.set);
  declare_nodes(options, explain.machine);
  options.changes("--whatif", explain.what_ifs, "simulate again with this change, written as for --set");
  options.choice<bool>("--format", {{"text", false}, {"json", true}}, explain.said_json, "the output format").fallback =
      "text";
  options.output(explain.output, "the explanation");
  options.jobs(explain.jobs, "what-ifs");
  options.max_memory();
  declare_recording(options, explain.recording);
}

int execute(const ExplainArguments& arguments) {
  refuse_as_output(arguments.scenario, arguments.output);
  const ScenarioText input = read_input(arguments.scenario, arguments.machine);
  const ScenarioFile file = ScenarioFile::parse(input.text, input.name, arguments.set);
  require_one_point(file, "ringsim explain " + shell_word(arguments.scenario) + words_of(arguments.machine),
                    arguments.set);
  const Scenario scenario = file.point(0);
  Warnings().say(scenario.warnings);
  std::optional<Recording> recording = recording_of(arguments.recording, {arguments.scenario, arguments.output});
  Output output(arguments.output);

  Result result;
  {
    ProgressLine progress(1);
    result = whole_of(results_of(scenario, {.stop = &stop_requested,
                                            .progress = {},
                                            .stage = [&](const std::string& text) { progress.now(text); },
                                            .max_memory = memory_limit(),
                                            .explain = true,
                                            .phases = true,
                                            .recording = recording ? &*recording : nullptr}));
  }
  if (recording) write_recording(arguments.recording, *recording, file.name());
  Warnings().say(result.prediction.warnings);
  IdleSettings idle;
  idle.add(result.prediction.settings);
  idle.say();

  const std::vector<WhatIf> what_ifs = run_what_ifs(
      {.input = input, .set = arguments.set, .scenario = scenario, .result = result, .jobs = arguments.jobs},
      arguments.what_ifs);
  output.write(arguments.json ? why_json(file, scenario, result, what_ifs, file.canonical(0))
                              : explain_text(scenario, result, what_ifs));
  output.finish();
  return good;
}

}  // namespace

Command explain_command() {
  return {
      .name = "explain",
      .group = Group::predict,
      .summary = "Explain the time of one point, and show what would change it",
      .example = "ringsim explain scenarios/examples/explain/degraded-nic.json --whatif faults=null",
      .details =
          "The critical path is the chain of messages that ends when the run ends, in which each message had to wait "
          "for the one before it. Its parts, by cause and link, sum to the time, to the picosecond. For training "
          "steps, they are listed per task: forward, backward, each gradient bucket, and update.\n\nAll other times "
          "come from additional runs: without each feature that the closed form does not cover; with each class of "
          "links (and the GPUs of a training step) 10 % and 100 % faster; with two classes 100 % faster if no single "
          "class gains 1 %; and with your own changes. The last column lists the arguments with which `ringsim run` "
          "produces the same result.\n\nThe scenario must have one point; choose it with --set.",
      .prepare = with<ExplainArguments>(declare, execute)};
}

}  // namespace ringsim::tools
