// ringsim check: simulated times against closed forms.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/formats/result_text.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/points.hpp"
#include "tools/sweep/workers.hpp"
#include "validate/closed_forms/grid.hpp"
#include "validate/closed_forms/plan_cases.hpp"

namespace ringsim::tools {

namespace {

struct CheckArguments {
  std::string scenario;  ///< empty: the grid of closed forms
  std::vector<std::string> set;
  int jobs = 0;
  bool verbose = false;  ///< the whole table, not only what failed
};

void declare(Options& options, CheckArguments& check) {
  Option& scenario = options.scenario(check.scenario, check.set);
  scenario.required = false;
  scenario.fallback = "a grid of cases for all closed forms";
  options.flag("-v,--verbose", check.verbose, "print the whole table, not only failures");
  options.jobs(check.jobs, "cases");
  options.max_memory();
}

struct RowTotal {
  int cases = 0, exact = 0, failed = 0;
  std::int64_t most_off = 0;
  std::string formula, worst;
};

std::string case_text(const GridCase& c) {
  return fmt::format("K {}, p {}, link latency {}", c.request.ranks, format(c.request.bytes), format(c.link_latency));
}

/// [case] its result.
template <class Case, class Run>
auto run_all(const std::vector<Case>& cases, int jobs, Run run) {
  std::vector<decltype(run(cases.front()))> results(cases.size());
  ProgressLine progress(cases.size());
  for_each_index(cases.size(), jobs, [&](std::size_t i) {
    stop_if_asked();
    results[i] = run(cases[i]);
    progress.add(1.0);
    return true;
  });
  return results;
}

/// Writes a table of plans and a line of their number; returns how many failed.
int check_plans(int jobs, bool verbose, Output& output) {
  const std::vector<PlanCase> cases = plan_cases();
  const std::vector<PlanNumbers> results = run_all(cases, jobs, [](const PlanCase& c) { return c.run(); });
  std::vector<std::vector<std::string>> names;
  std::vector<RowTotal> totals;
  int failed = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const PlanCase& c = cases[i];
    const PlanNumbers& its = results[i];
    const std::vector<std::string> name{std::string(to_string(c.quantity)), c.plan, its.formula};
    const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    if (at == names.size()) {
      names.push_back(name);
      totals.emplace_back();
    }
    RowTotal& row = totals[at];
    ++row.cases;
    if (its.holds && its.form == its.simulated) {
      ++row.exact;
      continue;
    }
    ++row.failed;
    ++failed;
    const std::int64_t off = std::abs(its.form - its.simulated);
    if (off <= row.most_off && !row.worst.empty()) continue;
    row.most_off = off;
    row.worst = its.holds ? c.where : c.where + ": outside the assumptions of the form";
  }
  Table table({"of", "plan", "closed form", "cases", "equal", "largest deviation", "", "where"});
  for (std::size_t i = 0; i < names.size(); ++i) {
    const RowTotal& row = totals[i];
    if (!verbose && row.failed == 0) continue;
    std::vector<std::string> line = names[i];
    line.insert(line.end(), {fmt::to_string(row.cases), fmt::to_string(row.exact),
                             fmt::format("{} {}", row.most_off, names[i][0] == "step" ? "ps" : "B"),
                             row.failed == 0 ? "good" : fmt::format("{} FAILED", row.failed), row.worst});
    table.add(line);
  }
  if (table.size() > 0) output.write(table.fitted() + '\n');
  output.write(fmt::format("{} plans, {} failed: step times, bytes and memory must equal the closed forms\n",
                           cases.size(), failed));
  return failed;
}

int check_grid(int jobs, bool verbose) {
  const std::vector<GridCase> cases = closed_form_grid();
  const std::vector<GridResult> results = run_all(cases, jobs, run_case);

  std::vector<std::string> order;
  std::map<std::string, RowTotal> totals;
  std::map<std::string, std::vector<std::string>> names;
  int failed = 0;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const GridCase& c = cases[i];
    const std::vector<std::string> name{std::string(to_string(c.request.op)), c.algorithm, c.machine,
                                        std::string(to_string(c.model)), results[i].form.formula};
    std::string key;
    for (const std::string& part : name) key += part + '\n';
    if (names.emplace(key, name).second) order.push_back(key);
    RowTotal& row = totals[key];
    ++row.cases;
    row.exact += results[i].good && results[i].off() == 0;
    if (!results[i].good) {
      ++row.failed;
      ++failed;
    }
    if (results[i].off() > row.most_off || (!results[i].good && row.worst.empty())) {
      row.most_off = results[i].off();
      row.worst = case_text(c);
    }
  }
  Table table(
      {"collective", "algorithm", "on", "model", "closed form", "cases", "equal", "largest deviation ps", "", "where"});
  for (const std::string& key : order) {
    const RowTotal& row = totals[key];
    if (!verbose && row.failed == 0) continue;
    std::vector<std::string> line = names[key];
    line.insert(line.end(), {fmt::to_string(row.cases), fmt::to_string(row.exact), fmt::to_string(row.most_off),
                             row.failed == 0 ? "good" : fmt::format("{} FAILED", row.failed), row.worst});
    table.add(line);
  }
  Output output;
  if (table.size() > 0) output.write(table.fitted() + '\n');
  output.write(fmt::format("{} cases, {} failed: simulated time must be within 1 ps per step of the closed form\n",
                           cases.size(), failed));
  if (verbose) output.write("\n");
  failed += check_plans(jobs, verbose, output);
  output.finish();
  return failed == 0 ? good : check_failed;
}

int check_scenario(const CheckArguments& arguments, int jobs) {
  const ScenarioFile file = load_scenario(arguments.scenario, arguments.set);
  Table table({"bytes", "collective", "algorithm", "model", "ranks", "simulated us", "closed form us", "ratio", ""});
  for (const char* heading : {"bytes", "collective", "algorithm", "model"}) table.pull_out(heading);
  table.pull_out("ranks", "{} ranks");
  std::size_t points = 0, agreed = 0, not_the_case = 0, unknown = 0;
  int failed = 0;
  std::vector<std::string> notes;
  predict_points(file, jobs, true, [&](Result&& result) {
    const Prediction& r = result.prediction;
    ++points;
    const bool holds = result.form && result.form->holds(), agrees = holds && result.form->agrees(r.time);
    std::string verdict;
    if (!result.form) {
      ++unknown;
      verdict = "no closed form";
    } else if (!holds) {
      ++not_the_case;
      verdict = "not compared";
    } else if (agrees) {
      ++agreed;
      verdict = "good";
    } else {
      ++failed;
      verdict = "FAILED";
    }
    if (!arguments.verbose && verdict != "FAILED") return;
    const std::optional<double> ratio = result.form ? result.form->ratio(r.time) : std::nullopt;
    table.add({format(r.request.bytes), std::string(to_string(r.request.op)), algorithm_text(r),
               std::string(to_string(r.model)), fmt::to_string(r.request.ranks),
               fmt::format("{:.3f}", microseconds(r.time)),
               result.form ? fmt::format("{:.3f}", microseconds(result.form->time)) : "",
               ratio ? fmt::format("{:.6f}", *ratio) : "", verdict});
    if (!result.form) return;
    for (const std::string& because : result.form->because)
      if (std::find(notes.begin(), notes.end(), because) == notes.end()) notes.push_back(because);
  });
  Output output;
  if (table.size() > 0) output.write(table.fitted());
  for (const std::string& note : notes) output.write(wrapped("not compared: " + note) + '\n');
  if (table.size() > 0) output.write("\n");
  output.write(fmt::format("{} points: {} agree with the closed form, {} failed\n", points, agreed, failed));
  if (not_the_case + unknown > 0)
    output.write(
        fmt::format("not compared: {} outside the assumptions of the closed form, {} without a closed form{}\n",
                    not_the_case, unknown, arguments.verbose ? "" : "; use -v to list them"));
  output.finish();
  return failed == 0 ? good : check_failed;
}

int execute(const CheckArguments& arguments) {
  if (!arguments.scenario.empty()) return check_scenario(arguments, arguments.jobs);
  if (!arguments.set.empty())
    throw UsageError("--set", "expected a SCENARIO to change, found none", "ringsim check SCENARIO --set PATH=VALUE");
  return check_grid(arguments.jobs, arguments.verbose);
}

}  // namespace

Command check_command() {
  return {.name = "check",
          .group = Group::check,
          .summary = "Compare simulated times with closed forms",
          .example = "ringsim check scenarios/star.json --verbose",
          .details =
              "Without SCENARIO, checks about 48,000 collectives and 2,000 training plans in about a minute. The exit "
              "code is 1 if a simulated time, or the bytes or memory of a plan, differs from a closed form whose "
              "assumptions hold.",
          .prepare = with<CheckArguments>(declare, execute)};
}

}  // namespace ringsim::tools
