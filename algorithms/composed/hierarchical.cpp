#include "algorithms/composed/hierarchical.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "algorithms/composed/compose.hpp"
#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

/// The parts' symmetries side by side, if all have one: nodes before ranks of a node, but chunks the other way round.
Symmetry symmetry_of(int n, int group, const Schedule& scatter, const Schedule& between, const Schedule& gather) {
  const int nodes = n / group;
  std::vector<int> radices;
  if (nodes > 1) {
    const bool has = between.symmetry.claimed() && between.layout[0].n_chunks() == nodes;
    if (!has) return {};
    radices = between.symmetry.radices();
  }
  if (group > 1) {
    const std::vector<int>& within = scatter.symmetry.radices();
    if (!scatter.symmetry.claimed() || gather.symmetry.radices() != within) return {};
    radices.insert(radices.end(), within.begin(), within.end());
  }
  return Symmetry(std::move(radices), group);
}

}  // namespace

Schedule hierarchical_all_reduce(int n, Bytes bytes, int group, Schedule scatter, Schedule between, Schedule gather) {
  if (n % group != 0)
    throw InputError(
        "", fmt::format("hierarchical: expected nodes of equal size, found {} ranks in groups of {}", n, group),
        "choose a group that divides the number of ranks");
  const Symmetry symmetry = symmetry_of(n, group, scatter, between, gather);
  const Digit node{.size = group, .stride = 1}, rail{.size = n / group, .stride = group};
  const int n_chunks = between.layout[static_cast<std::size_t>(Buffer::data)].n_chunks();
  const auto whole = [](Actor) { return 0; };
  const auto own_chunk = [node, n_chunks](Actor r) { return node.of(r) * n_chunks; };
  std::vector<Part> parts;
  if (group > 1) parts.push_back({std::move(scatter), node, whole, n_chunks, 0, "in nodes"});
  if (n > group) parts.push_back({std::move(between), rail, own_chunk, 1, 0, "between nodes"});
  if (group > 1) parts.push_back({std::move(gather), node, whole, n_chunks, 0, "in nodes"});
  Schedule s = in_sequence(all_reduce(n, bytes), group * n_chunks, std::move(parts));
  s.algorithm = "hierarchical";
  s.symmetry = symmetry;
  return s;
}

}  // namespace ringsim
