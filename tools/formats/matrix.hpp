// One column of results by two others: for slides.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.hpp"
#include "tools/output/format.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

/// Throws UsageError unless a matrix has rows and columns, and nothing else has them.
void require_matrix_fields(const MatrixFields& fields, Format format);

/// Throws UsageError before the first point is simulated, for names that no result has and, as far as it follows from
/// what varies, for two points in one cell. `measured`: results have measured times; `bounded`: they have bounds.
void require_matrix_of(const ScenarioFile& file, const MatrixFields& fields, bool measured, bool bounded);

/// The matrix in one of its three formats; rows and columns in the order in which they come first. Text has at most 100
/// characters in a line if it can, rounds as tables do, and is aligned; CSV rounds nothing. A cell that no result is
/// for is empty; a point that failed is "failed". Throws UsageError if two results are for one cell, if a result has no
/// value for rows or columns, or if none has one for the cells. Requires at least one row.
std::string matrix_text(const std::vector<ResultRow>& results, const MatrixFields& fields, Format format);

/// True if a text begins as a matrix does.
bool is_matrix_text(std::string_view text);

}  // namespace ringsim::tools
