// ringsim run: every point of a scenario, simulated.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <vector>

#include "sim/error.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"
#include "tools/points.hpp"
#include "tools/report.hpp"

namespace ringsim::tools {

int run_command(const RunArguments& arguments) {
  const ScenarioFile file = ScenarioFile::load(arguments.scenario, arguments.set);
  std::error_code ignored;
  if (std::filesystem::equivalent(arguments.scenario, arguments.output, ignored))
    throw InputError(arguments.output, "expected another file than the scenario itself for the results");
  Output output(arguments.output);
  std::vector<Prediction> results;
  const auto started = std::chrono::steady_clock::now();
  const auto finish = [&] {
    if (arguments.format != Format::jsonl) output.write(report(file, results, arguments.format, arguments.explain));
    output.finish();
  };
  try {
    predict_points(file, arguments.jobs, [&](Prediction&& result) {
      if (arguments.format == Format::jsonl) output.write(report_line(file, result, arguments.explain));
      results.push_back(std::move(result));
    });
  } catch (const Interrupted& how_far) {
    finish();  // what is done is not lost
    throw Interrupted(
        fmt::format("{} of {} points done; the next one {}", results.size(), file.size(), how_far.what()));
  }
  finish();
  if (arguments.timing) {
    std::int64_t events = 0, transfers = 0;
    for (const Prediction& result : results) {
      events += result.events;
      transfers += result.transfers;
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    fmt::print(stderr, "{} points, {} transfers, {} events in {:.3f} s\n", results.size(), transfers, events, seconds);
  }
  return good;
}

}  // namespace ringsim::tools
