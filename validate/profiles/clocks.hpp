// The clocks of several hosts, put on one by the ends of collectives.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "validate/profiles/matching.hpp"
#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// The middle value, or the mean of the two in the middle; 0 without values.
double median_of(std::vector<double> values);

/// How a host's clock differs from that of host 0: what is added to its times.
struct Clock {
  double offset_ns = 0;  ///< at `origin_ns`
  double drift = 0;      ///< ns per ns
  std::int64_t origin_ns = 0;
  double residual_ns = 0;  ///< median distance of the ends from the fit, summed over the hosts in between
  bool is_known = false;   ///< false: no chain of collectives leads to host 0, or calls have no moments

  std::int64_t shift(std::int64_t ns) const;  ///< the moment by the clock of host 0
};

/// [host]. One host has one clock, and nothing is changed. Else offset and drift come from the ends of matched
/// collectives in which no rank can end before all have begun, small ones first: their ends are together within 4 us,
/// those of GB only within 300 us. The line through them is that of Theil and Sen, which outliers do not move; drifts
/// above 200 ppm are no property of a clock and are not used. Hosts are chained through the groups that they share.
std::vector<Clock> clocks_of(const Profile& profile, const Hosts& hosts, const std::vector<Meeting>& meetings);

}  // namespace ringsim::profiles
