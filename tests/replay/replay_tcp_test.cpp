// Schedules carried out over real sockets, by a process an actor.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/written_schedule.hpp"
#include "validate/replay/memory.hpp"
#include "validate/replay/tcp/tcp_replay.hpp"

namespace replay_tcp_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay;
using namespace std::chrono_literals;
using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::temporary_file;

namespace {

TcpOutcome replay_once(const std::vector<const Schedule*>& schedules, std::chrono::nanoseconds timeout = 30s) {
  TcpReplay replay{.jobs = {}, .repeats = {.warmups = 0, .timed = 1}, .options = {.timeout = timeout}, .key = "test"};
  for (const Schedule* schedule : schedules) replay.jobs.push_back({"", schedule});
  return replay_here(replay);
}

std::string outcome(const Schedule& schedule) {
  const Measured measured = replay_once({&schedule}).jobs.at(0);
  return measured.wrong == 0 ? "right" : measured.first_wrong;
}

const char* two_jobs = R"({
  "version": 1, "name": "two flows into one port",
  "topology": {"kind": "star", "ranks": 3, "link": {"bandwidth": "1 GB/s", "latency": "0 us"}},
  "collective": {"op": "pairs", "algorithm": "direct", "bytes": "64 KiB", "ranks": ["gpu1", "gpu0"]},
  "jobs": [{"name": "second", "collective": {"op": "pairs", "algorithm": "direct", "bytes": "256 KiB", "ranks": ["gpu2", "gpu0"]}}]
})";

std::string star_of(int ranks) {
  return temporary_file("star.json", fmt::format(R"({{
  "version": 1, "name": "star",
  "topology": {{"kind": "star", "ranks": {}, "link": {{"bandwidth": "1 GB/s", "latency": "0 us"}}}},
  "collective": {{"op": "all_reduce", "algorithm": "ring", "bytes": "4 KiB"}}}})",
                                                 ranks));
}

}  // namespace

TEST_CASE("over sockets every algorithm comes out right to the bit: 3 and 4 ranks, chunks of two sizes") {
  for (const int ranks : {3, 4}) {  // with and without what folds ranks away
    for (const Schedule& made : every_algorithm(ranks, Bytes{5 * ranks + 3})) {
      const Schedule schedule = stretched(made, element_bytes);
      CAPTURE(ranks);
      CAPTURE(schedule.algorithm);
      CAPTURE(to_string(schedule.collective.op));
      CHECK(outcome(schedule) == "right");
    }
  }
}

TEST_CASE("messages larger than all buffers on the way come through, and a time is the slowest rank's") {
  const Schedule schedule = stretched(ring_all_reduce(3, 3_MiB), element_bytes);  // 4 MiB per message
  const Measured measured = replay_once({&schedule}).jobs.at(0);
  CHECK(measured.wrong == 0);
  // 16 MiB of each rank, at well below 100 GB/s: a time of less was never measured.
  CHECK(measured.min > Picoseconds(160us));
  CHECK(measured.max < Picoseconds(30s));
}

TEST_CASE("a wrong number over sockets is named as it is elsewhere") {
  WrittenSchedule t(all_reduce(2, 4_B), 2, 1, 1);  // rank 1 overwrites where it should add
  t.like.layout[static_cast<std::size_t>(Buffer::scratch)] = Layout::of_sizes({4_B});
  const Region scratch{Buffer::scratch, 0, 1};
  for (const Actor rank : {0, 1}) {
    Step& exchange = t.step(rank);
    exchange.send(1 - rank, chunk(0));
    exchange.receive(1 - rank, scratch);
    if (rank == 0)
      t.step(rank).add(scratch, chunk(0));
    else
      t.step(rank).copy(scratch, chunk(0));
  }
  const float mine = contribution(2, 0, 0, 0), sum = mine + contribution(2, 1, 0, 0);
  CHECK(outcome(t.schedule()) == fmt::format("rank 1: data[0], element 0: expected {}, found {}", sum, mine));
}

TEST_CASE("compute takes its time, and a run that takes longer than the time-out says what is open") {
  WrittenSchedule t(all_reduce(1, 4_B), 1, 1, 1);
  t.step(0).compute(Picoseconds(3s));
  const Schedule schedule = t.schedule();
  CHECK(replay_once({&schedule}).jobs.at(0).min >= Picoseconds(3s));
  CHECK_THROWS_WITH_AS(replay_once({&schedule}, 1s),
                       "rank 0: the run took longer than 1 s (in run 1 of 1; still pending: lane 0, step 0: compute)",
                       EnvironmentError);
}

TEST_CASE("two schedules at a time have a measured time each") {
  WrittenSchedule t(all_reduce(1, 4_B), 1, 1, 1);
  t.step(0).compute(Picoseconds(100ms));
  const Schedule slow = t.schedule(), ring = stretched(ring_all_reduce(2, 8_B), element_bytes);
  const TcpOutcome measured = replay_once({&ring, &slow});
  REQUIRE(measured.jobs.size() == 2);
  CHECK(measured.jobs[0].wrong == 0);
  CHECK(measured.jobs[0].max < Picoseconds(100ms));
  CHECK(measured.jobs[1].min >= Picoseconds(100ms));
}

TEST_CASE("replay: the result document is that of run, with the measured times added") {
  const std::string scenario = star_of(3);
  const Outcome ran = run_command({"run", scenario, "--format", "json"});
  const Outcome replayed = run_command({"replay", scenario, "--backend", "tcp", "--repeats", "3", "--format", "json"});
  CAPTURE(replayed.err);
  REQUIRE(replayed.code == 0);
  auto result = nlohmann::json::parse(replayed.out).at("results").at(0);
  const auto plain = nlohmann::json::parse(ran.out).at("results").at(0);
  CHECK(result.at("measured_min_us") <= result.at("measured_us"));
  CHECK(result.at("measured_us") <= result.at("measured_max_us"));
  CHECK(result.at("measured_min_us") > 0);
  CHECK(result.at("wrong") == 0);
  CHECK(result.at("checked") == 5 * 3 * 1024);  // two warm-ups and three runs, three ranks, 4 KiB
  CHECK(result.at("error").get<double>() ==
        doctest::Approx(result.at("time_us").get<double>() / result.at("measured_us").get<double>() - 1));
  for (const char* key : {"measured_us", "measured_min_us", "measured_max_us", "checked", "wrong", "error"})
    result.erase(key);
  // 1024 elements do not divide by three: chunks of whole elements are not those of single bytes.
  CHECK(result.at("time_us").get<double>() == doctest::Approx(plain.at("time_us").get<double>()).epsilon(0.01));
  for (const char* key : {"time_us", "algbw_GBps", "busbw_GBps", "closed_form", "fingerprint", "bottleneck"}) {
    CHECK(result.contains(key));
    result.erase(key);
  }
  for (const auto& member : result.items()) {
    CAPTURE(member.key());
    CHECK(member.value() == plain.at(member.key()));
  }
}

TEST_CASE("replay: jobs have a row each, and csv and tables the new columns") {
  const std::string scenario = temporary_file("two.json", two_jobs);
  const Outcome csv = run_command({"replay", scenario, "--backend", "tcp", "--repeats", "1", "--format", "csv"});
  CAPTURE(csv.err);
  REQUIRE(csv.code == 0);
  CHECK(csv.out.find(",busbw_GBps,measured_us,measured_min_us,measured_max_us,checked,wrong,error,") !=
        std::string::npos);
  CHECK(csv.out.find(",second,") != std::string::npos);
  const Outcome table = run_command({"replay", scenario, "--backend", "tcp", "--repeats", "1"});
  CHECK(table.out.find("  measured  ") != std::string::npos);
  CHECK(table.out.find("wrong") != std::string::npos);
}

TEST_CASE("replay: what it cannot do is refused before anything is started") {
  const std::string scenario = star_of(3);
  const auto refused = [&](const std::string& set) {
    return run_command({"replay", scenario, "--backend", "tcp", "--set", set});
  };
  const Outcome odd = refused("collective.bytes=6 B");
  CHECK(odd.code == 3);
  CHECK(odd.err.find("/collective/bytes: expected a multiple of 4 bytes, found 6 B") != std::string::npos);
  const Outcome fault = refused(R"(faults=[{"link": "gpu0 -> switch0", "bandwidth": "50%"}])");
  CHECK(fault.code == 3);
  CHECK(fault.err.find("/faults: expected a run without disturbances, found faults") != std::string::npos);
  const Outcome late = refused(R"(disturbance={"late": [{"rank": 0, "by": "1 ms"}]})");
  CHECK(late.code == 3);
  CHECK(late.err.find("/disturbance: expected a run without disturbances") != std::string::npos);
  const Outcome backend = run_command({"replay", scenario, "--backend", "pigeons"});
  CHECK(backend.code == 2);
  const Outcome timeout = run_command({"replay", scenario, "--backend", "tcp", "--timeout", "soon"});
  CHECK(timeout.code == 2);
  CHECK(timeout.err.find("--timeout") != std::string::npos);
}

TEST_CASE("a hosts file names a host a process, and the port of the first") {
  const TcpHosts hosts =
      read_hosts(temporary_file("hosts", "# ours\nalpha:7117\n\n  beta   # the second\n10.0.0.3\r\n"));
  CHECK(hosts.hosts == std::vector<std::string>{"alpha", "beta", "10.0.0.3"});
  CHECK(hosts.port == 7117);
  const auto refusal = [](const std::string& text) -> std::string {
    return ringsim::test::complaint([&] { read_hosts(temporary_file("hosts", text)); });
  };
  const auto ends_with = [](const std::string& text, const std::string& end) { return text.ends_with(end); };
  const std::string hint =
      "\n  hint: the first process listens there for the others, for example 10.0.0.1:7117 or [fd00::1]:7117";
  CHECK(ends_with(refusal("alpha\nbeta\n"), "hosts:1: expected HOST:PORT, found \"alpha\"" + hint));
  CHECK(ends_with(refusal("alpha:0\n"), "hosts:1: expected HOST:PORT, found \"alpha:0\"" + hint));
  CHECK(ends_with(refusal("alpha:70000\n"), "hosts:1: expected HOST:PORT, found \"alpha:70000\"" + hint));
  CHECK(ends_with(refusal("alpha:7117\nbeta:7118\n"),
                  "hosts:2: expected one host, found \"beta:7118\"\n  hint: write one line per process; only the first "
                  "has a port"));
  CHECK(ends_with(refusal("# none\n"), "hosts: expected one host per line, found none"));
}

}  // namespace replay_tcp_test
