// Algorithms at sizes that take a while to execute.
#include <doctest/doctest.h>

#include "tests/support/every_algorithm.hpp"
#include "tests/support/naive/interpreter.hpp"

namespace algorithms_slow_test {

using namespace ringsim;
using namespace ringsim::literals;

TEST_CASE("the real algorithms compute the right numbers beyond 17 ranks as well") {
  for (int n = 18; n <= 33; ++n) {
    for (const Schedule& schedule : every_algorithm(n, 1000003_B)) {
      CAPTURE(n);
      CAPTURE(schedule.algorithm);
      CAPTURE(to_string(schedule.collective.op));
      CHECK(interpret(schedule, static_cast<std::uint64_t>(n)) == Outcome::right);
    }
  }
}

}  // namespace algorithms_slow_test
