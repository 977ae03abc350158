// What `ringsim compare --explain` prints: measured and predicted row by row, where they part, and what explains it.
#pragma once

#include <span>
#include <string>

#include "scenarios/scenario.hpp"
#include "validate/measured/measured.hpp"
#include "validate/score/mismatch.hpp"

namespace ringsim::tools {

/// As lines of at most 100 characters. Requires rows.
std::string mismatch_text(const MeasuredTable& table, std::span<const ComparedRow> rows,
                          std::span<const MismatchRange> ranges);

/// The ranges as one JSON document, with all trials.
std::string mismatch_json(const ScenarioFile& file, const MeasuredTable& table, std::span<const ComparedRow> rows,
                          std::span<const MismatchRange> ranges);

}  // namespace ringsim::tools
