// A schedule as files hold it: its steps written out, its chunks as shares of a message of any size.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/promise.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// What a file may ask for at most, so that no sum of its numbers leaves 64 bits.
namespace file_limits {
inline constexpr int ranks = 1 << 20, chunks = 1 << 20, lanes = 1 << 16;
inline constexpr std::int64_t bytes = std::int64_t{1} << 60;          ///< of a buffer
inline constexpr std::int64_t message_bytes = std::int64_t{1} << 40;  ///< of one GOAL message
}  // namespace file_limits

/// The chunks of a buffer: each is one of `of` near-equal parts of the message; or all sizes are given.
struct Grid {
  int chunks = 0;
  int of = 0;
  std::vector<Bytes> sizes;  ///< [chunk]; empty: shares
  bool operator==(const Grid&) const = default;
};

struct StoredSchedule {
  std::string name;  ///< what the file calls it
  CollectiveOp op = CollectiveOp::all_reduce;
  Placement placement = Placement::in_place;
  int ranks = 1;
  Actor root = 0;
  bool both_ways = false;
  /// False: the file names neither a collective nor regions (GOAL). Regions then lie in `scratch`, by size.
  bool names_regions = true;
  Bytes bytes;  ///< the message for which sizes were given
  int actors = 1;
  int lanes = 1;
  std::vector<Actor> tree;               ///< as Schedule::tree
  std::array<Grid, n_buffers> grids;     ///< [buffer]
  std::vector<int> symmetry;             ///< radices; empty: none claimed
  std::vector<std::vector<Step>> steps;  ///< [actor * lanes + lane][step]
  /// Where an MSCCL XML file has a step: the number of its <step> within the thread block, and the line.
  struct Place {
    int step = 0, line = 0;
  };
  std::vector<std::vector<Place>> places;  ///< [as `steps`]; empty for other formats, which number steps alike

  // What the file says besides, and what was odd about it.
  std::string protocol;        ///< MSCCL: Simple, LL, LL128; empty: not said
  std::int64_t min_bytes = 0;  ///< MSCCL: sizes for which it is meant
  std::int64_t max_bytes = 0;  ///< 0: no limit
  std::vector<std::string> warnings;

  std::vector<Step>& lane(Actor actor, Lane lane) { return steps[index(actor, lane)]; }
  const std::vector<Step>& lane(Actor actor, Lane lane) const { return steps[index(actor, lane)]; }
  std::size_t index(Actor actor, Lane lane) const {
    return static_cast<std::size_t>(actor) * static_cast<std::size_t>(lanes) + static_cast<std::size_t>(lane);
  }
};

/// The schedule for a message of that size. Throws InputError (empty `where`) for a size that its chunks do not allow:
/// one that `of` does not divide, if buffers are cut differently.
Schedule schedule_of(const std::shared_ptr<const StoredSchedule>& stored, Bytes bytes);

/// The smallest message in which all chunks of a buffer are equal, a byte or more; if sizes are listed, their
/// message.
Bytes even_size(const StoredSchedule& stored);

/// Writes out a schedule. Throws InputError (empty `where`) if files cannot hold it: a promise that has no name,
/// chunks that are neither shares of the message nor few enough to list, more than 2^23 operations.
StoredSchedule store(const Schedule& schedule);

/// Equal in everything that files hold but names, warnings and sizes for which they are meant.
bool same_schedule(const StoredSchedule& a, const StoredSchedule& b);

}  // namespace ringsim
