// All keys of the table at all places where a scenario may have them.
#pragma once

#include <string>
#include <vector>

#include "scenarios/fields/fields.hpp"

namespace ringsim::scenarios {

/// A variant above a key, and the kind of it that has the key.
struct KindAbove {
  std::vector<std::string> variant;  ///< its path
  std::string discriminator, name;
};

/// A key of the table at its place.
struct KeyPlace {
  std::vector<std::string> path;  ///< "0" is an element of a list: faults.0.link
  std::vector<KindAbove> kinds;   ///< outermost first
  const Field* field = nullptr;
};

/// In the order of the table.
const std::vector<KeyPlace>& key_places();

}  // namespace ringsim::scenarios
