// Dumps of PyTorch's Flight Recorder: which collectives a rank has called, and how far each came.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/profiles/pieces.hpp"
#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// How far a call came when the dump was written. Without TORCH_NCCL_ENABLE_TIMING=1 PyTorch has no event for the
/// start: then a kernel that runs is still `scheduled`.
enum class CallState : std::uint8_t { scheduled, started, completed };
std::string_view to_string(CallState state);  ///< "scheduled"

/// Tensors that go in, or that come out. Texts are indices into FlightDump::texts.
struct FlightTensors {
  std::int64_t elements = 0;  ///< of all tensors
  std::int64_t bytes = 0;     ///< of all tensors; no_value: an element type whose size is not known
  std::uint32_t shapes = 0;   ///< "[[1024, 16]]"; cut after 80 characters
  std::uint32_t dtypes = 0;   ///< "Float"; "Float, Half"
};

/// An operation of a call.
struct FlightOp {
  std::uint32_t name = 0;  ///< "all_reduce", without "nccl:" and peer
  CallOp op = CallOp::unknown;
  std::int32_t peer = no_value;  ///< send, recv: the other's place in the group; no_value: not in the file
  FlightTensors in, out;
};

/// A call of a rank in a group; several operations if the program coalesced them.
struct FlightCall {
  std::int64_t record = 0;  ///< "record_id" of its first entry: calls of all groups in their order
  std::uint32_t group = 0;  ///< index into FlightDump::groups
  std::int64_t number =
      0;  ///< "collective_seq_id"; of sends and receives "p2p_seq_id", which each rank counts by itself
  CallState state = CallState::scheduled;
  bool is_point_to_point = false;
  bool has_timed_out = false;               ///< retired, but not completed
  std::optional<std::int64_t> duration_ns;  ///< "duration_ms": between two events on the stream around the kernel
  std::uint32_t place = 0;                  ///< text: the line of the program that called, "train_step at train.py:42"
  std::vector<FlightOp> ops;
};

struct FlightGroup {
  std::string name, description;       ///< "0", "default_pg"
  std::vector<std::uint32_t> members;  ///< ranks of the job in the group's order; empty: not in the file
};

/// A rank's file.
struct FlightDump {
  std::string file, version, nccl_version;  ///< version: of the format, "2.10"
  std::uint32_t rank = 0;
  std::vector<FlightGroup> groups;
  std::vector<std::string> texts;  ///< [0] is empty
  std::vector<FlightCall> calls;   ///< by record
  std::int64_t missing = 0;   ///< entries up to the last that the file lacks: the ring was full, or some were left out
  bool knows_starts = false;  ///< some entry says that its kernel began: TORCH_NCCL_ENABLE_TIMING was set

  const std::string& text(std::uint32_t index) const { return texts[index]; }
  /// The job's number of ranks, by the group "default_pg"; 0: not in the file.
  std::uint32_t world() const;
};

/// Reads a dump in JSON, as PyTorch's dump_json() writes it or Python's json of the pickle. Versions 2.x, which have
/// "collective_seq_id". Operations of one coalesced call are put together: they have one number each of collectives and
/// of sends, and of their entries only the last, "nccl:coalesced", has events, so its state is that of all.
///
/// Not read: "time_discovered_*", which are when a thread of PyTorch looked and not when kernels began or ended; and
/// "pg_status", which that thread updates, so that it may be older than the entries, whose events are asked when the
/// dump is written. Source: PyTorch, torch/csrc/distributed/c10d/FlightRecorderDetail.hpp and ProcessGroupNCCL.cpp.
///
/// `rank`: none: a number after "rank" or "trace" in the file's name, or a name that is a number. Throws InputError
/// that names file and byte for what is no such dump, is damaged or exceeds Limits; and if nothing says the rank.
FlightDump read_flight_recorder(Pieces& file, std::optional<std::uint32_t> rank);

/// The rank in a dump's file name: 3 of "nccl_trace_rank_3", "trace_3.json" and "3.json". Nothing if there is none.
std::optional<std::uint32_t> rank_of_dump(std::string_view path);

/// Adds a source, and a record without moments for each completed call that has a duration.
void add_calls(const FlightDump& dump, Profile& profile);

/// How ProfileSource::format of these files begins.
inline constexpr std::string_view flight_recorder_format = "Flight Recorder";

}  // namespace ringsim::profiles
