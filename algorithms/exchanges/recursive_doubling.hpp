// Recursive doubling: in step k everybody exchanges all it has with the rank whose number differs in bit k.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// All-reduce: log2(n) exchanges of the whole buffer. Best if latency counts and bytes do not. What comes in rests
/// in scratch, because the buffer itself is being sent; it is added in a step of its own. With K' = 2^m < n the ranks
/// beyond hand their buffer to rank - K' first, and get the result in the end.
///
/// Steps: 2m, m of them exchanges; with ranks beyond 2m+2.  Sent per rank: m size; a rank beyond size, its partner size
/// more.  Links used: rank r <-> r xor 2^k, and partners.  Closed form: m(a + size/b); with ranks beyond (m+2)(a +
/// size/b).  Source: Thakur, Rabenseifner & Gropp, IJHPCA 19 (2005), 4.3 and 4.5.
Schedule recursive_doubling_all_reduce(int ranks, Bytes bytes);

/// All-gather: in step k blocks of 2^k chunks are exchanged. Ranks: a power of two; throws InputError otherwise.
///
/// Steps: m = log2(n).  Sent per rank: (n-1)/n size.  Links used: rank r <-> r xor 2^k.
/// Closed form: m a + (n-1)/n size/b.  Source: as above, 4.1.
Schedule recursive_doubling_all_gather(int ranks, Bytes bytes);

}  // namespace ringsim
