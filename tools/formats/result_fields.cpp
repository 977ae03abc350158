#include "tools/formats/result_fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

/// An object as "parameter_server servers=2 buckets.size=25 MiB", a list with commas.
std::string value_in_words(const Json& value, const std::string& path = "") {
  std::vector<std::string> parts;
  if (value.is_object()) {
    for (const auto& [key, member] : value.items())
      parts.push_back(value_in_words(member, path.empty() ? key : fmt::format("{}.{}", path, key)));
    return fmt::format("{}", fmt::join(parts, " "));
  }
  const bool has_objects =
      value.is_array() && std::any_of(value.begin(), value.end(), [](const Json& each) { return each.is_object(); });
  if (value.is_array())
    for (const Json& each : value) parts.push_back(value_in_words(each, has_objects ? path : ""));
  const std::string text = !value.is_array() ? without_quotes(value.dump())
                           : parts.empty()   ? "none"
                                             : fmt::format("{}", fmt::join(parts, ", "));
  return has_objects || path.empty() || path == "name" ? text : fmt::format("{}={}", path, text);
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
  const bool is_json = text.starts_with('{') || text.starts_with('[');
  return is_json && cell.column.starts_with(of_varied) && Json::accept(text) ? value_in_words(Json::parse(text)) : text;
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
