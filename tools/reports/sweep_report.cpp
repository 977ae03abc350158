#include "tools/reports/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "tools/pictures/html.hpp"
#include "tools/pictures/svg.hpp"
#include "tools/reports/run_report.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/columns.hpp"

namespace ringsim::tools {

namespace {

/// The columns that the printed table of a run has, and what varies; at the end errors, if there are any.
TableCells cells_of_rows(const std::vector<ResultRow>& rows) {
  std::vector<std::string> seen;
  for (const ResultRow& row : rows) see_columns(row, seen);
  std::vector<std::string> names;
  for (const std::string& name : columns_for(ColumnsFor::csv, seen)) {
    const auto is_it = [&](const Column& column) { return column.name == name && !column.heading.empty(); };
    const auto columns = result_columns();
    if (name.starts_with("point.") || std::any_of(columns.begin(), columns.end(), is_it)) names.push_back(name);
  }
  const bool any_failed = std::any_of(rows.begin(), rows.end(), [](const ResultRow& row) { return row.failed(); });
  TableCells lines{names};
  if (any_failed) lines.front().emplace_back("error");
  for (const ResultRow& row : rows) {
    std::vector<std::string>& line = lines.emplace_back();
    for (const std::string& name : names) {
      const Cell* cell = row.find(name);
      const auto* number = cell == nullptr ? nullptr : std::get_if<double>(&cell->value);
      line.push_back(number != nullptr ? fmt::format("{:.4g}", *number) : cell == nullptr ? "" : plain_text(*cell));
    }
    if (any_failed) line.push_back(row.failed() ? row.error() : "");
  }
  return lines;
}

}  // namespace

std::string sweep_page(const SweepForReport& sweep) {
  // In the order of the points: that of a file is another.
  const auto point_of = [&](const ResultRow& row) { return sweep.plan.by_key.at(row.key); };
  std::vector<ResultRow> rows = sweep.rows;
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const ResultRow& a, const ResultRow& b) { return point_of(a) < point_of(b); });
  std::vector<std::size_t> points;  // [row]
  points.reserve(rows.size());
  for (const ResultRow& row : rows) points.push_back(point_of(row));
  const std::optional<ReportPoint> point = chosen_point(rows, points);
  TableCells table = cells_of_rows(rows);
  if (!point) {
    const std::string name = sweep.file.name().empty() ? "ringsim" : sweep.file.name();
    return html_page(
        name, fmt::format("<h1>{}: every point failed</h1>\n", escaped_xml(name)) + report_table("Results", table) +
                  report_end({sweep.input}, sweep.command, fmt::format(", scenario {}", sweep.file.hash())));
  }
  return report_page({.file = sweep.file,
                      .input = sweep.input,
                      .set = sweep.set,
                      .rows = rows,
                      .table = std::move(table),
                      .point = point,
                      .chart = {.bound = sweep.bound},
                      .command = sweep.command,
                      .jobs = sweep.jobs});
}

}  // namespace ringsim::tools
