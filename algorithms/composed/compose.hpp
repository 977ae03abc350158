// Composition: schedules of groups of ranks, in sequence and in parallel, as one schedule.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Ranks in groups: those that differ in one digit of their number (mixed radix) form a group, the digit is the member.
/// {g, 1}: runs of g ranks (the GPUs of a node); {N, g}: the ranks g apart (one GPU of each of N nodes).
struct Digit {
  int size = 1;
  int stride = 1;
  bool reversed = false;  ///< members are counted the other way round: a ring of them runs backwards

  int of(Actor rank) const {
    const int digit = rank / stride % size;
    return reversed ? (size - digit) % size : digit;
  }
  Actor with(Actor rank, int member) const {
    const int digit = reversed ? (size - member) % size : member;
    return rank + (digit - rank / stride % size) * stride;
  }
};

/// A schedule that every group runs at once, on a stretch of the whole's chunks.
struct Part {
  Schedule schedule;  ///< of one group: digit.size actors; `data`, and `scratch` if it has as many chunks
  Digit digit;        ///< which ranks form a group, and as which actor
  /// Chunk c of the part, at rank r, is chunks [first_chunk(r) + c * scale, + scale) of the whole; of scratch as well.
  /// Has one value for all ranks of a group.
  std::function<int(Actor)> first_chunk = [](Actor) { return 0; };
  int scale = 1;
  Lane lane = 0;  ///< the part's lanes and channels are counted from here on
  /// "in nodes": what names its phases in the whole, after their own names. Phases of equal names count as one.
  std::string where;
};

/// The parts in the order listed. Parts that share a lane run one after the other: each rank starts the later part when
/// it has completed all lanes of the earlier one. Parts on lanes of their own run in parallel.
///
/// Evaluated as it runs, nothing is stored: n_steps and step take O(parts). `data` is cut into n_chunks near-equal
/// chunks, `scratch` likewise if any part has it. Sizes of a part's own chunks do not count.
Schedule in_sequence(Collective collective, int n_chunks, std::vector<Part> parts);

}  // namespace ringsim
