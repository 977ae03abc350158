// Calls of a program that are alike.
#pragma once

#include <vector>

#include "sim/program/program.hpp"

namespace ringsim {

/// [call] the first one that has its schedule, and its members in the same order. Time: O(members of all calls).
std::vector<int> kinds_of_calls(const Program& program);

}  // namespace ringsim
