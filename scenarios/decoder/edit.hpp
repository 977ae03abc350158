// Dotted paths with indices ("topology.links.0.bandwidth"), and what --set and `sweep` do at them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/text/json.hpp"

namespace ringsim::scenarios {

using DottedPath = std::vector<std::string>;

/// Splits at the dots. What follows `sweep.` is one key, for sweeps are named by paths. Empty if a part is empty or
/// there are more than 64.
DottedPath split_path(std::string_view text);

/// True if `outer` is `inner` or leads to it.
bool leads_to(const DottedPath& outer, const DottedPath& inner);

/// Called with what was expected and found where a path leads nowhere; must throw.
using Refuse = std::function<void(const std::string& message)>;

/// Replaces the value at the path; makes the objects that lead there; an algorithm's bare name becomes an object if the
/// path leads into it. Returns the JSON pointer of what is new: of the outermost object made, else of the value.
std::string edit(Json& root, const DottedPath& path, Json value, const Refuse& refuse);

/// Takes away the key at the path, so that its default holds; nothing happens where it is not there. Throws InputError
/// (empty `where`) for a key that cannot be there, and for an element of a list.
void remove(Json& root, const DottedPath& path);

}  // namespace ringsim::scenarios
