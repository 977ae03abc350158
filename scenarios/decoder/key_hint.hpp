// Hints for a misplaced or misspelled key: its right spelling, or its right place.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/text/json.hpp"

namespace ringsim::scenarios {

/// The dotted paths, outside lists, at which a key of that name may stand, or one that people call so ("gpus" is
/// topology.ranks); those first that can have the value `text`, as --set has it, and outer ones before inner ones. At
/// most four.
std::vector<std::string> paths_of(const std::string& key, const std::string& text);

/// The hint for an unknown key of the object at `pointer`: the known one that is spelled nearly so, else the places
/// where it may stand, those first that fit the scenario `root` and the key's value there; then the known ones, if
/// there are few.
std::string key_hint(const Json& root, const std::string& pointer, const std::string& key,
                     const std::vector<std::string>& known);

}  // namespace ringsim::scenarios
