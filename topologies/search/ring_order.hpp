// The order in which to visit some GPUs in a ring, so that its narrowest hop is as wide as can be.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// At most so many ranks: all pairs are looked at.
inline constexpr std::size_t most_in_best_ring = 512;

struct RingOrder {
  std::vector<std::size_t> order;  ///< each rank once, from 0 on; the last goes on to the first
  Bandwidth narrowest;             ///< of its hops; one that is relayed, or staged, counts half
  bool is_best = true;             ///< false: the search was broken off before a wider one was ruled out
};

/// A hop is as wide as the narrowest link of its path; half of that if the path has several legs, because its bytes
/// then cross links that are other hops'. What hops share otherwise is not looked at. Of equally wide rings one whose
/// hops all have one leg is taken, which have lower latencies; of these the order given, if it is one of them.
///
/// Widths are tried from the widest down, with one leg first; for each, depth-first for a closed tour over hops at
/// least as wide, those with the fewest ways on first (Warnsdorff's rule), at most 200 000 hops tried. Throws
/// InputError (`where` empty) for more than most_in_best_ring ranks, or if no ring joins them.
RingOrder best_ring(const Topology& topology, std::span<const NodeId> ranks, const Transport& transport);

}  // namespace ringsim
