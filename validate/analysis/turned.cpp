#include "validate/analysis/turned.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "algorithms/stored_schedule.hpp"
#include "algorithms/trees/trees_in_turn.hpp"
#include "sim/base/error.hpp"
#include "topologies/bound/limits.hpp"

namespace ringsim {

namespace {

constexpr int most_lanes = 3;
/// More messages in more than one slice take tens of seconds to prove and simulate.
constexpr std::int64_t most_messages_sliced = std::int64_t{1} << 19;

}  // namespace

std::optional<Symmetry> symmetry_of_hosts(const Topology& topology, const std::vector<NodeId>& ranks) {
  std::vector<int> sizes;
  std::vector<std::uint32_t> hosts;
  for (const NodeId rank : ranks) {
    const auto& host = topology.node(rank).host;
    if (!host) {
      if (!hosts.empty()) return std::nullopt;
      continue;
    }
    if (hosts.empty() || hosts.back() != *host) {
      if (std::find(hosts.begin(), hosts.end(), *host) != hosts.end()) return std::nullopt;
      hosts.push_back(*host);
      sizes.push_back(0);
    }
    ++sizes.back();
  }
  const int n = static_cast<int>(ranks.size());
  if (hosts.empty()) return Symmetry({n});
  for (const int size : sizes)
    if (size != sizes.front() || size * static_cast<int>(sizes.size()) != n) return std::nullopt;
  if (sizes.size() == 1 || sizes.front() == 1) return Symmetry({n});
  return Symmetry({static_cast<int>(sizes.size()), sizes.front()});
}

TurnedRun::TurnedRun(const CandidateTimes& times, MachineBounds& machine, MessageWays& ways,
                     const std::vector<NodeId>& ranks, int most_slices)
    : times_(times),
      request_(times.scenario.main().request),
      machine_(machine),
      ways_(ways),
      group_(symmetry_of_hosts(machine.topology(), ranks)),
      most_slices_(most_slices) {}

std::optional<TurnedRun::Part> TurnedRun::plan(bool up) {
  const Wires wires = up ? reversed(machine_.wires()) : machine_.wires();
  Part part{.wires = tree_wires(wires), .loads = {}, .tree = {}};
  const WayBetween way = ways_.between(part.wires, up);
  auto loads = TurnedLoads::of(part.wires.wires, *group_, way, times_.breathe);
  if (!loads) return std::nullopt;
  part.loads = std::move(*loads);
  part.tree = turned_tree(part.wires.wires, *group_, part.loads, way);
  return part;
}

std::optional<Synthesis::Turned> TurnedRun::plan() {
  const CollectiveOp op = request_.op;
  if (op != CollectiveOp::all_gather && op != CollectiveOp::reduce_scatter && op != CollectiveOp::all_reduce)
    return std::nullopt;
  if (!group_) return std::nullopt;
  times_.say("planning one tree for all roots");
  Synthesis::Turned turned{.down = {}, .up = {}, .share = 1};
  for (const bool up : {false, true}) {
    if (op == (up ? CollectiveOp::all_gather : CollectiveOp::reduce_scatter)) continue;
    std::optional<Part>& part = up ? up_ : down_;
    part = plan(up);
    if (!part) return std::nullopt;
    const double optimum = as_double(gather_limit(part->wires.wires).inverse_rate);
    turned.share = std::min(turned.share, optimum / part->tree.inverse_rate);
    (up ? turned.up : turned.down) = part->tree;
  }
  return turned;
}

std::int64_t TurnedRun::messages(int slices) const {
  const std::int64_t n = ranks();
  return n * (n - 1) * slices * (up_ && down_ ? 2 : 1);
}

MadeSchedule TurnedRun::timed(int slices, int lanes) const {
  const auto tree_of = [&](const std::optional<Part>& part) {
    TurningTree tree;
    if (!part) return tree;
    std::map<int, int> ports;
    std::vector<int> port{-1};
    for (int d = 1; d < ranks(); ++d) {
      const int of = part->loads.port(group_->subtract(d, part->tree.parent[static_cast<std::size_t>(d)]));
      port.push_back(ports.try_emplace(of, static_cast<int>(ports.size())).first->second);
    }
    tree.ports = static_cast<int>(ports.size());
    for (int slice = 0; slice < slices; ++slice) {
      tree.parent.insert(tree.parent.end(), part->tree.parent.begin(), part->tree.parent.end());
      tree.port.insert(tree.port.end(), port.begin(), port.end());
    }
    tree.turn = turns_of(part->tree, part->loads, *group_, slices, lanes);
    return tree;
  };
  const std::string name =
      fmt::format("one tree rotated to all roots, {}{} lane{}", slices == 1 ? "" : fmt::format("{} slices, ", slices),
                  lanes, lanes == 1 ? "" : "s");
  times_.say("timing " + name);
  auto stored = std::make_shared<const StoredSchedule>(
      store(trees_in_turn(request_.op, request_.bytes, *group_, tree_of(down_), tree_of(up_), slices, lanes)));
  return {.name = name, .time = times_.time_of(stored), .schedule = stored};
}

MadeSchedule TurnedRun::fastest() {
  MadeSchedule best;
  Picoseconds last[most_lanes];
  std::fill(std::begin(last), std::end(last), Picoseconds::max());
  int failures = 0;  // numbers of slices in a row that did not help
  for (int slices = 1; slices <= std::min(most_slices_, 64) && failures < 2; slices *= 2, ++failures) {
    if (slices > 1 && (messages(slices) > most_messages_sliced || request_.bytes.count / ranks() < slices)) break;
    for (int lanes = 1; lanes <= most_lanes; ++lanes) {
      Picoseconds& before = last[lanes - 1];
      if (before == Picoseconds::min()) continue;  // that few lanes have become slower: latency counts
      MadeSchedule other = timed(slices, lanes);
      before = other.time / 100 < before / 98 ? other.time : Picoseconds::min();
      if (best.schedule && other.time >= best.time) continue;
      best = std::move(other);
      failures = -1;
    }
  }
  return best;
}

}  // namespace ringsim
