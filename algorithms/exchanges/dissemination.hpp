// Dissemination: in every step each rank tells another what it has heard, twice as far away as before.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Dissemination barrier: in step k rank r signals r + 2^k, which by then has heard from the 2^k ranks before it.
///
/// A signal carries the tokens of the ranks that its sender has heard from; in the last step only those that the
/// receiver lacks. Tokens have no bytes: they show the checker which ranks each rank has heard from.
/// Steps: ceil(log2 n).  Sent per rank: nothing, in as many messages.  Links used: r -> r + 2^k.
/// Closed form: ceil(log2 n) a.  Throws InputError for more than 16384 ranks.
/// Source: Hensgen, Finkel & Manber, Two algorithms for barrier synchronization, Int. J. Parallel Programming 17
/// (1988).
Schedule dissemination_barrier(int ranks);

}  // namespace ringsim
