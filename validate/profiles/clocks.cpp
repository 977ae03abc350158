#include "validate/profiles/clocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <utility>

namespace ringsim::profiles {

namespace {

/// The ends of one collective on two hosts.
struct Ends {
  std::int64_t bytes = 0, here = 0, there = 0;
};

/// Those whose ends are nearest: up to 1 MiB if there are enough, else the smaller half.
std::vector<Ends> small_ones(std::vector<Ends> ends) {
  constexpr std::size_t enough = 8;
  std::sort(ends.begin(), ends.end(),
            [](const Ends& a, const Ends& b) { return std::pair(a.bytes, a.here) < std::pair(b.bytes, b.here); });
  const auto large = std::find_if(ends.begin(), ends.end(), [](const Ends& e) { return e.bytes > 1 << 20; });
  auto n = static_cast<std::size_t>(large - ends.begin());
  if (n < enough) n = ends.size() / 2 >= enough ? ends.size() / 2 : ends.size();
  // Enough for a line; pairs of them are its slopes.
  constexpr std::size_t most = 400;
  std::vector<Ends> out;
  for (std::size_t i = 0; i < std::min(n, most); ++i) out.push_back(ends[i * n / std::min(n, most)]);
  return out;
}

/// What to add to times of `here` so that they are those of `there`.
Clock fitted(const std::vector<Ends>& all) {
  const std::vector<Ends> ends = small_ones(all);
  Clock clock{.is_known = true};
  clock.origin_ns = ends.front().here;
  const auto x = [&](const Ends& e) { return static_cast<double>(e.here - clock.origin_ns); };
  const auto y = [&](const Ends& e) { return static_cast<double>(e.there - e.here); };
  std::vector<double> slopes;
  for (std::size_t i = 0; i < ends.size(); ++i)
    for (std::size_t j = i + 1; j < ends.size(); ++j)
      if (x(ends[i]) != x(ends[j])) slopes.push_back((y(ends[j]) - y(ends[i])) / (x(ends[j]) - x(ends[i])));
  constexpr std::size_t points_of_a_line = 8;
  constexpr double steepest = 200e-6;
  if (ends.size() >= points_of_a_line && !slopes.empty()) clock.drift = median_of(slopes);
  if (std::abs(clock.drift) > steepest) clock.drift = 0;
  std::vector<double> left;
  for (const Ends& e : ends) left.push_back(y(e) - clock.drift * x(e));
  clock.offset_ns = median_of(left);
  for (double& each : left) each = std::abs(each - clock.offset_ns);
  clock.residual_ns = median_of(left);
  return clock;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 == 1 ? *middle : 0.5 * (*middle + *std::max_element(values.begin(), middle));
}

std::int64_t Clock::shift(std::int64_t ns) const {
  if (offset_ns == 0 && drift == 0) return ns;
  return ns + std::llround(offset_ns + drift * static_cast<double>(ns - origin_ns));
}

std::vector<Clock> clocks_of(const Profile& profile, const Hosts& hosts, const std::vector<Meeting>& meetings) {
  std::vector<Clock> clocks(hosts.count);
  clocks[0].is_known = true;
  if (hosts.count == 1) return clocks;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<Ends>> shared;  // by (here, there), here > there
  for (const Meeting& meeting : meetings) {
    std::map<std::uint32_t, std::int64_t> last;  // by host
    for (const std::uint32_t i : meeting.calls) {
      const Call& call = profile.calls[i];
      if (!ends_together(call.op) || !call.has(Call::is_timed)) continue;
      const auto [known, is_new] = last.try_emplace(hosts.of(call.rank), call.end_ns);
      if (!is_new) known->second = std::max(known->second, call.end_ns);
    }
    const std::int64_t bytes = profile.calls[meeting.calls.front()].bytes;
    for (auto there = last.begin(); there != last.end(); ++there)
      for (auto here = std::next(there); here != last.end(); ++here)
        shared[{here->first, there->first}].push_back({.bytes = bytes, .here = here->second, .there = there->second});
  }
  // A tree of hosts from host 0 on, by the pairs that share most.
  for (;;) {
    const std::pair<const std::pair<std::uint32_t, std::uint32_t>, std::vector<Ends>>* best = nullptr;
    for (const auto& edge : shared) {
      if (clocks[edge.first.first].is_known == clocks[edge.first.second].is_known) continue;
      if (best == nullptr || edge.second.size() > best->second.size()) best = &edge;
    }
    if (best == nullptr) return clocks;
    const bool here_is_new = !clocks[best->first.first].is_known;
    const std::uint32_t added = here_is_new ? best->first.first : best->first.second;
    const Clock& known = clocks[here_is_new ? best->first.second : best->first.first];
    std::vector<Ends> ends = best->second;
    for (Ends& e : ends) {
      if (!here_is_new) std::swap(e.here, e.there);
      e.there = known.shift(e.there);
    }
    const double before = known.residual_ns;
    clocks[added] = fitted(ends);
    clocks[added].residual_ns += before;
  }
}

}  // namespace ringsim::profiles
