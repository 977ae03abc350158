// A machine as text in the format that parse_machine reads.
#pragma once

#include <string>

#include "topologies/machines/machine.hpp"

namespace ringsim {

/// The machine as a machine file: its links as types, each with value and source. parse_machine() of it gives an equal
/// machine, but for the warnings, which are not of the machine, and the wording of sources: "line rate: A; efficiency:
/// B" comes back as "bandwidth: line rate: A; efficiency: B", for only their product is known here. A cable that stands
/// for n links must have n times the bandwidth of one: what is left over is lost.
std::string to_machine_file(const Machine& machine);

}  // namespace ringsim
