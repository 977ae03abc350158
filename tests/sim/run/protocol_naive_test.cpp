// Random schedules under random protocols, against the naive reference: every message to the picosecond.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/naive/naive_protocol.hpp"
#include "tests/support/tiny.hpp"
#include "tests/support/written_schedule.hpp"
#include "topologies/machines/machine.hpp"

namespace protocol_naive_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  int number(int low, int high) {
    return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(int n) { return number(1, n) == 1; }

 private:
  std::mt19937_64 random_;
};

/// All sizes and times are multiples of this: a byte takes 250, 500 or 1000 ps, and flows that share a link by three,
/// one within the other, still end at whole picoseconds. So both sides round nothing, and must be equal.
constexpr int unit = 3 * 3 * 3 * 3;

/// Cables to one switch, or one between each two; speeds and latencies differ.
Topology random_topology(Draw& draw, int ranks) {
  TopologyBuilder builder;
  for (int g = 0; g < ranks; ++g) builder.add_gpu(fmt::format("gpu{}", g));
  const auto cable = [&] {
    return LinkSpec{.bandwidth = {1'000'000'000LL << draw.number(0, 2)}, .latency = draw.number(0, 5) * unit * 1ns};
  };
  const auto n = static_cast<std::uint32_t>(ranks);
  if (draw.once_in(2)) {
    const NodeId hub = builder.add_node("hub", NodeKind::network_switch);
    for (std::uint32_t g = 0; g < n; ++g) builder.add_cable(NodeId{g}, hub, cable());
  } else {
    for (std::uint32_t a = 0; a < n; ++a)
      for (std::uint32_t b = a + 1; b < n; ++b) builder.add_cable(NodeId{a}, NodeId{b}, cable());
  }
  return builder.build();
}

Protocol random_protocol(Draw& draw) {
  Protocol p{
      .name = "random", .doc = "", .slots = draw.number(0, 8), .slot = {std::int64_t{unit} * draw.number(1, 20)}};
  p.done_when_left = p.slots > 0;
  if (draw.once_in(3)) {
    p.wire = 3;
    p.payload = 2;
  }
  return p;
}

/// Messages between random ranks, in an order in which they could go one by one; then some sends come earlier, so that
/// others must run ahead, or nothing goes at all. Several lanes, steps of several operations, computing, waits.
Schedule random_schedule(Draw& draw, int ranks) {
  const int n_messages = draw.number(4, 40), lanes = draw.number(1, 2);
  WrittenSchedule t({.op = CollectiveOp::pairs, .ranks = ranks}, ranks, lanes, 1);
  t.like.names_regions = false;
  std::vector<Bytes> sizes;
  std::vector<int> busy(static_cast<std::size_t>(ranks * ranks), 0);  // [connection] the lanes of its ends
  for (int& lane : busy) lane = draw.number(0, lanes * lanes - 1);
  const auto next_step = [&](Actor actor, Lane lane) -> Step& {
    auto& all = t.steps[static_cast<std::size_t>(actor)];
    auto& mine = all[static_cast<std::size_t>(lane)];
    if (!mine.empty() && draw.once_in(4)) return mine.back();
    if (draw.once_in(6)) t.step(actor, lane).compute(draw.number(0, 30) * unit * 1ns);
    Step& made = t.step(actor, lane);
    const auto other = static_cast<Lane>(draw.number(0, lanes - 1));
    if (other != lane && draw.once_in(5))
      made.wait(other, static_cast<int>(all[static_cast<std::size_t>(other)].size()));
    return made;
  };
  for (int m = 0; m < n_messages; ++m) {
    const Actor from = draw.number(0, ranks - 1), to = (from + draw.number(1, ranks - 1)) % ranks;
    const int connection = from * ranks + to;
    const int ends = busy[static_cast<std::size_t>(connection)];
    sizes.push_back({draw.once_in(8) ? 0 : 2 * unit * draw.number(1, 20)});
    next_step(from, static_cast<Lane>(ends % lanes)).send(to, chunk(m));
    next_step(to, static_cast<Lane>(ends / lanes)).receive(from, chunk(m));
  }
  t.like.layout[0] = Layout::of_sizes(sizes);
  for (auto& actor : t.steps)
    for (auto& steps : actor)
      for (std::size_t i = 1; i < steps.size(); ++i) {
        const auto only = [](const Step& step, Do what) {
          return std::all_of(step.ops.begin(), step.ops.end(), [&](const Op& op) { return op.what == what; });
        };
        if (only(steps[i], Do::send) && only(steps[i - 1], Do::receive) && draw.once_in(3))
          std::swap(steps[i].ops, steps[i - 1].ops);
      }
  return t.schedule();
}

/// Checked, where it is right at all.
std::optional<CheckedSchedule> proved(const Schedule& schedule) {
  try {
    return check(schedule);
  } catch (const InputError&) {
    return std::nullopt;
  }
}

std::string text(const Span& span) {
  return fmt::format("{} -> {} channel {}: {} B from {} to {} ps", span.from, span.to, span.channel, span.bytes.count,
                     span.start.time_since_epoch().count(), span.finish.time_since_epoch().count());
}

void check_equal(const Timeline& line, const naive::Ran& expected) {
  std::vector<Span> spans = line.spans;
  std::sort(spans.begin(), spans.end(),
            [](const Span& a, const Span& b) { return naive::span_key(a) < naive::span_key(b); });
  REQUIRE(spans.size() == expected.messages.size());
  for (std::size_t i = 0; i < spans.size(); ++i) REQUIRE(text(spans[i]) == text(expected.messages[i]));
  REQUIRE(line.actor_finish == expected.finish);
}

}  // namespace

TEST_CASE("random schedules under random protocols run as the naive reference does, or stall as it does") {
  int n_equal = 0, n_stalled = 0, n_ahead = 0;
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    CAPTURE(seed);
    Draw draw(seed);
    const int ranks = draw.number(2, 4);
    const Topology net = random_topology(draw, ranks);
    const Protocol protocol = random_protocol(draw);
    const auto schedule = proved(random_schedule(draw, ranks));
    if (!schedule || schedule->proof().slots_needed > protocol.slots) continue;
    n_ahead += schedule->proof().slots_needed > 0 ? 1 : 0;
    const NetworkModel model = draw.once_in(2) ? NetworkModel::ideal : NetworkModel::fair;
    const auto expected = naive::simulate(net, model, schedule->schedule(), protocol);
    const RunOptions options{.model = model, .plans = {{.protocol = &protocol}}, .record_spans = true};
    if (expected.stalled) {
      CHECK_THROWS_AS(run(net, *schedule, options), InputError);
      ++n_stalled;
    } else {
      check_equal(run(net, *schedule, options), expected);
      ++n_equal;
    }
  }
  // Of each kind as many as make the test worth something.
  CHECK(n_equal > 1000);
  CHECK(n_stalled > 50);
  CHECK(n_ahead > 100);
}

TEST_CASE("rings, exchanges and trees under NCCL's protocols runs on NVLink as the naive reference does") {
  const Topology net = build(cluster_of("hgx-h100"));
  // Chunks of no byte, of a part of a slot, of more than all slots of LL.
  for (const Bytes bytes : {3_B, 1'000'003_B, 5'000'000_B}) {
    for (const Schedule& schedule :
         {ring_all_reduce(4, bytes), halving_doubling(4, bytes, Fold::naive), kary_all_reduce(4, bytes, 0, 2, 3)}) {
      CAPTURE(schedule.algorithm);
      CAPTURE(bytes.count);
      for (Protocol protocol : protocols()) {
        CAPTURE(protocol.name);
        if (protocol.slots > 0) protocol.align = 16_B;  // as NCCL cuts
        const RunOptions options{
            .model = NetworkModel::ideal, .plans = {{.protocol = &protocol}}, .record_spans = true};
        check_equal(run(net, check(schedule), options), naive::simulate(net, NetworkModel::ideal, schedule, protocol));
      }
    }
  }
}

}  // namespace protocol_naive_test
