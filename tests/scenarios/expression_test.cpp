// The language of `where` and --assert.
#include "scenarios/conditions/expression.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>
#include <random>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/complaint.hpp"

namespace expression_test {

using namespace ringsim;

namespace {

/// A point of a scenario as it might be: a size, a time, a plain number, a text, a truth, and two columns of a result,
/// whose names tell their units.
std::optional<ExpressionValue> value(const std::string& path) {
  static const std::map<std::string, ExpressionValue> values{{"bytes", Quantity{1048576, Dimension::size, 0}},
                                                             {"latency", Quantity{1'500'000, Dimension::time, 0}},
                                                             {"nodes", Quantity{4, Dimension::none, 0}},
                                                             {"algorithm", std::string("ring")},
                                                             {"gpudirect", true},
                                                             {"time_us", Quantity{12.5e6, Dimension::time, 1e6}},
                                                             {"busbw_GBps", Quantity{40e9, Dimension::rate, 1e9}}};
  if (path == "absent") return std::nullopt;
  const auto found = values.find(path);
  if (found == values.end()) throw InputError("", "expected a known path, found \"" + path + "\"", "look again");
  return found->second;
}

bool holds(const std::string& text) { return Expression::parse(text, "expression").holds(value); }

std::string complaint(const std::string& text) {
  return ringsim::test::complaint([&] { holds(text); });
}

}  // namespace

TEST_CASE("comparisons of numbers, quantities, texts and truths") {
  for (const char* yes :
       {"nodes == 4", "nodes != 5", "nodes < 5", "nodes <= 4", "nodes > 3", "nodes >= 4", "bytes == 1 MiB",
        "bytes == 1024KiB", "bytes < 1.05 MB", "latency == 1.5 us", "latency <= 1500 ns", "algorithm == \"ring\"",
        "algorithm == 'ring'", "algorithm != 'direct'", "gpudirect", "gpudirect == true", "not not gpudirect"}) {
    CAPTURE(yes);
    CHECK(holds(yes));
    CHECK_FALSE(holds(fmt::format("not ({})", yes)));
  }
}

TEST_CASE("a product binds closer than a sum, a comparison than not, not than and, and than or") {
  CHECK(holds("nodes + 2 * 3 == 10"));
  CHECK(holds("(nodes + 2) * 3 == 18"));
  CHECK(holds("nodes - 1 - 1 == 2"));  // from the left: (4 - 1) - 1, not 4 - (1 - 1)
  CHECK(holds("nodes / 2 / 2 == 1"));  // (4 / 2) / 2
  CHECK(holds("-nodes + 5 == 1"));     // the sign belongs to nodes
  CHECK(holds("not nodes == 5 and nodes == 4"));
  CHECK(holds("nodes == 4 or nodes == 4 and nodes == 5"));  // with `or` first it would be false
  CHECK_FALSE(holds("(nodes == 4 or nodes == 4) and nodes == 5"));
  CHECK(Expression::parse("not a == 1 or b and c < -2 KiB*3", "").text() ==
        "((not (a == 1)) or (b and (c < ((-2 KiB) * 3))))");
}

TEST_CASE("units: sizes add to sizes, divide to numbers, and are scaled by numbers") {
  CHECK(holds("bytes * nodes == 4 MiB"));
  CHECK(holds("nodes * bytes == 4 MiB"));
  CHECK(holds("bytes / nodes == 256 KiB"));
  CHECK(holds("bytes / 1 KiB == 1024"));
  CHECK(holds("bytes + 1 B - 1 B == 1 MiB"));
  CHECK(holds("busbw_GBps > 100 Gb/s"));  // 40 GB/s against 12.5
}

TEST_CASE("where the name tells the unit a bare number is of that unit, elsewhere it is refused") {
  CHECK(holds("time_us == 12.5"));
  CHECK(holds("12.5 == time_us"));
  CHECK(holds("time_us == 12500 ns"));
  CHECK(holds("busbw_GBps >= 40"));
  CHECK_FALSE(holds("busbw_GBps > 40"));
  CHECK(holds("busbw_GBps + 2 == 42"));
  CHECK(holds("busbw_GBps * 2 == 80"));
  CHECK(complaint("bytes >= 1048576") ==
        "expression: column 7: expected the same kind on both sides of \">=\", found a size and a number without "
        "unit\n  hint: quantities need a unit, as in 64 MiB");
  CHECK(complaint("bytes < 1 us") ==
        "expression: column 7: expected the same kind on both sides of \"<\", found a size and a time");
  CHECK(complaint("algorithm == 3") ==
        "expression: column 11: expected the same kind on both sides of \"==\", found text and a number without unit\n "
        " hint: write text in quotes and numbers without");
  CHECK(complaint("algorithm < 'x'") == "expression: column 11: expected == or != between text and text, found \"<\"");
  CHECK(complaint("bytes * bytes > 1 B").starts_with("expression: column 7: expected a number without unit on one"));
  CHECK(complaint("nodes / bytes > 1") ==
        "expression: column 7: expected a divisor that is a number without unit or of the same kind as the left side, "
        "found a size");
  CHECK(complaint("nodes / (nodes - 4) > 1") == "expression: column 7: expected a divisor other than 0, found 0");
  CHECK(complaint("nodes") == "expression: column 1: expected a condition, found a number without unit");
}

TEST_CASE("what is not there can be asked for, and is an error where it is used") {
  CHECK_FALSE(holds("has(absent)"));
  CHECK(holds("has(nodes)"));
  CHECK_FALSE(holds("has(absent) and absent > 3"));  // the right side is not asked
  CHECK(holds("nodes == 4 or absent > 3"));
  CHECK(complaint("absent > 3") ==
        "expression: column 1: expected a value of \"absent\", found none here\n  hint: test first that there is one: "
        "has(absent) and ...");
  CHECK(complaint("nodes == 4 and nods == 4") ==
        "expression: column 16: expected a known path, found \"nods\"\n  hint: look again");
}

TEST_CASE("what is no expression is refused at its column") {
  CHECK(complaint("") == "expression: column 1: expected a path, a number, quoted text or \"(\", found the end");
  CHECK(complaint("nodes = 4") ==
        "expression: column 7: expected the end, or \"and\", \"or\", a comparison, found \"=\"\n  hint: write == for "
        "equality");
  CHECK(complaint("1 < nodes < 8").ends_with("found \"<\"\n  hint: join comparisons with \"and\""));
  CHECK(complaint("nodes == 4 && true") ==
        "expression: column 12: expected a path, a number, a text or an operator, found \"&\"\n  hint: write \"and\", "
        "\"or\" and \"not\"");
  CHECK(complaint("(nodes == 4") == "expression: column 12: expected \")\", found the end");
  CHECK(complaint("bytes > 3 parsecs").starts_with("expression: column 9: expected a quantity such as 64 MiB"));
  CHECK(complaint("bytes > 1.2.3") == "expression: column 9: expected a number, found \"1.2.3\"");
  CHECK(complaint("algorithm == 'ring").starts_with("expression: column 14: expected a closing quote"));
  CHECK(complaint("a..b == 1") ==
        "expression: column 1: expected a path of keys separated by single dots, found \"a..b\"");
  CHECK(complaint("and").starts_with("expression: column 1: expected a path"));
  CHECK(complaint("has(and)").starts_with("expression: column 5: expected a path, found"));
  CHECK(complaint("a == \xff") == "expression: expected text in UTF-8, found other bytes");
  CHECK(complaint(std::string(100'000, '(')).find("at most 200 levels of nesting") != std::string::npos);
  CHECK(complaint(std::string(100'000, '-') + "1").find("at most 200 levels of nesting") != std::string::npos);
  std::string many = "1";
  for (int i = 0; i < 100'000; ++i) many += "+1";
  CHECK(complaint(many).find("at most 1000 operators") != std::string::npos);
}

TEST_CASE("random text is an expression or an InputError, and its spelling reads back to itself") {
  const std::vector<std::string> words{"nodes",      "bytes", "time_us", "algorithm", "gpudirect", "absent",
                                       "has(nodes)", "4",     "1 MiB",   "2.5 us",    "40 GB/s",   "'ring'",
                                       "true",       "and",   "or",      "not",       "(",         ")",
                                       "==",         "!=",    "<",       "<=",        "+",         "-",
                                       "*",          "/",     "\"",      "1.",        "%",         "\xc3\xa9"};
  int good = 0, asked = 0, bad = 0;
  for (unsigned seed = 0; seed < 20'000; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::string text;
    for (std::size_t n = 1 + random() % 7; n > 0; --n) text += words[random() % words.size()] + " ";
    try {
      const Expression expression = Expression::parse(text, "");
      ++good;
      const std::string spelling = expression.text();
      CHECK(Expression::parse(spelling, "").text() == spelling);
      const bool first = expression.holds(value);
      ++asked;
      CHECK(Expression::parse(spelling, "").holds(value) == first);
    } catch (const InputError& error) {
      ++bad;
      CHECK(error.where().starts_with(": column "));
    }
  }
  CAPTURE(good);
  CHECK(good > 500);
  CHECK(asked > 100);
  CHECK(bad > 5000);
}

TEST_CASE("`where` cuts an assertion outside of quotes and parentheses only") {
  CHECK(find_word("a > 1 where b > 2", "where") == 6);
  CHECK(find_word("a == ' where ' and b", "where") == std::string_view::npos);
  CHECK(find_word("(a where b)", "where") == std::string_view::npos);
  CHECK(find_word("nowhere == 1", "where") == std::string_view::npos);
}

}  // namespace expression_test
