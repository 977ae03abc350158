// Additions that share a device's rate, next to a calculation of their own.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <vector>

#include "algorithms/catalog.hpp"
#include "tests/support/tiny.hpp"

namespace device_work_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

struct Arrival {
  double at = 0;    // s
  double left = 0;  // s, that its addition takes alone
};

/// When the last addition ends, if at every moment all that have arrived and not ended share the rate equally.
double shared_end(std::vector<Arrival> all) {
  double now = 0;
  for (;;) {
    std::vector<Arrival*> here;
    double next = INFINITY;  // arrival
    for (Arrival& each : all) {
      if (each.left <= 1e-15) continue;
      if (each.at <= now)
        here.push_back(&each);
      else
        next = std::min(next, each.at);
    }
    if (here.empty() && next == INFINITY) return now;
    if (here.empty()) {
      now = next;
      continue;
    }
    double least = INFINITY;
    for (const Arrival* each : here) least = std::min(least, each->left);
    const auto n = static_cast<double>(here.size());
    const double step = std::min(least * n, next - now);
    for (Arrival* each : here) each->left -= step / n;
    now += step;
  }
}

}  // namespace

TEST_CASE("messages that come at any time and are added share the rate, as an independent calculation has it") {
  std::mt19937_64 random(16);
  const auto number = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int i = 0; i < 2000; ++i) {
    CAPTURE(i);
    const int ranks = static_cast<int>(number(2, 9));
    const Bytes size{number(1, 8'000'000)};
    const Bandwidth reduce{number(1, 60) * 1'000'000'000};
    const Picoseconds start = number(0, 3) * 700ns;
    TopologyBuilder builder;  // each has a cable of its own to rank 0
    for (int g = 0; g < ranks; ++g) builder.add_gpu(fmt::format("gpu{}", g));
    std::vector<Arrival> arrivals;
    for (std::uint32_t g = 1; g < static_cast<std::uint32_t>(ranks); ++g) {
      const LinkSpec cable{.bandwidth = {number(1, 50) * 1'000'000'000}, .latency = number(0, 9) * 300ns};
      builder.add_cable(NodeId{g}, NodeId{0}, cable);
      const auto bytes = static_cast<double>(size.count);
      arrivals.push_back({.at = bytes / static_cast<double>(cable.bandwidth.bytes_per_second) +
                                static_cast<double>((cable.latency + start).count()) / 1e12,
                          .left = bytes / static_cast<double>(reduce.bytes_per_second)});
    }
    const Topology net =
        builder.build().with_rates([&](NodeId) { return DeviceRates{.reduce = reduce, .start = start}; }, 1);
    const CheckedSchedule schedule = check(
        make_schedule(*find_algorithm("direct"), {.op = CollectiveOp::reduce, .ranks = ranks, .bytes = size}, {}));
    const double expected = shared_end(arrivals) * 1e12;
    const auto simulated = static_cast<double>(run(net, schedule).duration().count());
    // Every change of rates may round by a picosecond.
    CHECK(std::abs(simulated - expected) <= 4 * ranks + expected * 1e-12);
  }
}

TEST_CASE("a topology whose rates say nothing runs as without them, to the picosecond and the fingerprint") {
  const Topology net = star(6, {.bandwidth = 10_GBps, .latency = 1us});
  const CheckedSchedule schedule =
      check(make_schedule(*find_algorithm("ring"), {.ranks = 6, .bytes = 12345677_B, .channels = 2}, {}));
  const Timeline plain = run(net, schedule);
  const Timeline rated = run(net.with_rates([](NodeId) { return DeviceRates{}; }, 2), schedule);
  CHECK(rated.finish == plain.finish);
  CHECK(rated.fingerprint == plain.fingerprint);
  CHECK(rated.link_bytes == plain.link_bytes);
}

}  // namespace device_work_test
