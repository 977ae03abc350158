#include "validate/results/column_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "algorithms/catalog.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"
#include "sim/text/spelling.hpp"
#include "validate/results/columns.hpp"

namespace ringsim {

namespace {

/// True if `name` is of the column, or of one of the columns that its star stands for.
bool is_of(std::string_view name, std::string_view column) {
  if (!column.ends_with(".*")) return name == column;
  column.remove_suffix(1);
  return name.starts_with(column);
}

}  // namespace

std::vector<std::string> columns_for(ColumnsFor format, std::span<const std::string> seen) {
  std::vector<std::string> names;
  for (const Column& column : result_columns()) {
    if (format == ColumnsFor::csv && !column.in_csv) continue;
    if (column.in == Column::In::every_row) {
      names.emplace_back(column.name);
      continue;
    }
    const auto first = static_cast<std::ptrdiff_t>(names.size());
    for (const std::string& name : seen)
      if (is_of(name, column.name) && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    // By name, whichever row comes first: `run` and `merge` have rows in different orders. All rows have what varies.
    if (column.name == "parameters.*") std::sort(names.begin() + first, names.end());
  }
  // The error of a failed point; and what another program added.
  for (const std::string& name : seen) {
    const bool known = std::any_of(result_columns().begin(), result_columns().end(),
                                   [&](const Column& c) { return is_of(name, c.name); });
    if (!known && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<std::string> column_names(bool compared) {
  std::vector<std::string> names;
  for (const Column& column : result_columns()) {
    if ((column.in == Column::In::compared && !compared) || column.in == Column::In::details ||
        column.in == Column::In::phases || column.name == "point.*")
      continue;
    if (column.name != "parameters.*") {
      names.emplace_back(column.name);
      continue;
    }
    for (const Algorithm& algorithm : algorithms())
      for (const Parameter& parameter : algorithm.parameters) {
        std::string name = "parameters." + parameter.name;  // several algorithms have a parameter of one name
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
      }
  }
  return names;
}

namespace {

/// The name whose last part is that of `path`: "closed_form.ratio" for "ratio", "ranks" for "topology.ranks".
std::string did_you_mean_part(const std::string& path, const std::vector<std::string>& known) {
  const auto last_part = [](const std::string& name) { return name.substr(name.rfind('.') + 1); };  // npos + 1 is 0
  for (const std::string& name : known)
    if (last_part(name) == last_part(path)) return fmt::format("did you mean {}?", in_quotes(name));
  return "";
}

}  // namespace

std::optional<std::string> hint_of_unknown(const std::string& name, const std::vector<std::string>& columns_known,
                                           const std::vector<std::string>& varied) {
  std::vector<std::string> known = varied;
  for (const std::string& path : varied) known.push_back("point." + path);
  known.insert(known.end(), columns_known.begin(), columns_known.end());
  const auto is_known = [&](const std::string& each) {
    return std::find(known.begin(), known.end(), each) != known.end();
  };
  if (is_known(name)) return std::nullopt;
  // A key of the scenario that has one value is not in the results, unless a column has its last part as a name.
  const std::vector<ScenarioKey> keys = scenario_keys();
  if (!is_known(name.substr(name.rfind('.') + 1)) &&
      std::any_of(keys.begin(), keys.end(), [&](const ScenarioKey& key) { return key.path == name; }))
    return fmt::format("{} does not vary in these results", name);
  std::string hint = did_you_mean(name, known);
  if (hint.empty()) hint = did_you_mean_part(name, known);
  if (!hint.empty()) return hint;
  return fmt::format("valid names are the columns of the results, such as time_us and busbw_GBps{}",
                     varied.empty() ? "" : fmt::format(", and the varying paths: {}", fmt::join(varied, ", ")));
}

std::string columns_page() {
  std::string page =
      "# The columns of a result\n\n"
      "`ringsim list columns` prints this page. A test compares it with the table in `validate/results/columns.cpp`, "
      "which all\n"
      "output formats use. CSV, SQLite and `--assert` use these names; in JSON, a dot starts a nested object. All rows "
      "of a file\n"
      "have the same columns. Columns marked \"if any\" appear if at least one row has a value. The other columns "
      "depend on\n"
      "the command.\n\n"
      "| column | unit | in | meaning |\n| --- | --- | --- | --- |\n";
  for (const Column& column : result_columns())
    page += fmt::format("| `{}` | {} | {}{} | {} |\n", column.name, column.unit,
                        column.in == Column::In::every_row   ? "every row"
                        : column.in == Column::In::some_rows ? "if any"
                        : column.in == Column::In::compared  ? "compare, replay"
                        : column.in == Column::In::phases    ? "`--phases`, `explain`"
                                                             : "`--explain`",
                        column.in_csv ? "" : ", not CSV", column.meaning);
  return page;
}

}  // namespace ringsim
