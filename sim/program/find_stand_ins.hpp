// Finds the actors of a program of which each can be simulated for others, messages and all.
#pragma once

#include <memory>

#include "sim/program/lower.hpp"
#include "sim/run/run.hpp"
#include "sim/run/stand_ins.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// The coarsest partition of the program's actors, and of the links that its calls cross, that is as StandIns asks for,
/// for all of its calls together. Found by refining colors (Paige & Tarjan, SIAM J. Comput. 16, 1987, without its bound
/// on time): actors begin with those of their roles, links with those of like links, and a color is split while those
/// that have it differ in the colors around them. Senders of one class whose like connections share a link are
/// separated, in order of their numbers.
///
/// Nothing if a class has less than two actors on average; if something but its role tells what an actor does (a time
/// of its own for each task, a unit, a process); if two actors share a device that posts messages; if a used link
/// shares its resource with another; if a path crosses two links of one class in a leg. `options`: of the run. Throws
/// Interrupted. Time: about that of reading each kind of call once, and of some passes over its connections.
std::shared_ptr<const StandIns> find_stand_ins(const Topology& topology, const RunOptions& options,
                                               const LoweredProgram& program);

}  // namespace ringsim
