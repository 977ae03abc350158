#include "sim/program/draws.hpp"

#include <bit>

#include "sim/base/error.hpp"
#include "sim/base/splitmix.hpp"

namespace ringsim {

namespace {

__extension__ using Wide128 = unsigned __int128;

}  // namespace

std::uint64_t log2_in_2_40ths(std::uint64_t x) {
  ensure(x > 0, "only positive numbers have a logarithm");
  // x = 2^whole * m with m in [1, 2); squaring m doubles its logarithm, whose next binary digit is whether it passes 2.
  const int whole = static_cast<int>(std::bit_width(x)) - 1;
  std::uint64_t m = x << (63 - whole);  // in 2^-63
  auto result = static_cast<std::uint64_t>(whole);
  for (int digit = 0; digit < 40; ++digit) {
    const Wide128 square = static_cast<Wide128>(m) * m;  // in 2^-126
    const bool passes = (square >> 127) != 0;
    m = static_cast<std::uint64_t>(square >> (passes ? 64 : 63));
    result = result << 1 | (passes ? 1U : 0U);
  }
  return result;
}

Picoseconds Draws::of(Actor actor, std::int64_t number) const {
  const std::uint64_t random =
      splitmix(splitmix(splitmix(seed) + static_cast<std::uint64_t>(actor)) + static_cast<std::uint64_t>(number));
  const auto most = static_cast<Wide128>(spread.count());
  if (distribution == Distribution::uniform) return Picoseconds{static_cast<std::int64_t>(random * (most + 1) >> 64)};
  // -ln(u) of u = (random + 1)/2^64, in units of 2^-40: ln 2 (64 - log2(random + 1)).
  constexpr std::uint64_t ln2_in_2_32 = 2'977'044'472;
  const std::uint64_t bits =
      (std::uint64_t{64} << 40) - (random == UINT64_MAX ? std::uint64_t{64} << 40 : log2_in_2_40ths(random + 1));
  const Wide128 negative_log = static_cast<Wide128>(bits) * ln2_in_2_32 >> 32;
  return Picoseconds{static_cast<std::int64_t>(most * negative_log >> 40)};
}

}  // namespace ringsim
