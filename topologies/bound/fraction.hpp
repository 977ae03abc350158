// Ratios of whole numbers, exact: bounds are compared and printed without rounding.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

#include "sim/base/units.hpp"

namespace ringsim {

/// A ratio in lowest terms, not negative; `under` is above 0. Made by fraction().
struct Fraction {
  std::int64_t over = 0;
  std::int64_t under = 1;
  bool operator==(const Fraction&) const = default;
};
/// Compares without overflow.
std::strong_ordering operator<=>(const Fraction& a, const Fraction& b);

/// over / under in lowest terms. Requires over >= 0 and under > 0.
Fraction fraction(std::int64_t over, std::int64_t under);
/// The product in lowest terms. Throws InputError if it does not fit into 64 bits.
Fraction operator*(const Fraction& a, const Fraction& b);

std::string to_string(const Fraction& value);  ///< "3/65"; "7" if the denominator is 1
double as_double(const Fraction& value);

/// size * value, with the value in seconds per byte, rounded down to a picosecond: a lower bound stays one.
/// Throws InputError beyond 106 days.
Picoseconds time_at(Bytes size, const Fraction& value);

}  // namespace ringsim
