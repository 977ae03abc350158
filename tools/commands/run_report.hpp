// `ringsim run --report`: all of a run on one page.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "tools/command_line/input.hpp"
#include "tools/output/chart.hpp"
#include "validate/results/result.hpp"

namespace ringsim::tools {

struct RunForReport {
  const ScenarioFile& file;
  const ScenarioText& input;
  const std::vector<std::string>& set;  ///< as --set has it
  const std::vector<Result>& results;   ///< of all points, in order; at least one
  ChartFields chart;
  std::string command;  ///< what was typed
  int jobs = 0;         ///< what-ifs at a time; 0: one per core
};

/// The page (HTML): a sentence, plots, what faster links would change, what links carried over time, the results, the
/// scenario, versions and command. The sentence and the what-ifs are of one point, the fastest of the largest message,
/// which is simulated again with its critical path and its bound. Throws what predict() throws, UsageError as
/// chart_of(), and Interrupted.
std::string report_page(const RunForReport& run);

/// A word as a shell reads it back.
std::string shell_word(const std::string& word);

}  // namespace ringsim::tools
