// Faults, disturbance and jobs as a scenario says them: what they become, what is refused, what comes out.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/message_page.hpp"
#include "validate/closed_forms/form_of.hpp"

namespace disturbance_scenario_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

/// A ring all-reduce of 40 MB over a star of four ranks at 10 GB/s, 1 us per link: 6 steps of 1002 us.
std::string scenario(const std::string& more, const std::string& model = "fair") {
  return R"({"version": 1,
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"},
  "network": {"model": ")" +
         model + R"("})" + (more.empty() ? "" : ",\n  " + more) + "}";
}

std::vector<Prediction> results(const std::string& text) {
  const ScenarioFile file = ScenarioFile::parse(text, "s.json");
  std::vector<Prediction> found;
  for (std::size_t i = 0; i < file.size(); ++i) found.push_back(predict(file.point(i)));
  return found;
}
Picoseconds time_with(const std::string& more, const std::string& model = "fair") {
  return results(scenario(more, model)).at(0).time;
}
std::string hash_with(const std::string& more) { return ScenarioFile::parse(scenario(more), "s.json").hash(); }

std::string complaint(const std::string& text) {
  return ringsim::test::complaint([&] { results(text); });
}

}  // namespace

TEST_CASE("faults are what they say: shares and rates, links and nodes, with a beginning and an end") {
  CHECK(time_with("") == 6 * 1002us);
  // An outgoing port at a quarter: 4000 us per step instead of 1000.
  CHECK(time_with(R"("faults": [{"link": "gpu1 -> switch0", "bandwidth": "25%"}])") == 6 * 4002us);
  CHECK(time_with(R"("faults": [{"link": "gpu1 -> switch0", "bandwidth": "2.5 GB/s"}])") == 6 * 4002us);
  CHECK(time_with(R"("faults": [{"link": "gpu1", "bandwidth": "20 Gb/s", "at": "0 us"}])") == 6 * 4002us);
  // From the end of the second step until that of the third: one step is slow; the one that has begun by 6006 us is on
  // its way at 10 GB/s from then on. 2004 us, 4002 us, three steps.
  CHECK(time_with(
            R"("faults": [{"link": "gpu1 -> switch0", "bandwidth": "25.0 %", "at": "2004 us", "until": "6006 us"}])") ==
        2004us + 4002us + 3 * 1002us);
  CHECK(time_with(R"("faults": [{"link": "gpu1 -> switch0", "bandwidth": "25%", "at": "2004 us"},
                               {"link": "gpu1", "state": "restored", "at": "6006 us"}])") == 9012us);
  // Down for a millisecond, 500 us into the first step: that step is a millisecond longer.
  CHECK(time_with(R"("faults": [{"link": "gpu1", "state": "down", "at": "500 us", "until": "1500 us"}])") == 7012us);
  CHECK(time_with(R"("faults": [{"link": "gpu1 -> switch0", "bandwidth": "33.3333%"}])") > 6 * 3002us);
}

TEST_CASE("delays and background are what they say") {
  CHECK(time_with(R"("disturbance": {"late": [{"rank": 2, "by": "3 ms"}]})") == 6 * 1002us + 3ms);
  CHECK(time_with(R"("disturbance": {"slow": [{"rank": 0, "step_delay": "5 us"}]})") == 6 * 1007us);
  const Picoseconds unsteady = time_with(R"("disturbance": {"jitter": {"most": "10 us", "seed": 4}})");
  CHECK(unsteady > 6 * 1002us);
  CHECK(unsteady <= 6 * 1012us);
  CHECK(unsteady != time_with(R"("disturbance": {"jitter": {"most": "10 us", "seed": 5}})"));
  // gpu3 -> gpu0 is a port in and a port out that the ring fills: all steps take twice as long but for the latency.
  CHECK(time_with(R"("disturbance": {"background": [{"from": "gpu3", "to": "gpu0", "bytes": "1 GB"}]})") == 6 * 2002us);
  CHECK(time_with(
            R"("disturbance": {"background": [{"from": "gpu3", "to": "gpu0", "bytes": "1 MB", "start": "7 ms"}]})") ==
        6 * 1002us);
  // 1 MB at the beginning of each step takes half of the ports for 200 us: 100 us more.
  CHECK(time_with(R"("disturbance": {"background": [{"from": "gpu3", "to": "gpu0", "bytes": "1 MB", "every": "1102 us",
                                                   "until": "2 ms"}]})") == 6 * 1002us + 2 * 100us);
}

TEST_CASE("a disturbed result says that the closed form is not its case, and which share of it was waiting") {
  const auto because = [](const std::string& more) {
    const Scenario point = ScenarioFile::parse(scenario(more), "s.json").point(0);
    return form_of(point, set_up(point))->because;
  };
  using Texts = std::vector<std::string>;
  CHECK(because("") == Texts{});
  CHECK(because(R"("faults": [], "disturbance": {"late": []}, "jobs": [])") == Texts{});
  CHECK(because(R"("faults": [{"link": "gpu0", "bandwidth": "50%", "at": "1 s"}])") == Texts{"links have faults"});
  CHECK(because(R"("disturbance": {"jitter": {"most": "1 us"}})") == Texts{"ranks are late, slow or unsteady"});
  CHECK(because(R"("disturbance": {"background": [{"from": "gpu0", "to": "gpu1", "bytes": "1 B"}]})") ==
        Texts{"background messages share the links"});
  CHECK(
      because(R"("jobs": [{"name": "b", "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 B"}}])") ==
      Texts{"other collectives run at the same time"});
  const Prediction late = results(scenario(R"("disturbance": {"late": [{"rank": 1, "by": "6012 us"}]})")).at(0);
  REQUIRE(late.bottleneck);
  CHECK(late.bottleneck->delay == 0.5);
}

TEST_CASE("every job has a result of its own, from its own start, and can be delayed by its name") {
  // Ranks 0 and 1 do the scenario's, 2 and 3 the job: no port in common, so that both take 2 (2000 us + 2 us).
  const auto both = [](const std::string& start, const std::string& more) {
    return results(R"({"version": 1,
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
      "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB", "ranks": ["gpu0", "gpu1"]},
      "jobs": [{"name": "second", "start": ")" +
                   start + R"(", "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB",
                                               "ranks": ["gpu3", "gpu2"]}}])" +
                   more + "}")
        .at(0);
  };
  Prediction found = both("1 ms", "");
  CHECK(found.job == "main");
  CHECK(found.time == 4004us);
  CHECK(found.transfers == 4);
  REQUIRE(found.jobs.size() == 1);
  CHECK(found.jobs[0].job == "second");
  CHECK(found.jobs[0].time == 4004us);
  CHECK(found.jobs[0].start == 1ms);
  CHECK(found.jobs[0].transfers == 4);
  CHECK(found.jobs[0].busbw == doctest::Approx(40e6 / 4004e-6 / 1e9));
  REQUIRE(found.jobs[0].bottleneck);
  CHECK(found.jobs[0].bottleneck->delay == 0);  // its start is nobody's delay
  found = both("0 us", R"(, "disturbance": {"late": [{"rank": 1, "by": "1 ms", "job": "second"}],
                                          "slow": [{"rank": 0, "step_delay": "1 us"}]})");
  CHECK(found.time == 4006us);
  CHECK(found.jobs[0].time == 5004us);
  // Helpers of several jobs sit on ports of their own: two servers each.
  const Prediction servers = results(scenario(R"("jobs": [{"name": "ps", "collective": {"op": "all_reduce",
    "algorithm": {"name": "parameter_server", "servers": 2}, "bytes": "4 kB", "ranks": ["gpu0", "gpu1"]}},
    {"name": "ps2", "collective": {"op": "all_reduce", "algorithm": {"name": "parameter_server", "servers": 2},
    "bytes": "4 kB", "ranks": ["gpu2", "gpu3"]}}])"))
                                 .at(0);
  CHECK(servers.jobs[0].time == servers.jobs[1].time);
}

TEST_CASE("every format reports jobs and delays, and only if there are any") {
  const std::string plain = test::temporary_file("plain.json", scenario(""));
  const std::string jobs =
      test::temporary_file("jobs.json", scenario(R"("disturbance": {"late": [{"rank": 0, "by": "1 ms"}]},
    "jobs": [{"name": "b", "start": "2 us", "collective": {"op": "alltoall", "algorithm": "pairwise", "bytes": "1 kB"}}])"));
  const auto out = [](const std::string& file, const std::string& format, const char* more = "--no-fold") {
    const test::Outcome outcome = test::run_command({"run", file, "--format", format, more});
    CHECK(outcome.code == 0);
    return outcome.out;
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  for (const char* format : {"table", "csv", "json", "jsonl", "nccl-tests"}) {
    CAPTURE(format);
    CHECK_FALSE(has(out(plain, format), "job"));
    CHECK_FALSE(has(out(plain, format), "delayed"));
  }
  // Names of columns begin as those of all rows do; a job's start stands before its time.
  CHECK(has(out(jobs, "csv"), "scenario.name,job,collective,"));
  CHECK(has(out(jobs, "csv"), ",bytes,start_us,time_us,"));
  CHECK(has(out(jobs, "csv"), ",40000000,,7012"));
  CHECK(has(out(jobs, "csv"), ",0.1426"));  // 1000 of 7012 us
  CHECK(has(out(jobs, "csv"), ",b,all_to_all,"));
  CHECK(has(out(jobs, "csv"), ",1000,2,"));
  CHECK(has(out(jobs, "jsonl"), R"("job":"main","collective":"all_reduce")"));
  CHECK(has(out(jobs, "jsonl"), R"("job":"b","collective":"all_to_all")"));
  CHECK(has(out(jobs, "json"), R"("start_us": 2.0,)"));
  CHECK(has(out(jobs, "table"), "job   collective"));
  CHECK(has(out(jobs, "table", "--explain"), "% to ranks that are late, slow or unsteady"));
  CHECK(has(out(jobs, "nccl-tests"), ", job b\n"));
}

TEST_CASE("faults, disturbance and jobs are part of the question, but not how they are spelled") {
  const std::string plain = hash_with("");
  CHECK(hash_with(R"("faults": [], "disturbance": {"late": [], "background": []}, "jobs": [])") == plain);
  const std::string quarter = hash_with(R"("faults": [{"link": "gpu0", "bandwidth": "25%"}])");
  CHECK(quarter != plain);
  CHECK(hash_with(R"("faults": [{"bandwidth": "25.00 %", "at": "0 ns", "link": "gpu0"}])") == quarter);
  CHECK(hash_with(R"("faults": [{"link": "gpu0", "bandwidth": "2.5 GB/s"}])") != quarter);
  CHECK(hash_with(R"("disturbance": {"jitter": {"most": "1 us"}})") ==
        hash_with(R"("disturbance": {"jitter": {"most": "1000 ns", "seed": 0}})"));
  const std::string job =
      R"("jobs": [{"name": "b", "collective": {"op": "alltoall", "algorithm": "direct", "bytes": "1 B"}}])";
  CHECK(hash_with(job) != plain);
  CHECK(hash_with(job) == hash_with(R"("jobs": [{"name": "b", "start": "0 s", "collective": {"op": "all_to_all",
    "algorithm": {"name": "direct"}, "bytes": "1 B"}}])"));
}

TEST_CASE("faults and disturbance are swept, in place and by path, and results do not depend on the threads") {
  const std::string swept = scenario(R"("faults": [{"link": "gpu0", "bandwidth": ["50%", "25%"]}],
    "sweep": {"disturbance.jitter.most": {"from": "1 us", "to": "4 us", "factor": 2}, "faults.0.at": ["0 us", "3 ms"]})");
  CHECK(ScenarioFile::parse(swept, "s.json").size() == 2 * 3 * 2);
  CHECK(ScenarioFile::parse(scenario(R"("sweep": {"faults": [[], [{"link": "gpu0", "bandwidth": "50%"}]]})"), "s")
            .size() == 2);
  const std::string file = test::temporary_file("swept.json", swept);
  const test::Outcome one = test::run_command({"run", file, "--format", "csv", "-j", "1"});
  CHECK(one.code == 0);
  CHECK(test::run_command({"run", file, "--format", "csv", "-j", "4"}).out == one.out);
  CHECK(test::run_command({"run", file, "--format", "csv", "--set", "faults.0.bandwidth=\"10%\""}).out != one.out);
}

TEST_CASE("bad faults, disturbances and jobs are refused, each with its place") {
  const std::string job = R"("collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 B"}})";
  const std::vector<std::string> rows{
      R"("faults": [{"bandwidth": "25%"}])",
      R"("faults": [{"link": "gpu0"}])",
      R"("faults": [{"link": "gpu0", "bandwidth": "25%", "state": "down"}])",
      R"("faults": [{"link": "gpu0", "bandwidth": 0.25}])",
      R"("faults": [{"link": "gpu0", "bandwidth": "%"}])",
      R"("faults": [{"link": "gpu0", "bandwidth": "-5%"}])",
      R"("faults": [{"link": "gpu0", "bandwidth": "12.34567%"}])",
      R"("faults": [{"link": "gpu0", "bandwidth": "0%"}])",
      R"("faults": [{"link": "gpu0", "bandwidth": "101%"}])",
      R"("faults": [{"link": "gpu0", "bandwidth": "11 GB/s"}])",
      R"("faults": [{"link": "gpu0 -> gpu1", "state": "down"}])",
      R"("faults": [{"link": "gpu0", "state": "broken"}])",
      R"("faults": [{"link": "gpu0", "state": "restored", "until": "1 us"}])",
      R"("faults": [{"link": "gpu0", "state": "down", "at": "2 us", "until": "2000 ns"}])",
      R"("faults": [{"link": "gpu0", "state": "down", "at": "500 us"}])",
      R"("disturbance": {"late": [{"rank": 4, "by": "1 us"}]})",
      R"("disturbance": {"slow": [{"rank": 0, "step_delay": "1 us", "job": "b"}]})",
      R"("disturbance": {"late": [{"rank": 0, "by": 5}]})",
      R"("disturbance": {"jitter": {"seed": 1}})",
      R"("disturbance": {"background": [{"from": "gpu0", "to": "gpu0", "bytes": "1 B"}]})",
      R"("disturbance": {"background": [{"from": "gpu0", "to": "switch0", "bytes": "1 B"}]})",
      R"("disturbance": {"background": [{"from": "gpu0", "to": "gpu1", "bytes": "1 B", "every": "0 us"}]})",
      R"("disturbance": {"background": [{"from": "gpu0", "to": "gpu1", "bytes": "1 B", "start": "2 us", "until": "1 us"}]})",
      R"("disturbance": {"background": [{"from": "gpu0", "to": "gpu1", "bytes": "0 B"}]})",
      R"("jobs": [{"name": "main", )" + job + "]",
      R"("jobs": [{"name": "b", )" + job + R"(, {"name": "b", )" + job + "]",
      R"("jobs": [{"name": "b", "collective": {"op": "all_reduce", "algorithm": "pairwise", "bytes": "1 B"}}])",
      R"("jobs": [{"name": "b", "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 B", "ranks": ["gpu7"]}}])",
      R"("disturbance": {"lte": []})"};
  test::MessagePage page("disturbance");
  for (const std::string& more : rows) {
    const std::string found = complaint(scenario(more));
    // What other algorithms there are is no matter of this test.
    page.add(more, found.substr(0, found.find("\n  hint: pairwise does")));
  }
  page.check();
  CHECK(complaint(scenario(R"("faults": [{"link": "gpu0", "state": "down", "until": "1 us"}])", "packet")) ==
        "s.json: /faults/0/state: down cannot be combined with the network model packet\n  hint: packets cannot be "
        "removed from the buffers that they wait in: use the model fair");
  // The hint names no link if there is none.
  CHECK(complaint(R"({"version": 1, "topology": {"kind": "ring", "ranks": 1, "link": {"bandwidth": "10 GB/s"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 B"},
    "faults": [{"link": "gpu0", "bandwidth": "50%"}]})") ==
        "s.json: /faults/0/link: expected a link, FROM -> TO, or the name of a node that has links, found \"gpu0\"\n  "
        "hint: the topology has no links, because a single GPU needs none");
  // A helper needs a star, in a job as well.
  CHECK(complaint(R"({"version": 1,
    "topology": {"kind": "ring", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 B"},
    "jobs": [{"name": "ps", "collective": {"op": "all_reduce", "algorithm": {"name": "parameter_server", "servers": 1},
              "bytes": "1 B"}}]})") ==
        "s.json: /jobs/0/collective/algorithm: expected a topology of kind star, which has extra ports for the 1 "
        "helper of parameter_server, found ring\n  hint: use a star, set \"servers_on\": \"cpu\" if there are CPUs, or "
        "remove the parameter that requires helpers");
}

TEST_CASE("background that repeats until the moment at which it starts is one message") {
  // 1 MB takes half of two ports for 200 us, in which the ring's step does 100 us of its own: 100 us more.
  CHECK(time_with(R"("disturbance": {"background": [{"from": "gpu3", "to": "gpu0", "bytes": "1 MB", "every": "1 us",
                                                   "start": "500 us", "until": "500 us"}]})") == 6 * 1002us + 100us);
}

}  // namespace disturbance_scenario_test
