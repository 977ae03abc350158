// ringsim diff: two scenarios or results, what differs in them, and which causes account for it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/explanations/diff_text.hpp"
#include "tools/explanations/explain_text.hpp"
#include "tools/memory.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/pictures/html.hpp"
#include "tools/pictures/svg.hpp"
#include "tools/reports/run_report.hpp"
#include "tools/stop.hpp"

namespace ringsim::tools {

namespace {

struct DiffArguments {
  std::string a, b;
  std::vector<std::string> set;    ///< of both
  std::vector<std::string> set_b;  ///< of B alone
  std::optional<bool> said_json;
  bool json = false;   ///< `said_json`, or what the ending of `output` says
  std::string output;  ///< a file; empty or "-": stdout
  std::string report;  ///< a page of both, FILE.html; empty: none
  bool force = false;  ///< let it replace a file that is not ringsim's

  void settle() { json = format_by_ending(output, said_json, false, {{".json", true}}); }
};

void declare(Options& options, DiffArguments& diff) {
  options.argument("A", diff.a, "a scenario, or a result in JSON; - reads standard input").file = true;
  options.argument("B", diff.b, "a scenario or a result to compare with A").file = true;
  options.changes("--set", diff.set, "set a value in both scenarios");
  options.changes("--set-b", diff.set_b, "set a value in scenario B");
  options.max_memory();
  options.choice<bool>("--format", {{"text", false}, {"json", true}}, diff.said_json, "the output format").fallback =
      "text";
  options.output(diff.output, "the differences");
  declare_report(options, diff.report, "write a page that shows both side by side to FILE.html");
  options.flag("--force", diff.force, "allow --report to overwrite a file that does not contain results").needs =
      "--report";
}

std::string command_of(const DiffArguments& arguments) {
  return fmt::format("ringsim diff {} {}", shell_word(arguments.a), shell_word(arguments.b)) +
         set_words("--set", arguments.set) + set_words("--set-b", arguments.set_b);
}

ScenarioText read_side(const std::string& path) { return read_input(path, "a scenario or a result"); }

/// `command`: the whole command line; `option`: the one that changes this side alone.
ExplainedRun side(const ScenarioText& input, const std::vector<std::string>& set, const std::string& command,
                  const std::string& option, Warnings& warnings) {
  if (is_result_text(input.text)) {
    if (!set.empty())
      throw UsageError("--set", "expected a scenario to change, found a result: " + input.name,
                       "results cannot be changed; give the scenario instead");
    return read_explained(input.text, input.name);
  }
  const ScenarioFile file = ScenarioFile::parse(input.text, input.name, set);
  require_one_point(file, command, {}, option);
  const Scenario scenario = file.point(0);
  warnings.say(scenario.warnings);
  ProgressLine progress(1);
  const Result result = whole_of(results_of(scenario, {.stop = &stop_requested,
                                                       .progress = {},
                                                       .stage = [&](const std::string& text) { progress.now(text); },
                                                       .max_memory = memory_limit(),
                                                       .explain = true}));
  Warnings().say(result.prediction.warnings);
  IdleSettings idle;
  idle.add(result.prediction.settings);
  idle.say();
  return explained_run(input.name, result, file.canonical(0));
}

/// The times of both, in all and by cause.
std::string bars_of_both(const ExplainedRun& a, const ExplainedRun& b) {
  const auto bar = [](const std::string& label, Picoseconds time, bool strong) {
    return Bar{
        .label = label, .value = short_time(time), .length = static_cast<double>(time.count()), .strong = strong};
  };
  std::string text = html_section(
      "Times", html_wide_figure("time of A and B",
                                bars_svg("time of A and B", {bar("A", a.time, false), bar("B", b.time, true)})));
  if (!a.parts || !b.parts) return text;
  std::vector<Bar> bars;
  for (const PartChange& each : part_changes(a, b)) {
    const std::string cause = each.cause == "link" && !each.kind.empty() ? each.kind : each.cause;
    const std::string name =
        (each.task.empty() ? "" : each.task + ": ") + cause + (each.links.empty() ? "" : " " + each.links);
    bars.push_back(bar("A: " + name, each.a, false));
    bars.push_back(bar("B: " + name, each.b, true));
  }
  if (bars.empty()) return text;
  return text + html_section("Causes that differ",
                             html_wide_figure("time by cause, A and B", bars_svg("time by cause, A and B", bars)));
}

/// Which files A and B are, and what was changed in them.
std::string sides_text(const DiffArguments& arguments, const ExplainedRun& a, const ExplainedRun& b, bool one_file) {
  const std::string changes = fmt::format("{}", fmt::join(arguments.set_b, ", "));
  const std::string both = arguments.set.empty() ? "" : fmt::format(" Both with {}.", fmt::join(arguments.set, ", "));
  if (one_file) return (changes.empty() ? "A and B are the same." : fmt::format("B is A with {}.", changes)) + both;
  return fmt::format("A: {}. B: {}{}.", a.name, b.name, changes.empty() ? "" : " with " + changes) + both;
}

std::string diff_page(const DiffArguments& arguments, const ExplainedRun& a, const ExplainedRun& b,
                      const std::vector<ScenarioText>& inputs) {
  const std::string command = command_of(arguments) + " --report " + shell_word(arguments.report);
  const bool one_file = inputs[0].name == inputs[1].name;
  return html_page("A and B", fmt::format("<h1>{}</h1>\n", escaped_xml(diff_sentence(a, b))) +
                                  html_paragraph(sides_text(arguments, a, b, one_file)) + bars_of_both(a, b) +
                                  html_section("Differences", html_wide_text("Differences", diff_tables(a, b))) +
                                  report_end(one_file ? std::vector{inputs[0]} : inputs, command, ""));
}

int execute(const DiffArguments& arguments) {
  refuse_as_output(arguments.a, arguments.output);
  refuse_as_output(arguments.b, arguments.output);
  if (arguments.a == "-" && arguments.b == "-")
    throw UsageError("B", "expected a file other than A, found standard input for both");
  std::optional<Output> page =
      open_report(arguments.report, {arguments.a, arguments.b, arguments.output}, arguments.force);
  Output output(arguments.output);
  const std::vector<ScenarioText> inputs{read_side(arguments.a), read_side(arguments.b)};
  std::vector<std::string> set_b = arguments.set;
  set_b.insert(set_b.end(), arguments.set_b.begin(), arguments.set_b.end());
  const std::string command = command_of(arguments);
  Warnings warnings;
  ExplainedRun a = side(inputs[0], arguments.set, command, "--set", warnings);
  ExplainedRun b = side(inputs[1], set_b, command, "--set-b", warnings);
  if (a.name == b.name) {
    a.name += " (A)";
    b.name += " (B)";
  }
  output.write(arguments.json ? diff_json(a, b) : diff_text(a, b));
  output.finish();
  if (page) {
    page->write(diff_page(arguments, a, b, inputs));
    page->finish();
  }
  return good;
}

}  // namespace

Command diff_command() {
  return {.name = "diff",
          .group = Group::predict,
          .summary = "Compare two scenarios or results, and show the causes of the difference",
          .example =
              "ringsim diff scenarios/examples/explain/gpudirect-off.json "
              "scenarios/examples/explain/gpudirect-off.json --set-b transport.gpudirect=true",
          .details =
              "Each side is either a scenario with one point, which is simulated as by `ringsim explain`, or a result "
              "from `explain --format json`, `run --format json` or `run --format jsonl`. The results of `run` do not "
              "break down the time by cause. The differences of the causes sum to the difference of the times. The "
              "exit code is 0 even if the sides differ.",
          .prepare = with<DiffArguments>(declare, execute)};
}

}  // namespace ringsim::tools
