#include <string>

#include "topologies/builders.hpp"

namespace ringsim {

Topology build_ring(const Ring& spec) {
  require_positive(spec.ranks, "/ranks");
  require_usable(spec.link, "/link");
  require_size(spec.ranks, spec.ranks);

  TopologyBuilder builder;
  for (int r = 0; r < spec.ranks; ++r) builder.add_gpu("gpu" + std::to_string(r));
  const auto n = static_cast<std::uint32_t>(spec.ranks);
  for (std::uint32_t r = 0; r + 1 < n; ++r) builder.add_cable(NodeId{r}, NodeId{r + 1}, spec.link);
  // The cable that closes the ring; of two ranks it would be a second one between the same pair.
  if (n > 2) builder.add_cable(NodeId{n - 1}, NodeId{0}, spec.link);
  return builder.build();
}

}  // namespace ringsim
