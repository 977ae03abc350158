// Transfers on their way: the routes, the parts and pieces in which they go, and what the network says of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/network/network.hpp"
#include "sim/run/compiled_routes.hpp"
#include "sim/run/critical_path.hpp"
#include "sim/run/planned_routes.hpp"
#include "sim/run/posts.hpp"
#include "sim/run/represented.hpp"
#include "sim/run/run.hpp"
#include "sim/run/staged_transfers.hpp"
#include "sim/run/transfer_table.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

class LinkFaults;

/// All of a message has arrived.
struct Arrived {
  std::uint32_t transfer = 0;
  MessageTime time;
  /// At most so much of its latency is its links', the rest is staging. Told only with RunOptions::record_path.
  Picoseconds wire = Picoseconds::max();
};

/// Hears of transfers until they have arrived: messages that run ahead of their receives need it.
class TransferWatcher {
 public:
  /// All of it has left, after links took `busy` of its time, `limiter` most of it. It may be told more than once.
  virtual void has_left(std::uint32_t transfer, ResourceId limiter, Picoseconds busy) = 0;
  /// The part is the last of its message to arrive.
  virtual void last_part_arrived(std::uint32_t part) = 0;
  /// Transfer `after` takes the place of `before` as the message.
  virtual void goes_on_as(std::uint32_t before, std::uint32_t after) = 0;

 protected:
  ~TransferWatcher() = default;
};

/// Moves transfers from their senders to their receivers, over the network: finds their routes, cuts them into parts,
/// has them posted, and has those of several legs go in pieces. It knows actors by the nodes on which they are, and
/// neither lanes (but for their order, if posts are ready at one instant) nor steps: callers make transfers and set
/// them out.
///
/// A transfer of which Transfer::whole is no_transfer is a message. told() and within() return it when all of it has
/// arrived, and the caller gives it back. Parts and background messages end here.
class Transfers {
 public:
  /// `placement`: [actor] its node; `n_simulated`: of how many actors messages come, as an estimate of routes. All
  /// references must outlive it.
  Transfers(const Topology& topology, const RunOptions& options, std::vector<NodeId> placement, int n_simulated,
            const Represented& represented, std::unique_ptr<Network> network, Engine<Event>& engine);

  void watch(TransferWatcher& watcher) { watcher_ = &watcher; }
  /// Links may go down.
  void use_faults(LinkFaults& faults) { faults_ = &faults; }
  /// Called now and then while many routes are looked for, which takes a while before anything moves; it may throw.
  void while_routing(std::function<void()> look_up) { look_up_ = std::move(look_up); }
  /// `done` is called with each background message (first_background) that has arrived.
  void on_background(std::function<void(std::uint32_t transfer)> done) { on_background_ = std::move(done); }

  TransferTable& table() { return table_; }
  const TransferTable& table() const { return table_; }
  Transfer& operator[](std::uint32_t index) { return table_[index]; }
  const Transfer& operator[](std::uint32_t index) const { return table_[index]; }
  CompiledRoutes& ways() { return ways_; }
  const CompiledRoutes& ways() const { return ways_; }
  StagedTransfers& staged() { return staged_; }
  Network& network() { return *network_; }
  const Network& network() const { return *network_; }
  PlannedRoutes& undisturbed_routes() { return routes_; }

  NodeId node_of(Actor actor) const { return placement_[static_cast<std::size_t>(actor)]; }
  /// The actors of background message `number`: this one, and the next.
  Actor background_sender(std::uint32_t number) const { return n_actors_ + 2 * static_cast<Actor>(number); }
  /// The next actor, beyond those of the schedule, is on that node.
  void add_place(NodeId node) { placement_.push_back(node); }

  // --- setting out -------------------------------------------------------------------------------------------------

  /// Starts a message, or a part of one, whose fields are set: it is posted, if need be, and goes.
  void set_out(std::uint32_t index) {
    if (posts_) [[unlikely]]
      return post(index);
    go(index);
  }
  /// Its post is over.
  void go_posted(std::uint32_t index);
  /// What is to be posted takes its turn, if nothing more happens at this instant.
  void take_turns() {
    if (posts_) posts_->take_turns();
  }
  /// Drops a transfer that did not finish.
  void drop(std::uint32_t index);

  /// Transfer `after` takes the place of `before` as the message.
  void goes_on_as(std::uint32_t before, std::uint32_t after) {
    if (watcher_ != nullptr) watcher_->goes_on_as(before, after);
  }

  /// The route of a message; `kept`: with the connection, if all its messages take one route.
  std::uint32_t route(Actor from, Actor to, std::uint16_t channel, std::uint32_t& kept) {
    if (kept != nothing_kept) return kept;
    const std::uint32_t found = route(from, to, channel);
    if (keeps_routes_) kept = found;
    return found;
  }
  std::uint32_t route(Actor from, Actor to, std::uint16_t channel) {
    return ways_.of(from, to, channel, [&](std::uint32_t label) { return find_parts(from, to, label); });
  }

  // --- what the network says ---------------------------------------------------------------------------------------

  /// The message that has arrived by this, until the next one does; null: none has.
  const Arrived* told(const Told& told) {
    if (told.has_left) [[unlikely]]
      piece_left(told);
    if (!told.has_arrived) return nullptr;
    return piece_arrived(told);
  }
  /// As told(), of a transfer within one device.
  const Arrived* within(std::uint32_t index) { return all_arrived(index, no_resource, Picoseconds{0}); }

 private:
  void go(std::uint32_t index) {
    Transfer& transfer = table_[index];
    Route& way = ways_[transfer.route];
    if (way.n_legs == 1) {
      way.carried += transfer.size;
      network_->start(way.first, transfer.size, piece_of(index, 0));
    } else {
      set_out_in_pieces(index);
    }
  }
  // Apart, so that what most messages need stays small.
  void post(std::uint32_t index);
  void set_out_in_pieces(std::uint32_t index);
  void cut(std::uint32_t index);

  std::vector<Path> find_parts(Actor from, Actor to, std::uint32_t label);

  // All of its time but the latency is due to the links.
  const Arrived* piece_arrived(const Told& told) {
    const std::uint32_t index = transfer_of(told.piece), leg = leg_of(told.piece);
    if (faults_ != nullptr && swallows(index, leg)) return nullptr;
    Transfer& transfer = table_[index];
    if (transfer.staged != not_staged) return staged_piece_arrived(index, leg);
    const Picoseconds busy = std::max(Picoseconds{0}, engine_.now() - moves_since(index) - told.latency);
    transfer.marks.limiter_is_unsure = told.is_unsure;
    return all_arrived(index, told.limiter, busy);
  }
  // All of a transfer has arrived, `busy` of its time due to the speed of the limiter. It is noted field by field: see
  // LaneRunner::post.
  const Arrived* all_arrived(std::uint32_t index, ResourceId limiter, Picoseconds busy,
                             Picoseconds wire = Picoseconds::max()) {
    const Transfer& transfer = table_[index];
    arrived_.transfer = index;
    arrived_.time.busy = busy;
    arrived_.time.latency = engine_.now() - transfer.start - busy;
    arrived_.time.limiter = limiter;
    arrived_.time.is_unsure = transfer.marks.limiter_is_unsure;
    arrived_.wire = wire;
    if (transfer.whole != no_transfer) [[unlikely]]
      return part_arrived();
    return &arrived_;
  }
  // The moment from which links, not its post, take the transfer's time.
  SimTime moves_since(std::uint32_t index) const {
    if (posts_) [[unlikely]]
      return posts_->since(index);
    return table_[index].start;
  }
  void piece_left(const Told& told);
  bool swallows(std::uint32_t index, std::uint32_t leg);
  const Arrived* staged_piece_arrived(std::uint32_t index, std::uint32_t leg);
  const Arrived* part_arrived();

  const Topology& topology_;
  const RunOptions& options_;
  const Represented& represented_;
  std::vector<NodeId> placement_;  // [actor], then the ends of background messages
  Actor n_actors_;                 // with a place, before those of background messages
  Engine<Event>& engine_;
  PlannedRoutes routes_;
  std::unique_ptr<Network> network_;
  CompiledRoutes ways_;
  bool keeps_routes_;  // with the connections
  TransferTable table_;
  StagedTransfers staged_;
  std::unique_ptr<Posts> posts_;  // only if posting takes time
  TransferWatcher* watcher_ = nullptr;
  LinkFaults* faults_ = nullptr;
  Arrived arrived_;  // the last one
  std::function<void()> look_up_;
  std::function<void(std::uint32_t)> on_background_;
};

}  // namespace ringsim
