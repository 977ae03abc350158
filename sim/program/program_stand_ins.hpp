// The actors of a program of which each can be simulated for others, messages and all.
#pragma once

#include <memory>

#include "sim/program/lower.hpp"
#include "sim/run/find_stand_ins.hpp"

namespace ringsim {

/// As of the actors of all calls together; also nothing if something but its role tells what an actor does: a time of
/// its own for each task, a unit, a process.
std::shared_ptr<const StandIns> find_stand_ins(const Topology& topology, const RunOptions& options,
                                               const LoweredProgram& program);

}  // namespace ringsim
