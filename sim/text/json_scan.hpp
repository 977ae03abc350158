// Finds JSON among other text, and reads the beginning of a document that may be cut.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>

namespace ringsim {

/// One past the end of the JSON value at `at`, found by quotes and braces; npos if it has no end or is not JSON.
/// parse_json() may still refuse the value.
std::size_t json_end(std::string_view text, std::size_t at);

/// True if the text begins with a list.
bool is_json_list(std::string_view text);

/// The keys of the object at the start of a text, or of the first object in a list there, and the text of their values.
/// Stops where the text is cut. Empty if there is no object.
std::map<std::string, std::string_view, std::less<>> first_keys(std::string_view text);

}  // namespace ringsim
