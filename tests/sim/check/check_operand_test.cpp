// receive_add with an operand: region = operand + what comes in, in the checker, compared with the interpreter.
#include <doctest/doctest.h>

#include "algorithms/ring.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/naive/interpreter.hpp"
#include "tests/support/verdict.hpp"
#include "tests/support/written_schedule.hpp"

namespace check_operand_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

Region scratch(std::uint32_t first) { return {Buffer::scratch, first, 1}; }

/// 0 sends to 1, which puts the sum into scratch and passes it on to 2, which sends the result to both.
WrittenSchedule chain() {
  WrittenSchedule t(all_reduce(3, 12_B), 3, 1, 1);
  t.like.layout[static_cast<std::size_t>(Buffer::scratch)] = Layout::near_equal(12_B, 1);
  t.step(0).send(1, chunk(0));
  t.step(1).receive_add(0, chunk(0), scratch(0), 0);
  t.step(1).send(2, scratch(0));
  t.step(2).receive_add(1, chunk(0));
  Step& back = t.step(2);
  back.send(0, chunk(0));
  back.send(1, chunk(0));
  t.step(0).receive(2, chunk(0));
  t.step(1).receive(2, chunk(0));
  return t;
}

}  // namespace

TEST_CASE("a sum may go elsewhere than into its operand, and checker and execution agree on it") {
  CHECK(verdict(chain()) == "accepted");
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    CHECK(interpret(chain().schedule(), seed) == Outcome::right);
  }
}

TEST_CASE("where the operand's own contribution is forgotten, it is named") {
  WrittenSchedule t = chain();
  t.steps[1][0][0].ops[0].operand = {.count = 0};  // scratch, where nothing is, plus what comes
  CHECK(
      verdict(t) ==
      "schedule by hand all_reduce of 3 ranks: rank 0, data[0]: the contribution of rank 1 is missing, last changed by "
      "rank 0, lane 0, step 1, operation 0 (receive data[0] from rank 2)");
  CHECK(interpret(t.schedule(), 1) == Outcome::wrong);
}

TEST_CASE("a contribution that comes twice by way of an operand is named with the operation that adds it") {
  WrittenSchedule t = chain();
  Step& first = t.steps[1][0][0];
  first.ops[0].region = chunk(0);  // in place now: rank 1 adds to its data, and then its data to what it gets
  first.ops[0].operand = {.count = 0};
  t.steps[1][0][1].ops[0].region = chunk(0);
  CHECK(verdict(t) == "accepted");
  t.steps[2][0][0].ops[0] = {.what = Do::receive_add, .peer = 1, .region = scratch(0), .operand = chunk(0)};
  CHECK(verdict(t).find("is missing") != std::string::npos);  // rank 2 sends its own data, without the sum
  t.steps[2][0].insert(t.steps[2][0].begin() + 1, Step{});
  t.steps[2][0][1].add(scratch(0), chunk(0));
  CHECK(
      verdict(t) ==
      "schedule by hand all_reduce of 3 ranks: rank 0, data[0]: the contribution of rank 2 is added twice, by rank 2, "
      "lane 0, step 1, operation 0 (add scratch[0] to data[0])");
}

TEST_CASE("an operand is read: what writes it at the same time is a race, and so is what reads the sum") {
  WrittenSchedule t = chain();
  t.steps[1][0][0].receive(2, chunk(0));
  t.steps[1][0].pop_back();
  CHECK(verdict(t) ==
        "schedule by hand all_reduce of 3 ranks: rank 1, lane 0, step 0, operation 0 (receive_add data[0] from rank 0 "
        "to scratch[0]) and rank 1, lane 0, step 0, operation 1 (receive data[0] from rank 2): both access data[0], "
        "at least one of them writes, and nothing orders them\n  hint: move one of them to a later step of the lane, "
        "or add a wait");
  WrittenSchedule together = chain();
  together.steps[1][0][0].send(2, scratch(0));
  together.steps[1][0].erase(together.steps[1][0].begin() + 1);
  CHECK(verdict(together).find("both access scratch[0]") != std::string::npos);
}

TEST_CASE("operand and sum are of one size and do not overlap, and the operand holds something") {
  WrittenSchedule t = chain();
  t.like.layout[static_cast<std::size_t>(Buffer::scratch)] = Layout::near_equal(14_B, 2);
  CHECK(verdict(t).find(": the two regions have different sizes") != std::string::npos);
  WrittenSchedule empty = chain();
  empty.like.layout[static_cast<std::size_t>(Buffer::scratch)] = Layout::near_equal(24_B, 2);
  empty.steps[1][0][0].ops[0].operand = scratch(1);
  CHECK(verdict(empty).find("reads scratch[1] before anything has arrived there") != std::string::npos);
}

TEST_CASE("an operand is part of a claimed symmetry") {
  WrittenSchedule unlike(ring_all_reduce(2, 8_B));
  unlike.like.symmetry = Symmetry({2});
  CHECK(verdict(unlike) == "accepted");
  unlike.steps[1][0][0].ops[1].operand = chunk(1);  // rank 1 adds to another chunk than rank 0 does
  CHECK(
      verdict(unlike).find(
          "this breaks the claimed symmetry as well: rank 1 does not do what rank 0 does, relative to its own rank") !=
      std::string::npos);
  // Two ranks exchange their data and add what comes to their own, elsewhere, then copy it back.
  WrittenSchedule t(all_reduce(2, 8_B), 2, 1, 2);
  t.like.layout[static_cast<std::size_t>(Buffer::scratch)] = Layout::near_equal(8_B, 2);
  for (const Actor r : {0, 1}) {
    Step& step = t.step(r);
    step.send(1 - r, chunks(0, 2));
    step.receive_add(1 - r, chunks(0, 2), {Buffer::scratch, 0, 2}, 0);
    t.step(r).copy({Buffer::scratch, 0, 2}, chunks(0, 2));
  }
  t.like.symmetry = Symmetry({2});
  CHECK(verdict(t) == "accepted");
}

}  // namespace check_operand_test
