// Units: bytes, bandwidth and time as types of their own, so that they cannot be mixed up.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>

#include "sim/base/error.hpp"

namespace ringsim {

/// Simulated time counts whole picoseconds: sums are exact, so a run repeats bit for bit. Range: 106 days.
using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;

/// The clock of the simulation. It has no now(): an Engine does.
struct SimClock {
  using duration = Picoseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<SimClock, Picoseconds>;
  static constexpr bool is_steady = true;
};

/// A moment of simulated time; a length of time is Picoseconds.
using SimTime = SimClock::time_point;

[[noreturn]] void fail_too_many_bytes();  ///< throws the InputError for more than 9.2 EB

/// A count of bytes. Never negative in a valid scenario.
struct Bytes {
  std::int64_t count = 0;
  auto operator<=>(const Bytes&) const = default;

  // Sums, differences and products are checked: throws InputError beyond 9.2 EB.
  constexpr Bytes& operator+=(Bytes other) {
    if (__builtin_add_overflow(count, other.count, &count)) fail_too_many_bytes();
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return a += b; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) {
    if (__builtin_sub_overflow(a.count, b.count, &a.count)) fail_too_many_bytes();
    return a;
  }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) {
    if (__builtin_mul_overflow(a.count, n, &a.count)) fail_too_many_bytes();
    return a;
  }
  friend constexpr Bytes operator*(std::int64_t n, Bytes a) { return a * n; }
};

/// Bytes per second, whole: the slowest rate is 1 B/s. Decimal: 1 GB/s is 10^9.
struct Bandwidth {
  std::int64_t bytes_per_second = 0;
  auto operator<=>(const Bandwidth&) const = default;
};

/// The highest bandwidth of a link or a device. Keeps shares and sums of rates within the range of a double and of 64
/// bits; no fiber is that fast.
inline constexpr Bandwidth max_bandwidth{1'000'000'000'000'000'000};

inline constexpr std::int64_t picoseconds_per_second = 1'000'000'000'000;

/// Time for `size` to pass through a pipe of `rate`, rounded up to a picosecond.
/// Round once per transfer, never per byte: at 900 GB/s a byte takes 1.1 ps.
/// Requires size >= 0 and rate > 0; throws InputError if the result is beyond 106 days.
Picoseconds transfer_time(Bytes size, Bandwidth rate);

[[noreturn]] void fail_too_long();  ///< throws the InputError for times beyond 106 days

/// Sum and multiple of times, checked: throws InputError beyond 106 days.
inline Picoseconds add(Picoseconds a, Picoseconds b) {
  std::int64_t sum = 0;
  if (__builtin_add_overflow(a.count(), b.count(), &sum)) fail_too_long();
  return Picoseconds{sum};
}
inline Picoseconds times(std::int64_t n, Picoseconds a) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a.count(), n, &product)) fail_too_long();
  return Picoseconds{product};
}

/// Average rate in GB/s (10^9) at which `size` passed in `time`; 0 if no time passed.
double gigabytes_per_second(Bytes size, Picoseconds time);

/// `time` in microseconds, for printing.
double microseconds(Picoseconds time);

namespace literals {
// The standard's own suffixes cover ns, us and ms; picoseconds, bytes and rates are ours.
constexpr Picoseconds operator""_ps(unsigned long long n) { return Picoseconds{static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_B(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 30}; }
constexpr Bandwidth operator""_Bps(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Bandwidth operator""_MBps(unsigned long long n) { return {static_cast<std::int64_t>(n) * 1'000'000}; }
constexpr Bandwidth operator""_GBps(unsigned long long n) { return {static_cast<std::int64_t>(n) * 1'000'000'000}; }
/// Bits per second: 100_Gbps is 12.5 GB/s.
constexpr Bandwidth operator""_Gbps(unsigned long long n) { return {static_cast<std::int64_t>(n) * 125'000'000}; }
}  // namespace literals

}  // namespace ringsim
