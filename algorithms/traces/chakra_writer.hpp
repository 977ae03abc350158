// Programs as Chakra execution traces, such as ASTRA-sim reads.
#pragma once

#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace ringsim::traces {

struct ChakraFiles {
  std::vector<std::string> ranks;  ///< [rank] a file's bytes
  /// Members of the groups by pg_name, JSON: {"1": [0, 1, 2, 3]}. Names are integers, as ASTRA-sim wants them. Each
  /// trace lists them as well.
  std::string groups;
  std::vector<std::string> notes;  ///< what a reader of the files should know
};

/// One iteration of a program, a trace per rank. Ids ascend along dependencies, each node depends on the one before it
/// on its stream and on what its task waits for, all of it as data; each has is_cpu_op. Durations are whole
/// microseconds, in which the format counts: rounded such that the sum along a stream stays. A broadcast of two ranks
/// is a send and a receive. comm_size is what goes in at one rank. Launches of calls are left out: who replays the
/// trace adds its own.
///
/// Helpers that add up in the network are part of their collective. Throws InputError (empty `where`) for what a trace
/// cannot have: helpers that compute, waits for tasks of another rank, shifts around a ring (send_recv), pairs.
ChakraFiles chakra_files(const Program& program);

}  // namespace ringsim::traces
