// In place and out of place: what is copied where, that the input stays, and that it takes no time.
#include "algorithms/composed/buffers.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "algorithms/catalog.hpp"
#include "algorithms/composed/channels.hpp"
#include "sim/base/error.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/naive/interpreter.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/verdict.hpp"

namespace buffers_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

bool has(const Schedule& s, Buffer buffer) { return s.layout[static_cast<std::size_t>(buffer)].n_chunks() > 0; }

std::vector<Schedule> that_move_data(int n, Bytes size) {
  std::vector<Schedule> all = every_algorithm(n, size);
  std::erase_if(all, [](const Schedule& s) { return s.collective.op == CollectiveOp::barrier; });
  return all;
}

Step first_step(const Schedule& s, Actor rank) {
  Step step;
  s.step(rank, 0, 0, step);
  return step;
}

}  // namespace

TEST_CASE("every algorithm is proved and executed with input and output apart, and with both in one buffer") {
  for (int n = 1; n <= 9; ++n) {
    for (const Schedule& plain : that_move_data(n, Bytes{7 * n + 3})) {
      CAPTURE(plain.algorithm);
      CAPTURE(to_string(plain.collective.op));
      CAPTURE(n);
      const Schedule apart = out_of_place(plain), one = in_place(plain);
      CHECK(has(apart, Buffer::input));
      CHECK(has(apart, Buffer::output));
      CHECK(!has(apart, Buffer::data));
      CHECK(!has(one, Buffer::input));
      CHECK(has(one, Buffer::data));
      CHECK(verdict(apart) == "accepted");
      CHECK(verdict(one) == "accepted");
      CHECK(interpret(apart, 7) == Outcome::right);
      CHECK(interpret(one, 7) == Outcome::right);
    }
  }
}

TEST_CASE("buffers of their own and channels go together") {
  for (const Schedule& plain : that_move_data(4, 31_B)) {
    for (const Schedule& s : {out_of_place(plain), in_place(plain)}) {
      const Schedule cut = over_channels(s, {.channels = 2, .rounds = 2});
      CAPTURE(cut.algorithm);
      CHECK(verdict(cut) == "accepted");
      CHECK(interpret(cut, 3) == Outcome::right);
    }
  }
}

TEST_CASE("a rank first copies what it brings: all, its own block, the root's, nothing") {
  const auto copied = [](const Schedule& plain, Actor rank) {
    const Step step = first_step(out_of_place(plain), rank);
    return step.ops.empty() ? Region{Buffer::input, 0, 0} : step.ops[0].operand;
  };
  CHECK(copied(ring_all_reduce(4, 1_KiB), 2) == Region{Buffer::input, 0, 4});
  CHECK(copied(ring_reduce_scatter(4, 1_KiB), 2) == Region{Buffer::input, 0, 4});
  CHECK(copied(ring_all_gather(4, 1_KiB), 2) == Region{Buffer::input, 2, 1});
  CHECK(copied(direct_gather(4, 1_KiB, 1), 3) == Region{Buffer::input, 2, 1});  // blocks count from the root
  CHECK(copied(direct_scatter(4, 1_KiB, 1), 1) == Region{Buffer::input, 0, 4});
  CHECK(copied(direct_scatter(4, 1_KiB, 1), 2).count == 0);
  CHECK(copied(direct_broadcast(4, 1_KiB, 1), 2).count == 0);
  // A server has no input: its first step is the plain one.
  const Schedule server = out_of_place(sharded_parameter_server(4, 1_KiB, 1));
  CHECK(server.n_steps(4, 0) == 2);
  CHECK(first_step(server, 4).ops[0].what == Do::receive_add);
}

TEST_CASE("out of place the input must stay as it was: a schedule that writes to it is refused") {
  Schedule wrong = out_of_place(ring_all_reduce(4, 1_KiB));
  wrong.step = [step = wrong.step](Actor a, Lane lane, int i, Step& out) {
    step(a, lane, i, out);
    if (i == 1)
      for (Op& op : out.ops)
        if (op.what == Do::receive_add) op.region.buffer = Buffer::input;
  };
  CHECK(verdict(wrong) != "accepted");
}

TEST_CASE("the other lanes wait for the one that copies") {
  Schedule wrong = out_of_place(kary_all_reduce(4, 1_KiB, 0, 2, 3));
  CHECK(verdict(wrong) == "accepted");
  wrong.step = [step = wrong.step](Actor a, Lane lane, int i, Step& out) {
    step(a, lane, i, out);
    if (lane > 0) out.waits.clear();
  };
  CHECK(verdict(wrong) != "accepted");
}

TEST_CASE("copies take no time: in place, out of place and as written end at the same picosecond") {
  const LinkSpec cable{.bandwidth = 10_GBps, .latency = 500'000_ps};
  for (const Schedule& plain : that_move_data(6, 1000003_B)) {
    CAPTURE(plain.algorithm);
    const Topology net = star(6, cable, plain.actors - 6);
    const Picoseconds time = run(net, check(plain)).duration();
    CHECK(run(net, check(out_of_place(plain))).duration() == time);
    CHECK(run(net, check(in_place(plain))).duration() == time);
  }
}

TEST_CASE("a barrier has no buffers") {
  const Schedule barrier = dissemination_barrier(4);
  CHECK_THROWS_WITH_AS(out_of_place(barrier),
                       "expected a collective that moves data, found a barrier\n  hint: a barrier has no buffers",
                       InputError);
  CHECK_THROWS_WITH_AS(in_place(barrier),
                       "expected a collective that moves data, found a barrier\n  hint: a barrier has no buffers",
                       InputError);
}

}  // namespace buffers_test
