#include "sim/text/progress_text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace ringsim {

std::string rough_duration(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

std::string rough_size(Bytes size) {
  const double megabytes = static_cast<double>(size.count) / 1e6;
  if (megabytes < 1000) return fmt::format("{:.0f} MB", std::ceil(megabytes));
  return fmt::format("{:.{}f} GB", megabytes / 1000, megabytes < 10'000 ? 1 : 0);
}

std::string progress_text(double elapsed_seconds, double done, double parts) {
  const double share = done / parts;
  std::string out;
  if (parts > 1) out += fmt::format("{:.0f} of {:.0f} done, ", std::floor(done), parts);
  out += share < 0.001 ? fmt::format("{:.2g} %", 100 * share)
                       : fmt::format("{:.{}f} %", 100 * share, share < 0.01 ? 1 : 0);
  if (share >= 0.001 || (share > 0 && elapsed_seconds >= 10))
    out += fmt::format(", about {} left", rough_duration(elapsed_seconds * (1 - share) / share));
  return out;
}

}  // namespace ringsim
