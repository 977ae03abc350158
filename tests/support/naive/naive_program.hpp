// When the tasks of a program begin and end, in the simplest way: from the times of tasks and calls alone, over and
// over until nothing changes any more.
#pragma once

#include <vector>

#include "sim/program/program.hpp"

namespace ringsim::naive {

/// [actor][iteration][stream][task] when it ends, or nothing if it never does. `call_times`: [call] how long it
/// takes when all members have launched it. Exact where a call ends at all members at once, that long after the last
/// launch.
std::vector<std::vector<std::vector<std::vector<SimTime>>>> ends_of(const Program& program,
                                                                    const std::vector<Picoseconds>& call_times);

}  // namespace ringsim::naive
