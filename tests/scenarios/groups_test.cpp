// Groups of GPUs with a collective each, and jobs that come after others.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/plain_scenario.hpp"
#include "validate/results/result.hpp"

namespace groups_test {

using namespace ringsim;
using namespace std::chrono_literals;
using ringsim::test::only;
using ringsim::test::Texts;

namespace {

std::string quoted(const std::string& text) { return '"' + text + '"'; }

/// Over a star of eight ranks at 10 GB/s, 1 us per link.
std::string on_star(const std::string& collective, const std::string& rest = "") {
  return R"({"version": 1,
  "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": )" +
         collective + rest + "}";
}

/// On nodes of eight A100 with a NIC each.
std::string on_a100(int nodes, const std::string& rest) {
  return fmt::format(R"({{"version": 1, "topology": {{"kind": "cluster", "node": "dgx-a100", "nodes": {},
    "fabric": {{"kind": "star", "link": {{"bandwidth": "25 GB/s", "latency": "1 us"}}}}}}, {}}})",
                     nodes, rest);
}

/// An all-gather of 40 MB among ranks 0 to 3 and among ranks 4 to 7: 3 steps of 1002 us. Then a reduce-scatter of 10 MB
/// in the pairs (0, 4), (1, 5), (2, 6), (3, 7): one step of 502 us.
const std::string gather_then_scatter =
    on_star(R"({"op": "all_gather", "algorithm": "ring", "bytes": "40 MB", "split": "DIV 4"})",
            R"(, "jobs": [{"name": "second", "after": ["main"], "collective":
      {"op": "reduce_scatter", "algorithm": "ring", "bytes": "10 MB", "split": "MOD 4"}}])");

const std::string groups_of_ring = on_star(R"({"op": "all_reduce", "algorithm": "ring", "bytes": "8 MB"})");

std::string groups(const std::vector<std::vector<int>>& of) {
  std::string text;
  for (const std::vector<int>& group : of) {
    std::string names;
    for (const int rank : group) names += fmt::format(R"({}"gpu{}")", names.empty() ? "" : ", ", rank);
    text += (text.empty() ? "[" : ", [") + names + "]";
  }
  return "collective.groups=[" + text + "]";
}

Picoseconds sum_of_parts(const Explanation& explanation) {
  Picoseconds sum{0};
  for (const ExplainedPart& part : explanation.parts) sum += part.time;
  return sum;
}

}  // namespace

TEST_CASE("a slow rank delays the steps of its group as it does those of the same collective alone") {
  // Launches and starts of a program are also steps, which it does not delay: to the picosecond the time without them.
  const std::string slow = R"(disturbance.slow=[{"rank": 1, "step_delay": "7 us"}])", launch = "transport.launch=3 us";
  const Picoseconds alone =
      predict(only(groups_of_ring, {R"(collective.ranks=["gpu0", "gpu1", "gpu2", "gpu3"])", slow, launch})).time;
  CHECK(predict(only(groups_of_ring, {R"(collective.split="DIV 4")", slow, launch})).time == alone);
  CHECK(predict(only(groups_of_ring, {R"(collective.split="DIV 4")", launch})).time < alone);
}

TEST_CASE("groups by a rule are those of nccl-tests") {
  struct Row {
    const char* rule;
    std::vector<std::vector<int>> same;
  };
  // README.md of nccl-tests: AND 0x7 is MOD 8, OR 0x7 is DIV 8; here with 2 and 4 in place of 8.
  const std::vector<std::vector<int>> blocks{{0, 1, 2, 3}, {4, 5, 6, 7}}, strides{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  for (const Row& row : {Row{"DIV 4", blocks}, Row{"/4", blocks}, Row{"OR 0x3", blocks}, Row{"|0b11", blocks},
                         Row{"MOD 4", strides}, Row{"%4", strides}, Row{"AND 3", strides}, Row{"&0x3", strides}}) {
    CAPTURE(row.rule);
    const Prediction by_rule = predict(only(groups_of_ring, {fmt::format("collective.split={}", quoted(row.rule))}));
    const Prediction by_names = predict(only(groups_of_ring, {groups(row.same)}));
    CHECK(by_rule.time == by_names.time);
    CHECK(by_rule.transfers == by_names.transfers);
    CHECK(by_rule.groups == static_cast<int>(row.same.size()));
    CHECK(by_rule.request.ranks == static_cast<int>(row.same.front().size()));
  }
}

TEST_CASE("groups that share no link take the time of one alone, and one group of all is the plain collective") {
  std::mt19937 random(7);  // any seed: sizes, algorithms and groups vary
  for (int i = 0; i < 100; ++i) {
    const int of_group = std::vector{1, 2, 4, 8}[random() % 4];
    const char* algorithm = std::vector{"ring", "halving_doubling", "direct"}[random() % 3];
    std::vector<int> ranks{0, 1, 2, 3, 4, 5, 6, 7};
    std::shuffle(ranks.begin(), ranks.end(), random);
    std::vector<std::vector<int>> all;
    for (int first = 0; first < 8; first += of_group)
      all.emplace_back(ranks.begin() + first, ranks.begin() + first + of_group);
    Texts set{fmt::format("collective.bytes={}", quoted(fmt::format("{} B", random() % 10'000'000))),
              fmt::format("collective.algorithm={}", algorithm), "transport.launch=3 us"};
    CAPTURE(set);
    set.push_back(groups(all));
    const Prediction found = predict(only(groups_of_ring, set));
    std::string names = groups({all.front()}).substr(std::string("collective.groups=[").size());
    set.back() = "collective.ranks=" + names.substr(0, names.size() - 1);
    CHECK(found.time == predict(only(groups_of_ring, set)).time);
  }
}

TEST_CASE("a job after another begins on each GPU when that is done with it, and all together have a time") {
  const Prediction found = predict(only(gather_then_scatter));
  REQUIRE(found.jobs.size() == 2);
  const Prediction &second = found.jobs[0], &all = found.jobs[1];
  CHECK(found.time == 3006us);
  CHECK(second.start == 3006us);
  CHECK(second.time == 502us);
  CHECK(all.job == "all");
  CHECK(all.time == 3508us);
  CHECK(all.request.ranks == 8);
  CHECK(found.transfers == 24);  // 2 groups of 4 ranks, 3 steps
  CHECK(second.transfers == 8);
  CHECK(all.transfers == 32);
}

TEST_CASE("three calls in turn take what the hierarchical algorithm takes, which does the same") {
  // Reduce-scatter in each node, all-reduce of each part across, all-gather: on symmetric nodes all ranks are in step.
  const std::string in_turn =
      R"("collective": {"op": "reduce_scatter", "algorithm": "ring", "bytes": "8 MiB", "split": "DIV 8"},
    "jobs": [{"name": "across", "after": ["main"],
              "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB", "split": "MOD 8"}},
             {"name": "gather", "after": ["across"],
              "collective": {"op": "all_gather", "algorithm": "ring", "bytes": "8 MiB", "split": "DIV 8"}}])";
  const std::string at_once = R"("collective": {"op": "all_reduce", "algorithm": "hierarchical", "bytes": "8 MiB"})";
  for (const int nodes : {2, 3, 5})
    CHECK(predict(only(on_a100(nodes, in_turn))).jobs.back().time == predict(only(on_a100(nodes, at_once))).time);
}

TEST_CASE("a launch comes before each job") {
  const Prediction found = predict(only(gather_then_scatter, {"transport.launch=10 us"}));
  CHECK(found.time == 3016us);
  CHECK(found.jobs[0].time == 512us);
  CHECK(found.jobs[1].time == 3528us);
}

TEST_CASE("a GPU that another job does not use does not wait for it") {
  // The pairs (0, 1) after a broadcast among ranks 0 and 2: rank 1 is ready at once, and waits for rank 0.
  const std::string scenario =
      on_star(R"({"op": "broadcast", "algorithm": "direct", "bytes": "10 MB", "ranks": ["gpu0", "gpu2"]})",
              R"(, "jobs": [{"name": "pair", "after": ["main"], "collective":
        {"op": "broadcast", "algorithm": "direct", "bytes": "10 MB", "ranks": ["gpu1", "gpu0"]}}])");
  const Prediction found = predict(only(scenario));
  CHECK(found.time == 1002us);
  CHECK(found.jobs[0].start == 0us);
  CHECK(found.jobs[0].time == 2004us);
  CHECK(found.jobs[1].time == 2004us);
}

TEST_CASE("a job begins at its start where others are done before, and is no earlier for it where they are not") {
  CHECK(predict(only(gather_then_scatter, {"jobs.0.start=4 ms"})).jobs[1].time == 4502us);
  CHECK(predict(only(gather_then_scatter, {"jobs.0.start=1 ms"})).jobs[1].time == 3508us);
}

TEST_CASE("a late rank delays those that wait for it, through all jobs") {
  const Prediction found = predict(only(gather_then_scatter, {R"(disturbance.late=[{"rank": 7, "by": "1 ms"}])"}));
  CHECK(found.time == 4006us);
  CHECK(found.jobs[0].start == 3006us);  // ranks 0 to 3 are on time; rank 3 waits for rank 7
  CHECK(found.jobs[1].time == 4508us);
}

TEST_CASE("a late rank is a rank of the collective, whatever its group is") {
  // Ring of the pair (1, 5) over gpu1's link at half its bandwidth: 2 steps of 802 us, later by 1 ms if rank 1 is.
  const Texts set{R"(collective.split="MOD 4")", R"(faults=[{"link": "gpu1", "bandwidth": "50%"}])"};
  const auto late = [&](int rank) {
    Texts more = set;
    more.push_back(fmt::format(R"(disturbance.late=[{{"rank": {}, "by": "1 ms"}}])", rank));
    return predict(only(groups_of_ring, more)).time;
  };
  CHECK(predict(only(groups_of_ring, set)).time == 1604us);
  CHECK(late(1) == 2604us);
  CHECK(late(5) == 2604us);
  CHECK(late(2) == 1804us);  // its pair takes 804 us, from 1 ms on
}

TEST_CASE("jobs with groups that start apart have a result together, which explain takes apart") {
  const Prediction found =
      predict(only(gather_then_scatter, {"jobs.0.after=null", "jobs.0.start=10 ms"}), {.explain = true});
  REQUIRE(found.jobs.size() == 2);
  CHECK(found.time == 3006us);
  CHECK(found.jobs[0].time == 502us);
  CHECK(found.jobs[1].time == 10502us);
  REQUIRE(found.jobs[1].explanation.has_value());
  CHECK(sum_of_parts(*found.jobs[1].explanation) == 10502us);
}

// NCCL's reduction of a rank's own part comes after the last step, so it is in no call of the program.
TEST_CASE("groups with a library are explained, to the picosecond") {
  const Prediction found = predict(only(on_a100(2, R"("library": "nccl",
      "collective": {"op": "all_reduce", "bytes": "1 MiB", "split": "DIV 8"})")),
                                   {.explain = true});
  REQUIRE(found.explanation.has_value());
  CHECK(sum_of_parts(*found.explanation) == found.time);
  Picoseconds tasks{0};
  for (const ExplainedTask& task : found.explanation->tasks) tasks += task.time;
  CHECK(tasks == found.time);
  CHECK(std::any_of(found.explanation->parts.begin(), found.explanation->parts.end(),
                    [](const ExplainedPart& part) { return part.cause == "own pass"; }));
}

TEST_CASE("the time of a job that comes after no other counts from its start, late ranks included") {
  std::string late;
  for (int rank = 0; rank < 8; ++rank)
    late += fmt::format(R"({}{{"rank": {}, "by": "1 ms"}})", rank > 0 ? ", " : "", rank);
  const Prediction found = predict(only(gather_then_scatter, {"disturbance.late=[" + late + "]"}));
  CHECK(found.time == 4006us);
  CHECK(found.jobs[0].time == 502us);
  CHECK(found.jobs[1].time == 4508us);
}

TEST_CASE("calls at the same time share the channels of their GPU") {
  // Each has one channel: 2 steps of 4 MB at 2 GB/s and 2 us alone, at half of that together.
  const Texts alone{R"(collective.split="MOD 4")", R"(devices.gpu.channel="2 GB/s")"};
  CHECK(predict(only(groups_of_ring, alone)).time == 4004us);
  Texts together = alone;
  together.push_back(R"(jobs=[{"name": "second", "collective":
    {"op": "all_reduce", "algorithm": "ring", "bytes": "8 MB", "split": "MOD 4"}}])");
  CHECK(predict(only(groups_of_ring, together)).jobs.back().time == 8004us);
}

TEST_CASE("servers of several groups have CPUs of their own") {
  const auto on_cpus = [](int servers) {
    return on_a100(2, fmt::format(R"("collective": {{"op": "all_reduce", "bytes": "8 MiB", "servers_on": "cpu",
      "split": "DIV 8", "algorithm": {{"name": "parameter_server", "servers": {}}}}})",
                                  servers));
  };
  const Setup setup = set_up(only(on_cpus(2)));
  std::vector<NodeId> servers = setup.collectives.front().helpers;
  for (const PlacedCollective& other : setup.other_groups.front())
    servers.insert(servers.end(), other.helpers.begin(), other.helpers.end());
  REQUIRE(servers.size() == 4);
  std::sort(servers.begin(), servers.end(), [](NodeId a, NodeId b) { return a.value < b.value; });
  CHECK(std::adjacent_find(servers.begin(), servers.end()) == servers.end());
  // Eight CPUs, one for each NUMA node, in each node: nine servers for each of two groups are too many.
  const std::string text = test::complaint([&] { set_up(only(on_cpus(9))); });
  CHECK(text.find("expected at most as many servers as CPUs, 16, found 18") != std::string::npos);
}

TEST_CASE("all together take as long as the longest at least, and as all in turn at most") {
  std::mt19937 random(11);  // any seed: sizes and groups vary
  for (int i = 0; i < 60; ++i) {
    const auto rule = [&] {
      return quoted(fmt::format("{} {}", random() % 2 == 0 ? "DIV" : "MOD", 1 << random() % 4));
    };
    const auto bytes = [&] { return quoted(fmt::format("{} B", random() % 5'000'000)); };
    const Texts set{"collective.split=" + rule(), "collective.bytes=" + bytes(), "jobs.0.collective.split=" + rule(),
                    "jobs.0.collective.bytes=" + bytes()};
    CAPTURE(set);
    const Prediction found = predict(only(gather_then_scatter, set), {.explain = true});
    const Picoseconds first = found.time, second = found.jobs[0].time, all = found.jobs[1].time;
    CHECK(all >= std::max(first, second));
    CHECK(all <= first + second);
    REQUIRE(found.jobs[1].explanation.has_value());
    CHECK(sum_of_parts(*found.jobs[1].explanation) == all);
  }
}

TEST_CASE("an `after` whose jobs share no GPU is a setting without effect") {
  const std::string apart =
      on_star(R"({"op": "all_reduce", "algorithm": "ring", "bytes": "8 MB", "ranks": ["gpu0", "gpu1"]})",
              R"(, "jobs": [{"name": "other", "after": ["main"], "collective":
        {"op": "all_reduce", "algorithm": "ring", "bytes": "8 MB", "ranks": ["gpu2", "gpu3"]}}])");
  const Prediction found = predict(only(apart));
  REQUIRE(found.settings.size() == 1);
  CHECK(found.settings[0].setting.ends_with("/jobs/0/after: main"));
  CHECK(found.settings[0].idle == "no GPU of other participates in main");
  CHECK(predict(only(gather_then_scatter)).settings[0].idle.empty());
}

TEST_CASE("a library decides for the first group, and all do the same") {
  // Two DGX A100; groups of 8 stay within a node, so that both take as long as one node does.
  const std::string nodes = on_a100(2, R"("library": "nccl", "collective": {"op": "all_reduce", "bytes": "64 MiB"})");
  const Prediction two = predict(only(nodes, {R"(collective.split="DIV 8")"}));
  CHECK(two.request.ranks == 8);
  CHECK(two.groups == 2);
  CHECK(two.time == predict(only(nodes, {R"(collective.ranks=["node0.gpu0", "node0.gpu1", "node0.gpu2",
    "node0.gpu3", "node0.gpu4", "node0.gpu5", "node0.gpu6", "node0.gpu7"])"}))
                        .time);
}

TEST_CASE("what is said of groups and of jobs after others is checked where it is said") {
  const auto complaint = [](const std::string& scenario, const Texts& set) {
    return test::complaint([&] { predict(only(scenario, set)); });
  };
  const auto has = [](const std::string& text, const char* part) {
    CAPTURE(text);
    CHECK(text.find(part) != std::string::npos);
  };
  has(complaint(groups_of_ring, {R"(collective.split="DIV 3")"}), "/collective/split: expected groups of equal size");
  has(complaint(groups_of_ring, {R"(collective.split="DIV 1")", R"(collective.ranks=["gpu0", "gpu1", "gpu2", "gpu3",
        "gpu4", "gpu5", "gpu6", "gpu7", "gpu8"])"}),
      "/collective/ranks: expected at most 8 names");
  has(complaint(groups_of_ring, {R"(collective.split="DIV 0")"}), "/collective/split: expected AND, OR, MOD or DIV");
  has(complaint(groups_of_ring, {R"(collective.split="XOR 3")"}), "found \"XOR 3\"");
  has(complaint(groups_of_ring, {R"(collective.split="MOD 99999999999999999999")"}), "/collective/split: expected AND");
  has(complaint(groups_of_ring, {groups({{0, 1}, {2}})}), "/collective/groups: expected groups of equal size");
  has(complaint(groups_of_ring, {groups({{0, 1}, {2, 1}})}),
      "/collective/groups/1/1: expected each GPU in only one group");
  has(complaint(groups_of_ring, {groups({{0, 1}, {2, 9}})}), "/collective/groups/1/1: expected the name of a GPU");
  has(complaint(groups_of_ring, {groups({{0, 1}}), R"(collective.split="DIV 4")"}),
      "/collective/split: cannot be combined with groups");
  has(complaint(gather_then_scatter, {R"(jobs.0.after=["second"])"}), "/jobs/0/after/0: expected main");
  const std::string apart = test::complaint([] {
    expect_collective(only(gather_then_scatter, {"jobs.0.after=null", "collective.split=null"}));
  });
  has(apart, "/jobs/0/collective: expected one collective, found groups");
  has(complaint(gather_then_scatter, {"jobs.0.name=all"}), "/jobs/0/name: expected a name other than");
}

TEST_CASE("there is a result for each job, and one for all") {
  const Scenario scenario = only(gather_then_scatter);
  const std::vector<Result> rows = results_of(scenario);
  CHECK(rows.size() == n_results(scenario));
  CHECK(rows.size() == 3);
  CHECK(rows[2].prediction.is_total);
  CHECK_FALSE(rows[2].form.has_value());
  CHECK(n_results(only(groups_of_ring, {R"(collective.split="DIV 4")"})) == 1);
}

TEST_CASE("collectives at the same time share the channels of their GPUs, and a late rank is late in its own job") {
  // One channel of 2 GB/s per GPU: 14 steps of 1 MB, each 500 us and 2 us of latency; with two jobs 1000 us.
  const std::string ring = R"({"op": "all_reduce", "algorithm": "ring", "bytes": "8 MB"})";
  const std::string two = on_star(ring, R"(, "devices": {"gpu": {"channel": "2 GB/s"}},
      "jobs": [{"name": "second", "collective": )" +
                                            ring + "}]");
  CHECK(predict(only(two, {"jobs=[]"})).time == 14 * 502us);
  Prediction both = predict(only(two));
  CHECK(both.time == 14 * 1002us);
  CHECK(both.jobs[0].time == 14 * 1002us);
  // The second begins, at one rank, when the first is over: both are alone.
  both = predict(only(two, {R"(disturbance.late=[{"rank": 3, "job": "second", "by": "20 ms"}])"}));
  CHECK(both.time < 14 * 1002us);
  CHECK(both.jobs[0].time == 20ms + 14 * 502us);
}

}  // namespace groups_test
