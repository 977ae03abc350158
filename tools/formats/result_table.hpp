// Results as people read them: one table, and what --explain and --phases add below it.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "validate/results/result.hpp"

namespace ringsim::tools {

/// The table of results of collectives, or of steps of training, inference and traces. A table of steps has a heading
/// of its own, and one step alone is shown as a list of its parts. Below it notes. `explain` adds what the links
/// carried.
std::string result_table(const ScenarioFile& file, const std::vector<Result>& results, bool explain);

/// The printed table's columns, all of them: the headings, then a line for each result.
std::vector<std::vector<std::string>> table_cells(const std::vector<Result>& results);

}  // namespace ringsim::tools
