// JSON as people write it: read strictly, every error at its place; and written back.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "sim/base/utf8.hpp"  // first_not_utf8()

namespace ringsim {

/// Keys keep the order of the file: scenarios vary their lists in that order.
using Json = nlohmann::ordered_json;

/// Reads one JSON document: scenarios, machine files, schedules and results all come through here. `//` and `/* */`
/// comments are allowed. Throws InputError at `source`:line:column (columns count characters) for a syntax error, text
/// that is not UTF-8, a duplicate key, nesting deeper than 64 and numbers beyond 64 bits.
/// Numbers without a fraction ("8.0", "1e3") become integers. `first_line`: the number of the text's first line.
Json parse_json(std::string_view text, const std::string& source, std::size_t first_line = 1);

/// The JSON text of a value. Numbers are the shortest text that reads back to the same double. `indent` 0: one line.
/// Ends without a newline. Requires finite numbers.
std::string json_text(const Json& value, int indent = 0);

/// JSON as people write it, with blanks: what fits into a line of `width` characters is on one line, members of what
/// does not are on lines of their own. Ends without a newline.
std::string json_in_lines(const Json& value, std::size_t width);

/// A value as error messages show it: short text, numbers and words as they are; "a list" or "an object" otherwise.
std::string describe(const Json& value);

/// The JSON text of a value as people write it: a string loses its quotes.
std::string without_quotes(const std::string& json);

/// Text in double quotes with JSON's escapes, cut after 60 bytes.
std::string in_quotes(std::string_view text);

}  // namespace ringsim
