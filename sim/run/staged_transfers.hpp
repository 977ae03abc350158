// Transfers whose route has several legs: they go in pieces, from room to room.
#pragma once

#include <tsl/robin_map.h>

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/network/network.hpp"
#include "sim/run/compiled_routes.hpp"
#include "sim/run/run.hpp"
#include "sim/run/transfer_table.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

/// How far a transfer is on one of its legs.
struct LegProgress {
  std::int64_t started = 0, left = 0, arrived = 0;  // pieces
  Picoseconds busy{0};  // time with a piece of the connection under way, from begin() to the last piece that left
  ResourceId limiter = no_resource;  // what set the speed of the pieces for the longest time, by majority
  Picoseconds limiter_lead{0};
  Picoseconds busy_before{0};  // of the connection's leg, up to begin()
};

/// A transfer in pieces.
struct Staged {
  std::int64_t n_pieces = 1;
  std::uint32_t transfer = no_transfer;
  std::uint32_t connection = 0;
  std::uint32_t before = not_staged, after = not_staged;  // on the connection, in the order in which they began
  std::uint64_t number = 0;                               // counts all that began
  std::vector<LegProgress> legs;
};

/// Moves transfers in pieces of Staging::size. Those of one connection (sender, receiver, channel; a path of its own
/// if a message is cut) stay in order: on each leg their pieces go one at a time, and between two legs there is
/// room for Staging::depth pieces of all of them. The run passes on when the network tells that a piece has left, or
/// arrived. All references must outlive it.
class StagedTransfers {
 public:
  StagedTransfers(const RunOptions& options, TransferTable& transfers, CompiledRoutes& ways, Network& network,
                  const Engine<Event>& engine)
      : options_(options), transfers_(transfers), ways_(ways), network_(network), engine_(engine) {}

  /// The transfer takes its place behind those that its connection has under way; its first piece starts if it can.
  void begin(std::uint32_t index) {
    Transfer& transfer = transfers_[index];
    const std::int64_t slot = staging(transfer).size.count;
    const std::int64_t whole = transfer.size.count / slot;
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(staged_.size()));
      staged_.emplace_back();
    }
    transfer.staged = free_.back();
    free_.pop_back();
    Staged& staged = of(index);
    staged.n_pieces = std::max<std::int64_t>(1, whole + (transfer.size.count % slot > 0 ? 1 : 0));
    staged.transfer = index;
    staged.number = ++began_;
    staged.connection = connection_of(transfer);
    staged.legs.assign(ways_[transfer.route].n_legs, {});
    Connection& connection = connections_[staged.connection];
    staged.before = std::exchange(connection.last, transfer.staged);
    staged.after = not_staged;
    if (staged.before != not_staged) staged_[staged.before].after = transfer.staged;
    for (std::size_t leg = 0; leg < staged.legs.size(); ++leg) {
      ConnectionLeg& here = connection.legs[leg];
      if (here.next == not_staged) here.next = transfer.staged;
      staged.legs[leg].busy_before = here.busy + (here.moving ? engine_.now() - here.moving_since : Picoseconds{0});
    }
    start_piece(connection, 0);
  }

  /// A piece has left on a leg, so that the next one may start there, and one on the leg before. True if all of the
  /// transfer has left its source.
  bool piece_left(std::uint32_t index, std::uint32_t leg, ResourceId limiter) {
    note_left(index, leg, limiter);
    Connection& connection = connections_[of(index).connection];
    start_piece(connection, leg);
    if (leg > 0) start_piece(connection, leg - 1);  // a room is free again
    return leg == 0 && of(index).legs.front().left == of(index).n_pieces;
  }
  /// As piece_left(), but starts nothing.
  void note_left(std::uint32_t index, std::uint32_t leg, ResourceId limiter) {
    Connection& connection = connections_[of(index).connection];
    ConnectionLeg& here = connection.legs[leg];
    const Picoseconds time = engine_.now() - here.moving_since;
    here.moving = false;
    here.busy += time;
    if (leg > 0) --connection.legs[leg - 1].rooms;
    LegProgress& progress = of(index).legs[leg];
    progress.busy = here.busy - progress.busy_before;
    ++progress.left;
    if (progress.limiter == limiter) {
      progress.limiter_lead += time;
    } else if (progress.limiter_lead < time) {
      progress.limiter = limiter;
      progress.limiter_lead = time - progress.limiter_lead;
    } else {
      progress.limiter_lead -= time;
    }
  }

  /// A piece has arrived at the end of a leg, and goes on. True if all of the transfer has arrived.
  bool piece_arrived(std::uint32_t index, std::uint32_t leg) {
    Staged& staged = of(index);
    ++staged.legs[leg].arrived;
    if (leg + 1 == staged.legs.size()) return staged.legs[leg].arrived == staged.n_pieces;
    start_piece(connections_[staged.connection], leg + 1);
    return false;
  }

  /// Only what has left on the last leg goes on, in whole pieces; all else has been taken back from the network. How
  /// many pieces of it are still to arrive on the legs before: nobody waits for them. The same happens to those behind
  /// it, and nothing begins on this connection any more, as its route is out of use; so nobody needs its rooms.
  std::uint32_t keep_what_left(std::uint32_t index) {
    Staged& staged = of(index);
    Connection& connection = connections_[staged.connection];
    const std::int64_t kept = staged.legs.back().left;
    std::uint32_t on_their_way = 0;
    for (std::size_t leg = 0; leg < staged.legs.size(); ++leg) {
      LegProgress& progress = staged.legs[leg];
      std::uint32_t& next = connection.legs[leg].next;
      if (next == transfers_[index].staged) next = staged.after;
      if (leg + 1 == staged.legs.size()) {
        progress.started = kept;
        break;
      }
      on_their_way += static_cast<std::uint32_t>(progress.left - progress.arrived);
      progress.started = progress.left = progress.arrived = kept;
    }
    staged.n_pieces = kept;
    return on_their_way;
  }

  /// The leg that was busy longest: what limited it, and how long it was busy. Its state is given back.
  std::pair<ResourceId, Picoseconds> end(std::uint32_t index) {
    const std::vector<LegProgress>& legs = of(index).legs;
    const LegProgress* slowest = &legs.front();
    for (const LegProgress& leg : legs)
      if (leg.busy > slowest->busy) slowest = &leg;
    const std::pair<ResourceId, Picoseconds> time{slowest->limiter, slowest->busy};
    give_back(index);
    return time;
  }
  void give_back(std::uint32_t index) {
    if (transfers_[index].staged == not_staged) return;
    const std::uint32_t number = std::exchange(transfers_[index].staged, not_staged);
    const Staged& staged = staged_[number];
    if (staged.before != not_staged) staged_[staged.before].after = staged.after;
    if (staged.after != not_staged) staged_[staged.after].before = staged.before;
    if (std::uint32_t& last = connections_[staged.connection].last; last == number) last = staged.before;
    free_.push_back(number);
  }

  Staged& of(std::uint32_t index) { return staged_[transfers_[index].staged]; }
  const Staged& of(std::uint32_t index) const { return staged_[transfers_[index].staged]; }

 private:
  struct ConnectionLeg {
    bool moving = false;  // a piece is under way
    SimTime moving_since{};
    Picoseconds busy{0};              // time with a piece under way
    std::int64_t rooms = 0;           // taken at the end of the leg: started here, not left on the next one
    std::uint32_t next = not_staged;  // of whose pieces the next one starts here
  };
  struct Connection {
    std::uint32_t last = not_staged;  // of the transfers under way, the one that began last
    std::vector<ConnectionLeg> legs;
  };

  const Staging& staging(const Transfer& transfer) const { return options_.plan(transfer.channel).transport.staging; }

  std::uint32_t connection_of(const Transfer& transfer) {
    const auto [entry, is_new] =
        connection_numbers_.try_emplace(static_cast<std::uint64_t>(transfer.route) << 16 | transfer.channel,
                                        static_cast<std::uint32_t>(connections_.size()));
    if (is_new) connections_.push_back({.legs = std::vector<ConnectionLeg>(ways_[transfer.route].n_legs)});
    return entry->second;
  }

  // Starts the next piece of a leg, if there is one, it has arrived, and there is room for it where it goes.
  void start_piece(Connection& connection, std::size_t leg) {
    ConnectionLeg& here = connection.legs[leg];
    if (here.moving || here.next == not_staged) return;
    Staged& staged = staged_[here.next];
    LegProgress& progress = staged.legs[leg];
    if (leg > 0 && staged.legs[leg - 1].arrived <= progress.started) return;
    const bool needs_room = leg + 1 < connection.legs.size();
    const Transfer& transfer = transfers_[staged.transfer];
    if (needs_room && here.rooms >= staging(transfer).depth) return;
    const std::int64_t slot = staging(transfer).size.count;
    const std::int64_t size = std::min(slot, transfer.size.count - progress.started * slot);
    if (needs_room) ++here.rooms;
    here.moving = true;
    here.moving_since = engine_.now();
    if (++progress.started == staged.n_pieces) here.next = staged.after;
    const auto number = static_cast<std::uint32_t>(leg);
    network_.start(ways_[transfer.route].first + number, {size}, piece_of(staged.transfer, number));
  }

  const RunOptions& options_;
  TransferTable& transfers_;
  CompiledRoutes& ways_;
  Network& network_;
  const Engine<Event>& engine_;
  std::vector<Staged> staged_;
  std::vector<std::uint32_t> free_;  // numbers in staged_
  std::uint64_t began_ = 0;          // how many transfers
  std::vector<Connection> connections_;
  tsl::robin_map<std::uint64_t, std::uint32_t, MixedHash> connection_numbers_;  // by route and channel
};

}  // namespace ringsim
