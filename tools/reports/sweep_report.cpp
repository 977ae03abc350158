#include "tools/reports/sweep_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>

#include "tools/formats/shown_columns.hpp"
#include "tools/pictures/html.hpp"
#include "tools/pictures/svg.hpp"
#include "tools/reports/run_report.hpp"

namespace ringsim::tools {

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
  TableCells table = table_of_rows(rows).cells();
  if (!point) {
    const std::string name = sweep.file.name().empty() ? "ringsim" : sweep.file.name();
    return html_page(name,
                     fmt::format("<h1>{}: every point failed</h1>\n", escaped_xml(name)) + report_results(table) +
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
