#include "topologies/bound/fraction.hpp"

#include <fmt/format.h>

#include <boost/multiprecision/cpp_int.hpp>
#include <limits>
#include <numeric>

namespace ringsim {

namespace {
using boost::multiprecision::cpp_int;

std::int64_t narrow(const cpp_int& value) {
  if (value > std::numeric_limits<std::int64_t>::max()) fail_too_large("a ratio of the bound");
  return static_cast<std::int64_t>(value);
}
}  // namespace

std::strong_ordering operator<=>(const Fraction& a, const Fraction& b) {
  return (cpp_int(a.over) * b.under).compare(cpp_int(b.over) * a.under) <=> 0;
}

Fraction fraction(std::int64_t over, std::int64_t under) {
  ensure(over >= 0 && under > 0, "a ratio has a numerator of at least 0 and a denominator above 0");
  const std::int64_t common = std::gcd(over, under);
  return {over / common, under / common};
}

Fraction operator*(const Fraction& a, const Fraction& b) {
  const cpp_int over = cpp_int(a.over) * b.over, under = cpp_int(a.under) * b.under;
  const cpp_int common = gcd(over, under);
  return {narrow(over / common), narrow(under / common)};
}

std::string to_string(const Fraction& value) {
  return value.under == 1 ? fmt::to_string(value.over) : fmt::format("{}/{}", value.over, value.under);
}

double as_double(const Fraction& value) { return static_cast<double>(value.over) / static_cast<double>(value.under); }

Picoseconds time_at(Bytes size, const Fraction& value) {
  const cpp_int time = cpp_int(size.count) * value.over * picoseconds_per_second / value.under;
  if (time > Picoseconds::max().count()) fail_too_long();
  return Picoseconds{static_cast<std::int64_t>(time)};
}

}  // namespace ringsim
