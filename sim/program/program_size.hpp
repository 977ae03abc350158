// How large a program is, and what its proof and its run take: known before anything of it is made.
#pragma once

#include <cstdint>

#include "sim/program/program.hpp"

namespace ringsim {

/// Counts of one iteration.
struct ProgramSize {
  std::int64_t actors = 0, streams = 0, variables = 0;
  std::int64_t tasks = 0, touches = 0;  ///< of all roles
  std::int64_t largest_role = 0;        ///< its tasks
  std::int64_t calls = 0;
  std::int64_t members = 0;  ///< of all calls together
  std::int64_t looks = 0;    ///< at a variable of one actor, by touches and calls
  std::int64_t pairs = 0;    ///< connections: (from, to) of all calls together, at most

  void add_role(std::int64_t n_actors, std::int64_t n_tasks, std::int64_t n_touches);
  /// `variables`: those that all of these calls name, together.
  void add_calls(std::int64_t n, std::int64_t members_each, std::int64_t variables);

  /// Memory of the program with its proof, and of its run while all lanes are under way. An estimate, which the test
  /// tests/scripts/large_training.py compares with what processes take. Messages that wait are not counted.
  Bytes memory() const;
  /// How many parts check() and LoweredProgram count on a WatchedWork, about.
  double parts() const;
  double proof_seconds() const { return 2e-7 * parts(); }  ///< about, on a core of 2020
};

/// The size of a finished program. `pairs` is left out.
ProgramSize size_of(const Program& program);

}  // namespace ringsim
