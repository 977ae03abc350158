// The sentences that say why a job stands still.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/profiles/flight_recorder.hpp"
#include "validate/profiles/hang.hpp"

namespace ringsim::profiles {

/// The oldest call of a rank that has not completed.
struct OldestPending {
  const FlightDump* dump = nullptr;
  const FlightCall* call = nullptr;
  std::optional<std::size_t> group;  ///< of a collective: which of Hang::groups
};

/// Sets Hang::findings and what comes with them, of its groups and messages: causes, circles of ranks that wait for
/// each other first; what is not known, which begins with `unknown`; what follows from the causes; what is past.
/// `pending`: [rank].
void find_causes(Hang& hang, const std::map<std::uint32_t, OldestPending>& pending,
                 const std::vector<std::string>& unknown);

}  // namespace ringsim::profiles
