#include "sim/base/units.hpp"

#include "sim/base/error.hpp"

namespace ringsim {

Picoseconds transfer_time(Bytes size, Bandwidth rate) {
  ensure(size.count >= 0 && rate.bytes_per_second > 0, "a transfer needs size >= 0 and a rate above 0");
  if (size.count <= INT64_MAX / picoseconds_per_second) {  // 9 MB: packets, and chunks of many ranks
    const std::int64_t product = size.count * picoseconds_per_second;
    return Picoseconds{product / rate.bytes_per_second + (product % rate.bytes_per_second > 0 ? 1 : 0)};
  }
  // 128 bits, which processors divide slowly: 1 GiB * 10^12 is beyond 64.
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(size.count) * static_cast<Wide>(picoseconds_per_second);
  const Wide divisor = static_cast<Wide>(rate.bytes_per_second);
  const Wide quotient = (product + divisor - 1) / divisor;
  if (quotient > static_cast<Wide>(Picoseconds::max().count())) fail_too_long();
  return Picoseconds{static_cast<std::int64_t>(quotient)};
}

void fail_too_many_bytes() { fail_too_large("more bytes than the supported maximum (9,223,372 TB)"); }

void fail_too_long() { fail_too_large("it takes longer than the maximum simulated time (106 days)"); }

double gigabytes_per_second(Bytes size, Picoseconds time) {
  if (time.count() <= 0) return 0.0;
  return static_cast<double>(size.count) / static_cast<double>(time.count()) * 1e3;
}

double microseconds(Picoseconds time) { return static_cast<double>(time.count()) / 1e6; }

}  // namespace ringsim
