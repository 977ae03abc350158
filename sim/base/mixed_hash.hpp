// A hash for numbers whose low bits are alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ringsim {

/// Spreads keys whose low bits are alike (the standard's hash of a number is the number itself).
struct MixedHash {
  std::size_t operator()(std::uint64_t key) const {
    key *= 0x9E3779B97F4A7C15U;  // 2^64 over the golden ratio: Fibonacci hashing
    return static_cast<std::size_t>(key ^ key >> 32);
  }
};

}  // namespace ringsim
