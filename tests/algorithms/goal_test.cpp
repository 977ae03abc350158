// GOAL: what is written meets and takes the same time when it is read; what is read is proved for matching alone.
#include "algorithms/formats/goal.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/files.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/written_schedule.hpp"
#include "topologies/catalog.hpp"

namespace goal_test {

using namespace ringsim;
using ringsim::test::replaced;
using namespace ringsim::literals;

namespace {

std::string ping_pong() {
  return test::read_file(std::filesystem::path(test::source_dir()) / "tests/data/schedules/ping-pong.goal");
}

Schedule schedule(const std::string& text) {
  return schedule_of(std::make_shared<const StoredSchedule>(import_goal(text, "x.goal")), {});
}

std::string complaint(const std::string& text) {
  return ringsim::test::complaint([&] { check(schedule(text)); });
}

/// A star of that many gpus with 10 GB/s ports and 1 us from gpu to gpu.
Topology star(int n) {
  return build(Star{.ranks = n, .link = {.bandwidth = 10_GBps, .latency = Picoseconds{500'000}}});
}
Picoseconds time_of(const Schedule& s) { return run(star(s.actors), check(s)).duration(); }

}  // namespace

TEST_CASE("what the catalog makes takes the same time when it comes back from GOAL, and is proved for matching alone") {
  int n = 0;
  for (const int ranks : {2, 3, 5, 8}) {
    for (const Schedule& original : every_algorithm(ranks, 1001_B)) {
      CAPTURE(original.algorithm);
      CAPTURE(ranks);
      const Schedule back = schedule(export_goal(original));
      CHECK(back.actors == original.actors);
      const Proof proof = check(back).proof();
      CHECK(proof.by == Proof::By::matching);
      CHECK(to_string(proof).find("matching only") != std::string::npos);
      CHECK(proof.slots_needed == check(original).proof().slots_needed);
      const Topology topology = star(original.actors);  // helpers sit on ports like the others
      RunOptions options;
      options.placement.assign(topology.ranks().begin(), topology.ranks().end());
      CHECK(run(topology, check(original), options).duration() == time_of(back));
      ++n;
    }
  }
  CHECK(n >= 60);
}

TEST_CASE("requires and irequires order what they name, after its end and after its start") {
  // b = 10 GB/s, a = 1 us. throw and think start at 0; catch ends after 2(a + 6.4 ns) = 2.0128 us, after think (1.5
  // us); then big takes a + 409.6 ns.
  CHECK(time_of(schedule(ping_pong())) == Picoseconds{2 * (1'000'000 + 6'400) + 1'000'000 + 409'600});
  // A calculation longer than the ball's way holds big back.
  CHECK(time_of(schedule(replaced(ping_pong(), "calc 1500", "calc 5000"))) ==
        Picoseconds{5'000'000 + 1'000'000 + 409'600});
  // And where it requires the throw, and not only its start, it begins when the ball has arrived.
  const std::string late = replaced(replaced(ping_pong(), "calc 1500", "calc 5000"), "irequires", "requires");
  CHECK(time_of(schedule(late)) == Picoseconds{1'000'000 + 6'400 + 5'000'000 + 1'000'000 + 409'600});
}

TEST_CASE("what irequires a message begins when the message may begin, not before and not when it is over") {
  // The send may begin after 2 us and takes a + 1 us; the calculation at the same time takes 5 us.
  const std::string text =
      "num_ranks 2\nrank 0 {\na: calc 2000\ns: send 10000b to 1\nt: calc 5000\ns requires a\nt irequires s\n}\n"
      "rank 1 {\nrecv 10000b from 0\n}\n";
  CHECK(time_of(schedule(text)) == Picoseconds{7'000'000});
  CHECK(time_of(schedule(replaced(text, "t irequires s", "t requires s"))) == Picoseconds{9'000'000});
  CHECK(time_of(schedule(replaced(text, "t irequires s\n", ""))) == Picoseconds{5'000'000});
}

TEST_CASE(
    "messages of one connection that may start together share the way; where one is waited for alone they do not") {
  // Two sends of 10 kB, received together: one latency. 20 kB at 10 GB/s are 2 us.
  const std::string receiver = "rank 1 {\nrecv 10000b from 0\nrecv 10000b from 0\n}\n";
  CHECK(time_of(schedule("num_ranks 2\nrank 0 {\nsend 10000b to 1\nsend 10000b to 1\n}\n" + receiver)) ==
        Picoseconds{3'000'000});
  // The first is required by a calculation: the second starts when it is over.
  CHECK(time_of(schedule("num_ranks 2\nrank 0 {\na: send 10000b to 1\nsend 10000b to 1\nc: calc 1\nc requires a\n}\n" +
                         receiver)) == Picoseconds{4'000'000});
}

TEST_CASE(
    "calculations that follow each other share a lane, calc 0 takes none, and tags that do not fit are numbered") {
  const StoredSchedule chain = import_goal(
      "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\nz: calc 0\nc: calc 3\nb requires a\nz requires b\nc requires "
      "z\n}\n",
      "x.goal");
  CHECK(chain.lanes == 1);
  CHECK(chain.lane(0, 0).size() == 3);
  const StoredSchedule tags = import_goal(
      "num_ranks 2\nrank 0 {\nsend 1b to 1 tag 5\nsend 1b to 1 tag 99999\n}\nrank 1 {\nrecv 1b from 0 tag 99999\nrecv "
      "1b from 0 tag "
      "5\n}\n",
      "x.goal");
  CHECK(tags.lane(0, 0)[0].ops[0].channel == 0);
  CHECK(tags.lane(0, 1)[0].ops[0].channel == 1);
  CHECK(tags.lane(1, 0)[0].ops[0].channel == 1);
  CHECK(import_goal(ping_pong(), "x.goal").lane(0, 0)[1].ops[0].channel == 7);
}

TEST_CASE("cpu and nic are not taken over, and said so") {
  CHECK(import_goal(ping_pong(), "x.goal").warnings.empty());
  const auto warnings = import_goal(replaced(ping_pong(), "cpu 0", "cpu 1"), "x.goal").warnings;
  CHECK(warnings == std::vector<std::string>{"x.goal: cpu and nic are ignored: calculations of a rank may overlap, and "
                                             "its messages use the NIC that the topology determines"});
}

TEST_CASE("sends that nothing orders share the port with a warning, or leave in turn, as in LogGOPSim") {
  // A binomial broadcast to 8 ranks, farthest child first: rank r sends to r + 4, r + 2, r + 1 as far as they are its
  // children, each once it has the data. p = 10 MB, b = 10 GB/s: p/b = 1000 us; a = 1 us.
  const auto tree = [](int r) {
    std::string text = fmt::format("rank {} {{\n", r);
    int low = r == 0 ? 8 : r & -r;
    if (r > 0) text += fmt::format("in: recv 10000000b from {}\n", r - low);
    for (low /= 2; low > 0; low /= 2)
      text += fmt::format("s{0}: send 10000000b to {1}\n{2}", low, r + low,
                          r > 0 ? fmt::format("s{} requires in\n", low) : "");
    return text + "}\n";
  };
  std::string text = "num_ranks 8\n";
  for (int r = 0; r < 8; ++r) text += tree(r);
  const auto stored = [&](bool in_turn) { return import_goal(text, "x.goal", {.sends_in_turn = in_turn}); };
  const auto time = [&](bool in_turn) {
    return time_of(schedule_of(std::make_shared<const StoredSchedule>(stored(in_turn)), {}));
  };
  CHECK(stored(false).warnings ==
        std::vector<std::string>{
            "x.goal: some sends of a rank are unordered (first at rank 0); they start together and share the rank's "
            "port, while LogGOPSim runs them one after another; to do the same, set sends to in_turn"});
  CHECK(stored(true).warnings.empty());
  // At once: rank 0 has three messages (3 p/b), then rank 4 two, then rank 6 one.
  CHECK(time(false) == Picoseconds{(3000 + 2000 + 1000 + 3) * std::int64_t{1'000'000}});
  // In turn: rank 0's last message leaves after 3 p/b and a between them, like that of the others.
  CHECK(time(true) == Picoseconds{(3 * 1000 + 3) * std::int64_t{1'000'000}});
}

TEST_CASE("what does not match, or waits for ever, is refused though no region is named") {
  CHECK(complaint(ping_pong()) == "");
  CHECK(complaint(replaced(ping_pong(), "recv 4096b", "recv 4095b")) ==
        "schedule goal all_reduce of 2 ranks: rank 0, lane 3, step 0, operation 0 (send scratch[2] to rank 1) and "
        "rank 1, lane 2, step 0, operation 0 (receive scratch[1] from rank 0): the message has 1 chunks (4096), but "
        "the receiver expects 1 (4095)");
  CHECK(complaint(replaced(ping_pong(), "recv 4096b from 0\n", "")).find("is never received") != std::string::npos);
  // Both receive before they send.
  const std::string stuck =
      "num_ranks 2\nrank 0 {\na: send 1b to 1\nb: recv 1b from 1\na requires b\n}\nrank 1 {\na: send 1b to 0\nb: recv "
      "1b from 0\na requires "
      "b\n}\n";
  CHECK(complaint(stuck).find("a cycle of waits") != std::string::npos);
}

TEST_CASE("what is not GOAL is refused with its line, what was expected and what was found") {
  struct Row {
    std::string what, with;
  };
  const std::vector<Row> rows{{"num_ranks 2", "num_ranks two"},
                              {"num_ranks 2", "num_ranks 1"},
                              {"rank 1 {", "rank 0 {"},
                              {"64b to 1", "64 to 1"},
                              {"64b to 1", "64b from 1"},
                              {"64b to 1", "64b to 0"},
                              {"catch:", "throw:"},
                              {"after requires think", "after requires thinking"},
                              {"after requires think", "after needs think"},
                              {"think irequires throw", "throw requires big"},
                              {"then */", "then"},
                              {"l2 requires l1\n}", "l2 requires l1\n"},
                              {"rank 1 {", "rank 1"}};
  CHECK(complaint(replaced(ping_pong(), "/* it", "/* /* it")) == "");  // comments do not nest
  ringsim::test::MessagePage page("goal");
  for (const Row& row : rows)
    page.add(row.what + " -> " + row.with, complaint(replaced(ping_pong(), row.what, row.with)));
  page.check();
}

TEST_CASE("a compute of other than whole nanoseconds is refused when it is written") {
  WrittenSchedule t(all_reduce(1, 1_B), 1, 1, 1);
  t.step(0).compute(Picoseconds{2000});
  CHECK(export_goal(t.schedule()) == "num_ranks 1\n\nrank 0 {\nl1: calc 2\n}\n");
  t.step(0).compute(Picoseconds{1500});
  CHECK_THROWS_WITH_AS(export_goal(t.schedule()), "GOAL uses whole nanoseconds, but by hand computes for 1500 ps",
                       InputError);
}

}  // namespace goal_test
