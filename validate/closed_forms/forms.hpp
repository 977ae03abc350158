// What the closed forms are put together of. For validate/closed_form*.cpp.
#pragma once

#include <algorithm>

#include "validate/closed_forms/closed_form.hpp"

namespace ringsim {
namespace forms {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

/// n of `of` equal parts of p bytes, rounded down, and up if that is a round-off; without leaving 64 bits.
struct Share {
  std::int64_t low = 0, high = 0;
};
inline Share share(std::int64_t p, std::int64_t n, std::int64_t of) {
  const std::int64_t q = p / of, r = p % of;
  const std::int64_t low = n * q + n * r / of;
  return {low, n * r % of == 0 ? low : low + 1};
}

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
  void steps(std::int64_t n, Share bytes) { steps(n, bytes.low, bytes.high); }
};

inline void needs_star(const Uniform& machine, ClosedForm& form) {
  if (machine.shape != Shape::star)
    form.because.emplace_back(
        "the ranks are not equal full-duplex ports of one switch: b and a are those of the slowest and the longest "
        "path between neighboring ranks");
}

inline void needs_own_links_to_peers(const Uniform& machine, ClosedForm& form) {
  if (machine.shape != Shape::star && machine.shape != Shape::full_mesh)
    form.because.emplace_back(
        "the ranks are neither equal full-duplex ports of one switch nor fully meshed: b and a are those of the "
        "slowest and the longest path between neighboring ranks");
}

inline void needs_neighbors(const Uniform& machine, ClosedForm& form) {
  if (machine.shape == Shape::other)
    form.because.emplace_back(
        "the paths from each rank to the next are not equal, or are shared: b and a are those of the slowest and the "
        "longest of these paths");
}

}  // namespace forms

/// parameter_server: both ways, with `servers` separate ones, or 0: a root among the ranks. One worker also talks
/// to separate servers.
ClosedForm server_form(int servers, const CollectiveRequest& request, const Uniform& machine);
/// The form of binary blocks, for all_reduce.
ClosedForm binary_blocks_form(const CollectiveRequest& request, const Uniform& machine);
/// The form of algorithms with log2(n) exchanges: halving_doubling's halves, recursive_doubling, bruck, pat, swing.
std::optional<ClosedForm> exchange_form(const Algorithm& algorithm, const Arguments& arguments,
                                        const CollectiveRequest& request, const Uniform& machine);
/// direct, but its all-to-all and pairs.
std::optional<ClosedForm> direct_form(bool one_shot, const CollectiveRequest& request, const Uniform& machine);
/// binomial_tree, dissemination, chain, kary_tree, double_binary_tree; nothing for other algorithms.
std::optional<ClosedForm> tree_form(const Algorithm& algorithm, const Arguments& arguments,
                                    const CollectiveRequest& request, const Uniform& machine);
/// A ring in pieces.
ClosedForm ring_in_pieces_form(std::int64_t rings, std::int64_t slices, const CollectiveRequest& request,
                               const Uniform& machine);
/// The form of hierarchical, torus, bucket, in_switch.
std::optional<ClosedForm> composed_form(const Algorithm& algorithm, const Arguments& arguments,
                                        const CollectiveRequest& request, const Uniform& machine);

}  // namespace ringsim
