// In-switch reduction: the switches that join the ranks add up what comes in, and send the sum back.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// All-reduce up and down a tree whose leaves are the ranks and whose inner nodes are switches (helpers). `parents`:
/// [actor] ranks first; -1 for the root. Segment after segment goes up on lane 0 and, when the root has it whole, down
/// on lane 1, both at once. NVLS is the tree of one NVSwitch; SHARP that of the fabric's switches. (NCCL's NVLS has GPU
/// i load the sum of chunk i through the switch and store it to all, so that ports carry (1 + 1/n) size.)
///
/// Steps of a rank: segments on either lane.  Sent per rank: size, half of what a ring sends, so the bus bandwidth is
/// higher than that of the links.  Links used: each child <-> its parent.
/// Closed form on one switch, each port b and a/2: (segments + 1)(a/2 + size/(segments b)). A message of protocol
/// `none` ends when it has arrived, so that each segment pays the latency; at a = 0 and many segments it tends to
/// size/b. With d levels of switches, equal links: (segments + 2d - 1)(a/2 + size/(segments b)). Source: Graham et al.,
/// Scalable Hierarchical Aggregation Protocol (SHArP), COMHPC 2016. Requires a tree with one root whose leaves are the
/// ranks.
Schedule in_switch_all_reduce(int ranks, Bytes bytes, const std::vector<Actor>& parents, int segments);

}  // namespace ringsim
