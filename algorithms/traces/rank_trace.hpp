// One rank's trace as streams of tasks: what waits for what, without what follows from the rest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "algorithms/traces/execution_trace.hpp"

namespace ringsim::traces {

/// Counts of what a trace has, and of what was dropped.
struct TraceCounts {
  std::size_t nodes = 0, kernels = 0, cpu_nodes = 0;
  std::size_t collectives = 0, point_to_point = 0;  ///< kernels
  std::size_t cpu_collectives = 0, memory_nodes = 0, counted_compute = 0;
  std::size_t dependencies = 0;                  ///< of both kinds, as written
  std::map<std::uint64_t, std::size_t> missing;  ///< id -> dependencies on it, which no node has
  std::size_t missing_all = 0;                   ///< the sum
  std::size_t missing_known = 0;                 ///< of these, on ids below all nodes': what the converter took out
  std::size_t dropped_control = 0;               ///< control dependencies in cycles
  std::size_t dropped_self = 0;                  ///< of these, of a node on itself
  std::size_t unwaited = 0;                      ///< collectives that no node waits for
  std::int64_t recorded_us = 0, covered_us = 0;  ///< from the first start to the last end; of that, a node runs
  bool has_times = false;                        ///< nodes have start times
  std::size_t kept_edges = 0;                    ///< waits that do not follow from streams and others
};

struct TracedWait {
  std::uint32_t stream = 0;  ///< index into RankTrace::streams
  std::uint32_t tasks = 0;   ///< so many of its first tasks
};

struct TracedTask {
  std::string name;
  Picoseconds time{0};     ///< of compute, as recorded
  std::int32_t call = -1;  ///< index into RankTrace::calls; -1: compute
  std::vector<TracedWait> waits;
};

struct TracedStream {
  enum class Kind : std::uint8_t { kernels, cpu, calls };
  Kind kind = Kind::kernels;
  std::int64_t number = 0;          ///< CUDA stream, or CPU thread
  std::string group;                ///< of calls: pg_name; "" if the trace has none; of send and receive empty
  std::int64_t from = -1, to = -1;  ///< of send and receive
  std::vector<TracedTask> tasks;
};

struct TracedCall {
  CollectiveOp op = CollectiveOp::all_reduce;  ///< send_recv: a message from `from` to `to`
  Bytes input;
  std::int64_t root = -1, from = -1, to = -1, tag = 0;
  Picoseconds recorded{0};  ///< how long its kernel took, waiting included
  std::uint64_t node = 0;
};

struct RankTrace {
  std::string file;
  std::vector<TracedStream> streams;
  std::vector<TracedCall> calls;
  std::map<std::string, std::vector<std::uint32_t>> groups;  ///< as ExecutionTrace
  TraceCounts counts;
  std::string synced_at;  ///< with `sync`: the node that waits for all collectives before it; empty: no name fits

  std::size_t n_tasks() const;
};

struct GraphOptions {
  /// Drop dependencies that follow from streams and other dependencies, and put computations together that nothing
  /// outside waits for or feeds. Times are the same without; for tests.
  bool reduce = true;
  /// Take a trace of which more than 1 % of the dependencies name nodes that are not there, and whose ids are not below
  /// all others.
  bool drop_missing = false;
  /// Part of a kernel's name: the first such kernel waits for all collectives before it. Empty: none does.
  std::string sync;
};

/// Counts alone. Throws InputError if two nodes have one id, or data dependencies form a circle.
TraceCounts count_trace(const ExecutionTrace& trace);

/// The rules:
///  - Dependencies on ids that no node has are dropped and counted.
///  - Control dependencies in a cycle are dropped and counted; data dependencies in a cycle are refused.
///  - Nodes of one CUDA stream, and of one CPU thread, run one after the other: in the order of start times, then of
///    the file, as far as dependencies allow (chakra pull request 221 chains them likewise).
///  - Calls of a process group lie on a stream of their own, as PyTorch's ProcessGroupNCCL has one per group. They also
///    wait for what is before them on their recorded stream.
/// Nothing else is taken to wait: a host that waits for a collective without a node that says so does not wait here.
/// Assumption: recorded durations are those of the node alone (chakra_converter writes exclusive durations).
///
/// Memory: 4 bytes per node and stream; above 2 GB of that only dependencies on the same stream are reduced.
/// Throws InputError that names file and node.
RankTrace rank_trace(const ExecutionTrace& trace, const GraphOptions& options = {});

/// The counts in sentences, a line each.
std::vector<std::string> describe(const TraceCounts& counts);

/// "aten::mm and 3 more", with at most so many characters of a kernel's name.
inline constexpr std::size_t longest_task_name = 60;

}  // namespace ringsim::traces
