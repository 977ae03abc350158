// Bruck's algorithms: log2(n) steps for any number of ranks.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// All-gather: in step k each rank sends the first min(2^k, n - 2^k) chunks that it has, its own first, to r - 2^k.
/// They stand where they belong from the start, so that there is no rotation at the end; a run that goes over the end
/// of the buffer is two messages.
///
/// Steps: ceil(log2 n).  Sent per rank: (n-1)/n size.  Links used: rank r -> r - 2^k.
/// Closed form: ceil(log2 n) a + (n-1)/n size/b.
/// Source: Bruck, Ho, Kipnis, Upfal & Weathersby, IEEE TPDS 8 (1997), the one-port concatenation.
Schedule bruck_all_gather(int ranks, Bytes bytes);

/// All-to-all: a block that is for rank r + j goes on by 2^k in each step k for which bit k of j is set. Blocks are
/// sent from where they rest in scratch, one message a run of 2^k of them; what comes in is put in its place in a step
/// of its own (copies take no time here).
///
/// Steps: 2 ceil(log2 n) + 2, of which ceil(log2 n) send.  Sent per rank: sum over k of the blocks with bit k set, n/2
/// log2(n) blocks for n = 2^m.  Links used: rank r -> r + 2^k.
/// Closed form: ceil(log2 n) a + sum_k n_k/n size/b with n_k numbers below n that have bit k set; n = 2^m: m (a +
/// size/(2b)).  Source: as above, the index operation with radix 2.
Schedule bruck_all_to_all(int ranks, Bytes bytes);

}  // namespace ringsim
