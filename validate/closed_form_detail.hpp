// What the closed forms are put together from. For closed_form*.cpp alone.
#pragma once

#include <cstdint>
#include <optional>

#include "validate/closed_form.hpp"

namespace ringsim::forms {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

/// Adds up steps of `a + bytes/b`.
struct Sum {
  Uniform machine;
  ClosedForm& form;
  void steps(std::int64_t n, std::int64_t low_bytes, std::int64_t high_bytes) {
    form.low = add(form.low, times(n, add(machine.a, transfer_time({low_bytes}, machine.b))));
    form.time = add(form.time, times(n, add(machine.a, transfer_time({high_bytes}, machine.b))));
    form.steps += static_cast<int>(n);
  }
  void steps(std::int64_t n, std::int64_t bytes) { steps(n, bytes, bytes); }
  /// n steps of `blocks` of the `of` blocks that p bytes are divided into.
  void blocks(std::int64_t n, std::int64_t blocks, std::int64_t p, std::int64_t of) {
    // floor and ceil of blocks p/of, without leaving 64 bits.
    const std::int64_t q = p / of, r = p % of;
    const std::int64_t low = blocks * q + blocks * r / of;
    steps(n, low, blocks * r % of == 0 ? low : low + 1);
  }
};

void needs_star(const Uniform& machine, ClosedForm& form);
/// A star or a full mesh.
void needs_own_links_to_peers(const Uniform& machine, ClosedForm& form);
/// A star, a full mesh, or cables to both neighbours.
void needs_neighbours(const Uniform& machine, ClosedForm& form);

/// direct, but its all-to-all and pairs.
std::optional<ClosedForm> direct_form(bool one_shot, const CollectiveRequest& request, const Uniform& machine);
/// binomial_tree, dissemination, chain, kary_tree, double_binary_tree; nothing for other algorithms.
std::optional<ClosedForm> tree_form(const Algorithm& algorithm, const Arguments& arguments,
                                    const CollectiveRequest& request, const Uniform& machine);
/// A ring in pieces.
ClosedForm ring_in_pieces_form(std::int64_t rings, std::int64_t slices, const CollectiveRequest& request,
                               const Uniform& machine);

}  // namespace ringsim::forms
