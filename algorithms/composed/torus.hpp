// Rings along the dimensions of a torus, one dimension after the other, or all at once.
#pragma once

#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A ring reduce-scatter along the first dimension, then along the second on the chunk that is left, and so on; then
/// ring all-gathers back, the last dimension first. Rank numbers vary fastest in the last dimension.
///
/// Steps: 2 sum(d_i - 1).  Sent per rank: 2(n-1)/n size.  Links used: rank -> the next one along each dimension.
/// Closed form: 2 sum(d_i - 1) a + 2(n-1)/n size/b.
/// Source: Barnett, Littlefield, Payne & van de Geijn, Global combine on mesh architectures, IPPS 1993 (bucket
/// combine); Jouppi et al., TPU v4, ISCA 2023, for its use on tori.
Schedule torus_all_reduce(const std::vector<int>& dimensions, Bytes bytes);
/// Its halves: half the steps, bytes and time. Rank r keeps, or starts with, chunk r.
Schedule torus_reduce_scatter(const std::vector<int>& dimensions, Bytes bytes);
Schedule torus_all_gather(const std::vector<int>& dimensions, Bytes bytes);

/// The bucket algorithm of tori with a port for each direction: the buffer is cut into 2D parts (D: dimensions greater
/// than 1), each of which does torus_all_reduce() on a lane of its own; lane 2j starts along dimension j and goes on
/// with the following ones, lane 2j+1 does the same the other way round the rings. If all dimensions are equal, all
/// lanes use other links at any time.
///
/// Steps of a lane: 2 sum(d_i - 1).  Sent per rank: 2(n-1)/n size, equally over 2D links.
/// Links used: rank <-> its neighbors along each dimension.
/// Closed form, d_i = d > 2: 2D(d-1) a + (n-1)/n size/(D b).
/// Source: Jain & Sabharwal, Optimal bucket algorithms for large MPI collectives on torus interconnects, ICS 2010,
/// after Barnett et al.
Schedule bucket_all_reduce(const std::vector<int>& dimensions, Bytes bytes);

}  // namespace ringsim
