// Neighbor exchange: proved, executed, counted as its header says, and as fast as its closed form.
#include "algorithms/neighbor_exchange.hpp"

#include <doctest/doctest.h>

#include "sim/base/error.hpp"
#include "tests/support/naive/interpreter.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/verdict.hpp"

namespace neighbor_exchange_test {

using namespace ringsim;
using namespace ringsim::literals;

TEST_CASE("neighbor exchange gives every rank all blocks, for any even number of ranks and any size") {
  for (const int n : {1, 2, 4, 6, 8, 10, 16, 34}) {
    for (const std::int64_t size : {0, 5, 1000003}) {  // fewer bytes than ranks, and blocks that differ by a byte
      CAPTURE(n);
      CAPTURE(size);
      const Schedule s = neighbor_exchange_all_gather(n, {size});
      CHECK(verdict(s) == "accepted");
      if (n <= 10) CHECK(interpret(s, 1) == Outcome::right);
    }
  }
  CHECK_THROWS_AS(neighbor_exchange_all_gather(5, 1_KiB), InputError);
}

TEST_CASE("on a ring of cables neighbor exchange takes n/2 a + (n-1)/n size/b") {
  const LinkSpec cable{.bandwidth = 10_GBps, .latency = 2'000'000_ps};
  for (const int n : {2, 4, 8, 14}) {
    CAPTURE(n);
    // 1 MB a block takes 100 us: one block in the first step, two in each of the n/2 - 1 others.
    const Topology net = build(Ring{n, cable});
    CHECK(run(net, check(neighbor_exchange_all_gather(n, 1'000'000_B * n))).duration() ==
          times(n / 2, 2'000'000_ps) + times(n - 1, 100'000'000_ps));
  }
}

}  // namespace neighbor_exchange_test
