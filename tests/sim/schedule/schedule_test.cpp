#include <doctest/doctest.h>

#include <vector>

#include "sim/base/error.hpp"
#include "sim/schedule/schedule.hpp"

namespace schedule_test {

using namespace ringsim;
using namespace ringsim::literals;

TEST_CASE("chunk i of a near-equal layout is bytes floor(i p/K) to floor((i+1) p/K)") {
  __extension__ using Wide = __int128;  // 4096 * 2^40 fits into 64 bits; the formula should not depend on it
  for (const int n : {1, 2, 3, 7, 8, 13, 100, 1000, 4095, 4096}) {
    for (const std::int64_t p :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{n} - 1, std::int64_t{1000003}, std::int64_t{1} << 40}) {
      CAPTURE(n);
      CAPTURE(p);
      const Layout layout = Layout::near_equal({p}, n);
      REQUIRE(layout.n_chunks() == n);
      CHECK(layout.total() == Bytes{p});
      bool is_floor = true, is_uniform = true;
      for (int i = 0; i < n; ++i) {
        const auto begin = static_cast<std::int64_t>(Wide{i} * p / n);
        const auto end = static_cast<std::int64_t>(Wide{i + 1} * p / n);
        const auto c = static_cast<std::uint32_t>(i);
        is_floor = is_floor && layout.size(c, 1).count == end - begin && layout.size(0, c).count == begin;
        is_uniform = is_uniform && (end - begin) * n == p;
      }
      CHECK(is_floor);
      CHECK(layout.uniform() == is_uniform);
    }
  }
}

TEST_CASE("a layout of given sizes keeps them, and one without chunks is empty") {
  const Layout layout = Layout::of_sizes({3_B, 0_B, 5_B});
  CHECK(layout.n_chunks() == 3);
  CHECK(layout.size(0, 1) == 3_B);
  CHECK(layout.size(1, 1) == 0_B);
  CHECK(layout.size(1, 2) == 5_B);
  CHECK_FALSE(layout.uniform());
  CHECK(Layout{}.n_chunks() == 0);
  CHECK(Layout::near_equal(0_B, 0).n_chunks() == 0);
  CHECK_THROWS_AS(Layout::near_equal(Bytes{-1}, 2), InvariantError);
}

TEST_CASE("a layout of more than 9.2 EB is refused, however it is made") {
  const Bytes half{INT64_MAX / 2 + 1};
  CHECK(Layout::of_sizes({half - 1_B, half}).total() == Bytes{INT64_MAX});
  CHECK_THROWS_AS(Layout::of_sizes({half, half}), InputError);
  CHECK(Layout::near_equal(half - 1_B, 3).times(2).total() == Bytes{INT64_MAX - 1});
  CHECK_THROWS_AS(Layout::near_equal(half, 3).times(2), InputError);
  CHECK(Layout::two_level(half - 1_B, 3, 5).times(2).size(0, 15) == Bytes{INT64_MAX - 1});
  CHECK_THROWS_AS(Layout::two_level(half, 3, 5).times(2), InputError);
  CHECK_THROWS_AS(Layout::two_level(1_B, 3, 5).times(1 << 20).times(1 << 20), InputError);  // the factor itself
}

TEST_CASE("digit-wise addition is a commutative group, and subtraction undoes it") {
  for (const std::vector<int>& radices : {std::vector{1}, {2}, {7}, {2, 2, 2}, {2, 3, 4}, {3, 3}}) {
    const Symmetry group(radices);
    const int n = group.order();
    CAPTURE(n);
    int product = 1;
    for (const int radix : radices) product *= radix;
    REQUIRE(n == product);
    bool closed = true, neutral = true, commutes = true, associates = true, undone = true;
    for (int a = 0; a < n; ++a) {
      neutral = neutral && group.add(a, 0) == a && group.subtract(a, a) == 0;
      for (int b = 0; b < n; ++b) {
        const int sum = group.add(a, b);
        closed = closed && sum >= 0 && sum < n;
        commutes = commutes && sum == group.add(b, a);
        undone = undone && group.subtract(sum, b) == a && group.add(group.subtract(a, b), b) == a;
        for (int c = 0; c < n; ++c) associates = associates && group.add(sum, c) == group.add(a, group.add(b, c));
      }
    }
    CHECK(closed);
    CHECK(neutral);
    CHECK(commutes);
    CHECK(associates);
    CHECK(undone);
  }
}

TEST_CASE("the last radix varies fastest, and no digit carries into the next") {
  // {2,3,4}: 23 = (1,2,3). (1,2,3) + (1,2,2) = (0,1,1) = 0*12 + 1*4 + 1 = 5.
  const Symmetry group({2, 3, 4});
  CHECK(group.add(23, 1 * 12 + 2 * 4 + 2) == 5);
  CHECK(group.add(3, 1) == 0);                // (0,0,3) + (0,0,1)
  CHECK(Symmetry({2, 2, 2}).add(5, 3) == 6);  // exclusive or
  CHECK(Symmetry({7}).add(5, 3) == 1);
  CHECK(Symmetry({7}).subtract(1, 3) == 5);
  CHECK_FALSE(Symmetry{}.claimed());
  CHECK_THROWS_AS(Symmetry({2, 0}), InvariantError);
}

TEST_CASE("wrap is never negative") {
  CHECK(wrap(-1, 5) == 4);
  CHECK(wrap(-5, 5) == 0);
  CHECK(wrap(-6, 5) == 4);
  CHECK(wrap(0, 5) == 0);
  CHECK(wrap(5, 5) == 0);
  CHECK(wrap(7, 5) == 2);
  CHECK(wrap(-1, 1) == 0);
}

TEST_CASE("a region is written with its buffer and its chunks") {
  CHECK(to_string(chunk(3)) == "data[3]");
  CHECK(to_string(chunks(4, 4)) == "data[4..7]");
  CHECK(to_string(Region{Buffer::input, 0, 1}) == "input[0]");
  CHECK(to_string(Region{Buffer::output, 1, 2}) == "output[1..2]");
  CHECK(to_string(Region{Buffer::scratch, 9, 0}) == "scratch[]");
}

TEST_CASE("the factor of busbw is that of nccl-tests, and 0 for one rank") {
  CHECK(busbw_factor(CollectiveOp::all_reduce, 8) == 1.75);  // 2 * 7/8
  CHECK(busbw_factor(CollectiveOp::reduce_scatter, 8) == 0.875);
  CHECK(busbw_factor(CollectiveOp::all_gather, 8) == 0.875);
  CHECK(busbw_factor(CollectiveOp::broadcast, 8) == 1.0);
  CHECK(busbw_factor(CollectiveOp::pairs, 8) == 1.0);
  CHECK(busbw_factor(CollectiveOp::reduce, 8) == 1.0);
  CHECK(busbw_factor(CollectiveOp::send_recv, 8) == 1.0);
  CHECK(busbw_factor(CollectiveOp::scatter, 8) == 0.875);
  CHECK(busbw_factor(CollectiveOp::gather, 8) == 0.875);
  CHECK(busbw_factor(CollectiveOp::barrier, 8) == 0.0);
  CHECK(busbw_factor(CollectiveOp::all_reduce, 1) == 0.0);
}

}  // namespace schedule_test
