// Two runs next to each other: changes of inputs, and causes that sum to the difference.
#include "validate/analysis/difference.hpp"

#include <doctest/doctest.h>

#include "sim/base/error.hpp"

namespace difference_test {

using namespace ringsim;
using namespace ringsim::literals;

TEST_CASE("causes of both sides are matched by cause, class and links, and sum to the difference of the times") {
  const ExplainedRun a{
      .name = "a",
      .input = {},
      .time = 100_ps,
      .parts = {{{"link", "nic", "n* -> l*", 60_ps}, {"link", "nic", "l* -> n*", 30_ps}, {"latency", "", "", 10_ps}}}};
  const ExplainedRun b{
      .name = "b",
      .input = {},
      .time = 85_ps,
      .parts = {{{"link", "nic", "n* -> l*", 20_ps}, {"late", "", "", 55_ps}, {"latency", "", "", 10_ps}}}};
  const std::vector<PartChange> changes = part_changes(a, b);
  REQUIRE(changes.size() == 3);  // equal latencies are left out
  CHECK(changes[0].cause == "late");
  CHECK(changes[0].b - changes[0].a == 55_ps);
  CHECK(changes[1].links == "n* -> l*");
  CHECK(changes[1].b - changes[1].a == Picoseconds{-40});
  CHECK(changes[2].b - changes[2].a == Picoseconds{-30});
}

TEST_CASE("parts that do not sum to the times are a broken law") {
  const ExplainedRun a{.name = "a", .input = {}, .time = 10_ps, .parts = {{{"late", "", "", 10_ps}}}};
  const ExplainedRun b{.name = "b", .input = {}, .time = 11_ps, .parts = {{{"late", "", "", 12_ps}}}};
  CHECK_THROWS_AS(part_changes(a, b), InvariantError);
}

TEST_CASE("inputs differ by path, also where one side lacks it") {
  const ExplainedRun a{.name = "a", .input = {{"x.y", "1"}, {"same", "2"}}, .parts = {}};
  const ExplainedRun b{.name = "b", .input = {{"same", "2"}, {"z", "\"t\""}}, .parts = {}};
  const std::vector<InputChange> changes = input_changes(a, b);
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].path == "x.y");
  CHECK(changes[0].a == "1");
  CHECK(!changes[0].b);
  CHECK(changes[1].b == "\"t\"");
}

TEST_CASE("a result differs from a scenario by its first key") {
  CHECK(is_result_text(" \n{\"ringsim\": {}}"));
  CHECK(!is_result_text("{\"version\": 1}"));
  CHECK(!is_result_text("{ // ringsim\n \"version\": 1}"));
  CHECK(!is_result_text(""));
}

TEST_CASE("a result whose parts are no parts, or do not sum to its time, is refused") {
  const std::string head =
      R"({"ringsim": {"version": "1", "model_version": 1}, "scenario": {"name": "s"}, "time_us": 2.5, "why": )";
  CHECK(read_explained(head + R"([{"cause": "late", "kind": "", "us": 2.5}]})", "r.json").parts->size() == 1);
  CHECK_THROWS_WITH_AS(read_explained(head + R"([{"cause": "late", "kind": "", "us": 2.4}]})", "r.json"),
                       doctest::Contains("expected parts that sum to time_us, 2.500000, found 2.400000"), InputError);
  CHECK_THROWS_WITH_AS(read_explained(head + R"([{"cause": "late", "us": 2.5}]})", "r.json"),
                       doctest::Contains("r.json: /why/0"), InputError);
  CHECK_THROWS_AS(read_explained(head + "3}", "r.json"), InputError);
}

}  // namespace difference_test
