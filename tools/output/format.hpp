// The formats of results, and what matrices and plots show of them.
#pragma once

#include <string>

namespace ringsim::tools {

enum class Format {
  table,
  json,
  jsonl,
  csv,
  nccl_tests,
  matrix,  ///< one column of the results by two others, as text, Markdown or CSV (tools/formats/matrix.hpp)
  matrix_markdown,
  matrix_csv
};

constexpr bool is_matrix(Format format) {
  return format == Format::matrix || format == Format::matrix_markdown || format == Format::matrix_csv;
}

/// Columns of results, or paths that vary: --rows, --columns and --cell.
struct MatrixFields {
  std::string rows, columns, cell = "time_us";
};

/// Columns of results, or paths that vary: --x, --y and --by. Empty: as help says.
struct ChartFields {
  std::string x, y, by;
  bool bound = false;  ///< draw what the machine allows, if the rows have it
  bool ideal = false;  ///< draw the first point of each series as if speed grew with x
};

}  // namespace ringsim::tools
