// In place or not: the buffers of a rank's input and result.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Input and result in separate buffers; the input stays unchanged. A schedule written on `data` first copies what a
/// rank contributes (all of it, its own block, nothing) from `input` to `output`, and goes on there. Both have the
/// chunks of `data`: a block is at the same place in all three, even if a rank contributes or gets only one. A schedule
/// that already has such buffers is returned unchanged.
///
/// GPUs copy in no time here, so it takes as long as in place. Helpers have no input and copy nothing. The proof is
/// that of the plain schedule, symmetry included, by construction (sim/check/check.hpp). Throws InputError (empty
/// `where`) for a barrier, which has no buffers.
Schedule out_of_place(Schedule plain);

/// Input and result in one buffer, MPI_IN_PLACE. A schedule written on `input` and `output` (all_to_all, send_recv,
/// pairs) first copies `data` to scratch and sends from there; results go straight to `data`. A schedule written on
/// `data` is returned unchanged. Throws as above.
Schedule in_place(Schedule plain);

}  // namespace ringsim
