// One tree rotated to all roots on a scenario's machine: which machines have it, and what is kept of it.
#include "validate/analysis/turned.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "tests/support/bound_graphs.hpp"
#include "validate/analysis/synthesize.hpp"

namespace turned_test {

using namespace ringsim;

namespace {

/// The radices for ranks on these hosts, in order; -1: on none. "none": no symmetry.
std::string radices_on(const std::vector<int>& hosts) {
  TopologyBuilder builder;
  std::vector<NodeId> ranks;
  const NodeId center = builder.add_node("switch0", NodeKind::network_switch);
  for (const int host : hosts) {
    const auto number = host < 0 ? std::nullopt : std::optional(static_cast<std::uint32_t>(host));
    ranks.push_back(builder.add_gpu(fmt::format("gpu{}", ranks.size()), number));
    builder.add_cable(ranks.back(), center, {.bandwidth = {1'000'000'000}, .source = "test"});
  }
  const auto found = symmetry_of_hosts(builder.build(), ranks);
  return found ? fmt::format("{}", fmt::join(found->radices(), " ")) : "none";
}

Scenario scenario_on(const std::string& topology, const char* op, const char* bytes) {
  return ScenarioFile::parse(
             fmt::format(
                 R"({{"version": 1, "topology": {}, "collective": {{"op": "{}", "algorithm": "{}", "bytes": "{}"}}}})",
                 topology, op, std::string(op) == "all_to_all" ? "direct" : "ring", bytes),
             "turned.json")
      .point(0);
}

std::string star_of(int ranks) {
  return fmt::format(R"({{"kind": "star", "ranks": {}, "link": {{"bandwidth": "10 GB/s", "latency": "1 us"}}}})",
                     ranks);
}

std::string boxes_of(int nodes) {
  return fmt::format(
      R"({{"kind": "cluster", "node": "dgx-a100", "nodes": {}, "fabric": {{"kind": "star", "link": {{"bandwidth": "200 Gb/s", "latency": "1 us"}}}}}})",
      nodes);
}

/// A TurnedRun with all that it refers to, and a record of what it timed.
struct Run {
  Scenario scenario;
  Setup setup;
  MachineBounds machine;
  MessageWays ways;
  std::string stage;
  std::vector<std::pair<std::string, Picoseconds>> timed;  // in order
  std::vector<std::shared_ptr<const StoredSchedule>> schedules;
  CandidateTimes times;
  TurnedRun turned;

  explicit Run(Scenario of, int most_slices = 64)
      : scenario(std::move(of)),
        setup(set_up(scenario)),
        machine(scenario, setup, setup.collectives.front().ranks, {}, Counted::routed),
        ways(scenario, setup, machine),
        times{.scenario = scenario,
              .time_of =
                  [this](const std::shared_ptr<const StoredSchedule>& stored) {
                    timed.emplace_back(stage, predict(with_schedule(scenario, stored)).time);
                    schedules.push_back(stored);
                    return timed.back().second;
                  },
              .say = [this](const std::string& what) { stage = what; },
              .breathe = {}},
        turned(times, machine, ways, setup.collectives.front().ranks, most_slices) {}
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  Picoseconds time_of(const std::string& name) const {
    const auto found = std::find_if(timed.begin(), timed.end(), [&](const auto& each) { return each.first == name; });
    return found == timed.end() ? Picoseconds{-1} : found->second;
  }
};

}  // namespace

TEST_CASE("hosts with equally many ranks, one after the other, are two digits; all other machines one or none") {
  CHECK(radices_on({0, 0, 0, 1, 1, 1}) == "2 3");
  CHECK(radices_on({4, 4, 2, 2, 7, 7}) == "3 2");  // whatever their numbers
  CHECK(radices_on({0, 0, 0, 0}) == "4");          // one host
  CHECK(radices_on({0, 1, 2}) == "3");             // a rank in each: hosts are the only digit
  CHECK(radices_on({-1, -1, -1}) == "3");          // no hosts
  CHECK(radices_on({0, 0, 1}) == "none");          // unequal
  CHECK(radices_on({0, 1, 1}) == "none");
  CHECK(radices_on({0, 1, 0, 1}) == "none");  // not next to each other
  CHECK(radices_on({0, 0, 1, 1, 0, 0}) == "none");
  CHECK(radices_on({0, 0, -1, -1}) == "none");  // some are on none
  CHECK(radices_on({-1, 0}) == "none");
  CHECK(radices_on({-1, -1, 0, 0}) == "none");
}

TEST_CASE("what is timed of a turned tree is proved, and takes the time that a run of it takes; the fastest is kept") {
  for (const std::string& topology : {star_of(4), boxes_of(2)})
    for (const char* op : {"all_gather", "reduce_scatter", "all_reduce"}) {
      CAPTURE(topology);
      CAPTURE(op);
      Run run_of(scenario_on(topology, op, "16 MiB"));
      const auto plan = run_of.turned.plan();
      REQUIRE(plan.has_value());
      CHECK(plan->down.has_value() == (std::string(op) != "reduce_scatter"));
      CHECK(plan->up.has_value() == (std::string(op) != "all_gather"));
      const MadeSchedule best = run_of.turned.fastest();
      REQUIRE(best.schedule != nullptr);
      const CheckedSchedule proved = check(schedule_of(best.schedule, run_of.scenario.main().request.bytes));
      CHECK(proved.schedule().collective.op == run_of.scenario.main().request.op);
      CHECK(run(run_of.setup.topology, proved).duration() == best.time);
      for (const auto& [name, time] : run_of.timed) CHECK(best.time <= time);
      CHECK(run_of.time_of("timing " + best.name) == best.time);
    }
}

TEST_CASE("on a star one slice in one lane takes K - 1 steps, and lanes hide their latency") {
  // All children hang on the root: each of 3 steps moves a block of 4 MiB over a port of 10 GB/s, and takes 2 us.
  Run star(scenario_on(star_of(4), "all_gather", "16 MiB"));
  const auto plan = star.turned.plan();
  REQUIRE(plan.has_value());
  CHECK(plan->down->inverse_rate == 3);
  CHECK(plan->share == 1);
  const MadeSchedule best = star.turned.fastest();
  const Picoseconds latency{2'000'000}, block = transfer_time(Bytes{4 << 20}, {10'000'000'000});
  CHECK(star.time_of("timing one tree rotated to all roots, 1 lane") == 3 * (latency + block));
  // With two lanes one block is under way while the next leaves: the ports never rest, but for the last one's latency.
  // The start of the second waits for the end of the first, so that they do not wait together.
  CHECK(best.time < 3 * (latency + block));
  CHECK(best.time >= 3 * block + latency);
}

TEST_CASE(
    "slices are twice as many until that has not helped twice, at most as many as asked for and bytes in a block") {
  const auto most_slices_of = [](const char* bytes, int most) {
    Run star(scenario_on(star_of(4), "all_gather", bytes), most);
    REQUIRE(star.turned.plan().has_value());
    star.turned.fastest();
    int found = 1;
    for (const auto& [name, time] : star.timed)
      for (const int slices : {2, 4, 8, 16, 32, 64, 128})
        if (name.find(fmt::format(" {} slices", slices)) != std::string::npos) found = std::max(found, slices);
    return found;
  };
  CHECK(most_slices_of("1 GiB", 1) == 1);
  CHECK(most_slices_of("1 GiB", 2) == 2);
  // A star's tree is one hop deep: slices only cost latency, and two failures end it.
  CHECK(most_slices_of("16 MiB", 64) == 4);
  // A block of 1 byte has one slice, one of 2 bytes two.
  CHECK(most_slices_of("4 B", 64) == 1);
  CHECK(most_slices_of("8 B", 64) == 2);
}

TEST_CASE(
    "the share of the optimum's rate is the worse one of both directions, and what turned trees cannot serve is left") {
  // A ring of four, twice as wide one way as the other. Three blocks come in over both: two of them the wide way is
  // the optimum, and so does the tree, which has its chain that way. Seen from a reduce-scatter the ring is the other
  // way round: the next rank's message takes the narrow way, the one after it two links of the wide way, and with the
  // last one these carry 3 in place of 2: two thirds.
  const auto share = [&](const char* op, double up, double down) {
    test::BareGraph uneven;
    uneven.gpus(4);
    for (int r = 0; r < 4; ++r) {
      uneven.cable(fmt::format("gpu{}", r), fmt::format("gpu{}", (r + 1) % 4), up, true);
      uneven.cable(fmt::format("gpu{}", (r + 1) % 4), fmt::format("gpu{}", r), down, true);
    }
    Run on(scenario_on(uneven.json(), op, "1 MiB"));
    const auto plan = on.turned.plan();
    return plan ? plan->share : -1;
  };
  CHECK(share("all_gather", 2, 1) == 1);
  CHECK(share("reduce_scatter", 2, 1) == doctest::Approx(2.0 / 3));
  CHECK(share("all_reduce", 2, 1) == doctest::Approx(2.0 / 3));
  // With the wide way downwards the two change places.
  CHECK(share("all_gather", 1, 2) == doctest::Approx(2.0 / 3));
  CHECK(share("reduce_scatter", 1, 2) == 1);
  CHECK(share("all_reduce", 1, 2) == doctest::Approx(2.0 / 3));
  CHECK(share("broadcast", 2, 1) == -1);
  CHECK(share("all_to_all", 2, 1) == -1);
  // Hosts with unequal numbers of ranks have no turned tree.
  const std::string part = boxes_of(2);
  Run unequal(
      ScenarioFile::parse(
          fmt::format(R"({{"version": 1, "topology": {}, "collective": {{"op": "all_gather", "algorithm": "ring",
                              "bytes": "1 MiB", "ranks": ["node0.gpu0", "node0.gpu1", "node1.gpu0"]}}}})",
                      part),
          "turned.json")
          .point(0));
  CHECK_FALSE(unequal.turned.plan().has_value());
}

}  // namespace turned_test
