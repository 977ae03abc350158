// From the JSON of a result to the cells of a row.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "validate/results/result.hpp"

namespace ringsim {

/// Columns of what varied begin so: "point.topology.nodes".
inline constexpr std::string_view of_point = "point.";

/// Adds a value, or the members of an object; nothing for null.
void add_cells(const std::string& column, const nlohmann::ordered_json& value, std::vector<Cell>& cells);

}  // namespace ringsim
