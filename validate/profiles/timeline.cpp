#include "validate/profiles/timeline.hpp"

#include <algorithm>
#include <limits>
#include <tuple>

namespace ringsim::profiles {

std::vector<TimedCall> timeline_of(const Profile& profile, const Account& account) {
  std::vector<TimedCall> out;
  const auto add = [&](std::uint32_t i, const Split& split, std::size_t place) {
    const Call& call = profile.calls[i];
    const Clock& clock = account.clocks[account.hosts.of(call.rank)];
    if (!call.has(Call::is_timed) || !clock.is_known) return;
    TimedCall timed{
        .rank = call.rank, .call = i, .begin_ns = clock.shift(call.begin_ns), .end_ns = clock.shift(call.end_ns)};
    timed.end_ns = std::max(timed.end_ns, timed.begin_ns);
    timed.transfer_ns = timed.begin_ns;
    if (split.by == SplitBy::clocks) {
      timed.is_split = true;
      timed.transfer_ns = std::min(timed.begin_ns + split.waits[place], timed.end_ns);
    }
    out.push_back(timed);
  };
  for (const Meeting& meeting : account.matching.meetings) {
    const Split found = split(profile, account.hosts, account.clocks, meeting);
    for (std::size_t place = 0; place < meeting.calls.size(); ++place) add(meeting.calls[place], found, place);
  }
  for (std::uint32_t i = 0; i < profile.calls.size(); ++i)
    if (!profile.calls[i].is_usable()) add(i, {}, 0);
  std::int64_t first = std::numeric_limits<std::int64_t>::max();
  for (const TimedCall& each : out) first = std::min(first, each.begin_ns);
  for (TimedCall& each : out) each.begin_ns -= first, each.transfer_ns -= first, each.end_ns -= first;
  std::sort(out.begin(), out.end(), [](const TimedCall& a, const TimedCall& b) {
    return std::tuple(a.rank, a.begin_ns, a.call) < std::tuple(b.rank, b.begin_ns, b.call);
  });
  return out;
}

}  // namespace ringsim::profiles
