#include <string>

#include "topologies/builders.hpp"

namespace ringsim {

Topology build_full_mesh(const FullMesh& spec) {
  require_positive(spec.ranks, "/ranks");
  require_usable(spec.link, "/link");
  require_size(spec.ranks, 0.5 * spec.ranks * (spec.ranks - 1.0));

  TopologyBuilder builder;
  for (int r = 0; r < spec.ranks; ++r) builder.add_gpu("gpu" + std::to_string(r));
  const auto n = static_cast<std::uint32_t>(spec.ranks);
  for (std::uint32_t a = 0; a < n; ++a) {
    for (std::uint32_t b = a + 1; b < n; ++b) builder.add_cable(NodeId{a}, NodeId{b}, spec.link);
  }
  return builder.build();
}

}  // namespace ringsim
