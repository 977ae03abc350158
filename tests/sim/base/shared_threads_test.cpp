// Threads that proofs share.
#include "sim/base/shared_threads.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <optional>
#include <thread>
#include <vector>

namespace shared_threads_test {

using namespace ringsim;

TEST_CASE("users get what is free, and give it back") {
  SharedThreads all(4);
  std::optional<SharedThreads::Some> first(std::in_place, all, 3);
  CHECK(first->count() == 3);
  {
    const SharedThreads::Some second(all, INT_MAX), third(all, 2);
    CHECK(second.count() == 1);
    CHECK(third.count() == 0);
    const SharedThreads::Some none(all, 0);
    CHECK(none.count() == 0);
  }
  first.reset();
  CHECK(SharedThreads::Some(all, INT_MAX).count() == 4);
}

// Eight users at a time, 2000 times each: never more than six threads together.
TEST_CASE("many users at a time never have more than there are") {
  SharedThreads all(6);
  std::atomic<int> in_use{0}, most{0};
  {
    std::vector<std::jthread> users;
    for (int user = 0; user < 8; ++user)
      users.emplace_back([&, user] {
        for (int i = 0; i < 2000; ++i) {
          const SharedThreads::Some some(all, 1 + (user + i) % 7);
          const int now = in_use += some.count();
          int before = most;
          while (before < now && !most.compare_exchange_weak(before, now)) {
          }
          in_use -= some.count();
        }
      });
  }
  CHECK(most <= 6);
  CHECK(most >= 1);
  CHECK(SharedThreads::Some(all, INT_MAX).count() == 6);
}

}  // namespace shared_threads_test
