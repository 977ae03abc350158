// Messages that a device posts one after another. device_naive_test.cpp has random ones next to a naive solver.
#include <doctest/doctest.h>

#include <chrono>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "tests/support/tiny.hpp"
#include "topologies/catalog.hpp"

namespace posts_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

CheckedSchedule of(const char* algorithm, CollectiveOp op, int ranks, Bytes bytes) {
  return check(make_schedule(*find_algorithm(algorithm), {.op = op, .ranks = ranks, .bytes = bytes}, {}));
}
Topology posting(const Topology& net, Picoseconds post) {
  return net.with_rates([&](NodeId) { return DeviceRates{.post = post}; }, 1);
}
/// When each message arrives, in order.
std::vector<SimTime> arrivals(const Topology& net, const CheckedSchedule& schedule, RunOptions options = {}) {
  options.record_spans = true;
  std::vector<SimTime> out;
  for (const Span& span : run(net, schedule, options).spans) out.push_back(span.finish);
  return out;
}

}  // namespace

TEST_CASE("messages that one device sends at once leave one after another, to the next rank first") {
  // 4 KB at 4 GB/s: 1 us. Three messages of a scatter, posted in 3 us each, are never on the link together: the i-th
  // starts at 3 i us and arrives 1 us and the latencies of two links, 2 us, later.
  const Topology net = star(4, {.bandwidth = 4_GBps, .latency = 1us});
  const CheckedSchedule scatter = of("direct", CollectiveOp::scatter, 4, 16'000_B);
  CHECK(arrivals(posting(net, 3us), scatter) == std::vector{SimTime{6us}, SimTime{9us}, SimTime{12us}});
  const Timeline line = run(posting(net, 3us), scatter, {.record_spans = true});
  REQUIRE(line.spans.size() == 3);
  for (int i = 0; i < 3; ++i) {
    CHECK(line.spans[static_cast<std::size_t>(i)].to == i + 1);
    CHECK(line.spans[static_cast<std::size_t>(i)].start == SimTime{});  // when it was ready
  }
  // A link took 1 us of the last message's 12; the rest are posts and latencies.
  REQUIRE(line.bottleneck);
  CHECK(line.bottleneck->busy == 1us);
  CHECK(line.bottleneck->latency == 11us);
  // Posted faster than the link carries them, they queue there: 3 us for all, after the first post.
  CHECK(arrivals(posting(net, 100ns), scatter).back() == SimTime{100ns + 3us + 2us});
}

TEST_CASE("in an all-to-all each rank posts to the next ranks first, so that no two send to one at once") {
  // 4 KB at 4 GB/s: 1 us, as long as a post. Four ranks post three messages each; the last arrives after three posts,
  // its own us and 2 us of latency.
  const Topology net = star(4, {.bandwidth = 4_GBps, .latency = 1us});
  const CheckedSchedule all = of("direct", CollectiveOp::all_to_all, 4, 16'000_B);
  CHECK(run(posting(net, 1us), all).duration() == 3 * 1us + 1us + 2us);
}

TEST_CASE("in a ring each rank has one message to post, which adds a post to each step") {
  const Topology net = star(5, {.bandwidth = 4_GBps, .latency = 1us});
  const CheckedSchedule ring = of("ring", CollectiveOp::all_reduce, 5, 20'000_B);
  const Picoseconds plain = run(net, ring).duration();
  CHECK(plain == 8 * (1us + 2us));
  CHECK(run(posting(net, 3us), ring).duration() == plain + 8 * 3us);
  // With slots: a send is done when it has left, a receive is what the next send waits for.
  RunOptions ahead{.plans = {{.protocol = find_protocol("simple")}}};
  CHECK(run(posting(net, 3us), ring, ahead).duration() == run(net, ring, ahead).duration() + 8 * 3us);
}

TEST_CASE("a protocol's post counts as a device's does, and the longer of both is taken") {
  // As above: three messages of 1 us each, posted in 3 us.
  const Topology net = star(4, {.bandwidth = 4_GBps, .latency = 1us});
  const CheckedSchedule scatter = of("direct", CollectiveOp::scatter, 4, 16'000_B);
  Protocol posted = no_protocol();
  posted.post = 3us;
  const RunOptions options{.plans = {{.protocol = &posted}}, .fold_from = 0};
  const std::vector by_3us{SimTime{6us}, SimTime{9us}, SimTime{12us}};
  CHECK(arrivals(net, scatter, options) == by_3us);
  CHECK(arrivals(posting(net, 1us), scatter, options) == by_3us);
  CHECK(arrivals(posting(net, 4us), scatter, options) == arrivals(posting(net, 4us), scatter));
  // Ranks post at different times, so nothing folds.
  CHECK(run(net, of("ring", CollectiveOp::all_reduce, 4, 16'000_B), options).not_folded ==
        "devices post messages one after another");
}

TEST_CASE("posts put channels out of step, so that jitter makes no run faster") {
  // 64 MiB at 100 GB/s: 14 steps of an eighth take 1174.4 us, and as many latencies of two links, 28 us, if all
  // channels wait for them at one time. 64 posts of 50 ns take longer than a latency, so some channels send while
  // others wait.
  const Topology net = star(8, {.bandwidth = 100_GBps, .latency = 1us});
  const CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = 8, .bytes = 64_MiB, .channels = 64};
  const CheckedSchedule ring = check(make_schedule(*find_algorithm("ring"), request, {}));
  const auto time = [&](Picoseconds post, std::uint64_t seed) {
    RunOptions options;
    if (seed > 0) options.disturbance.jitter = {5us, seed};
    return microseconds(run(post.count() > 0 ? posting(net, post) : net, ring, options).duration());
  };
  const double links = 14 * 64.0 * 1024 * 1024 / 8 / 100e9 * 1e6;
  CHECK(time(0us, 0) == doctest::Approx(links + 28).epsilon(1e-6));
  CHECK(time(50ns, 0) < links + 28 / 10.);
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    CHECK(time(0us, seed) < time(0us, 0) - 20);  // in step, it does
    CHECK(time(50ns, seed) > time(50ns, 0));
  }
}

TEST_CASE("only messages that leave their host are posted") {
  const Topology net = build(cluster_of("dgx-a100", 2, StarFabric{{.bandwidth = 200_Gbps, .latency = 150ns}}));
  REQUIRE(net.ranks().size() == 16);
  const CheckedSchedule ring = of("ring", CollectiveOp::all_gather, 16, 16'000'000_B);
  const std::vector<SimTime> plain = arrivals(net, ring), posted = arrivals(posting(net, 50us), ring);
  REQUIRE(plain.size() == posted.size());
  CHECK(plain.front() == posted.front());  // from GPU to GPU
  CHECK(posted.back() > plain.back() + 50us);
  const CheckedSchedule in_one = of("ring", CollectiveOp::all_gather, 8, 16'000'000_B);
  CHECK(run(posting(net, 50us), in_one).fingerprint == run(net, in_one).fingerprint);
}

TEST_CASE("a run whose devices post messages is not folded") {
  const Topology net = star(4, {.bandwidth = 4_GBps});
  const CheckedSchedule ring = of("ring", CollectiveOp::all_reduce, 4, 16'000_B);
  CHECK(run(net, ring, {.fold_from = 0}).folded);
  const Timeline line = run(posting(net, 3us), ring, {.fold_from = 0});
  CHECK_FALSE(line.folded);
  CHECK(line.not_folded == "devices post messages one after another");
}

TEST_CASE("a message finds its way when it has been posted, as links are then") {
  // Two ways from gpu0 to gpu1, the first one down while the message is posted: it takes the other, at half the rate.
  TopologyBuilder builder;
  const NodeId a = builder.add_gpu("gpu0"), b = builder.add_gpu("gpu1");
  builder.add_link(a, b, {.bandwidth = 4_GBps});
  const LinkId first{0};
  const NodeId by = builder.add_node("switch", NodeKind::network_switch);
  builder.add_link(a, by, {.bandwidth = 2_GBps});
  builder.add_link(by, b, {.bandwidth = 2_GBps});
  builder.add_link(b, a, {.bandwidth = 4_GBps});
  const Topology net = posting(builder.build(), 3us);
  const CheckedSchedule one = of("direct", CollectiveOp::broadcast, 2, 4'000_B);
  RunOptions options;
  CHECK(run(net, one, options).duration() == 3us + 1us);
  options.disturbance.links = {{.to = LinkChange::To::down, .at = SimTime{1us}, .links = {first}},
                               {.to = LinkChange::To::restored, .at = SimTime{90us}, .links = {first}}};
  CHECK(run(net, one, options).duration() == 3us + 2us);
  // Both ways down for good, before it is posted.
  options.disturbance.links = {{.to = LinkChange::To::down, .at = SimTime{1us}, .links = {first, LinkId{1}}}};
  CHECK_THROWS_AS(run(net, one, options), StrandedError);
  // Down for good, once it is posted and half of it has left: 2 KB go on by the other way, and are posted again.
  options.disturbance.links = {{.to = LinkChange::To::down, .at = SimTime{3us + 500ns}, .links = {first}}};
  CHECK(run(net, one, options).duration() == 3us + 500ns + 3us + 1us);
}

}  // namespace posts_test
