#include "sim/topology/path_type.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace ringsim {

namespace {
constexpr std::string_view words[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                      "P2C", "PXN", "PHB", "SYS", "NET", "DIR"};
}

std::string_view to_string(PathType type) { return words[static_cast<std::size_t>(type)]; }

std::optional<PathType> path_type(std::string_view name) {
  const auto* const found = std::find(std::begin(words), std::end(words), name);
  if (found == std::end(words)) return std::nullopt;
  return static_cast<PathType>(found - std::begin(words));
}

}  // namespace ringsim
