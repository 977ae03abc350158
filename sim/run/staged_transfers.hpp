// Transfers whose route has several legs: they go in pieces, from room to room.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/engine.hpp"
#include "sim/network/network.hpp"
#include "sim/run/compiled_routes.hpp"
#include "sim/run/transfers.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

/// How far a transfer is on one of its legs.
struct LegProgress {
  std::int64_t started = 0, left = 0, arrived = 0;  // pieces
  bool moving = false;                              // a piece is under way (one at a time: order is kept)
  SimTime moving_since{};
  Picoseconds busy{0};               // time with a piece under way
  ResourceId limiter = no_resource;  // what set the speed for the longest time, by majority
  Picoseconds limiter_lead{0};
};

/// A transfer in pieces.
struct Staged {
  std::int64_t n_pieces = 1;
  std::vector<LegProgress> legs;
};

/// Moves transfers in pieces of Staging::size; between two legs there is room for Staging::depth of them. The network
/// says when a piece has left, the run when it has arrived. All references must outlive it.
class StagedTransfers {
 public:
  StagedTransfers(const Staging& staging, Transfers& transfers, CompiledRoutes& ways, Network& network,
                  const Engine<Event>& engine)
      : staging_(staging), transfers_(transfers), ways_(ways), network_(network), engine_(engine) {}

  /// The first piece of the transfer starts.
  void begin(std::uint32_t index) {
    Transfer& transfer = transfers_[index];
    const std::int64_t slot = staging_.size.count;
    const std::int64_t whole = transfer.size.count / slot;
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(staged_.size()));
      staged_.emplace_back();
    }
    transfer.staged = free_.back();
    free_.pop_back();
    Staged& staged = of(index);
    staged.n_pieces = std::max<std::int64_t>(1, whole + (transfer.size.count % slot > 0 ? 1 : 0));
    staged.legs.assign(ways_[transfer.route].n_legs, {});
    start_piece(index, 0);
  }

  /// A piece has left on a leg, so that the next one may start there, and one on the leg before. True where all of the
  /// transfer has left its source.
  bool piece_left(std::uint32_t index, std::uint32_t leg, ResourceId limiter) {
    LegProgress& progress = of(index).legs[leg];
    const Picoseconds time = engine_.now() - progress.moving_since;
    progress.moving = false;
    progress.busy += time;
    ++progress.left;
    if (progress.limiter == limiter) {
      progress.limiter_lead += time;
    } else if (progress.limiter_lead < time) {
      progress.limiter = limiter;
      progress.limiter_lead = time - progress.limiter_lead;
    } else {
      progress.limiter_lead -= time;
    }
    start_piece(index, leg);
    if (leg > 0) start_piece(index, leg - 1);  // a room is free again
    return leg == 0 && progress.left == of(index).n_pieces;
  }

  /// A piece has arrived at the end of a leg, and goes on. True where all of the transfer has arrived.
  bool piece_arrived(std::uint32_t index, std::uint32_t leg) {
    Staged& staged = of(index);
    ++staged.legs[leg].arrived;
    if (leg + 1 == staged.legs.size()) return staged.legs[leg].arrived == staged.n_pieces;
    start_piece(index, leg + 1);
    return false;
  }

  /// The leg that was busy longest: what limited it, and how long it was busy. Its state is given back.
  std::pair<ResourceId, Picoseconds> end(std::uint32_t index) {
    const std::vector<LegProgress>& legs = of(index).legs;
    const LegProgress* slowest = &legs.front();
    for (const LegProgress& leg : legs)
      if (leg.busy > slowest->busy) slowest = &leg;
    give_back(index);
    return {slowest->limiter, slowest->busy};
  }
  void give_back(std::uint32_t index) {
    if (transfers_[index].staged != not_staged) free_.push_back(std::exchange(transfers_[index].staged, not_staged));
  }

  Staged& of(std::uint32_t index) { return staged_[transfers_[index].staged]; }
  const Staged& of(std::uint32_t index) const { return staged_[transfers_[index].staged]; }

 private:
  // Starts the next piece of a leg, if there is one, it has arrived, and there is room for it where it goes.
  void start_piece(std::uint32_t index, std::uint32_t leg) {
    const Transfer& transfer = transfers_[index];
    const Route& way = ways_[transfer.route];
    Staged& staged = of(index);
    LegProgress& here = staged.legs[leg];
    if (here.moving || here.started == staged.n_pieces) return;
    if (leg > 0 && staged.legs[leg - 1].arrived <= here.started) return;
    if (leg + 1 < way.n_legs && here.started - staged.legs[leg + 1].left >= staging_.depth) return;
    const std::int64_t slot = staging_.size.count;
    const std::int64_t size = std::min(slot, transfer.size.count - here.started * slot);
    here.moving = true;
    here.moving_since = engine_.now();
    ++here.started;
    network_.start(way.first_leg + leg, {size}, piece_of(index, leg));
  }

  const Staging& staging_;
  Transfers& transfers_;
  CompiledRoutes& ways_;
  Network& network_;
  const Engine<Event>& engine_;
  std::vector<Staged> staged_;
  std::vector<std::uint32_t> free_;  // numbers in staged_
};

}  // namespace ringsim
