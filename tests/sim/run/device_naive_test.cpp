// Random schedules on random devices, against the naive solver: when each message and each rank ends.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "tests/support/draw.hpp"
#include "tests/support/naive/naive_devices.hpp"
#include "tests/support/written_schedule.hpp"

namespace device_naive_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;
using ringsim::test::Draw;

namespace {

Bandwidth random_rate(Draw& draw) { return {draw.number(1, 40) * 1'000'000'000}; }

/// A cable between each two of the GPUs, or one from each to a hub; some cables are half duplex. A memory that no
/// message crosses.
Topology random_topology(Draw& draw) {
  TopologyBuilder builder;
  const auto n = static_cast<std::uint32_t>(draw.number(2, 6));
  for (std::uint32_t g = 0; g < n; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const auto cable = [&] {
    return LinkSpec{.bandwidth = random_rate(draw),
                    .latency = draw.number(0, 5) * 300ns,
                    .duplex = draw.once_in(4) ? Duplex::half : Duplex::full};
  };
  if (draw.once_in(2)) {
    const NodeId hub = builder.add_node("hub", NodeKind::network_switch);
    for (std::uint32_t g = 0; g < n; ++g) builder.add_cable(NodeId{g}, hub, cable());
  } else {
    for (std::uint32_t a = 0; a < n; ++a)
      for (std::uint32_t b = a + 1; b < n; ++b) builder.add_cable(NodeId{a}, NodeId{b}, cable());
  }
  builder.add_cable(builder.add_node("mem", NodeKind::memory), NodeId{0}, cable());
  return builder.build();
}

/// Some devices have none; of the others each rate is there or not. With `over`, several may draw on one link, which
/// messages may cross as well.
naive::Devices random_devices(Draw& draw, const Topology& net) {
  naive::Devices made{.rates = {net.n_nodes(), std::nullopt}, .channels = static_cast<int>(draw.number(1, 3))};
  const auto maybe = [&] { return draw.once_in(3) ? std::nullopt : std::optional(random_rate(draw)); };
  const auto n_links = static_cast<std::int64_t>(net.n_links());
  const LinkId shared{static_cast<std::uint32_t>(draw.number(0, n_links - 1))};
  for (const NodeId gpu : net.ranks()) {
    if (draw.once_in(5)) continue;
    DeviceRates rates{.copy = maybe(), .reduce = maybe(), .channel = maybe(), .start = draw.number(0, 3) * 700ns};
    if (draw.once_in(2)) rates.post = draw.number(1, 20) * 400ns;
    if (draw.once_in(2))
      rates.over = draw.once_in(3) ? LinkId{static_cast<std::uint32_t>(draw.number(0, n_links - 1))} : shared;
    made.rates[gpu.value] = rates;
  }
  return made;
}

/// Messages that are received or added, copies and additions within a rank, computing, and waits for other lanes. The
/// order of messages is one in which they could go one by one.
Schedule random_schedule(Draw& draw, int ranks, int channels) {
  const int n_chunks = static_cast<int>(draw.number(4, 30)), lanes = static_cast<int>(draw.number(1, 3));
  WrittenSchedule t({.op = CollectiveOp::pairs, .ranks = ranks}, ranks, lanes, 1);
  t.like.names_regions = false;
  std::vector<Bytes> sizes;
  const auto next_step = [&](Actor actor, Lane lane) -> Step& {
    auto& all = t.steps[static_cast<std::size_t>(actor)];
    auto& mine = all[static_cast<std::size_t>(lane)];
    if (!mine.empty() && draw.once_in(3)) return mine.back();
    if (draw.once_in(8)) t.step(actor, lane).compute(draw.number(0, 30) * 1us);
    Step& made = t.step(actor, lane);
    const auto other = static_cast<Lane>(draw.number(0, lanes - 1));
    if (other != lane && draw.once_in(5))
      made.wait(other, static_cast<int>(all[static_cast<std::size_t>(other)].size()));
    return made;
  };
  for (int c = 0; c < n_chunks; ++c) {
    sizes.push_back({draw.once_in(10) ? 0 : draw.number(1, 1'000'000)});
    const auto from = static_cast<Actor>(draw.number(0, ranks - 1));
    if (draw.once_in(4)) {
      Step& step = next_step(from, static_cast<Lane>(draw.number(0, lanes - 1)));
      const Region from_scratch{Buffer::scratch, static_cast<std::uint32_t>(c), 1};
      draw.once_in(2) ? step.copy(from_scratch, chunk(c)) : step.add(from_scratch, chunk(c));
      continue;
    }
    // A connection belongs to one lane at each end.
    const auto to = static_cast<Actor>((from + draw.number(1, ranks - 1)) % ranks);
    const auto channel = static_cast<int>(draw.number(0, channels - 1));
    const int lane = (from + 2 * to + channel) % lanes;
    next_step(from, lane).send(to, chunk(c), channel);
    Step& step = next_step(to, lane);
    draw.once_in(2) ? step.receive_add(from, chunk(c), channel) : step.receive(from, chunk(c), channel);
  }
  for (const Buffer b : {Buffer::data, Buffer::scratch})
    t.like.layout[static_cast<std::size_t>(b)] = Layout::of_sizes(sizes);
  return t.schedule();
}

/// Where it comes to its end.
std::optional<CheckedSchedule> proved(const Schedule& schedule) {
  try {
    CheckedSchedule checked = check(schedule);
    if (checked.proof().slots_needed > 0) return std::nullopt;
    return checked;
  } catch (const InputError&) {
    return std::nullopt;
  }
}

/// One line per message and rank, sorted.
std::vector<std::string> text(const std::vector<Span>& messages, const std::vector<SimTime>& finish) {
  const auto ps = [](SimTime time) { return time.time_since_epoch().count(); };
  std::vector<std::string> lines;
  for (const Span& m : messages)
    lines.push_back(fmt::format("{} -> {} channel {}: {} B from {} to {} ps", m.from, m.to, m.channel, m.bytes.count,
                                ps(m.start), ps(m.finish)));
  for (std::size_t a = 0; a < finish.size(); ++a) lines.push_back(fmt::format("rank {}: {} ps", a, ps(finish[a])));
  std::sort(lines.begin(), lines.end());
  return lines;
}

struct Case {
  Topology net;
  naive::Devices devices;
  std::vector<NodeId> placement;
  CheckedSchedule schedule;

  std::vector<std::string> expected(const naive::Devices& with) const {
    // Far shorter than a message of median size, 0.5 MB at 20 GB/s, so that most go on over several steps.
    const naive::RanOnDevices ran = naive::simulate(net, with, schedule.schedule(), placement, 5us);
    return text(ran.messages, ran.finish);
  }
  std::vector<std::string> found() const {
    const Topology rated = net.with_rates([&](NodeId id) { return devices.rates[id.value]; }, devices.channels);
    const Timeline line = run(rated, schedule, {.placement = placement, .record_spans = true});
    return text(line.spans, line.actor_finish);
  }
  /// True if some time would be another one, were `change` made to all devices.
  template <class Change>
  bool depends_on(Change change) const {
    naive::Devices changed = devices;
    for (std::optional<DeviceRates>& rates : changed.rates)
      if (rates) change(*rates);
    return expected(changed) != expected(devices);
  }
};

std::optional<Case> random_case(std::uint64_t seed) {
  Draw draw(seed);
  Topology net = random_topology(draw);
  const naive::Devices devices = random_devices(draw, net);
  std::vector<NodeId> placement(net.ranks().begin(), net.ranks().end());
  if (draw.once_in(4)) placement.push_back(draw.one_of(net.ranks()));  // two ranks on one GPU
  const auto channels = static_cast<int>(draw.number(1, 3));
  auto schedule = proved(random_schedule(draw, static_cast<int>(placement.size()), channels));
  if (!schedule) return std::nullopt;
  return Case{std::move(net), devices, std::move(placement), std::move(*schedule)};
}

}  // namespace

TEST_CASE("on 2000 random networks of devices each message and each rank ends when the naive solver says") {
  int n_compared = 0;
  // Of 200 networks, how many would run otherwise without the one or the other: what never mattered was not tested.
  int copy = 0, reduce = 0, channel = 0, channels = 0, start = 0, post = 0, over = 0;
  for (std::uint64_t seed = 1; n_compared < 2000; ++seed) {
    CAPTURE(seed);
    REQUIRE(seed < 3000);  // few schedules wait in a cycle
    const auto one = random_case(seed);
    if (!one) continue;
    // Both round the end of what moves up to a picosecond; the noise of their sums is far below.
    REQUIRE(one->found() == one->expected(one->devices));
    if (++n_compared % 10 > 0) continue;
    copy += one->depends_on([](DeviceRates& rates) { rates.copy.reset(); }) ? 1 : 0;
    reduce += one->depends_on([](DeviceRates& rates) { rates.reduce.reset(); }) ? 1 : 0;
    channel += one->depends_on([](DeviceRates& rates) { rates.channel.reset(); }) ? 1 : 0;
    start += one->depends_on([](DeviceRates& rates) { rates.start = Picoseconds{0}; }) ? 1 : 0;
    post += one->depends_on([](DeviceRates& rates) { rates.post = Picoseconds{0}; }) ? 1 : 0;
    over += one->depends_on([](DeviceRates& rates) { rates.over.reset(); }) ? 1 : 0;
    Case other = *one;
    other.devices.channels = 1;
    channels += other.expected(other.devices) != one->expected(one->devices) ? 1 : 0;
  }
  for (const int n : {copy, reduce, channel, start, post}) CHECK(n > 100);
  CHECK(over > 70);
  CHECK(channels > 10);
}

}  // namespace device_naive_test
