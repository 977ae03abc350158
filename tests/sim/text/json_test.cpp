// JSON as people write it.
#include "sim/text/json.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>

namespace json_test {

using ringsim::Json;
using ringsim::json_in_lines;
using ringsim::parse_json;

TEST_CASE("JSON in lines has on one line what fits, with blanks, and reads back as the same") {
  const Json value{{"name", "two, by \"hand\""}, {"list", {1, 2.5, nullptr, Json::object(), Json::array()}}};
  const std::string line = R"({"name": "two, by \"hand\"", "list": [1, 2.5, null, {}, []]})";
  CHECK(json_in_lines(value, std::string::npos) == line);
  CHECK(json_in_lines(value, line.size()) == line);
  // One character less: members on their own lines, each of which fits.
  CHECK(json_in_lines(value, line.size() - 1) == R"({
  "name": "two, by \"hand\"",
  "list": [1, 2.5, null, {}, []]
})");
  // `  "list": [1, 2.5, null, {}, []]` has 32 characters, and 31 do not hold it.
  CHECK(json_in_lines(value, 31) == R"({
  "name": "two, by \"hand\"",
  "list": [
    1,
    2.5,
    null,
    {},
    []
  ]
})");
  for (std::size_t width = 1; width <= line.size(); ++width)
    CHECK(parse_json(json_in_lines(value, width), "text") == value);
}

TEST_CASE("the comma that follows a line counts for its width") {
  const Json value{{"a", {1, 2}}, {"b", 3}};
  // `  "a": [1, 2],` has 14 characters.
  CHECK(json_in_lines(value, 14) == "{\n  \"a\": [1, 2],\n  \"b\": 3\n}");
  CHECK(json_in_lines(value, 13) == "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": 3\n}");
}

}  // namespace json_test
