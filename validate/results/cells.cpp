#include "validate/results/cells.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "validate/results/columns.hpp"

namespace ringsim {

using Json = nlohmann::ordered_json;

void add_cells(const std::string& column, const Json& value, std::vector<Cell>& cells) {
  if (value.is_null()) return;
  if (value.is_object() && !column.starts_with(of_point)) {
    for (const auto& [key, member] : value.items()) add_cells(fmt::format("{}.{}", column, key), member, cells);
  } else if (value.is_boolean()) {
    cells.push_back({column, value.get<bool>()});
  } else if (value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)) {
    cells.push_back({column, value.get<std::int64_t>()});
  } else if (value.is_number()) {
    cells.push_back({column, value.get<double>()});
  } else {
    cells.push_back({column, value.is_string() ? value.get<std::string>() : value.dump()});
  }
}

std::vector<Cell> row_of(const Result& result, bool details) {
  std::vector<Cell> cells;
  const Json json = as_json(result, details);
  for (const auto& [column, value] : json.items()) add_cells(column, value, cells);
  return cells;
}

}  // namespace ringsim
