#include <string>

#include "sim/base/error.hpp"
#include "topologies/builders.hpp"

namespace ringsim {

std::size_t n_ranks_of(const Torus& spec) {
  if (spec.dimensions.empty()) {
    throw InputError("/dimensions", "expected a list of one or more sizes, found an empty one");
  }
  double n = 1;
  for (std::size_t d = 0; d < spec.dimensions.size(); ++d) {
    require_positive(spec.dimensions[d], "/dimensions/" + std::to_string(d));
    n *= spec.dimensions[d];
    require_size(n, n * static_cast<double>(d + 1));
  }
  return static_cast<std::size_t>(n);
}

/// A rank's number in mixed radix: (x0, x1, x2) of {a, b, c} is (x0 * b + x1) * c + x2, so a step along the last
/// dimension is a stride of 1, along the one before it a stride of c, and so on.
Topology build_torus(const Torus& spec) {
  require_usable(spec.link, "/link");
  const auto n = static_cast<std::uint32_t>(n_ranks_of(spec));

  TopologyBuilder builder;
  for (std::uint32_t r = 0; r < n; ++r) builder.add_gpu("gpu" + std::to_string(r));
  for (std::uint32_t r = 0; r < n; ++r) {
    std::uint32_t stride = n;
    for (const int dimension : spec.dimensions) {
      const auto size = static_cast<std::uint32_t>(dimension);
      stride /= size;
      const std::uint32_t x = r / stride % size;
      const bool is_last = x + 1 == size;
      // Each cable is laid by the end with the lower coordinate, the closing one by the last; a dimension of 2 is
      // closed already, a dimension of 1 needs nothing.
      if (is_last && size <= 2) continue;
      builder.add_cable(NodeId{r}, NodeId{is_last ? r - x * stride : r + stride}, spec.link);
    }
  }
  return builder.build();
}

}  // namespace ringsim
