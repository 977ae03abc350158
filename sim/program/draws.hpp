// Random times that depend on nothing but a seed, an actor and a number: the same whatever comes first.
#pragma once

#include <cstdint>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"

namespace ringsim {

enum class Distribution : std::uint8_t {
  uniform,     ///< from 0 to `spread`
  exponential  ///< of mean `spread`; at most 45 times it
};

struct Draws {
  Distribution distribution = Distribution::uniform;
  Picoseconds spread{0};
  std::uint64_t seed = 0;

  /// Draw `number` of an actor. By whole numbers alone, so equal on every machine; rounded down to a picosecond.
  /// Requires spread >= 0.
  Picoseconds of(Actor actor, std::int64_t number) const;
};

/// log2(x) in units of 2^-40, rounded down, at most 40 units too small. Requires x > 0.
std::uint64_t log2_in_2_40ths(std::uint64_t x);

}  // namespace ringsim
