// The execution trace of one rank: what it computed and called, how long that took, and what waits for what.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"

namespace ringsim::traces {

enum class TracedKind : std::uint8_t {
  compute,     ///< a kernel, or what a CPU thread does; a node of memory or storage with its recorded time
  collective,  ///< a kernel of a communication library
  send,
  receive,
  nothing  ///< metadata: it takes no time, but others may wait for it
};

/// The attributes of a node that communicates.
struct Communication {
  CollectiveOp op = CollectiveOp::all_reduce;  ///< of a collective
  /// comm_size: the bytes of the tensors that go in at one rank (mlcommons/chakra, pytorch_node.py, comm_size;
  /// astra-sim, collective/Ring.cc): of an all_gather its own part. Of send and receive the message.
  Bytes input;
  std::uint32_t group = 0;                   ///< index into ExecutionTrace::names: pg_name; 0: the trace does not say
  std::int64_t root = -1;                    ///< rank of the group; -1: the trace does not say
  std::int64_t from = -1, to = -1, tag = 0;  ///< of send and receive; -1: the trace does not say
  bool in_all_dimensions = true;             ///< false: involved_dim leaves some out
};

struct TraceNode {
  std::uint64_t id = 0;
  std::int64_t start_us = 0;   ///< from any moment; 0: the trace does not say
  Picoseconds duration{0};     ///< the format counts whole microseconds
  std::size_t first_wait = 0;  ///< into ExecutionTrace::waits: data dependencies, then control dependencies
  std::uint32_t n_data = 0, n_control = 0;
  std::uint32_t name = 0;           ///< index into ExecutionTrace::names
  std::int32_t communication = -1;  ///< index into ExecutionTrace::communications; -1: none
  std::int64_t stream = 0;          ///< of a kernel its CUDA stream, else the CPU thread
  TracedKind kind = TracedKind::compute;
  bool on_cpu = false;
};

struct ExecutionTrace {
  std::string file;
  std::string version;             ///< empty: the file does not say
  std::vector<std::string> names;  ///< [0] is empty
  std::vector<TraceNode> nodes;    ///< in the order of the file
  std::vector<std::uint64_t> waits;
  std::vector<Communication> communications;
  std::map<std::string, std::vector<std::uint32_t>> groups;  ///< process groups that its metadata lists, by pg_name

  // Counts of what is read in another way than it is written.
  std::size_t cpu_collectives = 0;  ///< calls on the CPU: compute
  std::size_t memory_nodes = 0;     ///< memory, storage: compute
  std::size_t counted_compute = 0;  ///< num_ops but no duration: they take no time
};

}  // namespace ringsim::traces
