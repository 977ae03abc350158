// What rows of results say of themselves by name: what matrices and plots are made of.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

/// A column of the row, or what varied by its path, with or without "point."; nullptr if the row has no value there.
const Cell* field_of(const ResultRow& row, const std::string& name);

/// The unit of a column, as columns.md has it; empty if it has none, or is no column but something that varies.
std::string unit_of(const std::string& name);

/// A value that tells rows apart, for display: sizes with their unit, objects as "parameter_server servers=2".
std::string key_text(const Cell& cell);

/// "double_binary_tree segments=8": the row's algorithm with its parameters; a library's by the library's name: "Tree".
std::string algorithm_text(const ResultRow& row);

/// The paths that vary between the points of the file.
std::vector<std::string> varied_paths(const ScenarioFile& file);

/// Throws UsageError at `option` unless `name` is a column of results or one of `varied`, with the nearest name.
/// `compared`: measured times are among the columns.
void require_field(const std::string& option, const std::string& name, const std::vector<std::string>& varied,
                   bool compared);

/// What of scenario, job and point differs between two rows: "collective.bytes is 1 KiB and 1 MiB"; empty if nothing
/// does. Those of `but` are left out.
struct Difference {
  std::string text;
  std::string name;  ///< of the first one
};
Difference difference_of(const ResultRow& a, const ResultRow& b, const std::vector<std::string>& but);

}  // namespace ringsim::tools
