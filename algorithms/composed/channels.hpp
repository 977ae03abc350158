// Channels and pieces: a schedule run on stretches of its buffer, some in parallel and some one after the other.
#pragma once

#include <optional>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Into how many pieces a buffer is cut: each channel takes `rounds` of them, one after the other.
struct Pieces {
  int channels = 1;
  int rounds = 1;
  int count() const { return channels * rounds; }
};

/// Near-equal pieces of at most `chunk` bytes (not said: of any size), as many in each channel. No bytes make one
/// round. Throws InputError (empty `where`) for more than 2^27.
Pieces pieces_of(Bytes size, int channels, std::optional<Bytes> chunk);

/// Runs the schedule once for each piece of the buffer. A channel has lanes and connections of its own; its pieces, a
/// contiguous run as in NCCL, come one after the other in each lane by itself: nothing waits for a piece to be done
/// everywhere.
///
/// If chunks belong to ranks (reduce_scatter, all_gather, all_to_all, scatter, gather) piece j is the jth part of
/// every chunk, so that results stay where they belong; chunk c then becomes chunks [c P, (c + 1) P). Neighboring
/// chunks of one message are then no longer adjacent, and each goes as its own message. Elsewhere piece j is a stretch
/// of the buffer: chunks [j C, (j + 1) C), if the plain schedule has C.
///
/// Still a pure function, O(operations of the plain step); memory does not grow with the pieces. The proof is that of
/// the plain schedule, symmetry included, by construction (sim/check/check.hpp). One piece: the schedule itself.
///
/// Steps: `rounds` times the plain ones, on `channels` times the lanes.  Sent per rank: as the plain schedule.
/// Closed form: if all ranks go through a round in step (ring, exchanges of equal partners) `rounds` times the plain
/// one of size/rounds bytes; channels share ports and change nothing.
/// Source: NCCL, whose channels take a contiguous part of the buffer each and pass it on in chunks
/// (NVIDIA/nccl 5067397c2676 src/include/collectives.h).
///
/// Throws InputError (empty `where`) for a barrier, which has no bytes, for a schedule whose regions are not known, and
/// for more than 2^27 chunks.
///
/// `orders`: [ring][position] the rank that does there what the plain schedule's rank `position` does; channel k takes
/// orders[k modulo their number]. Rings of different orders use different links at once, as NCCL's channels do
/// (src/graph/rings.cc). Each order is turned until a root is at its own place. Only for all_reduce, reduce_scatter,
/// all_gather, broadcast and reduce without helpers: others promise something to each rank. Empty: ranks in their
/// order.
Schedule over_channels(Schedule plain, const Pieces& pieces, const std::vector<std::vector<Actor>>& orders = {});

}  // namespace ringsim
