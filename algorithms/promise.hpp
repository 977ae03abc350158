// What a collective promises at any grid of chunks, in place or not: files name it by these words.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// The buffers of a rank's input and result.
enum class Placement : std::uint8_t {
  in_place,  ///< both in `data`. all_gather: rank r's own block is block r; reduce_scatter: its result is block r;
             ///< scatter, gather: block j is that of rank root + j; barrier: as barrier_of_tokens() if there are as
             ///< many chunks as ranks, else as barrier()
  separate,  ///< from `input` to `output`, both numbered as MPI does: block j of an all_to_all is for, or from, rank j
  relative,  ///< the same, but the blocks of an all_to_all are numbered from the rank itself
             ///< (sim/schedule/collective.hpp)
  input_kept,  ///< from `input` to `output`, blocks at the places that they have in place; the input stays as it was
  relative_in_place  ///< all_to_all in `data`, blocks numbered from the rank itself
};
/// Are input and result one buffer, `data`?
bool in_one_buffer(Placement placement);
/// The buffer that holds the whole message: where all_gather's result is, and reduce_scatter's input.
Buffer whole_buffer(CollectiveOp op, Placement placement);
inline constexpr std::array placements{Placement::in_place, Placement::separate, Placement::relative,
                                       Placement::input_kept, Placement::relative_in_place};
std::string_view to_string(Placement placement);

/// The collective that a file names, and how many chunks each buffer has.
struct PromiseSpec {
  CollectiveOp op = CollectiveOp::all_reduce;
  int ranks = 1;
  Actor root = 0;          ///< if has_root(op)
  bool both_ways = false;  ///< pairs
  Placement placement = Placement::in_place;
  std::array<int, n_buffers> chunks{};  ///< [buffer]
};

/// How many chunks a message of `chunks` is cut into, for a buffer of that placement: all of them, or one rank's block.
/// Nothing if the buffer has no part in it.
std::optional<int> promised_chunks(const PromiseSpec& spec, Buffer buffer, int chunks);

/// The promise, with `bytes` as nccl-tests counts them; nothing if the collective has no such form.
std::optional<Collective> promise(const PromiseSpec& spec, Bytes bytes);

/// The placement with which promise() says what the schedule's collective says, chunk by chunk; nothing if there is
/// none. O(ranks * chunks).
std::optional<Placement> placement_of(const Schedule& schedule, bool both_ways);

}  // namespace ringsim
