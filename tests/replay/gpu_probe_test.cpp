// What `ringsim probe` measures, on a GPU whose every cost is known.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tests/support/fakes/fake_device.hpp"
#include "validate/replay/gpu/probe.hpp"

namespace gpu_probe_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace ringsim::replay::gpu;
using namespace std::chrono_literals;
using ringsim::test::FakeCosts;
using ringsim::test::FakeDevice;

namespace {

// Sizes that all rates of FakeCosts divide, so that nothing is rounded.
ProbeOptions short_probe() {
  ProbeOptions options;
  options.sizes = {4000_B, 40000_B, 400000_B};
  options.blocks = {2, 100};
  options.repeats = 3;
  options.operations = 4;
  return options;
}

/// "2 us, 2 TB/s"; "none".
std::string text(const std::optional<replay::gpu::Line>& line) {
  return line ? format(line->latency) + ", " + format(line->rate) : "none";
}

}  // namespace

TEST_CASE("a probe finds latency and rate of every way, each its own") {
  FakeDevice device({});
  const Probe found = probe(device, short_probe());
  CHECK(device.held() == 0);
  CHECK(found.device == "a fake GPU");
  CHECK(text(found.line(Asked::copy, 0, 0)) == "2 us, 2 TB/s");
  CHECK(text(found.line(Asked::copy, host_memory, 0)) == "2 us, 50 GB/s");
  CHECK(text(found.line(Asked::copy, 0, host_memory)) == "2 us, 40 GB/s");
  CHECK(text(found.line(Asked::both_ways, 0, host_memory)) == "2 us, 40 GB/s");  // the slower of the two, at once
  CHECK(text(found.line(Asked::add, 0, 0)) == "3 us, 1 TB/s");
  CHECK(text(found.line(Asked::add, host_memory, host_memory)) == "3 us, 10 GB/s");
  CHECK(text(found.line(Asked::kernel, 0, 0, 2)) == "3 us, 50 GB/s");   // two blocks of 25
  CHECK(text(found.line(Asked::kernel, 0, 0, 100)) == "3 us, 2 TB/s");  // a hundred: all that the memory does
  CHECK(text(found.line(Asked::kernel, 0, 0, 7)) == "none");            // not asked
  // One element takes the kernel's 3 us in a graph. By itself it is issued faster than that, and so are events.
  CHECK(found.least(Asked::node, 0, 0) == Picoseconds(3us));
  CHECK(found.least(Asked::call, 0, 0) == Picoseconds(3us));
  CHECK(found.least(Asked::hop, 0, 0) == Picoseconds(3us));
  // A graph is launched by a call of 1 us.
  CHECK(found.least(Asked::launch, 0, 0) == Picoseconds(1us));
  CHECK(found.samples.size() == 6 + 3 * (6 + 2));
}

TEST_CASE("calls that take longer to issue than to do are seen as such") {
  FakeCosts costs;
  costs.call = 7us;
  FakeDevice device({.costs = costs});
  const Probe found = probe(device, short_probe());
  CHECK(found.least(Asked::call, 0, 0) == Picoseconds(7us));
  CHECK(found.least(Asked::issue, 0, 0) == Picoseconds(7us));
  CHECK(found.least(Asked::events, 0, 0) ==
        Picoseconds(21us));  // an event recorded and one waited for are calls as well
  CHECK(found.least(Asked::launch, 0, 0) == Picoseconds(7us));
}

TEST_CASE("what waits for an event of another stream takes longer, and so does a message of the scenario") {
  FakeCosts costs;
  costs.event = 500ns;
  FakeDevice device({.costs = costs});
  const Probe found = probe(device, short_probe());
  CHECK(found.least(Asked::hop, 0, 0) == Picoseconds(3500ns));
  CHECK(found.least(Asked::node, 0, 0) == Picoseconds(3us));
  CHECK(text(found.line(Asked::copy, 0, 0)) == "2 us, 2 TB/s");
  const std::string scenario = to_scenario(found, 2, "today");
  CHECK(scenario.find(R"("from": "memory_out", "to": "memory_in", "bandwidth": "2 TB/s", "latency": "2.5 us")") !=
        std::string::npos);
}

TEST_CASE("a probe of several GPUs measures every pair, and one GPU to all others") {
  FakeDevice device({.gpus = 3});
  const Probe found = probe(device, short_probe());
  for (Place from = 0; from < 3; ++from)
    for (Place to = 0; to < 3; ++to)
      if (from != to) CHECK(text(found.line(Asked::copy, from, to)) == "2 us, 400 GB/s");
  CHECK(text(found.line(Asked::fan_out, 0, 1)) == "2 us, 400 GB/s");  // a pair's copies do not slow another's
  const Scenario scenario =
      ScenarioFile::parse(to_scenario(found, 8, "2026-11-21"), "probe.json", {"collective.bytes=40 MB"}).point(0);
  CHECK(topology_of(scenario).ranks().size() == 3);
  // The ring's 4 steps of 40/3 MB at 400 GB/s, each 2 us later; after two of them they are added, at 1 TB/s and 3 us.
  const double expected = 4 * (40e6 / 3 / 400e9 * 1e6 + 2) + 2 * (40e6 / 3 / 1e12 * 1e6 + 3);
  CHECK(static_cast<double>(predict(scenario).time.count()) / 1e6 == doctest::Approx(expected).epsilon(1e-6));
}

TEST_CASE("what was measured is a scenario: copies share the GPU's memory, servers are reached through the host") {
  FakeDevice device({});
  const Probe found = probe(device, short_probe());
  const std::string text = to_scenario(found, 4, "2026-11-21");
  CHECK(text.find("// Measured by `ringsim probe` on a fake GPU, 2026-11-21.") != std::string::npos);
  CHECK(
      text.find(
          R"({"name": "gpu3", "kind": "gpu", "rates": {"reduce": "1 TB/s", "start": "3 us", "over": "memory_out -> memory_in"}})") !=
      std::string::npos);
  const auto time = [&](std::vector<std::string> set) {
    const Prediction p = predict(ScenarioFile::parse(text, "probe.json", set).point(0));
    return static_cast<double>(p.time.count()) / 1e6;
  };
  // 2 (K-1) steps in which K messages of 100 MB share 2 TB/s; the joints' 100 TB/s take no part. K-1 of them are added,
  // K at a time at 1 TB/s together.
  CHECK(time({"collective.bytes=400 MB"}) ==
        doctest::Approx(6 * (400e6 / 2e12 * 1e6 + 2) + 3 * (400e6 / 1e12 * 1e6 + 3)).epsilon(1e-6));
  // All four to the host at 40 GB/s, and back at 50; there a CPU adds 10 GB/s.
  CHECK(time({"collective.bytes=400 MB", R"(collective.algorithm={"name": "parameter_server", "servers": 1})",
              R"(collective.servers_on="cpu")"}) ==
        doctest::Approx(4 * (400e6 / 40e9 + 400e6 / 50e9 + 400e6 / 10e9) * 1e6 + 7).epsilon(1e-4));
}

TEST_CASE("the table has a line a sample, with what was measured in its own words") {
  FakeDevice device({});
  ProbeOptions options = short_probe();
  options.sizes = {4000_B};
  options.blocks = {};
  std::string table = to_csv(probe(device, options));
  // What is issued to several streams the fake does in random order: those times are another test's.
  for (const char* name : {"issue,", "issue_and_events,"}) {
    const std::size_t row = table.find(name);
    REQUIRE(row != std::string::npos);
    table.erase(row, table.find('\n', row) + 1 - row);
  }
  CHECK(table ==
        "what,from,to,blocks,bytes,time_us,min_us,max_us,GBps\n"
        "call,gpu0,gpu0,0,4,3,3,3,0.001\n"
        "node,gpu0,gpu0,0,4,3,3,3,0.001\n"
        "hop,gpu0,gpu0,0,4,3,3,3,0.001\n"
        "launch,gpu0,gpu0,0,4,1,1,1,0.004\n"
        "copy,gpu0,gpu0,0,4000,2.002,2.002,2.002,1.998\n"
        "add,gpu0,gpu0,0,4000,3.004,3.004,3.004,1.332\n"
        "copy,gpu0,host,0,4000,2.1,2.1,2.1,1.905\n"
        "copy,host,gpu0,0,4000,2.08,2.08,2.08,1.923\n"
        "both_ways,gpu0,host,0,4000,2.1,2.1,2.1,1.905\n"
        "add,host,host,0,4000,3.4,3.4,3.4,1.176\n");
}

TEST_CASE("a probe that fails says what it was measuring; one whose rates cannot be told makes no scenario") {
  FakeDevice small({.elements = 100});
  CHECK_THROWS_WITH_AS(probe(small, short_probe()),
                       "measuring copy of 4 kB: the fake GPU is full\n  hint: use smaller messages or fewer ranks, or "
                       "stop other processes on the GPU; `nvidia-smi` lists them",
                       EnvironmentError);
  CHECK(small.held() == 0);
  FakeDevice stands({.stalls_after = 20});
  ProbeOptions options = short_probe();
  options.patience = 20ms;
  CHECK_THROWS_WITH_AS(probe(stands, options),
                       "the GPU did not finish within 20 ms\n  hint: to wait longer, use --timeout", EnvironmentError);
  FakeDevice device({});
  options = short_probe();
  options.sizes = {4000_B};
  CHECK_THROWS_WITH_AS(to_scenario(probe(device, options), 2, "today"),
                       "measuring add: the larger of the two largest sizes did not take longer\n  hint: use larger "
                       "sizes, more repeats or an otherwise idle machine",
                       EnvironmentError);
}

}  // namespace gpu_probe_test
