// A rank's trace as tasks: what is dropped, in which order streams run, and what follows from the rest.
#include "algorithms/traces/rank_trace.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/traces/chakra_reader.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/made_chakra.hpp"

namespace rank_trace_test {

using namespace ringsim;
using namespace ringsim::traces;
using namespace ringsim::test;

namespace {

ExecutionTrace read(const std::vector<MadeNode>& nodes) { return read_chakra(made_chakra(nodes), "t.et"); }

constexpr Picoseconds us{1'000'000};

/// When all is done, if a call takes 10 us: tasks of a stream in order, each after what it waits for.
Picoseconds length(const RankTrace& trace) {
  std::vector<std::vector<Picoseconds>> ends(trace.streams.size());
  std::size_t left = trace.n_tasks();
  while (left > 0) {
    const std::size_t before = left;
    for (std::size_t s = 0; s < trace.streams.size(); ++s)
      while (ends[s].size() < trace.streams[s].tasks.size()) {
        const TracedTask& task = trace.streams[s].tasks[ends[s].size()];
        Picoseconds begin = ends[s].empty() ? Picoseconds{0} : ends[s].back();
        bool is_ready = true;
        for (const TracedWait& wait : task.waits) {
          is_ready = is_ready && ends[wait.stream].size() >= wait.tasks;
          if (is_ready) begin = std::max(begin, ends[wait.stream][wait.tasks - 1]);
        }
        if (!is_ready) break;
        ends[s].push_back(begin + (task.call >= 0 ? 10 * us : task.time));
        --left;
      }
    REQUIRE(left < before);  // nothing waits in a circle
  }
  Picoseconds last{0};
  for (const auto& stream : ends)
    if (!stream.empty()) last = std::max(last, stream.back());
  return last;
}

}  // namespace

TEST_CASE("the length of a trace is that of its longest chain") {
  if (!has_chakra()) return;
  // A CPU thread launches two kernels (5 us each); the first (20 us) feeds a collective (10 us), which a last kernel
  // (3 us) waits for; the second kernel (4 us) follows the first on its stream.
  //   cpu 0-5 -> kernel 5-25 -> call 25-35 -> last 35-38;  cpu 5-10, second 25-29.
  const ExecutionTrace trace = read({{.id = 1, .duration_us = 5, .stream = 1, .on_cpu = true},
                                     {.id = 2, .duration_us = 20, .data = {1}},
                                     {.id = 3, .duration_us = 5, .stream = 1, .on_cpu = true},
                                     {.id = 4, .duration_us = 4, .data = {3}},
                                     made_call(5, 100, {2}),
                                     {.id = 6, .duration_us = 3, .data = {5}}});
  const RankTrace tasks = rank_trace(trace);
  CHECK(length(tasks) == 38 * us);
  CHECK(tasks.streams.size() == 3);
  CHECK(tasks.counts.unwaited == 0);
  CHECK(tasks.counts.kept_edges == 4);  // 1 -> 2, 3 -> 4, 2 -> 5, 5 -> 6
}

TEST_CASE("missing nodes are dropped and counted by id; more than 1 % of them are refused") {
  if (!has_chakra()) return;
  // Ids below all others are what a converter took out: any number of them.
  const ExecutionTrace known = read({{.id = 10, .data = {3, 3}}, {.id = 11, .control = {3, 10}}});
  const TraceCounts counts = rank_trace(known).counts;
  CHECK(counts.missing == std::map<std::uint64_t, std::size_t>{{3, 3}});
  CHECK(counts.missing_known == 3);
  const ExecutionTrace cut = read({{.id = 10, .data = {12}}, {.id = 14, .data = {10, 12}}});
  CHECK(complaint([&] { rank_trace(cut); }) ==
        "t.et: expected at most 1 % of the dependencies to refer to missing nodes, found 2 of 3, not counting nodes "
        "before the first one\n  hint: the trace is truncated or filtered; to drop these dependencies, set "
        "\"missing\": \"drop\"");
  CHECK(rank_trace(cut, {.drop_missing = true}).counts.missing_all == 2);
}

TEST_CASE("control dependencies in a cycle are dropped and counted, data dependencies in one are refused") {
  if (!has_chakra()) return;
  // 2 waits for 1 by data, 1 for 2 by control; 3 for itself; 4 for 3 by control, in no cycle.
  const ExecutionTrace trace = read({{.id = 1, .control = {2}},
                                     {.id = 2, .data = {1}},
                                     {.id = 3, .duration_us = 8, .control = {3}, .stream = 20},
                                     {.id = 4, .duration_us = 1, .control = {3}, .stream = 21}});
  const RankTrace tasks = rank_trace(trace);
  CHECK(tasks.counts.dropped_control == 2);
  CHECK(tasks.counts.dropped_self == 1);
  CHECK(length(tasks) == 9 * us);
  CHECK(complaint([] {
          rank_trace(read({{.id = 1, .data = {3}, .name = "a"},
                           {.id = 2, .data = {1}, .name = "b"},
                           {.id = 3, .data = {2}, .name = "c"}}));
        }) ==
        "t.et: expected data dependencies without cycles, found node 1 (a) waits for node 3 (c) waits for node 2 (b), "
        "which waits for node 1 (a)\n  hint: only control dependencies can be dropped from a cycle; convert the trace "
        "again");
  CHECK(complaint([] {
          rank_trace(read({{.id = 1, .name = "a"}, {.id = 1, .name = "b"}}));
        }) == "t.et: expected nodes with different ids, found node 1 (a) and node 1 (b)");
}

TEST_CASE("nodes of a stream run in the order of their starts, as far as dependencies allow") {
  if (!has_chakra()) return;
  const auto names = [](const std::vector<MadeNode>& nodes) {
    std::string out;
    GraphOptions options;
    options.reduce = false;
    const RankTrace trace = rank_trace(read(nodes), options);
    for (const TracedTask& task : trace.streams.at(0).tasks) out += task.name;
    return out;
  };
  CHECK(names({{.id = 1, .name = "a", .start_us = 30},
               {.id = 2, .name = "b", .start_us = 10},
               {.id = 3, .name = "c", .start_us = 20}}) == "bca");
  CHECK(names({{.id = 1, .name = "a"}, {.id = 2, .name = "b"}, {.id = 3, .name = "c"}}) == "abc");
  CHECK(names({{.id = 1, .data = {3}, .name = "a"}, {.id = 2, .name = "b"}, {.id = 3, .name = "c"}}) == "bca");
}

TEST_CASE("collectives that nothing waits for are counted") {
  if (!has_chakra()) return;
  const TraceCounts counts = count_trace(read({made_call(1, 8), made_call(2, 8), {.id = 3, .data = {2}}}));
  CHECK(counts.collectives == 2);
  CHECK(counts.unwaited == 1);
}

TEST_CASE("calls of a group are on a stream of their own, and wait for what is before them on the recorded one") {
  if (!has_chakra()) return;
  // One recorded stream: kernel 5 us, call of group a, call of group b, kernel 2 us; 5 + 10 + 10 + 2.
  MadeNode first{.id = 1, .duration_us = 5, .stream = 14}, last{.id = 4, .duration_us = 2, .stream = 14};
  const RankTrace tasks = rank_trace(read({first, made_call(2, 8, {}, 0, "a"), made_call(3, 8, {}, 0, "b"), last}));
  CHECK(tasks.streams.size() == 3);
  CHECK(length(tasks) == 27 * us);
}

TEST_CASE("with sync the first kernel of that name waits for all collectives before it") {
  if (!has_chakra()) return;
  const ExecutionTrace trace = read(
      {{.id = 1, .duration_us = 1}, made_call(2, 8, {1}), {.id = 3, .duration_us = 4, .name = "multi_tensor_apply"}});
  CHECK(length(rank_trace(trace)) == 11 * us);
  const RankTrace synced = rank_trace(trace, {.sync = "tensor_apply"});
  CHECK(length(synced) == 15 * us);
  CHECK(synced.synced_at == "multi_tensor_apply");
  CHECK(rank_trace(trace, {.sync = "adam"}).synced_at.empty());
}

TEST_CASE("a trace with start times says how much of its time its nodes cover") {
  if (!has_chakra()) return;
  // 100 to 110, 105 to 125 and 140 to 150: 35 of 50 us.
  const TraceCounts counts = count_trace(read({{.id = 1, .duration_us = 10, .start_us = 100},
                                               {.id = 2, .duration_us = 20, .stream = 8, .start_us = 105},
                                               {.id = 3, .duration_us = 10, .start_us = 140}}));
  CHECK(counts.recorded_us == 50);
  CHECK(counts.covered_us == 35);
}

TEST_CASE("what is left of random graphs takes as long as all of it, with fewer waits and tasks") {
  if (!has_chakra()) return;
  std::size_t edges = 0, kept = 0, tasks = 0, merged = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    CAPTURE(seed);
    std::mt19937 engine(seed);
    const auto random = [&](unsigned below) { return static_cast<unsigned>(engine() % below); };
    std::vector<MadeNode> nodes;
    const unsigned n = 2 + random(40), n_streams = 1 + random(4);
    for (unsigned i = 0; i < n; ++i) {
      MadeNode node{.id = 100 + i, .duration_us = random(20), .stream = static_cast<std::int64_t>(random(n_streams))};
      if (random(5) == 0) node = made_call(100 + i, 8, {}, 0, random(2) == 0 ? "a" : "b");
      if (random(3) == 0) node.start_us = random(100);
      for (unsigned d = random(4); d > 0 && i > 0; --d) node.data.push_back(100 + random(i));
      if (random(3) == 0) node.control.push_back(100 + random(n));
      nodes.push_back(node);
    }
    const ExecutionTrace trace = read(nodes);
    GraphOptions all;
    all.reduce = false;
    const RankTrace whole = rank_trace(trace, all), reduced = rank_trace(trace);
    CHECK(length(whole) == length(reduced));
    edges += whole.counts.kept_edges;
    kept += reduced.counts.kept_edges;
    tasks += whole.n_tasks();
    merged += reduced.n_tasks();
  }
  CHECK(kept * 2 < edges);
  CHECK(merged * 10 < tasks * 9);
}

}  // namespace rank_trace_test
