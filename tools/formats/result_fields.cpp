#include "tools/formats/result_fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"
#include "sim/text/names_in_short.hpp"
#include "tools/exit.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/columns.hpp"

namespace ringsim::tools {

namespace {

constexpr std::string_view of_varied = "point.";

/// Without "point.".
std::string bare_name(const std::string& column) {
  return column.starts_with(of_varied) ? column.substr(of_varied.size()) : column;
}

}  // namespace

const Cell* field_of(const ResultRow& row, const std::string& name) {
  const Cell* cell = row.find(name);
  return cell != nullptr ? cell : row.find(std::string(of_varied) + name);
}

std::string unit_of(const std::string& name) {
  for (const Column& column : result_columns())
    if (column.name == name) return std::string(column.unit);
  return "";
}

std::string key_text(const Cell& cell) {
  if (const auto* whole = std::get_if<std::int64_t>(&cell.value); whole != nullptr && unit_of(cell.column) == "B")
    return format(Bytes{*whole});
  std::string text = plain_text(cell);
  if (cell.column.starts_with(of_varied)) text = names_in_short(text);
  if (!text.starts_with('{') || !cell.column.starts_with(of_varied)) return text;
  std::string shown;
  const Json object = Json::parse(text);
  for (const auto& [key, value] : object.items()) {
    const std::string word = without_quotes(value.dump());
    if (!shown.empty()) shown += ' ';
    shown += key == "name" ? word : fmt::format("{}={}", key, word);
  }
  return shown;
}

std::string algorithm_text(const ResultRow& row) {
  if (const Cell* named = row.find("library_algorithm")) return plain_text(*named);
  std::string text;
  for (const Cell& cell : row.cells) {
    constexpr std::string_view of_algorithm = "parameters.";
    if (cell.column == "algorithm") text = plain_text(cell);
    if (cell.column.starts_with(of_algorithm))
      text += fmt::format(" {}={}", cell.column.substr(of_algorithm.size()), plain_text(cell));
  }
  return text;
}

std::vector<std::string> varied_paths(const ScenarioFile& file) {
  std::vector<std::string> paths;
  for (const auto& [path, value] : file.id(0).varied) paths.push_back(path);
  return paths;
}

void require_field(const std::string& option, const std::string& name, const std::vector<std::string>& varied,
                   bool compared) {
  if (const auto hint = hint_of_unknown(name, column_names(compared), varied))
    throw UsageError(option,
                     fmt::format("expected a column of the results or a path that varies, found {}", in_quotes(name)),
                     *hint);
}

Difference difference_of(const ResultRow& a, const ResultRow& b, const std::vector<std::string>& but) {
  Difference found;
  const auto text_in = [](const Cell* cell) { return cell == nullptr ? "nothing" : key_text(*cell); };
  const auto compare = [&](const std::string& column) {
    const std::string name = bare_name(column);
    if (std::find(but.begin(), but.end(), name) != but.end()) return;
    const std::string in_a = text_in(a.find(column)), in_b = text_in(b.find(column));
    if (in_a == in_b) return;
    found.text += fmt::format("{}{} is {} and {}", found.text.empty() ? "" : ", ", name, in_a, in_b);
    if (found.name.empty()) found.name = name;
  };
  for (const char* column : {"file", "scenario.name", "job"}) compare(column);
  for (const ResultRow* row : {&a, &b})
    for (const Cell& cell : row->cells)
      if (cell.column.starts_with(of_varied) && (row == &a || a.find(cell.column) == nullptr)) compare(cell.column);
  return found;
}

}  // namespace ringsim::tools
