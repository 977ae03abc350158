#include "tools/bench/cases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <memory>
#include <random>

#include "algorithms/all_to_all.hpp"
#include "algorithms/composed/channels.hpp"
#include "algorithms/exchanges/halving_doubling.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/ring.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"
#include "tools/bench/topologies.hpp"
#include "topologies/catalog.hpp"

namespace ringsim::bench {

namespace {

using namespace ringsim::literals;

const LinkSpec port{.bandwidth = 10_GBps, .latency = Picoseconds{1'000'000}};

std::function<Topology()> star(int ranks) {
  return [ranks] { return build(Star{ranks, port}); };
}

std::vector<Case> on_a_star() {
  std::vector<Case> made;
  const auto add = [&](const std::string& name, int n, std::function<Schedule()> schedule, bool fold = false,
                       bool slow = false) {
    made.push_back(
        {.name = name, .topology = star(n), .schedule = std::move(schedule), .options = {.fold = fold}, .slow = slow});
  };
  for (const int n : {64, 512, 1024, 4096, 16384})
    add(
        fmt::format("ring/{}", n), n, [n] { return ring_all_reduce(n, 1_GiB); }, false, n > 4096);
  add(
      "ring/65536/folded", 65536, [] { return ring_all_reduce(65536, 1_GiB); }, true);
  // Channels are proved from the proof of one; folded, rank 0 runs all of its own.
  for (const int channels : {2, 8}) {
    const auto ring = [channels] { return over_channels(ring_all_reduce(1024, 1_GiB), {.channels = channels}); };
    add(fmt::format("ring/1024/channels_{}", channels), 1024, ring, false, channels > 2);
    add(fmt::format("ring/1024/channels_{}/folded", channels), 1024, ring, true);
  }
  // Chunks of two sizes: ranks fall out of step.
  add("ring/1024/uneven", 1024, [] { return ring_all_reduce(1024, 1000003_KiB + 1_B); });
  for (const int n : {1000, 1024, 16384, 65536})
    add(fmt::format("halving_doubling/{}", n), n, [n] { return halving_doubling(n, 1_GiB, Fold::rabenseifner); });
  add(
      "halving_doubling/65536/folded", 65536, [] { return halving_doubling(65536, 1_GiB, Fold::naive); }, true);
  for (const int n : {64, 1024, 4096})  // all flows through one port
    add(fmt::format("parameter_server/{}", n), n, [n] { return parameter_server(n, 1_MiB, 0); });
  // Ranks that all send at once do not fold, channels that do the same do.
  const auto to_all = [] { return direct_all_to_all(512, 1_GiB); };
  add("all_to_all/512/direct", 512, to_all);
  add(
      "all_to_all/512/direct/channels_8", 512, [to_all] { return over_channels(to_all(), {.channels = 8}); }, false,
      true);
  add(
      "all_to_all/512/direct/channels_8/folded", 512, [to_all] { return over_channels(to_all(), {.channels = 8}); },
      true);
  for (const int n : {128, 1024}) {
    add(fmt::format("all_to_all/{}/direct", n), n, [n] { return direct_all_to_all(n, 1_GiB); });
    add(fmt::format("all_to_all/{}/pairwise", n), n, [n] { return pairwise_all_to_all(n, 1_GiB); });
  }
  return made;
}

// Nodes of a GPU and a NIC, 16 on a leaf, half the rate upwards: messages meet on the cables up and down.
std::vector<Case> on_leaves_and_spines() {
  constexpr int n = 512;
  const auto topology = [] { return leaf_spine(n, 16, 2); };
  return {
      {.name = "leaf_spine/64/ring_shuffled",
       .topology = [] { return leaf_spine(64, 16, 2); },
       .schedule = [] { return ring_all_reduce(64, 1_GiB); },
       .options = {.fold = false},
       .shuffled = true},
      {.name = "leaf_spine/512/ring_shuffled",
       .topology = topology,
       .schedule = [] { return ring_all_reduce(n, 1_GiB); },
       .options = {.fold = false},
       .shuffled = true},
      {.name = "leaf_spine/512/ring_shuffled/channels_8/folded",
       .topology = topology,
       .schedule = [] { return over_channels(ring_all_reduce(n, 1_GiB), {.channels = 8}); },
       .options = {.fold = true},
       .shuffled = true},
      {.name = "leaf_spine/512/halving_doubling",
       .topology = topology,
       .schedule = [] { return halving_doubling(n, 1_GiB, Fold::rabenseifner); },
       .options = {.fold = false}},
  };
}

// Some of the cases as `ringsim explain` runs them: the elements of the critical path are recorded.
std::vector<Case> recorded(const std::vector<Case>& cases) {
  std::vector<Case> made;
  for (const Case& each : cases) {
    if (each.name != "ring/1024" && each.name != "halving_doubling/1024" && !each.name.starts_with("leaf_spine/"))
      continue;
    made.push_back(each);
    made.back().name += "/recorded";
    made.back().options.record_path = true;
  }
  return made;
}

// Every rank sends to the next: over ranks in a random order, a permutation.
Schedule to_the_next(int n, Bytes bytes) {
  Schedule s{.algorithm = "to_the_next", .collective = {.op = CollectiveOp::pairs, .ranks = n, .bytes = bytes}};
  s.actors = n;
  s.layout[static_cast<std::size_t>(Buffer::input)] = Layout::near_equal(bytes, 1);
  s.layout[static_cast<std::size_t>(Buffer::output)] = Layout::near_equal(bytes, 1);
  const auto holds = [n](Buffer buffer, Actor rank) {
    return [n, buffer, rank](Actor r, Buffer b, std::uint32_t) {
      return b == buffer ? Content{Content::Who::one, wrap(r + rank, n), 0} : Content{};
    };
  };
  s.collective.before = holds(Buffer::input, 0);
  s.collective.after = holds(Buffer::output, -1);
  s.n_steps = [](Actor, Lane) { return 1; };
  s.step = [n](Actor r, Lane, int, Step& out) {
    out.send(wrap(r + 1, n), {Buffer::input, 0, 1});
    out.receive(wrap(r - 1, n), {Buffer::output, 0, 1});
  };
  return s;
}

// A ring in which every rank has `lanes` lanes: step i of a lane waits until the lane before it has completed its own
// step i, then sends one chunk to the next rank.
Schedule lanes_in_a_row(int n, int lanes, int steps) {
  Schedule s{.algorithm = "lanes_in_a_row", .collective = barrier(n), .actors = n, .lanes = lanes};
  s.names_regions = false;
  s.layout[static_cast<std::size_t>(Buffer::data)] = Layout::near_equal(1_MiB, 1);
  s.n_steps = [steps](Actor, Lane) { return steps; };
  s.step = [n](Actor r, Lane lane, int i, Step& out) {
    if (lane > 0) out.wait(lane - 1, i + 1);
    out.send(wrap(r + 1, n), chunk(0), lane);
    out.receive(wrap(r - 1, n), chunk(0), lane);
  };
  return s;
}

std::vector<Case> with_waits() {
  std::vector<Case> made;
  for (const int lanes : {1, 64, 1024})
    made.push_back({.name = fmt::format("lanes_in_a_row/8/{}", lanes),
                    .topology = star(8),
                    .schedule = [lanes] { return lanes_in_a_row(8, lanes, 4096 / lanes); },
                    .options = {.fold = false}});
  return made;
}

std::vector<Case> in_packets() {
  std::vector<Case> made;
  const RunOptions packets{.model = NetworkModel::packet, .packet = {.mtu = Bytes{4096}}, .fold = false};
  for (const int n : {8, 64})
    made.push_back({.name = fmt::format("packet/ring/{}", n),
                    .topology = star(n),
                    .schedule = [n] { return ring_all_reduce(n, 64_MiB); },
                    .options = packets});
  RunOptions hashed = packets;
  hashed.routing.policy = Routing::Policy::ecmp;
  made.push_back({.name = "packet/fat_tree/1024/permutation",
                  .topology = [] { return fat_tree(16); },
                  .schedule = [] { return to_the_next(1024, Bytes{2'000'000}); },
                  .options = hashed,
                  .shuffled = true});
  return made;
}

}  // namespace

const std::vector<Case>& cases() {
  static const std::vector<Case> all = [] {
    std::vector<Case> made = on_a_star();
    for (const auto& more : {on_leaves_and_spines(), with_waits(), in_packets()})
      made.insert(made.end(), more.begin(), more.end());
    const std::vector<Case> again = recorded(made);
    made.insert(made.end(), again.begin(), again.end());
    return made;
  }();
  return all;
}

const Case& find_case(const std::string& name) {
  for (const Case& known : cases())
    if (known.name == name) return known;
  throw InputError(name, "expected the name of a case", "--list shows them");
}

Prepared prepare(const Case& chosen) {
  const double start = cpu_seconds();
  Topology topology = chosen.topology();
  const double build_seconds = cpu_seconds() - start;
  const double then = cpu_seconds();
  CheckedSchedule checked = check(chosen.schedule());
  Prepared made{std::move(topology), std::move(checked), chosen.options, build_seconds, cpu_seconds() - then};
  if (chosen.shuffled) {
    std::vector<NodeId>& places = made.options.placement;
    places.assign(made.topology.ranks().begin(), made.topology.ranks().end());
    std::mt19937_64 random(1);
    for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random() % i]);
  }
  return made;
}

std::int64_t packets_of(const Schedule& schedule, Bytes mtu) {
  std::int64_t packets = 0;
  for (Actor actor = 0; actor < schedule.actors; ++actor) {
    each_op(schedule, actor, [&](const Op& op) {
      if (op.what == Do::send) packets += (schedule.size(op.region).count + mtu.count - 1) / mtu.count;
    });
  }
  return packets;
}

double peak_mib() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != "VmHWM:") continue;
    double kib = 0;
    status >> kib;
    return kib / 1024;
  }
  throw EnvironmentError("/proc/self/status does not tell the most memory that the process had (VmHWM)");
}

double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace ringsim::bench
