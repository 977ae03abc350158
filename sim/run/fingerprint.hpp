// A digest of all messages of a run: equal runs, equal digests.
#pragma once

#include <cstdint>

#include "sim/base/units.hpp"

namespace ringsim {

/// Timeline::fingerprint: who, how much, from when to when, in order of arrival.
class Fingerprint {
 public:
  void add(std::uint64_t connection, Bytes size, SimTime start, SimTime end) {
    for (const std::uint64_t word : {connection, static_cast<std::uint64_t>(size.count),
                                     static_cast<std::uint64_t>(start.time_since_epoch().count()),
                                     static_cast<std::uint64_t>(end.time_since_epoch().count())}) {
      value_ = (value_ ^ word) * 0x9E3779B97F4A7C15U;
      value_ ^= value_ >> 32;
    }
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace ringsim
