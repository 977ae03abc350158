// Which columns of a result its printed table has, and their cells.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/text/table.hpp"
#include "validate/results/result.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

/// A column of the printed table.
struct ShownColumn {
  std::string_view name;  ///< as result_columns() has it
  std::string heading;    ///< without a unit of time, which the table adds
  std::string above;      ///< as Column::above
  std::function<TableCell(const Result&)> cell;
};

/// In the order of result_columns(). `closed_forms`: becomes whether the closed form is among them.
std::vector<ShownColumn> shown_columns(const std::vector<Result>& results, bool explain, bool& closed_forms);

Table table_of_columns(const std::vector<ShownColumn>& columns, const std::vector<Result>& results);

/// Those columns of the rows of a file, which have no Result: values as the file has them. At the end errors, if there
/// are any.
Table table_of_rows(const std::vector<ResultRow>& rows);

/// The paths that vary and have no column of their own.
std::vector<std::string> extra_columns(const std::vector<Result>& results);
/// The value of a path that varies, without quotes; empty if it does not vary.
std::string varied_value(const Prediction& prediction, const std::string& path);
/// As tables show it: lists of devices in short; a value too long for a few lines is cut in the middle; --format json
/// has it whole.
std::string shown_value(const Prediction& prediction, const std::string& path);

}  // namespace ringsim::tools
