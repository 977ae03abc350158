#include "tools/formats/matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <utility>

#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/json.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "tools/exit.hpp"
#include "tools/formats/result_fields.hpp"
#include "validate/results/column_names.hpp"

namespace ringsim::tools {

namespace {

/// Keys in the order in which they come first, and the result of each cell.
struct Placement {
  std::vector<std::string> rows, columns;
  std::map<std::pair<std::string, std::string>, std::size_t> cells;
};

/// The key of a row or column of the matrix. Throws UsageError if the result has none.
std::string key_in(const ResultRow& result, const std::string& option, const std::string& name) {
  const Cell* cell = field_of(result, name);
  if (cell == nullptr)
    throw UsageError(option,
                     fmt::format("expected a name for which every result has a value, found {}, which \"{}\" lacks",
                                 in_quotes(name), result.label()));
  return name == "algorithm" && result.find("library_algorithm") != nullptr ? algorithm_text(result) : key_text(*cell);
}

Placement placed(const std::vector<ResultRow>& results, const MatrixFields& fields) {
  Placement place;
  const auto note = [](std::vector<std::string>& keys, const std::string& key) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
  };
  for (std::size_t i = 0; i < results.size(); ++i) {
    const std::string row = key_in(results[i], "--rows", fields.rows);
    const std::string column = key_in(results[i], "--columns", fields.columns);
    note(place.rows, row);
    note(place.columns, column);
    const auto [there, is_free] = place.cells.try_emplace({row, column}, i);
    if (is_free) continue;
    const Difference difference = difference_of(results[there->second], results[i], {fields.rows, fields.columns});
    throw UsageError(
        "--format",
        fmt::format("expected one result per cell of the matrix, found two for {} {}, {} {}: {}", fields.rows, row,
                    fields.columns, column, difference.text.empty() ? "this point occurs twice" : difference.text),
        difference.name.empty() ? "remove one of them"
        : difference.name == "job"
            ? "use job as --rows or --columns"
            : fmt::format("use it as --rows or --columns, or choose one value with --set {}=VALUE", difference.name));
  }
  return place;
}

/// The rows of all points and their jobs, with what is known of them before they are simulated.
std::vector<ResultRow> known_beforehand(const ScenarioFile& file) {
  std::vector<ResultRow> rows;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const Scenario scenario = file.point(i);
    Json point = Json::object();
    for (const auto& [path, value] : file.id(i).varied) point[path] = Json::parse(value);
    for (std::size_t j = 0; j < scenario.jobs.size(); ++j) {
      const Job& job = scenario.jobs[j];
      Json row{{"collective", std::string(to_string(job.request.op))},
               {"algorithm", job.algorithm->name},
               {"protocol", protocols_of(scenario, j)},
               {"model", std::string(to_string(scenario.model))},
               {"ranks", job.request.ranks},
               {"bytes", job.request.bytes.count},
               {"point", point}};
      if (scenario.jobs.size() > 1) row["job"] = job.name;
      if (scenario.library_of(j) != nullptr) row["library_algorithm"] = library_algorithm_of(scenario, j);
      rows.push_back(ResultRow::of(row));
    }
  }
  return rows;
}

/// The unit of a matrix of times: that of TimeUnit::of() for the shortest but 0; nothing if the cells are no times.
std::optional<TimeUnit> time_unit_of(const std::vector<ResultRow>& results, const MatrixFields& fields) {
  std::optional<Picoseconds> shortest;
  for (const ResultRow& result : results) {
    const Cell* cell = field_of(result, fields.cell);
    if (cell == nullptr || unit_of(cell->column) != "us") continue;
    const auto* number = std::get_if<double>(&cell->value);
    if (number == nullptr || *number == 0) continue;
    shortest = shortest ? std::min(*shortest, time_of_us(*number)) : time_of_us(*number);
  }
  return shortest ? std::optional(TimeUnit::of(*shortest)) : std::nullopt;
}

constexpr std::string_view in_us = "_us";
/// "time_ms" of "time_us".
std::string name_in(const std::string& column, const TimeUnit& unit) {
  return column.ends_with(in_us) ? fmt::format("{}_{}", column.substr(0, column.size() - in_us.size()), unit.name())
                                 : fmt::format("{} in {}", column, unit.name());
}

/// A value as tables show it.
std::string rounded(const Cell& cell, const std::optional<TimeUnit>& time_unit) {
  const auto* number = std::get_if<double>(&cell.value);
  if (number == nullptr) return key_text(cell);
  if (unit_of(cell.column) == "share") return fmt::format("{:.1f} %", 100 * *number);
  return time_unit ? time_unit->number(time_of_us(*number)) : figure(*number);
}

std::string escaped_for_markdown(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
  return escaped;
}

/// Columns of equal width, so that the source is readable as well.
std::string markdown(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::size_t> widths(lines.front().size(), 3);
  std::vector<std::vector<std::string>> escaped = lines;
  for (auto& line : escaped)
    for (std::size_t i = 0; i < line.size(); ++i) {
      line[i] = escaped_for_markdown(line[i]);
      widths[i] = std::max(widths[i], characters(line[i]));
    }
  std::string text;
  for (std::size_t at = 0; at < escaped.size(); ++at) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      const std::string blanks(widths[i] - characters(escaped[at][i]), ' ');
      text += (i == 0 ? "| " : " ") + (i == 0 ? escaped[at][i] + blanks : blanks + escaped[at][i]) + " |";
    }
    text += '\n';
    if (at > 0) continue;
    for (std::size_t i = 0; i < widths.size(); ++i)
      text += (i == 0 ? "| " : " ") + std::string(widths[i] - 1, '-') + (i == 0 ? "-" : ":") + " |";
    text += '\n';
  }
  return text;
}

}  // namespace

void require_matrix_fields(const MatrixFields& fields, Format format) {
  const bool wanted = is_matrix(format);
  for (const auto& [option, given] : {std::pair{"--rows", !fields.rows.empty()},
                                      {"--columns", !fields.columns.empty()},
                                      {"--cell", fields.cell != MatrixFields{}.cell}}) {
    if (given && !wanted)
      throw UsageError(option, "expected --format matrix, matrix-markdown or matrix-csv as well, found another format");
    if (!given && wanted && std::string(option) != "--cell")
      throw UsageError("--format", fmt::format("expected {} with a matrix, found none", option),
                       "for example --rows topology.ranks --columns collective.algorithm");
  }
  if (wanted && fields.rows == fields.columns)
    throw UsageError("--columns", fmt::format("expected a name other than the one given to --rows, found {}",
                                              in_quotes(fields.columns)));
}

void require_matrix_of(const ScenarioFile& file, const MatrixFields& fields, bool measured, bool bounded) {
  const std::vector<std::string> varied = varied_paths(file);
  require_field("--rows", fields.rows, varied, measured);
  require_field("--columns", fields.columns, varied, measured);
  require_field("--cell", fields.cell, varied, measured);
  if (!bounded && (fields.cell == "bound_us" || fields.cell == "of_bound" || fields.cell == "latency_floor_us"))
    throw UsageError("--cell", fmt::format("expected --bound as well for {}, found none", fields.cell));
  const std::vector<ResultRow> known = known_beforehand(file);
  const auto is_known = [&](const std::string& name) {
    return std::all_of(known.begin(), known.end(),
                       [&](const ResultRow& row) { return field_of(row, name) != nullptr; });
  };
  if (is_known(fields.rows) && is_known(fields.columns)) placed(known, fields);  // else the results tell
}

bool is_matrix_text(std::string_view text) {  // "time_ms: topology.ranks \ collective.algorithm"
  std::string_view head = text.substr(0, text.find('\n'));
  for (const std::string_view before : {"| ", "\""})
    if (head.starts_with(before)) head.remove_prefix(before.size());
  const std::size_t colon = head.find(": ");
  if (colon == std::string_view::npos || head.find(" \\ ", colon) == std::string_view::npos) return false;
  const std::vector<std::string> names = column_names(/*compared=*/true);
  const std::string_view name = head.substr(0, colon);
  return std::any_of(names.begin(), names.end(), [&](const std::string& known) {
    if (name == known) return true;
    if (!known.ends_with(in_us)) return false;
    const std::string_view word = std::string_view(known).substr(0, known.size() - in_us.size());
    return name.starts_with(word) && (name.substr(word.size()) == "_ms" || name.substr(word.size()) == "_s");
  });
}

std::string matrix_text(const std::vector<ResultRow>& results, const MatrixFields& fields, Format format) {
  const Placement place = placed(results, fields);
  const std::optional<TimeUnit> unit =
      format == Format::matrix_csv ? std::nullopt : time_unit_of(results, fields);  // CSV is for programs
  std::vector<std::vector<std::string>> lines{
      {fmt::format("{}: {} \\ {}", unit ? name_in(fields.cell, *unit) : fields.cell, fields.rows, fields.columns)}};
  lines.front().insert(lines.front().end(), place.columns.begin(), place.columns.end());
  bool any = false;
  for (const std::string& row : place.rows) {
    lines.push_back({row});
    for (const std::string& column : place.columns) {
      const auto found = place.cells.find({row, column});
      if (found == place.cells.end()) {
        lines.back().emplace_back();
        continue;
      }
      const ResultRow& result = results[found->second];
      const Cell* cell = field_of(result, fields.cell);
      any = any || cell != nullptr;
      lines.back().push_back(result.failed()                ? "failed"
                             : cell == nullptr              ? ""
                             : format == Format::matrix_csv ? plain_text(*cell)
                                                            : rounded(*cell, unit));
    }
  }
  if (!any)
    throw UsageError("--cell",
                     fmt::format("expected a name for which results have a value, found {}, which no result has",
                                 in_quotes(fields.cell)));
  if (format == Format::matrix_markdown) return markdown(lines);
  if (format == Format::matrix_csv) {
    std::string text;
    for (const std::vector<std::string>& line : lines) text += csv_line(line);
    return text;
  }
  Table table(lines.front());
  for (std::size_t i = 1; i < lines.size(); ++i) table.add(lines[i]);
  return table.fitted();
}

}  // namespace ringsim::tools
