// Direct: every message goes straight from whom it is to whom it is for, all at once.
#pragma once

#include "sim/schedule.hpp"

namespace ringsim {

/// The messages of `pairs`, all at once: what rates a fabric gives when many pairs talk.
///
/// Steps: 1.  Sent per rank: size (the second half: only both ways).  Closed form: a + size/b where no pair shares a
/// link with another.  Source: the pairs of OSU's osu_mbw_mr.
Schedule direct_pairs(int ranks, Bytes bytes, bool both_ways);

}  // namespace ringsim
