// What the JSON files of machines and links add to JSON: numbers with their source, and lists of names. For sources
// alone.
#pragma once

#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/text/json_place.hpp"

namespace ringsim {

/// A number of the file: `{"value": ..., "source": "..."}`, or `"assumed": "why"` if nobody published one. Appends
/// what it says about its origin to `origins`.
Place sourced(const Place& number, const std::string& what, std::string& origins);

/// Reads a quantity by `parse`, which knows the unit but not the place of the text in the file.
template <class Parse>
auto quantity(const Place& value, Parse parse) {
  try {
    return parse(value.text());
  } catch (const InputError& error) {
    if (!error.where().empty()) throw;
    value.fail(error.message(), error.hint());
  }
}

/// The names that a text lists, as Slurm writes host lists: "gpu0", "gpu[0-7]", "gpu[0-1,4]".
std::vector<std::string> listed_names(const Place& list);

}  // namespace ringsim
