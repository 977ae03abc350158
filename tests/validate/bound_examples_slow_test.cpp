// The bounds of all examples, next to the results that are kept with them.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "validate/closed_forms/bound.hpp"

namespace bound_examples_slow_test {

using namespace ringsim;

TEST_CASE("no result that is kept next to an example is faster than its bound, and some are as fast") {
  namespace fs = std::filesystem;
  int compared = 0, near = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(test::source_dir()) / "scenarios")) {
    const fs::path scenario = fs::path(entry.path()).replace_extension(".json");
    if (entry.path().extension() != ".csv" || !fs::exists(scenario)) continue;
    CAPTURE(scenario.string());
    std::istringstream kept(test::read_file(entry.path()));
    std::string line;
    std::getline(kept, line);
    const std::vector<std::string> head = test::csv_fields(line);
    const auto column = std::find(head.begin(), head.end(), "time_us") - head.begin();
    const ScenarioFile file = ScenarioFile::load(scenario.string());
    Bounds bounds;
    for (std::size_t i = 0; i < file.size(); ++i) {
      const Scenario point = file.point(i);
      for (const std::optional<Bound>& bound : bounds.of(point, set_up(point))) {
        REQUIRE(std::getline(kept, line));
        if (!bound) continue;
        const double time = std::stod(test::csv_fields(line).at(static_cast<std::size_t>(column)));
        CAPTURE(line);
        CAPTURE(bound->why);
        CHECK(microseconds(bound->time) <= time);
        ++compared;
        near += microseconds(bound->time) > 0.95 * time && time > 0 ? 1 : 0;
      }
      if (point.has_total()) REQUIRE(std::getline(kept, line));  // of all jobs together: it has no bound
    }
    CHECK(!std::getline(kept, line));
  }
  CHECK(compared > 500);
  CHECK(near > 20);
}

}  // namespace bound_examples_slow_test
