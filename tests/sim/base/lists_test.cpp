// Lists that are mostly short, and queues of which there are many.
#include <doctest/doctest.h>

#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "sim/base/few.hpp"
#include "sim/base/fifo.hpp"

namespace lists_test {

using namespace ringsim;

namespace {

using Two = Few<int, 2>;
std::vector<int> items(const Two& list) { return {list.begin(), list.end()}; }

}  // namespace

// Two items lie within; the third needs an allocation, and so do copies and moves of longer lists.
TEST_CASE("a list of few keeps what a vector keeps, within and without an allocation, copied and moved") {
  for (int n = 0; n <= 9; ++n) {
    CAPTURE(n);
    std::vector<int> expected;
    Two list;
    for (int i = 0; i < n; ++i) {
      list.push_back(10 + i);
      expected.push_back(10 + i);
      CHECK(list.back() == 10 + i);
    }
    CHECK(items(list) == expected);
    CHECK(list.size() == expected.size());
    CHECK(list.empty() == expected.empty());
    CHECK(Two(expected) == list);
    Two copy = list;
    copy.push_back(99);
    CHECK(items(list) == expected);
    Two moved = std::move(copy);
    CHECK(moved.size() == expected.size() + 1);
    moved.pop_back();
    CHECK(moved == list);
    for (int other = 0; other <= 5; ++other) {  // over lists of any length
      Two over;
      for (int i = 0; i < other; ++i) over.push_back(i);
      Two taken = over;
      over = list;
      CHECK(items(over) == expected);
      taken = std::move(over);
      CHECK(items(taken) == expected);
    }
    if (n < 2) continue;
    list.erase(list.begin() + 1);
    expected.erase(expected.begin() + 1);
    CHECK(items(list) == expected);
    list.push_back(list.front());  // an item of its own
    expected.push_back(expected.front());
    CHECK(items(list) == expected);
    list.clear();
    CHECK(list.empty());
  }
  CHECK(items({7, 8, 9}) == std::vector{7, 8, 9});
}

TEST_CASE("a queue hands out what a deque hands out, in random order of coming and going") {
  std::mt19937 random(1);
  Fifo<int> queue;
  std::deque<int> expected;
  for (int i = 0; i < 10'000; ++i) {
    if (expected.empty() || random() % 9 < 5 - static_cast<unsigned>(i / 5'000)) {  // more come first, then more go
      queue.push_back(i);
      expected.push_back(i);
    } else {
      REQUIRE(queue.front() == expected.front());
      queue.pop_front();
      expected.pop_front();
    }
    REQUIRE(queue.size() == expected.size());
    REQUIRE(queue.empty() == expected.empty());
    if (!expected.empty()) REQUIRE(queue[expected.size() - 1] == expected.back());
  }
}

}  // namespace lists_test
