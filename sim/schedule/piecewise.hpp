// A schedule run on pieces: every piece has chunks of its own, every channel lanes and connections of its own.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Which chunks of the whole are those of a piece.
struct Cut {
  bool parts = false;  ///< a piece is a part of every chunk; else a stretch of the buffer
  std::uint32_t pieces = 1;
  std::array<std::uint32_t, n_buffers> chunks{};  ///< [buffer] of the plain schedule
  std::uint32_t contributed = 0;                  ///< chunks of a rank's contribution

  struct Chunk {
    std::uint32_t plain = 0, piece = 0;
    bool operator==(const Chunk&) const = default;
  };
  std::uint32_t chunk(Buffer buffer, Chunk of) const {
    return parts ? of.plain * pieces + of.piece : of.piece * chunks[static_cast<std::size_t>(buffer)] + of.plain;
  }
  /// The inverse of chunk(). The plain schedule must have chunks in the buffer.
  Chunk at(Buffer buffer, std::uint32_t chunk) const {
    const std::uint32_t n = chunks[static_cast<std::size_t>(buffer)];
    return parts ? Chunk{chunk / pieces, chunk % pieces} : Chunk{chunk % n, chunk / n};
  }
};

/// Who plays which part in a channel: the rank at each position of the plain schedule, and the position of each rank.
struct Cast {
  std::vector<Actor> rank;      ///< [position]
  std::vector<Actor> position;  ///< [rank]: the inverse

  /// Throws InputError (empty `where`) for what does not name each rank once.
  static Cast of(std::vector<Actor> ranks);

  /// The chunk of the whole's buffer that is chunk c of the plain one, both before they are cut. Chunks that belong to
  /// ranks, as many to each, go with them; others (`n` is no multiple of the ranks) keep their number.
  std::uint32_t chunk_of(std::uint32_t c, std::uint32_t n) const { return moved(c, n, rank); }
  std::uint32_t plain_chunk_of(std::uint32_t c, std::uint32_t n) const { return moved(c, n, position); }

 private:
  static std::uint32_t moved(std::uint32_t c, std::uint32_t n, const std::vector<Actor>& to) {
    const auto ranks = static_cast<std::uint32_t>(to.size());
    if (n % ranks != 0) return c;
    const std::uint32_t each = n / ranks;
    return static_cast<std::uint32_t>(to[c / each]) * each + c % each;
  }
};

/// Runs the plain schedule once per piece. Channel k runs the pieces [k * rounds, (k + 1) * rounds), one after the
/// other in each of its lanes. Its lanes are [k * plain.lanes, (k + 1) * plain.lanes); channel number c of the plain
/// schedule becomes c * stride + k. With the number of channels as stride, all numbers of channel k leave k as
/// remainder. A GPU's NICs take turns by number (Transport::Nics::per_channel), so if the channels are a multiple of
/// those NICs, all that a channel sends takes one NIC, as all of an NCCL channel does.
///
/// If `cut.parts`, an operation on several chunks becomes one operation per chunk, because the chunks of a piece are
/// not adjacent.
///
/// With `casts` channel k is played by casts[k]: the rank at position p does what the plain schedule's rank p does,
/// with the ranks at the other positions. If `cut.parts`, chunks belong to ranks and go with them. The promise stays
/// that of the plain schedule, so it must be one that does not tell ranks apart, or only those that keep their
/// position.
struct Piecewise {
  Schedule plain;
  int channels = 1;
  int rounds = 1;
  int stride = 1;
  Cut cut;
  std::vector<Cast> casts;  ///< [channel]; empty: each rank has its own position
};

/// The plain schedule with `lanes`, steps and promise as above. The caller sets the layout (which must have `pieces`
/// times the plain chunks) and the name. It claims no symmetry of its own: check() finds out from how it is made
/// (sim/check/check.hpp) what it inherits, and relies on none of the fields without looking.
Schedule run_piecewise(Piecewise made);

/// How the schedule was made, if it still is what run_piecewise() returned: nullptr if any of its functions was
/// replaced since.
const Piecewise* piecewise(const Schedule& schedule);

}  // namespace ringsim
