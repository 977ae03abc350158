// `ringsim sweep --report`.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "tools/command_line/input.hpp"
#include "tools/sweep/sweep_plan.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

struct SweepForReport {
  const ScenarioFile& file;
  const ScenarioText& input;
  const std::vector<std::string>& set;
  const SweepPlan& plan;
  const std::vector<ResultRow>& rows;  ///< of the plan, with those that failed
  std::string command;
  int jobs = 0;
  bool bound = false;
};

/// The page of report_page(), with every row of the sweep; if all failed, with their errors alone.
std::string sweep_page(const SweepForReport& sweep);

}  // namespace ringsim::tools
