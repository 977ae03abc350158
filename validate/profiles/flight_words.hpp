// Calls and groups of the Flight Recorder's dumps, as sentences name them.
#pragma once

#include <string>

#include "validate/profiles/flight_recorder.hpp"

namespace ringsim::profiles {

/// "0 (default_pg)"
std::string title_of(const std::string& name, const std::string& description);
/// "all_reduce"; of a call of several "3 coalesced: all_gather, reduce".
std::string names_of(const FlightDump& dump, const FlightCall& call);
/// "all_reduce [[1024]] Float"; what comes out is added if nothing goes in.
std::string words_of(const FlightDump& dump, const FlightCall& call);
/// "all_reduce number 41 of group 0 (default_pg)", "send [[1024]] Float of group 0 (default_pg)"
std::string call_text(const FlightDump& dump, const FlightCall& call);

}  // namespace ringsim::profiles
