// Says which run crashed, was ended, or does not end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ringsim::metamorphic {

/// From here on a signal that ends the program (a crash, Ctrl-C, SIGTERM) first prints the run that was under way to
/// stderr: its seed, its law and its scenario. So does a run that takes more than `limit` seconds of processor time,
/// which then ends the program with exit code 1. Call once.
void watch_runs(std::int64_t limit_seconds);

/// A run begins, and its limit with it.
void run_begins(std::uint64_t seed, std::string_view law);
/// It tries this scenario, as JSON.
void scenario_begins(std::string scenario);

}  // namespace ringsim::metamorphic
