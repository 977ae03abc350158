#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/error.hpp"
#include "topologies/builders.hpp"
#include "topologies/fabrics/fabrics.hpp"

namespace ringsim {

/// A switch a node; here dimensions {2, 3}, where switch (x, y) is number 3 x + y:
///
///     (2) - switch0 - switch1 - switch2 - (0)     each with all NICs of the node of its number
///              |         |         |
///     (5) - switch3 - switch4 - switch5 - (3)
///
/// Nodes fill the grid in order, the last dimension fastest; switches beyond the last node stand without one. Of S
/// switches and each dimension of d: S cables for d > 2, S/2 for d = 2 (already closed), none for d = 1.
///
/// Equal ways take the cable that was added first. All cables of a dimension are therefore added before those of the
/// next: ways go dimension by dimension, the first first (dimension-order routing: Dally & Seitz, IEEE Transactions on
/// Computers C-36, 1987). Within a dimension, cables up from even places come first: if both ways round a ring are
/// equally far, even places go up and odd ones down, and every cable carries as much in either direction.
void add(const TorusFabric& fabric, std::span<const NicPort> ports, TopologyBuilder& builder) {
  require_usable(fabric.link, "/link");
  const LinkSpec hop = trunk(fabric.hop, fabric.link, "/hop", ports);
  // A torus without fabric has the same rules for its dimensions.
  const auto n = static_cast<std::uint32_t>(n_ranks_of(Torus{.dimensions = fabric.dimensions, .link = hop}));
  if (n < n_hosts(ports)) {
    throw InputError("/dimensions", fmt::format("expected dimensions that multiply to at least {} nodes, found {} = {}",
                                                n_hosts(ports), fmt::join(fabric.dimensions, " x "), n));
  }

  builder.break_ties(Ties::first);
  const std::vector<NodeId> switches = add_switches("switch", n, builder);
  for (const NicPort& port : ports) {
    builder.add_cable(port.nic, switches[port.host], through_port(port.port, fabric.link));
  }
  std::uint32_t stride = n;
  for (const int dimension : fabric.dimensions) {
    const auto size = static_cast<std::uint32_t>(dimension);
    stride /= size;
    for (const std::uint32_t parity : {0U, 1U}) {
      for (std::uint32_t s = 0; s < n; ++s) {
        const std::uint32_t x = s / stride % size;
        const bool is_last = x + 1 == size;
        if (x % 2 != parity || (is_last && size <= 2)) continue;
        builder.add_cable(switches[s], switches[is_last ? s - x * stride : s + stride], hop);
      }
    }
  }
}

}  // namespace ringsim
