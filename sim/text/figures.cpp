#include "sim/text/figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/base/quantity.hpp"

namespace ringsim {

std::string figure(double value) {
  const double size = std::abs(value);
  const int decimals = size < 100 ? 3 : size < 1000 ? 2 : size < 10000 ? 1 : 0;
  return fmt::format("{:.{}f}", value, decimals);
}

TimeUnit TimeUnit::of(Picoseconds time) {
  constexpr std::int64_t us = 1'000'000, ms = 1000 * us, s = 1000 * ms;
  const std::int64_t size = std::abs(time.count());
  if (size < 10 * ms) return {"us", us};
  return size < 10 * s ? TimeUnit{"ms", ms} : TimeUnit{"s", s};
}

std::string TimeUnit::number(Picoseconds time) const {
  return figure(static_cast<double>(time.count()) / static_cast<double>(picoseconds_));
}

Picoseconds time_of_us(double us) {
  constexpr double picoseconds_per_us = 1e6;
  return Picoseconds{std::llround(us * picoseconds_per_us)};
}

std::string time_text(Picoseconds time) {
  const TimeUnit unit = TimeUnit::of(time);
  return fmt::format("{} {}", unit.number(time), unit.name());
}

std::string rate_text(Bandwidth rate) {
  return fmt::format("{:.4g} GB/s", static_cast<double>(rate.bytes_per_second) / 1e9);
}

std::string size_text(Bytes size) {
  std::string exact = format(size);
  constexpr std::ptrdiff_t most_digits = 5;
  if (std::count_if(exact.begin(), exact.end(), [](char c) { return c >= '0' && c <= '9'; }) <= most_digits)
    return exact;
  constexpr std::array<std::pair<const char*, std::int64_t>, 4> units{
      {{"TiB", std::int64_t{1} << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}};
  for (const auto& [name, bytes] : units)
    if (size.count >= bytes)
      return fmt::format("{} {}", figure(static_cast<double>(size.count) / static_cast<double>(bytes)), name);
  return exact;
}

}  // namespace ringsim
