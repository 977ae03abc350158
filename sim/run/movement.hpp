// Transfers on their way: the routes, the parts and pieces in which they go, and what the network says of them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/network/network.hpp"
#include "sim/run/compiled_routes.hpp"
#include "sim/run/device_work.hpp"
#include "sim/run/lane_trails.hpp"
#include "sim/run/planned_routes.hpp"
#include "sim/run/posts.hpp"
#include "sim/run/run.hpp"
#include "sim/run/run_disturbed.hpp"
#include "sim/run/staged_transfers.hpp"
#include "sim/run/transfers.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

/// Takes a transfer from set_out() to Run::delivered(); steps and operations are Run's. Run is the class of that name
/// in simulate.cpp, which derives from this one, so that what every message passes is compiled as one.
template <class Run>
class Movement {
 protected:
  Movement(const Topology& topology, const Schedule& schedule, const RunOptions& options,
           const std::vector<NodeId>& placement)
      : topology_(topology),
        schedule_(schedule),
        options_(options),
        placement_(placement),
        routes_(topology, options),
        network_(make_network(options.model, options.packet, topology, engine_)),
        ways_(options.routing.policy, differ_by_channel(topology, options), *network_,
              static_cast<std::size_t>(schedule.actors)),
        staged_(options, transfers_, ways_, *network_, engine_) {}

  /// Starts a message, or a part of one: it is posted, if need be, and goes.
  void set_out(std::uint32_t index) {
    if (posts_) [[unlikely]]
      return post(index);
    go(index);
  }
  [[gnu::noinline]] void post(std::uint32_t index) {
    if (!posts_->take(index)) go_posted(index);
  }
  [[gnu::noinline]] void go_posted(std::uint32_t index) {
    posts_->moves(index);
    go(index);
  }

  /// On its route.
  void go(std::uint32_t index) {
    Transfer& transfer = transfers_[index];
    Route& way = ways_[transfer.route];
    if (way.n_legs == 1) {
      way.carried += transfer.size;
      network_->start(way.first, transfer.size, piece_of(index, 0));
    } else {
      set_out_in_pieces(index);
    }
  }

  // Apart, so that what most messages need stays small.
  [[gnu::noinline]] void set_out_in_pieces(std::uint32_t index) {
    Transfer& transfer = transfers_[index];
    Route& way = ways_[transfer.route];
    if (way.n_parts > 0) return cut(index);
    way.carried += transfer.size;
    transfer.marks.limiter_is_unsure = false;
    if (way.n_legs == 0) {
      engine_.at(engine_.now(), {Event::Kind::within, index, 0});
    } else {
      staged_.begin(index);
    }
  }

  /// Cuts a message into equal parts; the first ones are a byte longer if it does not divide.
  [[gnu::noinline]] void cut(std::uint32_t index) {
    const Route way = ways_[transfers_[index].route];
    if (way.n_parts == nowhere) return self().disturber_->strand(index);
    if (self().by_channels_ != nullptr) throw Unsure{fmt::format("messages are cut into {} parts", way.n_parts)};
    const std::int64_t size = transfers_[index].size.count;
    transfers_[index].parts_under_way = transfers_[index].parts_to_leave = way.n_parts;
    for (std::uint32_t i = 0; i < way.n_parts; ++i) {
      const std::uint32_t part = transfers_.make();  // may move the others
      Transfer& made = transfers_[part];
      made.sender = transfers_[index].sender;
      made.receiver = transfers_[index].receiver;
      made.route = way.first + i;
      made.channel = transfers_[index].channel;
      made.start = engine_.now();
      made.whole = index;
      made.marks.has_left = made.marks.starts_apart = false;
      made.size = {size / way.n_parts + (i < size % way.n_parts ? 1 : 0)};
      posts_ ? go_posted(part) : go(part);
    }
  }

  /// Drops a transfer that did not finish.
  void drop(std::uint32_t index) {
    staged_.give_back(index);
    transfers_[index] = Transfer{};
    transfers_.give_back(index);
  }

  // --- routes ------------------------------------------------------------------------------------------------------

  // `kept`: with the connection, if all its messages take one route.
  std::uint32_t route_from(LaneNumber lane, Actor to, std::uint16_t channel, std::uint32_t& kept) {
    if (kept != nothing_kept) return kept;
    const std::uint32_t found = route(self().lanes_.actor(lane), to, channel);
    if (self().keeps_routes_) kept = found;
    return found;
  }
  std::uint32_t route(Actor from, Actor to, std::uint16_t channel) {
    return ways_.of(from, to, channel, [&](std::uint32_t label) { return find_parts(from, to, label); });
  }

  std::vector<Path> find_parts(Actor from, Actor to, std::uint32_t label) {
    std::vector<Path> parts = find_parts_between(from, to, label);
    self().take_simulated_links(parts);
    return parts;
  }

  std::vector<Path> find_parts_between(Actor from, Actor to, std::uint32_t label) {
    if ((ways_.size() & 0xFF) == 0xFF) self().stop_if_asked();  // many paths take a while before anything moves
    const NodeId here = node_of(from), there = node_of(to);
    return self().disturber_ && self().disturber_->any_down() ? self().disturber_->find_parts(here, there, label)
                                                              : routes_.find_parts(here, there, label);
  }

  NodeId node_of(Actor actor) const { return placement_[static_cast<std::size_t>(actor)]; }

  // --- what the network says ---------------------------------------------------------------------------------------

  void told(const Told& told) {
    if (told.has_left) [[unlikely]]
      piece_left(told);
    if (told.has_arrived) piece_arrived(told);
  }

  [[gnu::noinline]] void piece_left(const Told& told) {
    const std::uint32_t index = transfer_of(told.piece), leg = leg_of(told.piece);
    Transfer& transfer = transfers_[index];
    if (ways_[transfer.route].n_legs == 1) {
      transfer.marks.limiter_is_unsure = told.is_unsure;
      if (self().ahead_) self().ahead_->has_left(index, told.limiter, engine_.now() - moves_since(index));
    } else {
      if (told.is_unsure) transfer.marks.limiter_is_unsure = true;
      if (!staged_.piece_left(index, leg, told.limiter) || !self().ahead_) return;
      const LegProgress& first = staged_.of(index).legs.front();
      self().ahead_->has_left(index, first.limiter, first.busy);
    }
  }

  // All of its time but the latency is due to the links.
  void piece_arrived(const Told& told) {
    const std::uint32_t index = transfer_of(told.piece), leg = leg_of(told.piece);
    if (self().disturber_ && self().disturber_->swallows(index, leg)) return;
    Transfer& transfer = transfers_[index];
    if (transfer.staged != not_staged) return staged_piece_arrived(index, leg);
    const Picoseconds busy = std::max(Picoseconds{0}, engine_.now() - moves_since(index) - told.latency);
    transfer.marks.limiter_is_unsure = told.is_unsure;
    all_arrived(index, told.limiter, busy);
  }
  /// All of a transfer has arrived, `busy` of its time due to the speed of the limiter.
  void all_arrived(std::uint32_t index, ResourceId limiter, Picoseconds busy) {
    const Transfer& transfer = transfers_[index];
    const MessageTime time{.busy = busy,
                           .latency = engine_.now() - transfer.start - busy,
                           .limiter = limiter,
                           .is_unsure = transfer.marks.limiter_is_unsure};
    transfer.whole == no_transfer ? self().delivered(index, time) : part_delivered(index, time);
  }

  /// The moment from which links, not its post, take the transfer's time.
  SimTime moves_since(std::uint32_t index) const {
    if (posts_) [[unlikely]]
      return posts_->since(index);
    return transfers_[index].start;
  }
  [[gnu::noinline]] void staged_piece_arrived(std::uint32_t index, std::uint32_t leg) {
    if (!staged_.piece_arrived(index, leg)) return;
    if (self().trails_.is_recorded()) wire_ = ways_.latency(transfers_[index].route);
    const auto [limiter, busy] = staged_.end(index);  // gives back its rooms
    all_arrived(index, limiter, busy);
  }
  Picoseconds take_wire() { return std::exchange(wire_, Picoseconds::max()); }

  // The message waits for its last part: what held that one held it, since it started.
  [[gnu::noinline]] void part_delivered(std::uint32_t index, const MessageTime& time) {
    const std::uint32_t whole = transfers_[index].whole;
    if (whole >= first_background) {
      take_wire();  // it is not the next message's
      return self().disturber_->background_delivered(index);
    }
    if (self().ahead_) self().ahead_->has_left(index, time.limiter, time.busy);  // see MessagesAhead::arrived()
    if (!self().disturber_ || self().disturber_->may_free(index)) transfers_.give_back(index);
    Transfer& message = transfers_[whole];
    if (--message.parts_under_way > 0) {
      take_wire();
      return;
    }
    if (self().ahead_) self().ahead_->last_part_arrived(index);
    all_arrived(whole, time.limiter, time.busy);
  }

  [[gnu::noinline]] void tell_traffic(const Moved& moved) const {
    const bool is_work = self().work_ && DeviceWork<Run>::is_work(moved.piece);
    const std::uint32_t route = is_work ? self().work_->route(moved.piece) : transfers_[transfer_of(moved.piece)].route;
    if (self().disturber_ && self().disturber_->is_background(route)) return;
    if (moved.link != no_link) return options_.on_traffic({moved.link, moved.begin, moved.end, moved.bytes});
    const std::uint32_t leg = is_work ? 0 : leg_of(moved.piece);
    const LegUse& use = ways_.leg(ways_[route].first + leg);
    for (std::size_t l = 0; l < use.n_links; ++l)
      options_.on_traffic({ways_.links(use)[l], moved.begin, moved.end, moved.bytes * ways_.share(use, l)});
  }

  const Topology& topology_;
  const Schedule& schedule_;
  const RunOptions& options_;
  std::vector<NodeId> placement_;  // [actor], then the ends of background messages
  Engine<Event> engine_;
  PlannedRoutes routes_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Posts<Run>> posts_;  // only if posting takes time
  CompiledRoutes ways_;
  Transfers transfers_;
  StagedTransfers staged_;

 private:
  Run& self() { return static_cast<Run&>(*this); }
  const Run& self() const { return static_cast<const Run&>(*this); }

  Picoseconds wire_ = Picoseconds::max();  // of the message that is being delivered, if it is staged
};

}  // namespace ringsim
