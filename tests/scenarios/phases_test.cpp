// Phases of predictions: with launches, of a library's plans, and where there are none.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"

namespace phases_test {

using namespace ringsim;
using namespace std::chrono_literals;

namespace {

using Overrides = std::vector<std::string>;

Prediction with_phases(const std::string& text, const Overrides& overrides = {}) {
  return predict(ScenarioFile::parse(text, "s.json", overrides).point(0), {.phases = true});
}

/// A ring all-reduce of 40 MB over a star of four ranks at 10 GB/s, 1 us per link: 6 steps of 1 ms and 2 us.
const std::string on_star = R"({"version": 1,
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "40 MB"}})";
const std::string two_dgx_a100 = R"({"version": 1,
  "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
               "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "150 ns"}}},
  "library": "nccl", "collective": {"op": "all_reduce", "bytes": "1 MiB"}})";

std::vector<std::string> phase_names_in(const Prediction& prediction) {
  std::vector<std::string> names;
  for (const PhaseTime& phase : prediction.phases) names.push_back(phase.name);
  return names;
}
Picoseconds sum_of_phases(const Prediction& prediction) {
  Picoseconds sum{0};
  for (const PhaseTime& phase : prediction.phases) sum += phase.whole.critical;
  return sum;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("without being asked a prediction has no phases") {
  CHECK(predict(ScenarioFile::parse(on_star, "s.json").point(0)).phases.empty());
  CHECK(predict(ScenarioFile::parse(on_star, "s.json").point(0), {.explain = true}).phases.empty());
}

TEST_CASE("a launch is the first phase, and the others begin after it") {
  const Prediction p = with_phases(on_star, {R"(transport={"launch": "7 us"})"});
  REQUIRE(phase_names_in(p) == Names{"launch", "reduce_scatter", "all_gather"});
  CHECK(p.phases[0].whole.critical == 7us);
  CHECK(p.phases[0].steps.empty());
  CHECK(p.phases[1].whole.first_start == SimTime{7us});
  CHECK(p.phases[1].steps[1].first_start == SimTime{7us + 1002us});  // after one step of 1 ms and 2 us
  CHECK(p.phases[2].whole.last_end == SimTime{p.time});
  CHECK(sum_of_phases(p) == p.time);
}

TEST_CASE("time in which a phase waits for a late rank is the phase's, but it has not started then") {
  const Prediction p = with_phases(on_star, {R"(disturbance={"late": [
    {"rank": 0, "by": "50 us"}, {"rank": 1, "by": "50 us"}, {"rank": 2, "by": "50 us"}, {"rank": 3, "by": "50 us"}]})"});
  REQUIRE(phase_names_in(p) == Names{"reduce_scatter", "all_gather"});
  CHECK(p.phases[0].whole.first_start == SimTime{50us});
  CHECK(p.phases[0].whole.critical == 50us + 3 * 1002us);
  CHECK(p.phases[1].whole.critical == 3 * 1002us);
}

TEST_CASE("the library's rings scatter and gather, its trees reduce up and broadcast down") {
  for (const char* protocol : {"Simple", "LL128", "LL"}) {
    CAPTURE(protocol);
    const std::string proto = std::string("library.env.NCCL_PROTO=") + protocol;
    const Prediction ring = with_phases(two_dgx_a100, {"library.env.NCCL_ALGO=Ring", proto});
    CHECK(phase_names_in(ring) == Names{"launch", "reduce_scatter", "all_gather", "own pass"});
    CHECK(ring.phases.at(1).steps.size() == 15);  // of 16 ranks, whatever the channels and rounds
    CHECK(sum_of_phases(ring) == ring.time);
    const Prediction tree = with_phases(two_dgx_a100, {"library.env.NCCL_ALGO=Tree", proto});
    CHECK(phase_names_in(tree) == Names{"launch", "reduce up", "broadcast down", "own pass"});
    CHECK(sum_of_phases(tree) == tree.time);
  }
}

TEST_CASE("groups, jobs and training steps have no phases") {
  CHECK(with_phases(on_star, {R"(collective.groups=[["gpu0", "gpu1"], ["gpu2", "gpu3"]])"}).phases.empty());
  CHECK(with_phases(on_star, {R"(jobs=[{"name": "other", "collective": {"op": "broadcast", "algorithm": "ring",
    "bytes": "1 MB"}}])"})
            .phases.empty());
}

}  // namespace phases_test
