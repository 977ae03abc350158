#include "sim/text/progress_text.hpp"

#include <doctest/doctest.h>

namespace progress_text_test {

using ringsim::progress_text;

TEST_CASE("long work is forecast from its speed so far, at first only when ten seconds have passed") {
  CHECK(progress_text(5, 0.5, 1) == "50 %, about 5 s left");
  CHECK(progress_text(30, 2.5, 10) == "2 of 10 done, 25 %, about 90 s left");
  CHECK(progress_text(100, 0.005, 1) == "0.5 %, about 5.5 h left");
  // 0.04 % in 4 s could be 3 hours or 3 minutes; in 20 s it is 14 hours, within a factor of two or so.
  CHECK(progress_text(4, 0.0004, 1) == "0.04 %");
  CHECK(progress_text(20, 0.0004, 1) == "0.04 %, about 13.9 h left");
  CHECK(progress_text(60, 0, 1) == "0 %");  // nothing to go by
  CHECK(progress_text(60, 1, 1) == "100 %, about 0 s left");
}

}  // namespace progress_text_test
