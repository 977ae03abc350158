// In place or not: where a rank's input and its result stand.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Input and result in buffers of their own, and the input left as it was. What is written on `data` first copies what
/// a rank brings (all of it, its own block, nothing) from `input` to `output`, and goes on there. Both have the chunks
/// of `data`: a block stands at the same place in all three, also where a rank brings or gets only one. What has such
/// buffers already stays as it is.
///
/// GPUs copy in no time here, so it takes as long as in place. Helpers have no input and copy nothing. The symmetry of
/// a schedule is not kept: it is claimed for `data` alone (sim/check/check.hpp). Throws InputError (empty `where`) for
/// a barrier, which has no buffers.
Schedule out_of_place(Schedule plain);

/// Input and result in one buffer, MPI_IN_PLACE. What is written on `input` and `output` (all_to_all, send_recv, pairs)
/// first copies `data` to scratch, whence it sends; results go straight to `data`. What is written on `data` stays as
/// it is. Throws as above.
Schedule in_place(Schedule plain);

}  // namespace ringsim
