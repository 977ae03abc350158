// JSON as users write it: read strictly, with places for errors, and shown back to them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ringsim::scenarios {

/// Keys keep the file's order: it is the order in which lists vary.
using Json = nlohmann::ordered_json;

/// Reads one JSON document. `//` and `/* */` comments are allowed. Throws InputError at `source`:line:column for bad
/// syntax, text that is not UTF-8, a key that stands twice in an object, nesting deeper than 64, a number too large.
/// Numbers without a fraction ("8.0", "1e3") become whole ones.
Json parse_json(std::string_view text, const std::string& source);

/// A value as errors show it: short text, numbers and words as they are; "a list", "an object" instead of long ones.
std::string describe(const Json& value);

/// A value's JSON as people write it: a text loses its quotes.
std::string without_quotes(const std::string& json);

/// Text in double quotes with JSON's escapes, cut where it is long.
std::string in_quotes(std::string_view text);

/// The byte at which UTF-8 breaks, or npos.
std::size_t first_not_utf8(std::string_view text);

}  // namespace ringsim::scenarios
