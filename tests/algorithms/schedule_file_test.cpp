// Schedules from files, as scenarios and the command take them; and damaged ones, which are read or refused.
#include "algorithms/formats/schedule_file.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <random>
#include <string>

#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "validate/results/result.hpp"

namespace schedule_file_test {

using namespace ringsim;
using namespace ringsim::literals;
using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::temporary_file;

namespace {

std::filesystem::path schedules() { return std::filesystem::path(test::source_dir()) / "tests/data/schedules"; }
std::string text_of(const std::string& name) { return test::read_file(schedules() / name); }

/// A scenario of three gpus next to a copy of the file, with the algorithm and op given; returns its path.
std::string scenario(const std::string& file, const std::string& op = "all_reduce", int ranks = 3,
                     const std::string& bytes = "6 kB") {
  const std::string copy = temporary_file(file, text_of(file));
  const std::string text = fmt::format(
      R"({{"version": 1, "topology": {{"kind": "star", "ranks": {}, "link": {{"bandwidth": "10 GB/s", "latency": "500 ns"}}}},
          "collective": {{"op": "{}", "algorithm": {{"file": "{}"}}, "bytes": "{}"}}}})",
      ranks, op, copy, bytes);
  return temporary_file("from-file.json", text);
}

std::string complaint(const std::string& path) {
  try {
    predict(ScenarioFile::load(path).point(0));
    return "";
  } catch (const InputError& error) {
    return error.message();
  }
}

}  // namespace

TEST_CASE("a scenario times a schedule from a file; the chain of three takes five messages one after the other") {
  // Up: 0 to 1, 1 to 2; down: 2 to 1, 1 to 0. Each a + p/b = 1 us + 0.6 us; nothing overlaps.
  const Result result = results_of(ScenarioFile::load(scenario("chain-3.xml")).point(0)).front();
  const Prediction& p = result.prediction;
  CHECK(p.time == 4 * Picoseconds{1'600'000});
  CHECK(p.algorithm == "file");
  REQUIRE(p.parameters.size() == 1);
  CHECK(p.parameters[0] == std::pair<std::string, std::string>{"name", "\"chain\""});
  CHECK_FALSE(result.form.has_value());
  CHECK(p.proof.by == Proof::By::all_ranks);
}

TEST_CASE("a schedule from a file runs on one piece of the buffer after the other if a chunk is set, as MSCCL does") {
  // Halves of 3 kB take 1.3 us a hop by themselves. The second half goes up the chain while the first comes down, so
  // that they share both directions of the middle rank's cable: two of the six hops in a row take 1.6 us.
  const Scenario halves = ScenarioFile::load(scenario("chain-3.xml"), {"transport.chunk=3 kB"}).point(0);
  CHECK(predict(halves).time == 4 * Picoseconds{1'300'000} + 2 * Picoseconds{1'600'000});
  // The pair sends ahead of its receiver, so what it sends has to fit into the slots of the protocol.
  const std::string pair = scenario("pair-2.xml", "all_reduce", 2, "16 MiB");
  const auto in_pieces = [&](const char* chunk) {
    return predict(
        ScenarioFile::load(pair, {"transport.protocol=simple", std::string("transport.chunk=") + chunk}).point(0));
  };
  CHECK_THROWS_AS(in_pieces("16 MiB"), InputError);  // messages of 8 MiB, and 8 slots of 512 KiB
  CHECK(in_pieces("1 MiB").proof.by == Proof::By::all_ranks);
}

TEST_CASE("a job may also take a schedule from a file, and is refused if the file does something else") {
  const std::string copy = temporary_file("job.xml", text_of("chain-3.xml"));
  const auto with_job = [&](const char* op) {
    return temporary_file("job.json", fmt::format(R"({{"version": 1,
        "topology": {{"kind": "star", "ranks": 6, "link": {{"bandwidth": "10 GB/s", "latency": "500 ns"}}}},
        "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "6 kB", "ranks": ["gpu0", "gpu1", "gpu2"]}},
        "jobs": [{{"name": "chain", "start": "1 us", "collective": {{"op": "{}", "algorithm": {{"file": "{}"}},
                   "bytes": "6 kB", "ranks": ["gpu3", "gpu4", "gpu5"]}}}}]}})",
                                                  op, copy));
  };
  const Prediction p = predict(ScenarioFile::load(with_job("all_reduce")).point(0));
  REQUIRE(p.jobs.size() == 1);
  CHECK(p.time == 4 * Picoseconds{1'200'000});          // 2(K-1)(a + p/(K b)) on ports of its own
  CHECK(p.jobs[0].time == 4 * Picoseconds{1'600'000});  // four hops of a + p/b
  CHECK(p.jobs[0].algorithm == "file");
  try {
    ScenarioFile::load(with_job("broadcast")).point(0);
    FAIL("a chain that is an all_reduce serves no broadcast");
  } catch (const InputError& error) {
    CHECK(error.where().find("/jobs/0/collective/op") != std::string::npos);
  }
}

TEST_CASE("the content of the file is part of the hash, its name is not") {
  const std::string one = temporary_file("one.xml", text_of("chain-3.xml")),
                    two = temporary_file("two.xml", text_of("chain-3.xml"));
  const std::string other = temporary_file("other.xml", text_of("chain-3.xml") + "\n");
  const auto hash = [&](const std::string& file) {
    return ScenarioFile::load(scenario("chain-3.xml"), {"collective.algorithm={\"file\": \"" + file + "\"}"})
        .point(0)
        .hash;
  };
  CHECK(hash(one) == hash(two));
  CHECK(hash(one) != hash(other));
  const ScenarioFile both =
      ScenarioFile::load(scenario("chain-3.xml"), {"collective.algorithm=[\"ring\", {\"file\": \"" + one + "\"}]"});
  CHECK(both.size() == 2);
  CHECK(both.point(1).hash == hash(one));
  // The key "name" is allowed too.
  const ScenarioFile named = ScenarioFile::load(
      scenario("chain-3.xml"), {"collective.algorithm={\"name\": \"file\", \"file\": \"" + one + "\"}"});
  CHECK(named.point(0).hash == hash(one));
}

TEST_CASE("a file that does something else, or at another number of ranks or bytes, is refused or said") {
  CHECK(complaint(scenario("chain-3.xml", "broadcast")) ==
        "expected the collective of chain, all_reduce, found broadcast");
  CHECK(complaint(scenario("chain-3.xml", "all_reduce", 4)) == "expected as many GPUs as chain has ranks, 3, found 4");
  CHECK(complaint(scenario("reduce-scatter-3.xml", "reduce_scatter", 3, "7 B")) ==
        "expected a size that the 3 chunks of parts divide, found 7 B");
  const Scenario small = ScenarioFile::load(scenario("pair-2.xml", "all_reduce", 2, "8 kB")).point(0);
  REQUIRE(small.warnings.size() == 1);
  CHECK(small.warnings[0].ends_with("pair & back is intended for 2 to 4096 B; it is timed for 8000 B anyway"));
}

TEST_CASE("a file's buffers are its own: in_place is refused both ways, also where it says what the op has anyhow") {
  for (const char* in_place : {"true", "false"}) {
    CAPTURE(in_place);
    const std::string file = scenario("reduce-scatter-3.xml", "reduce_scatter");
    CHECK_NOTHROW(ScenarioFile::load(file).point(0));
    try {
      ScenarioFile::load(file, {std::string("collective.in_place=") + in_place}).point(0);
      FAIL("a schedule from a file has buffers of its own");
    } catch (const InputError& error) {
      CHECK(error.where().ends_with("/collective/in_place"));
      CHECK(error.message() ==
            "expected in_place only for a collective that can use other buffers, found a schedule from a file");
    }
  }
}

TEST_CASE("run refuses what needs slots, though it is proved") {
  const std::string message = complaint(scenario("pair-2.xml", "all_reduce", 2, "2 B"));
  CHECK(message ==
        "the schedule pair & back needs messages that are sent ahead of their receiver, but protocol none has no slots "
        "for them (8 operations, 1 slots needed: every operation of every actor was checked)");
  const Outcome proved = run_command({"schedule", "check", (schedules() / "pair-2.xml").string()});
  CHECK(proved.code == 0);
  CHECK(proved.out ==
        "pair & back all_reduce, 2 ranks: proved; 8 operations, 1 slots needed: every operation of every\n"
        "  actor was checked\n");
}

TEST_CASE("a faulty schedule file is refused with the scenario, the place in it, the file and its line") {
  const auto where_and_message = [](const std::string& path) {
    try {
      predict(ScenarioFile::load(path).point(0));
      return std::string();
    } catch (const InputError& error) {
      const std::string where = error.where();
      return where.substr(where.rfind('/', where.find(": /")) + 1) + ": " + error.message();
    }
  };
  const std::string path = scenario("chain-3.xml");
  const std::string text = test::read_file(path), pointer = "from-file.json: /collective/algorithm/file: ";
  const auto with = [&](const std::string& what, const std::string& by) {
    const std::string copy = temporary_file("faulty.xml", test::replaced(text_of("chain-3.xml"), what, by));
    const std::size_t first = text.find("\"file\": \"") + 9;
    return std::pair{
        copy, temporary_file("from-file.json", text.substr(0, first) + copy + text.substr(text.find('"', first)))};
  };
  // Not MSCCL XML.
  const auto unread = with("type=\"rrs\"", "type=\"rrr\"");
  const std::string syntax = where_and_message(unread.second);
  CHECK(syntax.starts_with(pointer + unread.first + ":"));
  CHECK(syntax.find("expected a type of") != std::string::npos);
  // MSCCL XML, but no all-reduce: a message is never received.
  const auto wrong = with("type=\"rcs\"", "type=\"r\"");
  CHECK(where_and_message(wrong.second).starts_with(pointer + "schedule chain all_reduce of 3 ranks: rank"));
}

TEST_CASE("sends of a GOAL file may leave in turn; other formats order theirs themselves") {
  const std::string path = scenario("ping-pong.goal", "broadcast", 2), text = test::read_file(path);
  const auto with_sends = [&](const std::string& of, const std::string& sends) {
    return temporary_file("sends.json",
                          test::replaced(of, "\"}, \"bytes\"", "\", \"sends\": \"" + sends + "\"}, \"bytes\""));
  };
  CHECK(complaint(with_sends(text, "in_turn")) == "");
  CHECK(complaint(with_sends(text, "in_order")).find("in_turn") != std::string::npos);
  const std::string chain = test::read_file(scenario("chain-3.xml"));
  CHECK(complaint(with_sends(chain, "in_turn")).starts_with("expected sends only for a GOAL file, found "));
  const std::string goal = (schedules() / "ping-pong.goal").string(), xml = (schedules() / "chain-3.xml").string();
  CHECK(run_command({"schedule", "import", goal, "--sends-in-turn", "-o", temporary_file("g.json", "")}).code == 0);
  CHECK(run_command({"schedule", "import", xml, "--sends-in-turn", "-o", temporary_file("x.json", "")})
            .err.find("--sends-in-turn has no effect") != std::string::npos);
}

TEST_CASE("a protocol that cannot carry a schedule, and more bytes than can be counted, are not the topology's fault") {
  const auto where = [](const std::string& path, const std::vector<std::string>& set) {
    try {
      predict(ScenarioFile::load(path, set).point(0));
      return std::string();
    } catch (const InputError& error) {
      return error.where().substr(error.where().find("from-file.json"));
    }
  };
  CHECK(where(scenario("pair-2.xml", "all_reduce", 2, "2 B"), {}) == "from-file.json: /transport/protocol");
  CHECK(where(scenario("chain-3.xml"), {"collective.algorithm=\"ring\"", "collective.bytes=\"9000000 TB\""}) ==
        "from-file.json");
  CHECK(where(scenario("chain-3.xml"), {"collective.algorithm=\"ring\"", "network.model=\"packet\"",
                                        "network.packet.flow_control=\"pause\"", "network.packet.buffer=\"5 KiB\""}) ==
        "from-file.json: /network/packet");
}

TEST_CASE("a GOAL file may stand for any collective, and the result says that its proof is of matching only") {
  const Outcome json = run_command({"run", scenario("ping-pong.goal", "broadcast", 2), "--format", "json"});
  CHECK(json.code == 0);
  CHECK(json.out.find("\"proof\": \"matching only\"") != std::string::npos);
  const Outcome table = run_command({"run", scenario("ping-pong.goal", "broadcast", 2)});
  CHECK(table.out.find(
            "matching only: file name=goal has no regions, so it is not proved that it implements the collective;\n  "
            "bandwidths are collective.bytes over time, whatever it sends\n") != std::string::npos);
}

TEST_CASE("import, export and check go round: scenario, MSCCL XML, JSON, scenario") {
  const std::string star = test::source_dir() + "/scenarios/star.json";
  const std::vector<std::string> set{"--set", "topology.ranks=4", "--set", "collective.algorithm=\"ring\""};
  const auto exported = [&](const std::string& format) {
    std::vector<std::string> arguments{"schedule", "export", star, "--to", format};
    arguments.insert(arguments.end(), set.begin(), set.end());
    const Outcome outcome = run_command(arguments);
    CHECK(outcome.code == 0);
    return outcome.out;
  };
  const std::string xml = temporary_file("ring.xml", exported("msccl"));
  const Outcome imported = run_command({"schedule", "import", xml});
  CHECK(imported.code == 0);
  CHECK(imported.err ==
        "ringsim: ring all_reduce, 4 ranks: proved; 48 operations, 1 slots needed: every operation of every actor was "
        "checked\n");
  const std::string again = temporary_file("ring.json", imported.out);
  CHECK(run_command({"schedule", "check", again}).code == 0);
  // The JSON of the scenario itself keeps its symmetry, and needs no slots.
  const Outcome direct = run_command({"schedule", "check", temporary_file("direct.json", exported("json"))});
  CHECK(direct.out ==
        "ring all_reduce, 4 ranks: proved; 48 operations, 0 slots needed: one chunk represents all chunks;\n"
        "  the symmetry was checked at every step of every rank\n");
  const Outcome goal = run_command({"schedule", "check", temporary_file("ring.goal", exported("goal"))});
  CHECK(goal.out.find("matching only") != std::string::npos);
  const Outcome helpers = run_command({"schedule", "export", star, "--to", "msccl", "--set",
                                       R"(collective.algorithm={"name": "parameter_server", "servers": 2})"});
  CHECK(helpers.code == 3);
  CHECK(helpers.out == "");
  CHECK(helpers.err.find("it has 2 helpers") != std::string::npos);
  const std::string same = temporary_file("same.json", "");  // the input by another name
  std::filesystem::remove(same);
  std::filesystem::create_symlink(xml, same);
  CHECK(run_command({"schedule", "import", xml, "-o", same}).code == 3);
}

TEST_CASE("a schedule that adds up in switches takes the same time from its file, on the switches of the topology") {
  const auto write = [](const std::string& topology) {
    return temporary_file("in-switch.json", fmt::format(R"({{"version": 1, "topology": {},
        "collective": {{"op": "all_reduce", "algorithm": "in_switch", "bytes": "1 MB"}}}})",
                                                        topology));
  };
  const std::string star = R"({"kind": "star", "ranks": 8, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}})",
                    leaves = R"({"kind": "cluster", "node": "hgx-h100", "nodes": 2, "fabric": {"kind": "leaf_spine",
      "nodes_per_leaf": 1, "spines": 1, "link": {"bandwidth": "400 Gb/s", "latency": "150 ns"}}})";
  std::string file;
  for (const std::string& topology : {leaves, star}) {
    const std::string scenario = write(topology);
    file = temporary_file("switches.json", run_command({"schedule", "export", scenario, "--to", "json"}).out);
    const Prediction made = predict(ScenarioFile::load(scenario).point(0)),
                     read = predict(
                         ScenarioFile::load(scenario, {"collective.algorithm={\"file\": \"" + file + "\"}"}).point(0));
    CHECK(read.time == made.time);
    CHECK(read.transfers == made.transfers);
    REQUIRE(read.bottleneck.has_value());
    CHECK(read.bottleneck->link == made.bottleneck->link);
  }
  // The star's schedule where there are two switches for as many ranks.
  const std::string two = write(R"({"kind": "graph", "nodes": [)"
                                R"({"name": "g0", "kind": "gpu"}, {"name": "g1", "kind": "gpu"},
       {"name": "g2", "kind": "gpu"}, {"name": "g3", "kind": "gpu"}, {"name": "g4", "kind": "gpu"},
       {"name": "g5", "kind": "gpu"}, {"name": "g6", "kind": "gpu"}, {"name": "g7", "kind": "gpu"},
       {"name": "s0", "kind": "switch"}, {"name": "s1", "kind": "switch"}],
      "links": [{"from": "g0", "to": "s0", "bandwidth": "1 GB/s", "latency": "0 us"},
       {"from": "g1", "to": "s0", "bandwidth": "1 GB/s", "latency": "0 us"},
       {"from": "g2", "to": "s0", "bandwidth": "1 GB/s", "latency": "0 us"},
       {"from": "g3", "to": "s0", "bandwidth": "1 GB/s", "latency": "0 us"},
       {"from": "g4", "to": "s1", "bandwidth": "1 GB/s", "latency": "0 us"},
       {"from": "g5", "to": "s1", "bandwidth": "1 GB/s", "latency": "0 us"},
       {"from": "g6", "to": "s1", "bandwidth": "1 GB/s", "latency": "0 us"},
       {"from": "g7", "to": "s1", "bandwidth": "1 GB/s", "latency": "0 us"},
       {"from": "s0", "to": "s1", "bandwidth": "1 GB/s", "latency": "0 us"}]})");
  const Outcome refused = run_command({"run", two, "--set", "collective.algorithm={\"file\": \"" + file + "\"}"});
  CHECK(refused.code == 3);
  CHECK(refused.err.find("expected switches that connect the ranks as in in_switch segments=64, 1, found 2") !=
        std::string::npos);
}

TEST_CASE("schedule show draws ranks as rows and steps as columns, of scenarios and of files") {
  const Outcome outcome = run_command({"schedule", "show", test::source_dir() + "/scenarios/star.json", "--picture",
                                       "--set", "topology.ranks=3", "--set", "collective.algorithm=\"ring\"", "--set",
                                       "collective.bytes=\"1 KiB\"", "--set", "network.model=\"fair\""});
  CHECK(outcome.out ==
        "ring all_reduce, 3 ranks, 1 KiB\n2>1: chunk 2 is sent to rank 1; 2<1: chunk 2 is received from rank 1; 2+1: "
        "it is received and added\n\nrank | 0       | 1       | 2       | 3\n0    | 0>1 2+2 | 2>1 1+2 | 1>1 0<2 | 0>1 "
        "2<2\n1    | 1>2 0+0 | 0>2 2+0 | 2>2 1<0 | 1>2 0<0\n2    | 2>0 1+1 | 1>0 0+1 | 0>0 2<1 | 2>0 1<1\n");
  const Outcome file = run_command({"schedule", "show", (schedules() / "chain-3.xml").string(), "--picture"});
  CHECK(file.out.find("1.0       | s0-1=0-1+0 | s0-1>2\n") != std::string::npos);
  CHECK(file.out.find("1.1       | @0:2 0-1<2 | 0-1>0\n") != std::string::npos);
  const Outcome set =
      run_command({"schedule", "show", (schedules() / "chain-3.xml").string(), "--set", "topology.ranks=3"});
  CHECK(set.code == 3);
}

TEST_CASE("other text is no schedule") {
  CHECK_THROWS_WITH_AS(read_schedule("", "x"),
                       "x: expected a schedule, found an empty file\n  hint: supported formats: MSCCL XML, MSCCL++ "
                       "JSON, ringsim JSON and GOAL",
                       InputError);
  CHECK_THROWS_WITH_AS(
      read_schedule("hello", "x"),
      "x: expected MSCCL XML (<algo ...), MSCCL++ or ringsim JSON ({...) or GOAL (num_ranks ...), found other text",
      InputError);
  CHECK_FALSE(is_schedule("// a question\n{\"version\": 1}"));
  CHECK_FALSE(is_schedule(R"({"name": "threadblocks", "version": 1})"));  // a plan has it as key
  CHECK(is_schedule("/* made by hand */ // so\nnum_ranks 1"));
  CHECK(is_schedule("\xEF\xBB\xBF <algo/>"));
  CHECK_FALSE(is_schedule("/* open"));
}

TEST_CASE("a damaged schedule is read and proved, or refused, never a crash") {
  for (const char* extension : {".xml", ".json", ".goal"}) {
    for (const auto& path : test::files_in(schedules(), extension)) {
      CAPTURE(path.string());
      int good = 0, refused = 0;
      const std::string text = test::read_file(path);
      for (unsigned seed = 0; seed < 1000; ++seed) {
        CAPTURE(seed);
        std::mt19937 random(seed);
        try {
          const auto stored =
              std::make_shared<const StoredSchedule>(read_schedule(test::damaged(text, random), "damaged"));
          check(schedule_of(stored, even_size(*stored)));
          ++good;
        } catch (const InputError&) {
          ++refused;
        }
      }
      CHECK(good > 0);  // few: in so short a file most bytes count
      CHECK(refused > 100);
    }
  }
}

}  // namespace schedule_file_test
