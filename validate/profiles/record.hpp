// What a profile of a real job says about its collectives: one record per call and rank, whatever the file's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim::profiles {

/// An operation of NCCL as profiles name it.
enum class CallOp : std::uint8_t {
  unknown,
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  gather,
  scatter,
  send,
  recv,
  barrier
};
std::string_view to_string(CallOp op);  ///< "all_reduce"; "unknown"

/// True if no rank can end before all have begun, so that the ends of a call tell one clock from another: not
/// broadcast, reduce, send and the like, whose root or sender may leave early.
constexpr bool ends_together(CallOp op) {
  return op == CallOp::all_reduce || op == CallOp::all_gather || op == CallOp::reduce_scatter ||
         op == CallOp::all_to_all || op == CallOp::barrier;
}
constexpr bool is_point_to_point(CallOp op) { return op == CallOp::send || op == CallOp::recv; }

/// Where operation and size come from.
enum class SizeFrom : std::uint8_t {
  none,
  kernel,      ///< arguments of the kernel's event (Kineto since 2024)
  comms,       ///< the event record_param_comms around the launch
  annotation,  ///< the event nccl:* around the launch: shapes of its tensors
  inspector,
  flight_recorder,
  comm_size,  ///< the attribute of a Chakra node
  nvtx        ///< the range of NCCL around the launch (Nsight Systems)
};
std::string_view to_string(SizeFrom from);  ///< "kernel", "record_param_comms", "annotation", "inspector", ...

/// Why a call has no operation or no size.
enum class Lost : std::uint8_t {
  nothing,
  no_launch,      ///< the launch is not in the file: before its window
  graph,          ///< launched by a CUDA graph
  no_annotation,  ///< no event of PyTorch surrounds the launch
  no_shapes,      ///< the event has no shapes: the profiler ran without record_shapes
  coalesced,      ///< several calls in one kernel
  unknown_op,     ///< a name that is no operation of NCCL's
  unknown_type,   ///< an element type whose size is not known
  no_range,       ///< no NVTX range of NCCL or PyTorch surrounds the launch
  no_payload      ///< the range has no size
};
std::string_view to_string(Lost lost);  ///< in words, for a list of reasons

inline constexpr std::int64_t no_value = -1;

/// A call of one rank. Times are ns of the rank's own clock.
struct Call {
  std::int64_t begin_ns = 0, end_ns = 0;  ///< of the kernel; without stamps 0 and its duration
  std::int64_t launch_ns = no_value;      ///< the CPU's call; no_value: not in the file
  /// As `collective.bytes` of a scenario: all_reduce: the vector; all_gather: all that is gathered; reduce_scatter: all
  /// that goes in; all_to_all: what one rank sends. no_value: not known.
  std::int64_t bytes = no_value;
  std::int64_t sequence = no_value;  ///< number of the call in its group (Inspector: among those of its op)
  std::uint32_t rank = 0;            ///< of the job
  std::uint32_t group = 0;           ///< index into Profile::groups; 0: not known
  std::int32_t root = no_value;      ///< broadcast, reduce, gather, scatter: as the file has it
  std::uint32_t stream = 0;
  std::uint16_t blocks = 0, threads = 0;  ///< of the kernel's launch: its grid and a block's threads; 0: not known
  std::uint16_t dtype = 0, algorithm = 0, protocol = 0;  ///< indices into Profile::names; 0: not in the file
  CallOp op = CallOp::unknown;
  SizeFrom size_from = SizeFrom::none;
  Lost lost = Lost::nothing;
  std::uint8_t flags = 0;              ///< see below
  std::uint16_t overlap = no_overlap;  ///< share of its time in which kernels of other streams ran, in 1/1000

  static constexpr std::uint8_t is_share = 1;      ///< `bytes` are one rank's share, until the number of ranks is known
  static constexpr std::uint8_t sizes_differ = 2;  ///< sizes may differ by rank (all_to_allv)
  static constexpr std::uint8_t is_timed = 4;      ///< begin_ns and end_ns are moments, not just a duration
  static constexpr std::uint16_t no_overlap = 0xffff;  ///< streams of compute are not in the file

  bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
  std::int64_t duration_ns() const { return end_ns - begin_ns; }
  /// Operation and size are known: it can be compared with others.
  bool is_usable() const { return lost == Lost::nothing; }
};
static_assert(sizeof(Call) == 72);

/// A communicator, or process group.
struct CallGroup {
  std::string name;                               ///< as the file has it
  std::uint32_t size = 0;                         ///< number of ranks; 0: not known
  std::vector<std::uint32_t> members;             ///< ranks of the job, in the group's order; empty: not known
  std::map<std::uint32_t, std::uint32_t> places;  ///< rank within the group -> rank of the job, as files show them
};

/// One rank's file, or the part of a file that is about one process.
struct ProfileSource {
  std::string file, format;  ///< format: "Kineto", "NCCL Inspector v4.2"
  std::uint32_t rank = 0;
  std::string host;                ///< empty: not in the file
  std::uint32_t gpus_on_host = 0;  ///< as the file lists devices; 0: not in the file
  std::string gpu;                 ///< "NVIDIA B200", of the first device; empty: not in the file
  std::uint32_t world = 0;         ///< number of ranks of the job; 0: not in the file
  std::string nccl_version;        ///< "2.17.1"; empty: not in the file
  std::string groups;              ///< the job's groups as text, to tell jobs apart; empty: not in the file
  std::size_t kernels = 0;         ///< of NCCL
  std::size_t calls = 0;           ///< records: several kernels of one call are one
  std::uint64_t dropped = 0;       ///< calls that the recorder says it lost
  bool has_compute = false;        ///< other kernels are in the file
  std::vector<std::string> about;  ///< what else is to be said of it, a line each
};

/// What the files say, together.
struct Profile {
  Profile();
  std::vector<ProfileSource> sources;
  std::vector<CallGroup> groups;   ///< [0]: not known
  std::vector<std::string> names;  ///< [0] is empty
  std::vector<Call> calls;
  std::vector<std::string> warnings;  ///< for readers, on stderr

  /// The index of a name or group, added if it is new. Groups of the same name differ if their members or sizes do.
  std::uint16_t name(std::string_view text);
  std::uint32_t group(const std::string& name, std::uint32_t size, const std::vector<std::uint32_t>& members);

 private:
  std::map<std::string, std::uint16_t, std::less<>> name_index_;
  std::map<std::string, std::uint32_t, std::less<>> group_index_;
};

/// Bounds on what a file may ask for. Options of the commands raise the first three.
struct Limits {
  std::size_t event_bytes = std::size_t{4} << 20;    ///< of one event, or of a line
  std::size_t records = std::size_t{1} << 24;        ///< of all files together
  std::uint64_t ratio = 1000;                        ///< of an unpacked file to the packed one, beyond 1 GiB
  std::size_t header_bytes = std::size_t{16} << 20;  ///< of a value outside of events
  std::size_t groups = std::size_t{1} << 20;
  std::uint32_t ranks = 65536;
};

}  // namespace ringsim::profiles
