// Ranges of sizes from times, and where the best change between compared sizes.
#include "validate/analysis/crossover.hpp"

#include <doctest/doctest.h>

#include <random>

namespace crossover_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

/// A contender whose time is start + slope * size, in ps.
struct Line {
  std::int64_t start = 0, slope = 0;
  Picoseconds at(Bytes size) const { return Picoseconds{start + slope * size.count}; }
};

Comparison compared(const std::vector<Line>& lines, const std::vector<std::int64_t>& sizes) {
  Comparison comparison;
  for (const std::int64_t size : sizes)
    for (std::size_t i = 0; i < lines.size(); ++i)
      comparison.add({"line " + std::to_string(i), ""}, {size}, lines[i].at({size}));
  return comparison;
}

Comparison refined(const std::vector<Line>& lines, const std::vector<std::int64_t>& sizes) {
  Comparison comparison = compared(lines, sizes);
  refine(comparison, [&](std::size_t i, Bytes size) { return std::optional(lines[i].at(size)); });
  return comparison;
}

using Found = std::vector<std::vector<std::int64_t>>;  // [range] from, to, indices of the best

Found found(const Comparison& comparison) {
  Found result;
  for (const BestRange& range : best_ranges(comparison)) {
    result.push_back({range.from.count, range.to.count});
    for (const std::size_t i : range.best) result.back().push_back(static_cast<std::int64_t>(i));
  }
  return result;
}

}  // namespace

TEST_CASE("ranges join neighboring sizes with the same best, whatever the order in which times come") {
  Comparison comparison;
  const auto add = [&](const char* name, std::int64_t size, std::int64_t time) {
    comparison.add({name, ""}, {size}, Picoseconds{time});
  };
  add("ring", 4096, 50);
  add("tree", 4096, 60);
  add("tree", 8, 10);
  add("ring", 8, 40);
  add("ring", 512, 42);
  add("tree", 64, 10);
  add("ring", 64, 45);
  add("tree", 512, 12);
  CHECK(found(comparison) == Found{{8, 512, 1}, {4096, 4096, 0}});
  const BestRange tree = best_ranges(comparison)[0];
  CHECK(tree.time_from == 10_ps);
  CHECK(tree.time_to == 12_ps);
  REQUIRE(tree.lead_from);
  CHECK(tree.lead_from->times == 4.0);  // 40 / 10
  REQUIRE(tree.lead_to);
  CHECK(tree.lead_to->times == 3.5);  // 42 / 12
  REQUIRE(tree.longest);
  CHECK(tree.longest->at == 64_B);  // 4.5 times
}

TEST_CASE("equally fast to the picosecond is a tie, which is a range of its own; one picosecond more is none") {
  Comparison comparison;
  for (const std::int64_t late : {0, 1}) {
    comparison.add({"a", ""}, {8 + late}, Picoseconds{100});
    comparison.add({"b", ""}, {8 + late}, Picoseconds{100 + late});
    comparison.add({"c", ""}, {8 + late}, Picoseconds{150});
  }
  CHECK(found(comparison) == Found{{8, 8, 0, 1}, {9, 9, 0}});
  CHECK(best_ranges(comparison)[0].lead_from->runner_up == 2);  // not another of the best
  CHECK(best_ranges(comparison)[0].lead_from->times == 1.5);
}

TEST_CASE("the runner-up is another algorithm; other settings of the same only where there is no other") {
  Comparison comparison;
  comparison.add({"tree", "segments=1"}, 8_B, 10_ps);
  comparison.add({"tree", "segments=8"}, 8_B, 11_ps);
  CHECK(best_ranges(comparison)[0].lead_from->runner_up == 1);
  comparison.add({"ring", ""}, 8_B, 30_ps);
  CHECK(best_ranges(comparison)[0].lead_from->runner_up == 2);
  CHECK(best_ranges(comparison)[0].lead_from->times == 3.0);
}

TEST_CASE("who does not serve a size does not compete there, and what nobody serves is in no range") {
  Comparison comparison;
  comparison.add({"a", ""}, 8_B, std::nullopt);
  comparison.add({"b", ""}, 8_B, 70_ps);
  comparison.add({"a", ""}, 16_B, 5_ps);
  comparison.add({"b", ""}, 16_B, 70_ps);
  comparison.add({"a", ""}, 32_B, std::nullopt);
  CHECK(found(comparison) == Found{{8, 8, 1}, {16, 16, 0}});
  CHECK(!best_ranges(comparison)[0].lead_from);
  CHECK(best_ranges({}).empty());
}

TEST_CASE("who takes time is infinitely behind who takes none, as one rank does") {
  Comparison comparison;
  comparison.add({"a", ""}, 0_B, 0_ps);
  comparison.add({"b", ""}, 0_B, 1_ps);
  CHECK(best_ranges(comparison)[0].lead_from->times > 1e300);
}

TEST_CASE("refine finds the byte where two lines cross, and their tie there") {
  // 1000 + 3 p = 4000 + 2 p at p = 3000.
  CHECK(found(refined({{1000, 3}, {4000, 2}}, {1, 100000})) ==
        Found{{1, 2999, 0}, {3000, 3000, 0, 1}, {3001, 100000, 1}});
  // 1000 + 3 p = 4001 + 2 p at no even size only: p = 3001; 1001 + 4 p = 4000 + 2 p between 1499 and 1500.
  CHECK(found(refined({{1001, 4}, {4000, 2}}, {0, 100000})) == Found{{0, 1499, 0}, {1500, 100000, 1}});
}

TEST_CASE("refine finds a third one that is best only between two compared sizes") {
  // 10 p, 1000 + 5 p, 3000 + 2 p: the first two are level at 200, the last two between 666 and 667.
  CHECK(found(refined({{0, 10}, {1000, 5}, {3000, 2}}, {1, 10000})) ==
        Found{{1, 199, 0}, {200, 200, 0, 1}, {201, 666, 1}, {667, 10000, 2}});
}

TEST_CASE("from 1 MiB on a change is located between two whole KiB") {
  // They cross at 3 MiB + 100 B, with slopes 2 and 1 ps a byte.
  const std::int64_t cross = (3 << 20) + 100;
  CHECK(found(refined({{0, 2}, {cross, 1}}, {1 << 20, 1 << 30})) ==
        Found{{1 << 20, 3 << 20, 0}, {(3 << 20) + 1024, 1 << 30, 1}});
}

TEST_CASE("refined ranges are those of comparing every single size") {
  int with_third = 0, with_tie = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    std::vector<Line> lines(2 + random() % 4);
    for (Line& line : lines)
      line = {static_cast<std::int64_t>(random() % 3000), static_cast<std::int64_t>(random() % 9)};
    std::vector<std::int64_t> all;
    for (std::int64_t size = 0; size <= 2000; ++size) all.push_back(size);
    const Found expected = found(compared(lines, all));
    CHECK(found(refined(lines, {0, 2000})) == expected);
    with_third += expected.size() > 3 ? 1 : 0;
    with_tie +=
        std::any_of(expected.begin(), expected.end(), [](const auto& range) { return range.size() > 3; }) ? 1 : 0;
  }
  CHECK(with_third > 10);
  CHECK(with_tie > 10);
}

TEST_CASE("contenders of one new name become the fastest of them at each size, and those without one are gone") {
  const Comparison lines = compared({{0, 10}, {1000, 5}, {0, 1}, {4000, 1}}, {1, 1000});
  const Comparison comparison = renamed(lines, {"tree", "tree", std::nullopt, "ring"});
  CHECK(comparison.contenders == std::vector<Contender>{{"tree", ""}, {"ring", ""}});
  // 10 = min(10, 1005) against 4001; 6000 = min(10000, 6000) against 5000.
  CHECK(comparison.times.at(1_B) == std::vector<std::optional<Picoseconds>>{10_ps, 4001_ps});
  CHECK(comparison.times.at({1000}) == std::vector<std::optional<Picoseconds>>{6000_ps, 5000_ps});
}

TEST_CASE("contenders that are level over a wide range are located in as few runs as others") {
  // The one rises up to size 100, is level with the other until 100,000, and rises again.
  const auto time_of = [](std::size_t i, Bytes size) {
    const std::int64_t rises = size.count < 100 ? size.count : size.count <= 100'000 ? 100 : size.count - 99'900;
    return std::optional(Picoseconds{i == 0 ? rises : 100});
  };
  Comparison comparison;
  for (const std::int64_t size : {10, 1'000'000})
    for (std::size_t i = 0; i < 2; ++i)
      comparison.add({i == 0 ? "rises" : "is level", ""}, {size}, *time_of(i, {size}));
  int runs = 0;
  refine(comparison, [&](std::size_t i, Bytes size) {
    REQUIRE(++runs < 200);  // halving 10^6 takes 20 steps of two runs each, for either change
    return time_of(i, size);
  });
  CHECK(found(comparison) == Found{{10, 99, 0}, {100, 100'000, 0, 1}, {100'001, 1'000'000, 1}});
}

}  // namespace crossover_test
