#include "algorithms/training/plan_ring.hpp"

#include <utility>

#include "sim/base/error.hpp"

namespace ringsim::plan_detail {

namespace {
using As = Program::Touch::As;
}  // namespace

std::vector<RingItem> forward_ring(const Program::Ring& ring, int shelf) {
  const std::size_t n = ring.blocks.size();
  ensure(n >= 2, "a ring has two ranks");
  std::vector<RingItem> items;
  for (std::size_t step = 0; step < n; ++step) {
    if (step + 1 < n)
      items.push_back(
          {.is_hop = true, .from = {ring.blocks[step]}, .into = {ring.blocks[step + 1]}, .ignores = step == 0 ? 0 : 1});
    items.push_back({.hops = static_cast<int>(step), .touches = {{As::read, ring.blocks[step]}}});
  }
  if (shelf >= 0) items.back().touches.push_back({As::keep, ring.blocks.back(), shelf});
  return items;
}

std::vector<RingItem> backward_ring(const Program::Ring& ring) {
  const std::size_t n = ring.blocks.size();
  ensure(n >= 2, "a ring has two ranks");
  std::vector<RingItem> items;
  for (std::size_t step = 0; step < n; ++step) {
    const std::size_t d = n - 1 - step;
    RingItem hop{.is_hop = true};
    const auto hand_on = [&](int from, int into) {
      hop.from.push_back(from);
      hop.into.push_back(into);
    };
    if (step + 1 < n) hand_on(ring.blocks[d], ring.blocks[d - 1]);
    if (step > 0) hand_on(ring.gradients[d + 1], ring.gradients[d]);
    items.push_back(std::move(hop));
    items.push_back({.touches = {{As::read, ring.blocks[d]}}});
    items.push_back(
        {.hops = static_cast<int>(step) + 1, .touches = {{step == 0 ? As::make : As::add, ring.gradients[d]}}});
  }
  return items;
}

Program::Touch before_forward_ring(const Program::Ring& ring) { return {As::make, ring.blocks.front()}; }
Program::Touch before_backward_ring(const Program::Ring& ring, int shelf) {
  return {As::take, ring.blocks.back(), shelf};
}
std::vector<Program::Touch> after_ring(const Program::Ring& ring, bool is_backward) {
  std::vector<Program::Touch> touches{{As::read_whole, ring.blocks.front()}};
  if (is_backward) touches.push_back({As::read_whole, ring.gradients.front()});
  return touches;
}

}  // namespace ringsim::plan_detail
