// The numbers that a replay puts in, so that what comes out can be told.
#pragma once

#include <algorithm>
#include <cstdint>

#include "sim/base/ids.hpp"

namespace ringsim::replay {

/// What rank `rank` of `ranks` contributes as element `element` of chunk `chunk`: a whole number from 1 to 4096 (fewer
/// beyond 4096 ranks), as good as random. A sum over all ranks is at most 2^24, so that float32 holds it, and all sums
/// on the way to it, exactly: the order of adding does not matter, and results are compared to the bit.
///
/// constexpr, because GPUs work it out as well, from this very text.
constexpr float contribution(int ranks, Actor rank, std::uint32_t chunk, std::int64_t element) {
  const std::uint64_t most = std::clamp<std::uint64_t>((1U << 24) / static_cast<unsigned>(ranks), 1, 4096);
  // Steele, Lea and Flood's mix (SplitMix64, OOPSLA 2014), of the three numbers put apart by odd factors.
  std::uint64_t x = static_cast<std::uint64_t>(rank) * 0x9E3779B97F4A7C15U +
                    static_cast<std::uint64_t>(chunk) * 0xD1B54A32D192ED03U +
                    static_cast<std::uint64_t>(element) * 0x8CB92BA72F3D8DD7U;
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9U;
  x = (x ^ x >> 27) * 0x94D049BB133111EBU;
  return static_cast<float>((x >> 33) % most + 1);
}

}  // namespace ringsim::replay
