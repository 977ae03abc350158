#include "validate/profiles/overlap.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

namespace ringsim::profiles {

namespace {

/// Moments in which any kernel runs, as intervals that do not touch.
struct Busy {
  std::vector<std::int64_t> begins, ends, before;  ///< before: sum of the lengths of earlier intervals

  /// Time covered up to a moment.
  std::int64_t until(std::int64_t at) const {
    const auto i = static_cast<std::size_t>(std::upper_bound(begins.begin(), begins.end(), at) - begins.begin());
    return i == 0 ? 0 : before[i - 1] + std::min(at, ends[i - 1]) - begins[i - 1];
  }
};

/// The kernels of streams other than `own`. They are sorted by their begin.
Busy busy_beyond(std::uint32_t own, const std::deque<ComputeKernel>& compute) {
  Busy busy;
  for (const ComputeKernel& each : compute) {
    if (each.stream == own) continue;
    const std::int64_t end = each.begin + each.duration;
    if (!busy.ends.empty() && each.begin <= busy.ends.back()) {
      busy.ends.back() = std::max(busy.ends.back(), end);
      continue;
    }
    busy.before.push_back(busy.ends.empty() ? 0 : busy.before.back() + busy.ends.back() - busy.begins.back());
    busy.begins.push_back(each.begin);
    busy.ends.push_back(end);
  }
  return busy;
}

}  // namespace

void set_overlap(std::deque<ComputeKernel>& compute, std::span<Call> calls) {
  constexpr std::size_t most_streams = 256;
  std::map<std::uint32_t, std::vector<std::size_t>> by_stream;
  for (std::size_t i = 0; i < calls.size(); ++i) by_stream[calls[i].stream].push_back(i);
  if (by_stream.size() > most_streams) return;
  std::sort(compute.begin(), compute.end(),
            [](const ComputeKernel& a, const ComputeKernel& b) { return a.begin < b.begin; });
  for (const auto& entry : by_stream) {
    const Busy busy = busy_beyond(entry.first, compute);
    for (const std::size_t i : entry.second) {
      Call& call = calls[i];
      const std::int64_t covered = busy.until(call.end_ns) - busy.until(call.begin_ns);
      const std::int64_t all = std::max<std::int64_t>(call.duration_ns(), 1);
      call.overlap =
          static_cast<std::uint16_t>(std::lround(static_cast<double>(covered) / static_cast<double>(all) * 1000.0));
    }
  }
}

}  // namespace ringsim::profiles
