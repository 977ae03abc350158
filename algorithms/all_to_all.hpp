// All-to-all: every rank has a block for every other.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Pairwise exchange: in step i, from 1 to n-1, rank r sends to r+i and receives from r-i. Its own block it copies.
///
/// Steps: n-1.  Sent per rank: (n-1)/n size.  Links used: r -> r+i in step i.  Closed form: (n-1)(a + size/(n b)).
/// Source: Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005), section 4.2 (the variant for any n).
Schedule pairwise_all_to_all(int ranks, Bytes bytes);

/// The messages of the pairwise exchange, all at once.
///
/// Steps: 1.  Sent per rank: (n-1)/n size.  Closed form: a + (n-1)/n size/b, if each rank's own port is what binds.
/// Source: MPICH's MPIR_Alltoall_intra_scattered, without a limit to what is posted.
Schedule direct_all_to_all(int ranks, Bytes bytes);

}  // namespace ringsim
