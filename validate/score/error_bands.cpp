#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/base/error.hpp"
#include "validate/measured/measured.hpp"

namespace ringsim {

double quantile(std::vector<double> values, double q) {
  ensure(!values.empty() && q >= 0 && q <= 1, "a quantile is of at least one value, and of a share of them");
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

ErrorBand error_band(const std::string& name, std::span<const SizedError> errors) {
  std::vector<double> absolute, with_sign;
  for (const SizedError& each : errors) {
    absolute.push_back(std::abs(each.error));
    with_sign.push_back(each.error);
  }
  return {.name = name,
          .rows = static_cast<int>(errors.size()),
          .median_abs = quantile(absolute, 0.5),
          .p90_abs = quantile(absolute, 0.9),
          .median_signed = quantile(with_sign, 0.5)};
}

std::vector<ErrorBand> error_bands(std::span<const SizedError> errors) {
  constexpr std::int64_t KiB = 1024, MiB = 1024 * KiB, all = std::numeric_limits<std::int64_t>::max();
  struct Range {
    const char* name;
    std::int64_t from, to;  // both inclusive
  };
  constexpr Range ranges[] = {{"up to 64 KiB", 0, 64 * KiB},
                              {"64 KiB to 8 MiB", 64 * KiB + 1, 8 * MiB - 1},
                              {"8 MiB and more", 8 * MiB, all},
                              {"256 MiB and more", 256 * MiB, all}};
  std::vector<ErrorBand> bands;
  for (const Range& range : ranges) {
    std::vector<SizedError> within;
    for (const SizedError& each : errors)
      if (each.bytes.count >= range.from && each.bytes.count <= range.to) within.push_back(each);
    if (!within.empty()) bands.push_back(error_band(range.name, within));
  }
  return bands;
}

}  // namespace ringsim
