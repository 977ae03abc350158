// The values of a point by their dotted paths, for the conditions of `where`.
#pragma once

#include <optional>
#include <string>

#include "scenarios/conditions/expression.hpp"
#include "scenarios/decoder/blame.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

/// What a point of one value everywhere has at the path, or takes by default: a quantity in base units, a text, a
/// truth; of a share its part of the whole. An algorithm or a kind is its name. Nothing if the point's kind has no
/// such key, a list is too short, or a key without default is left out. Throws InputError (without `where`) for a path
/// that no scenario can have, and with it for a value that is wrong.
std::optional<ExpressionValue> value_at(const Json& point, const std::string& path, const Blame& blame);

}  // namespace ringsim::scenarios
