#include "validate/analysis/greedy.hpp"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "algorithms/stored_schedule.hpp"
#include "algorithms/trees/ordered_messages.hpp"
#include "topologies/synthesis/greedy_gather.hpp"

namespace ringsim {

namespace {

/// messages * ranks^2 * pieces: some seconds.
constexpr std::int64_t most_greedy_work = 600'000'000;
constexpr int most_pieces = 8;

/// The messages of an all-gather; `up`: on the wires backwards. Empty if there is no plan.
std::vector<OrderedMessage> messages_of(const CandidateTimes& times, const MachineBounds& machine, MessageWays& ways,
                                        int pieces, bool up) {
  const TreeWires wires = tree_wires(up ? reversed(machine.wires()) : machine.wires());
  WireCosts costs;
  for (const Wires::Edge& edge : wires.wires.edges) {
    costs.latency.push_back(machine.topology().link(edge.link).latency);
    // A half-duplex cable has its whole rate for one message.
    costs.rate.push_back(machine.rates()[edge.link.value]);
  }
  const CollectiveRequest& request = times.scenario.main().request;
  const Bytes size{request.bytes.count / (std::int64_t{request.ranks} * pieces)};
  std::vector<OrderedMessage> list;
  for (const PlannedMessage& each :
       greedy_gather(wires.wires, costs, ways.between(wires, up), pieces, size, times.breathe))
    list.push_back({each.from, each.to, each.piece});
  return list;
}

}  // namespace

std::optional<MadeSchedule> greedy_schedule(const CandidateTimes& times, const MachineBounds& machine,
                                            MessageWays& ways) {
  const CollectiveRequest& request = times.scenario.main().request;
  const bool reduces = request.op == CollectiveOp::reduce_scatter || request.op == CollectiveOp::all_reduce;
  const bool copies = request.op == CollectiveOp::all_gather || request.op == CollectiveOp::all_reduce;
  if (!reduces && !copies) return std::nullopt;
  std::optional<MadeSchedule> best;
  const std::int64_t n = request.ranks;
  for (int pieces = 1; pieces <= most_pieces; pieces *= 2) {
    if (n * n * n * n * pieces * pieces > most_greedy_work || request.bytes.count < n * pieces) break;
    times.say(fmt::format("planning individual messages, {} pieces", pieces));
    std::vector<OrderedMessage> down, up;
    if (copies && (down = messages_of(times, machine, ways, pieces, false)).empty()) break;
    if (reduces && (up = messages_of(times, machine, ways, pieces, true)).empty()) break;
    auto stored = std::make_shared<const StoredSchedule>(
        store(ordered_messages(request.op, request.ranks, request.bytes, pieces, down, up)));
    const Picoseconds time = times.time_of(stored);
    if (best && time >= best->time) break;
    best = {fmt::format("greedy, {} piece{} per block", pieces, pieces == 1 ? "" : "s"), time, std::move(stored)};
  }
  return best;
}

}  // namespace ringsim
