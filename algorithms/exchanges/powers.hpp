// Powers of two, which many algorithms are made of.
#pragma once

#include <fmt/format.h>

#include <bit>
#include <string_view>

#include "sim/base/error.hpp"

namespace ringsim {

inline bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }
inline int floor_log2(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }  ///< n >= 1
inline int ceil_log2(int n) { return n == 1 ? 0 : floor_log2(n - 1) + 1; }                               ///< n >= 1

/// Throws InputError if n is no power of two: `what` needs one.
inline void require_power_of_two(std::string_view what, int n, std::string_view hint) {
  if (is_power_of_two(n)) return;
  throw InputError("", fmt::format("{} needs a power-of-two number of ranks, found {}", what, n), std::string(hint));
}

}  // namespace ringsim
