// Attention by a ring of context ranks: what the items of its run wait for, hand on and touch (plan_program.hpp).
#pragma once

#include <vector>

#include "sim/program/program.hpp"

namespace ringsim::plan_detail {

/// An item of a run, in the variables of a ring promise.
struct RingItem {
  bool is_hop = false;
  Program::Variables from = {}, into = {};  ///< of a hop
  int ignores = 0;                          ///< of a hop: it waits for all kernels before it but for the last so many
  int hops = 0;                             ///< of a kernel: it waits for the first so many hops of the run
  std::vector<Program::Touch> touches = {};
};

/// The items of a forward pass, in order: for n ranks n - 1 hops and n steps. `shelf`: the last block that comes is
/// kept there for the backward pass; -1: it is not. Requires n >= 2.
std::vector<RingItem> forward_ring(const Program::Ring& ring, int shelf);
/// The items of a backward pass: n hops, steps and sums. Rank r first meets the block of rank r + 1, last its own.
std::vector<RingItem> backward_ring(const Program::Ring& ring);

/// Touches of the kernel before a run, and of the one after it.
Program::Touch before_forward_ring(const Program::Ring& ring);
Program::Touch before_backward_ring(const Program::Ring& ring, int shelf);
std::vector<Program::Touch> after_ring(const Program::Ring& ring, bool is_backward);

}  // namespace ringsim::plan_detail
