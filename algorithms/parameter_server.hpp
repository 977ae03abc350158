// Parameter server: everybody sends to one place, which adds up and sends back.
#pragma once

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// All-reduce through a root among the ranks: it receives all n-1 buffers at once, adds, and sends the sum to each.
///
/// Steps: 2.  Sent per rank: size; by the root: (n-1) size.  Links used: all of the root's, one of each other rank.
/// Closed form: 2(n-1) size/b + 2a on a star (the root's port is the bottleneck); 2(size/b + a) on a full mesh.
/// Source: Li et al., Scaling Distributed Machine Learning with the Parameter Server, OSDI 2014 (one server).
Schedule parameter_server(int ranks, Bytes bytes, Actor root);

/// All-reduce through `servers` separate servers (helpers, actors n..n+servers-1): server s adds up chunk s of all.
///
/// Steps: 2.  Sent per rank: size; per server: n size/servers.
/// Closed form on a star: 2 max(n ceil(size/servers), size)/b + 2a.  Source: as above (sharded keys).
Schedule sharded_parameter_server(int ranks, Bytes bytes, int servers);

}  // namespace ringsim
