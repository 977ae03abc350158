// The rows and ranges of `ringsim compare --explain`: predicted, and run again with changes, several at a time.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "tools/command_line/input.hpp"
#include "validate/measured/measured.hpp"
#include "validate/score/mismatch.hpp"

namespace ringsim::tools {

/// The points of the file, explained, next to what was measured; the smallest first. Throws UsageError if a size has
/// several predictions.
std::vector<ComparedRow> explained_rows(const ScenarioFile& file, const MeasuredTable& table, int jobs);

/// Every range with its alternatives, run again. `release`: release_of() the table; `input` and `set`: the scenario.
std::vector<MismatchRange> explained_ranges(const std::vector<ComparedRow>& rows, const std::string& release,
                                            const ScenarioText& input, const std::vector<std::string>& set, int jobs);

/// Warnings: choices that the table says were forced, and that the scenario leaves to the library.
std::vector<std::string> unlike_table(const MeasuredTable& table, const std::vector<ComparedRow>& rows);

/// The release of NCCL that a table names; empty: none, or one that is not modeled.
std::string release_of(const std::map<std::string, std::string>& about);

}  // namespace ringsim::tools
