#include "algorithms/hierarchical.hpp"

#include <fmt/format.h>

#include <utility>

#include "algorithms/compose.hpp"
#include "sim/collective.hpp"
#include "sim/error.hpp"

namespace ringsim {

Schedule hierarchical_all_reduce(int n, Bytes bytes, int group, Schedule scatter, Schedule between, Schedule gather) {
  if (n % group != 0)
    throw InputError(
        "", fmt::format("hierarchical: expected nodes of equal size, found {} ranks in groups of {}", n, group),
        "choose a group that divides the number of ranks");
  const Digit node{.size = group, .stride = 1}, rail{.size = n / group, .stride = group};
  const int n_chunks = between.layout[static_cast<std::size_t>(Buffer::data)].n_chunks();
  const auto whole = [](Actor) { return 0; };
  const auto own_chunk = [node, n_chunks](Actor r) { return node.of(r) * n_chunks; };
  std::vector<Part> parts;
  if (group > 1) parts.push_back({std::move(scatter), node, whole, n_chunks, 0});
  if (n > group) parts.push_back({std::move(between), rail, own_chunk, 1, 0});
  if (group > 1) parts.push_back({std::move(gather), node, whole, n_chunks, 0});
  Schedule s = in_sequence(all_reduce(n, bytes), group * n_chunks, std::move(parts));
  s.algorithm = "hierarchical";
  return s;
}

}  // namespace ringsim
