// The parts of the proof of programs that check_program.cpp puts together.
#pragma once

#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace ringsim::program_detail {

/// A task of a role.
struct TaskPlace {
  int role = 0;
  Stream stream = 0;
  int task = 0;
};

const Program::Task& at(const Program& program, const TaskPlace& place);
/// "rank 3": the first actor of a role.
std::string first_of(const Program& program, int role);
/// "rank 3, stream 1, task 4 (bucket 2)"
std::string describe(const Program& program, const TaskPlace& place);
[[noreturn]] void refuse_program(const Program& program, const std::string& message, const std::string& hint = "");

/// Tasks of all roles in an order that obeys 2; the places of a call (one a role that calls it) come together, as one
/// entry.
using Order = std::vector<std::vector<TaskPlace>>;

void check_races(const Program& program, const Order& order);
void check_contributions(const Program& program, const Order& order);

}  // namespace ringsim::program_detail
