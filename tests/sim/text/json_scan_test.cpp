// JSON among other text, and the first keys of a document that may be cut.
#include "sim/text/json_scan.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

#include "sim/text/json.hpp"

namespace json_scan_test {

using namespace ringsim;

TEST_CASE("the end of a JSON value is found by its quotes and braces; what is no JSON has none") {
  for (const char* value : {"{}", "[]", "{\"a\": 1}", "{\"a\": {\"b\": [1, {\"c\": \"}\\\"]\"}]}, \"d\": -1.5e+3}",
                            "[ [ ], [true, null], \"{\" ]", "\"text\"", "12"}) {
    CAPTURE(value);
    const std::string text = std::string("ab") + value + " {";
    CHECK(json_end(text, 2) == 2 + std::string(value).size());
  }
  for (const char* value : {"", "{", "{\"a\"", "{\"a\": 1", "[1", "{a: 1}", "{\"a\" 1}", "{\"a\": }",
                            "{\"a\": 1 \"b\": 2}", "[1 2]", "[1}", "{\"a\n\": 1}", "\"open", "}", ","}) {
    CAPTURE(value);
    CHECK(json_end(value, 0) == std::string::npos);
  }
  // No deeper than parse_json() reads: a line of a million braces is looked at once for each.
  CHECK(json_end(std::string(65, '[') + std::string(65, ']'), 0) == std::string::npos);
  CHECK(json_end(std::string(64, '[') + std::string(64, ']'), 0) == 128);
}

TEST_CASE("the first keys of a document come with their values as written, also if it is cut") {
  const auto keys = first_keys(" {\"a\": 1, \"b\": {\"c\": 2}, \"d\": \"x\", \"e\": [1, 2");
  CHECK(keys.size() == 4);
  CHECK(keys.at("b") == "{\"c\": 2}");
  CHECK(keys.at("d") == "\"x\"");
  CHECK(keys.at("e") == "[1, 2");
  CHECK(first_keys("\xEF\xBB\xBF[\n{\"a\": 1}, {\"b\": 2}]").size() == 1);
  for (const char* other : {"", "a", "[1]", "{", "{\"a", "{1: 2}", "\"a\": 1"}) CHECK(first_keys(other).empty());
}

}  // namespace json_scan_test
