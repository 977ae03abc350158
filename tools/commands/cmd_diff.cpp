// ringsim diff: two scenarios or results, what differs in them, and which causes account for it.
#include <string>
#include <utility>
#include <vector>

#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/diff_text.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"

namespace ringsim::tools {

namespace {

struct DiffArguments {
  std::string a, b;
  std::vector<std::string> set;    ///< of both
  std::vector<std::string> set_b;  ///< of B alone
  bool json = false;
  std::string output;  ///< a file; empty or "-": stdout
};

void declare(Options& options, DiffArguments& diff) {
  options.argument("A", diff.a, "a scenario, or a result in JSON; - is standard input").file = true;
  options.argument("B", diff.b, "the same, to compare with A").file = true;
  options.texts("--set", "PATH=VALUE", diff.set, "replace a value of both scenarios");
  options.texts("--set-b", "PATH=VALUE", diff.set_b, "replace a value of scenario B");
  options.choice<bool>("--format", {{"text", false}, {"json", true}}, diff.json, "print text or JSON").fallback =
      "text";
  options.output(diff.output, "the differences");
}

ExplainedRun side(const std::string& path, const std::vector<std::string>& set) {
  const ScenarioText input = read_input(path, "a scenario or a result");
  if (is_result_text(input.text)) {
    if (!set.empty())
      throw UsageError("--set", "expected a scenario to change, found a result: " + input.name,
                       "a result is what it is; give the scenario that it came from");
    return read_explained(input.text, input.name);
  }
  const ScenarioFile file = ScenarioFile::parse(input.text, input.name, set);
  require_one_point(file);
  const Scenario scenario = file.point(0);
  Warnings().say(scenario.warnings);
  ProgressLine progress(1);
  const Result result = whole_of(results_of(scenario, {.stop = &stop_requested,
                                                       .progress = {},
                                                       .stage = [&](const std::string& text) { progress.now(text); },
                                                       .explain = true}));
  IdleSettings idle;
  idle.add(result.prediction.settings);
  idle.say();
  return explained_run(input.name, result, file.canonical(0));
}

int execute(const DiffArguments& arguments) {
  refuse_as_output(arguments.a, arguments.output);
  refuse_as_output(arguments.b, arguments.output);
  if (arguments.a == "-" && arguments.b == "-")
    throw UsageError("B", "expected another file than A, found standard input for both");
  Output output(arguments.output);
  std::vector<std::string> set_b = arguments.set;
  set_b.insert(set_b.end(), arguments.set_b.begin(), arguments.set_b.end());
  ExplainedRun a = side(arguments.a, arguments.set), b = side(arguments.b, set_b);
  if (a.name == b.name) {
    a.name += " (A)";
    b.name += " (B)";
  }
  output.write(arguments.json ? diff_json(a, b) : diff_text(a, b));
  output.finish();
  return good;
}

}  // namespace

Command diff_command() {
  return {.name = "diff",
          .group = Group::predict,
          .summary = "Compare two scenarios or results, and show which causes make the difference",
          .example =
              "ringsim diff scenarios/examples/why/gpudirect-off.json "
              "scenarios/examples/why/gpudirect-off.json --set-b transport.gpudirect=true",
          .details =
              "Each side is a scenario of one point, which is explained as by `ringsim explain`, or a result: what "
              "`explain --format json` wrote, or `run --format json` or `jsonl`, which do not say what their time "
              "consists of. The differences of the causes sum to the difference of the times. The exit code is 0 "
              "whatever differs.",
          .prepare = with<DiffArguments>(declare, execute)};
}

}  // namespace ringsim::tools
