// Times and rates, at the limits of what 64 bits hold.
#include "sim/base/units.hpp"

#include <doctest/doctest.h>

#include "sim/base/error.hpp"

namespace units_test {

using namespace ringsim;

// 9,223,372 B times 10^12 is the last product that 64 bits hold: on both sides of it time is rounded up alike.
TEST_CASE("a transfer takes the fewest picoseconds in which the rate carries all of its bytes") {
  __extension__ using Wide = __int128;
  constexpr Wide second = picoseconds_per_second;
  for (const std::int64_t size : {0, 1, 3, 4096, 9'223'371, 9'223'372, 9'223'373, 1'000'000'000}) {
    for (const std::int64_t rate :
         {std::int64_t{1000}, std::int64_t{999'999'937}, std::int64_t{10'000'000'000}, std::int64_t{999'999'999'989},
          std::int64_t{1'000'000'000'000'000'000}, INT64_MAX}) {
      CAPTURE(size);
      CAPTURE(rate);
      const Wide time = transfer_time({size}, {rate}).count();
      CHECK(time * rate >= size * second);
      CHECK((time == 0 || (time - 1) * rate < size * second));
    }
  }
}

TEST_CASE("a transfer that takes longer than 106 days is refused") {
  CHECK(transfer_time({9'223'372}, {1}).count() == 9'223'372 * picoseconds_per_second);
  CHECK_THROWS_AS(transfer_time({9'223'373}, {1}), InputError);
}

TEST_CASE("sums, differences and products of bytes are refused beyond 9.2 EB, and never wrap") {
  const Bytes most{INT64_MAX};
  CHECK(most - Bytes{1} + Bytes{1} == most);
  CHECK(Bytes{INT64_MAX / 3} * 3 == most - Bytes{INT64_MAX % 3});
  CHECK_THROWS_WITH_AS(most + Bytes{1}, doctest::Contains("more bytes than the supported maximum (9,223,372 TB)"),
                       InputError);
  CHECK_THROWS_AS(Bytes{-2} - most, InputError);
  CHECK_THROWS_AS(most * 2, InputError);
}

}  // namespace units_test
