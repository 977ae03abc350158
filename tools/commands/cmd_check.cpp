// ringsim check: simulated beside closed form.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tools/commands/commands.hpp"
#include "tools/output/output.hpp"
#include "tools/output/report.hpp"
#include "tools/sweep/points.hpp"
#include "validate/closed_forms/grid.hpp"

namespace ringsim::tools {

namespace {

struct RowTotal {
  int cases = 0, exact = 0, failed = 0;
  std::int64_t most_off = 0;
  std::string formula, worst;
};

std::string case_text(const GridCase& c) {
  return fmt::format("K {}, p {}, link latency {}", c.request.ranks, format(c.request.bytes), format(c.link_latency));
}

// Runs all cases on `jobs` threads; take(case number, result), one at a time.
template <class Take>
void run_grid(const std::vector<GridCase>& cases, int jobs, Take take) {
  ProgressLine progress(cases.size());
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failed;
  const auto work = [&] {
    for (std::size_t i = next++; i < cases.size() && !stop_requested; i = next++) {
      try {
        const GridResult result = run_case(cases[i]);
        progress.set(i, 1.0);
        const std::lock_guard lock(mutex);
        take(i, result);
      } catch (...) {
        const std::lock_guard lock(mutex);
        failed = std::current_exception();
        next = cases.size();
      }
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 1; t < jobs; ++t) threads.emplace_back(work);
    work();
  }
  if (failed) std::rethrow_exception(failed);
  if (stop_requested) throw Interrupted("stopped before all cases were done");
}

int check_grid(int jobs) {
  const std::vector<GridCase> cases = closed_form_grid();
  std::vector<GridResult> results(cases.size());
  run_grid(cases, jobs, [&](std::size_t i, const GridResult& result) { results[i] = result; });

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
  Table table({"collective", "algorithm", "on", "model", "closed form", "cases", "equal", "most off ps", "", "where"});
  for (const std::string& key : order) {
    const RowTotal& row = totals[key];
    std::vector<std::string> line = names[key];
    line.insert(line.end(), {fmt::to_string(row.cases), fmt::to_string(row.exact), fmt::to_string(row.most_off),
                             row.failed == 0 ? "good" : fmt::format("{} FAILED", row.failed), row.worst});
    table.add(line);
  }
  Output output;
  output.write(table.text());
  output.write(
      fmt::format("{} cases, {} failed: simulated time within 1 ps a step of the closed form\n", cases.size(), failed));
  output.finish();
  return failed == 0 ? good : check_failed;
}

int check_scenario(const CheckArguments& arguments, int jobs) {
  const ScenarioFile file = ScenarioFile::load(arguments.scenario, arguments.set);
  Table table(
      {"bytes", "collective", "algorithm", "model", "ranks", "simulated us", "closed form us", "ratio", "", "because"});
  int failed = 0;
  predict_points(file, jobs, true, [&](Result&& result) {
    const Prediction& r = result.prediction;
    std::vector<std::string> row{format(r.request.bytes),
                                 std::string(to_string(r.request.op)),
                                 algorithm_text(r),
                                 std::string(to_string(r.model)),
                                 fmt::to_string(r.request.ranks),
                                 fmt::format("{:.3f}", microseconds(r.time))};
    if (!result.form) {
      row.insert(row.end(), {"", "", "none known", ""});
    } else {
      const bool holds = result.form->holds(), agrees = result.form->agrees(r.time);
      if (holds && !agrees) ++failed;
      std::string because;
      for (const std::string& reason : result.form->because) because += (because.empty() ? "" : "; ") + reason;
      const std::optional<double> ratio = result.form->ratio(r.time);
      row.insert(row.end(),
                 {fmt::format("{:.3f}", microseconds(result.form->time)), ratio ? fmt::format("{:.6f}", *ratio) : "",
                  !holds   ? "not its case"
                  : agrees ? "good"
                           : "FAILED",
                  because});
    }
    table.add(row);
  });
  Output output;
  output.write(table.text());
  output.finish();
  return failed == 0 ? good : check_failed;
}

}  // namespace

int check_command(const CheckArguments& arguments) {
  const int jobs =
      arguments.jobs > 0 ? arguments.jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (!arguments.scenario.empty()) return check_scenario(arguments, jobs);
  if (!arguments.set.empty())
    throw InputError("--set", "expected a SCENARIO to set it in, found none",
                     "ringsim check SCENARIO --set PATH=VALUE");
  return check_grid(jobs);
}

}  // namespace ringsim::tools
