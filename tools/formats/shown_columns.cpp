#include "tools/formats/shown_columns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "sim/text/figures.hpp"
#include "sim/text/json.hpp"
#include "sim/text/names_in_short.hpp"
#include "tools/formats/result_fields.hpp"
#include "validate/results/cells.hpp"
#include "validate/results/columns.hpp"

namespace ringsim::tools {

namespace {

/// True if a column of results has the value of that path.
bool has_own_column(std::string_view path) {
  return path == "transport.protocol" || path == "collective.bytes" || path == "collective.op" ||
         path == "network.model" || path.starts_with("collective.algorithm") || path == "topology.ranks";
}

}  // namespace

std::vector<std::string> extra_columns(const std::vector<Result>& results) {
  std::vector<std::string> names;
  if (results.empty()) return names;
  for (const auto& [path, value] : results.front().prediction.varied)
    if (!has_own_column(path)) names.push_back(path);
  return names;
}

std::string varied_value(const Prediction& r, const std::string& path) {
  for (const auto& [name, value] : r.varied)
    if (name == path) return without_quotes(value);
  return "";
}

std::string shown_value(const Prediction& r, const std::string& path) {
  constexpr std::size_t head = 300, tail = 60;
  std::string value = names_in_short(varied_value(r, path));
  if (value.size() <= head + tail + 5) return value;
  return value.substr(0, head) + " ... " + value.substr(value.size() - tail);
}

namespace {

/// A column's value as the table shows it, if it is no time; empty if there is none.
std::string shown(const Column& column, const Result& result) {
  if (column.shown != nullptr) return column.shown(result);
  const Json value = column.value(result);
  if (value.is_null()) return "";
  if (value.is_number_float()) return figure(value.get<double>());
  return without_quotes(value.dump());
}

/// True of columns in us, for whose times the table chooses a unit.
bool has_times(const Column& column) { return column.unit == "us" && column.heading.ends_with(" us"); }
/// Without the unit.
std::string heading_of(const Column& column) {
  constexpr std::size_t unit = 3;  // " us"
  return std::string(column.heading.substr(0, column.heading.size() - (has_times(column) ? unit : 0)));
}
TableCell cell_of(const Column& column, const Result& result) {
  if (!has_times(column)) return shown(column, result);
  const Json value = column.value(result);
  if (value.is_null()) return "";
  return time_of_us(value.get<double>());
}

bool is_shown(const Column& column, const std::vector<Result>& results, bool explain) {
  const auto any = [&](auto holds) { return std::any_of(results.begin(), results.end(), holds); };
  if (column.heading.empty()) return false;
  if (column.relevant != nullptr && !explain && !any(column.relevant)) return false;
  return column.in == Column::In::every_row || any([&](const Result& r) { return !shown(column, r).empty(); });
}

/// True if the column with that heading has another value for each value of a path that varies: no second one is
/// needed.
bool tells_apart(const std::string& heading, const std::string& path, const std::vector<Result>& results) {
  std::map<std::string, std::string> value_of;
  for (const Column& column : result_columns()) {
    if (column.heading != heading) continue;
    for (const Result& result : results) {
      const std::string value = shown_value(result.prediction, path);
      const auto [known, is_new] = value_of.try_emplace(shown(column, result), value);
      if (known->second != value) return false;
    }
  }
  return true;
}

TableCell cell_of_row(const Column& column, const ResultRow& row) {
  const Cell* cell = row.find(column.name);
  if (column.name == "algorithm" && cell != nullptr) return algorithm_text(row);
  if (column.name == "bottleneck.link" && cell == nullptr && row.find("bottleneck.latency") != nullptr)
    return "latency";  // no link
  if (cell == nullptr) return "";
  const bool is_whole = std::holds_alternative<std::int64_t>(cell->value);
  if (!is_whole && !std::holds_alternative<double>(cell->value)) return key_text(*cell);
  const double number =
      is_whole ? static_cast<double>(std::get<std::int64_t>(cell->value)) : std::get<double>(cell->value);
  if (has_times(column)) return time_of_us(number);
  if (column.unit == "share") return fmt::format("{:.1f} %", 100 * number);
  if (column.name == "closed_form.ratio") return fmt::format("x {:.4f}", number);
  return is_whole ? key_text(*cell) : figure(number);
}

/// The columns of rows that say something: no protocol if all have none, no ratio to a closed form that never holds.
bool is_shown(const Column& column, const std::vector<ResultRow>& rows) {
  if (column.heading.empty() || column.name == "inter_node.GBps") return false;  // the latter only with --explain
  return std::any_of(rows.begin(), rows.end(), [&](const ResultRow& row) {
    const Cell* cell = row.find(column.name);
    if (cell == nullptr || (column.name == "protocol" && plain_text(*cell) == "none")) return false;
    if (column.name != "closed_form.ratio") return true;
    const Cell* holds = row.find("closed_form.holds");
    return holds != nullptr && plain_text(*holds) == "true";
  });
}

}  // namespace

Table table_of_rows(const std::vector<ResultRow>& rows) {
  std::vector<std::string> head;
  std::vector<std::function<TableCell(const ResultRow&)>> cells;
  for (const Column& column : result_columns()) {
    if (column.name != "point.*") {
      if (!is_shown(column, rows)) continue;
      head.push_back(heading_of(column));
      cells.emplace_back([&column](const ResultRow& row) { return cell_of_row(column, row); });
      continue;
    }
    std::vector<std::string> seen;
    for (const ResultRow& row : rows) see_columns(row, seen);
    for (const std::string& name : seen) {
      if (!name.starts_with(of_point) || has_own_column(std::string_view(name).substr(of_point.size()))) continue;
      head.push_back(name.substr(name.rfind('.') + 1));
      cells.emplace_back([name](const ResultRow& row) -> TableCell {
        const Cell* cell = row.find(name);
        return cell == nullptr ? "" : key_text(*cell);
      });
    }
  }
  const bool any_failed = std::any_of(rows.begin(), rows.end(), [](const ResultRow& row) { return row.failed(); });
  if (any_failed) {
    head.emplace_back("error");
    cells.emplace_back([](const ResultRow& row) -> TableCell { return row.failed() ? row.error() : ""; });
  }
  Table table(std::move(head));
  for (const ResultRow& row : rows) {
    std::vector<TableCell> line;
    for (const auto& cell : cells) line.push_back(cell(row));
    table.add(std::move(line));
  }
  return table;
}

std::vector<ShownColumn> shown_columns(const std::vector<Result>& results, bool explain, bool& closed_forms) {
  std::vector<ShownColumn> columns;
  for (const Column& column : result_columns()) {
    if (column.name == "point.*") {
      for (const std::string& path : extra_columns(results)) {
        const std::string word = path.substr(path.rfind('.') + 1);
        const bool taken = std::any_of(result_columns().begin(), result_columns().end(),
                                       [&](const Column& other) { return other.heading == word; });
        if (path == word && taken && tells_apart(word, path, results)) continue;
        const std::string heading = !taken ? word : path == word ? path + " as set" : path;
        columns.push_back({column.name, heading, heading + " {}",
                           [path](const Result& r) -> TableCell { return shown_value(r.prediction, path); }});
      }
    } else if (is_shown(column, results, explain)) {
      closed_forms = closed_forms || column.name == "closed_form.ratio";
      columns.push_back({column.name, heading_of(column), std::string(column.above),
                         [&column](const Result& r) { return cell_of(column, r); }});
    }
  }
  return columns;
}

Table table_of_columns(const std::vector<ShownColumn>& columns, const std::vector<Result>& results) {
  std::vector<std::string> head;
  for (const ShownColumn& column : columns) head.push_back(column.heading);
  Table table(std::move(head));
  for (const Result& result : results) {
    std::vector<TableCell> row;
    for (const ShownColumn& column : columns) row.push_back(column.cell(result));
    table.add(std::move(row));
  }
  return table;
}

}  // namespace ringsim::tools
