// Calls are of one kind if schedule and members are the same.
#include "sim/program/call_kinds.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "algorithms/catalog.hpp"

namespace call_kinds_test {

using namespace ringsim;
using namespace ringsim::literals;

TEST_CASE("calls are of the kind of the first one with their schedule and their members in that order") {
  const CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = 2, .bytes = 1000_B};
  const CheckedSchedule one = check(make_schedule(*find_algorithm("ring"), request, {}));
  const CheckedSchedule other = check(make_schedule(*find_algorithm("ring"), request, {}));
  Program program{.name = "calls"};
  const auto call = [&](const CheckedSchedule& schedule, const Program::Members& members) {
    program.calls.push_back({.name = "call", .schedule = schedule, .members = members, .variables = {}});
  };
  call(one, {0, 1});
  call(one, {2, 3});
  call(other, {0, 1});  // equal steps, but a schedule of its own
  call(one, {1, 0});
  call(one, {2, 3});
  call(one, {0, 1});
  CHECK(kinds_of_calls(program) == std::vector<int>{0, 1, 2, 3, 1, 0});
}

}  // namespace call_kinds_test
