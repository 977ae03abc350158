// Results as text: a table to read, JSON, JSON lines and CSV for programs, and the look of nccl-tests.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "tools/output/format.hpp"
#include "validate/measured/measured.hpp"
#include "validate/results/columns.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

/// The result as a row of a file of results has it.
ResultRow row_of(const ScenarioFile& file, const Result& result);

/// One document of all results, in any format but that of a matrix. `explain` adds what the links carried (table and
/// the JSON formats). Both have the phases of predictions that have some.
std::string report(const ScenarioFile& file, const std::vector<Result>& results, Format format, bool explain);

/// One line of JSON with its newline: what `jsonl` prints as each result comes.
std::string report_line(const ScenarioFile& file, const Result& result, bool explain);

/// A file of measured times, of the collective of that name; empty: the file says of which.
MeasuredFile read_measured_as(const std::string& path, const std::string& collective);

/// The rows of a sweep's point, one for each of its jobs: as report_line(), with the hash of the point in place of the
/// file's, and its key (validate/results/results.hpp). `bounded`: as for result_key().
std::string sweep_rows(const std::string& name, const PointId& id, bool bounded, const std::vector<Result>& results);

/// The reason why a point failed. Names nothing of the machine that ran it.
struct PointError {
  std::string kind;  ///< "input", or "law" if the simulation broke one of its own
  std::string where, message, hint;
};
std::string failed_row(const std::string& name, const PointId& id, bool bounded, const PointError& error);

}  // namespace ringsim::tools
