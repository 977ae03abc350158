// NVTX ranges in a report of Nsight Systems: what NCCL and PyTorch say about the launches within them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/profiles/nsight_database.hpp"
#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// Strings of the report that name kernels or ranges of NCCL, by their numbers in the table StringIds.
using NsightStrings = std::map<std::int64_t, std::string>;

/// Facts about the calls that are launched in a range.
struct RangeSaid {
  CallOp op = CallOp::unknown;
  Lost lost = Lost::no_payload;
  std::uint8_t flags = 0;
  std::int64_t bytes = no_value;
  std::int32_t root = no_value;
  std::string communicator;   ///< "0x7f8c496ae9f661", as NCCL Inspector has it; empty: not said
  bool is_send_recv = false;  ///< sends and receives, and nothing else
  std::int64_t sent = 0;      ///< of those: bytes of all sends
  bool sends_differ = false;  ///< their sizes
  bool knows_sends = false;   ///< every send has a size
};

/// A rank of a communicator, as its ncclCommInit says.
struct CommunicatorRank {
  std::uint64_t process = 0;  ///< as in Launched
  std::string communicator;
  std::uint32_t rank = 0, size = 0;
  std::optional<std::int64_t> device;  ///< of CUDA, in that process
};

/// Ranges of a report.
///
/// NCCL's domain has a range for each call of its API (NVIDIA/nccl src/collectives.cc, since 2.19 with a payload whose
/// entries are "Message size [bytes]", "Root" and, since 2.26, "NCCL communicator ID": src/include/
/// nvtx_payload_schemas.h). A call launches its kernel within its own range or, in a group, within the outermost
/// ncclGroupEnd. The size is one rank's share for all_gather, reduce_scatter, all_to_all, gather and scatter.
/// Tools that patch NCCL (ATLAHS) write it as text: "ncclAllReduce(): commHash 0x1, stream 0x2, data_size 64, ...".
/// PyTorch's emit_nvtx() has "nccl:all_reduce, op_id = 5", which names the operation; its sizes have no element type.
class NsightRanges {
 public:
  /// Reads NVTX_EVENTS and the schemas of payloads. Throws InputError as NsightDatabase, and for more than `most`
  /// ranges.
  NsightRanges(NsightDatabase& database, const NsightStrings& strings, std::size_t most);

  /// Facts about a launch of that thread at that moment, and a number that launches of one call or group share. Nothing
  /// if no range surrounds it.
  struct Found {
    RangeSaid said;
    std::size_t range = 0;
  };
  std::optional<Found> at(std::uint64_t thread, std::int64_t moment) const;

  const std::vector<CommunicatorRank>& ranks() const { return ranks_; }
  bool has_events() const { return has_events_; }  ///< the report has NVTX ranges of NCCL or PyTorch
  bool has_payloads() const { return has_payloads_; }
  std::size_t skipped() const { return skipped_; }  ///< events whose columns are not of the types that they should be
  std::size_t unread() const { return unread_; }    ///< payloads that do not fit their schema

 private:
  enum class Kind : std::uint8_t { call, group_start, group_end, pytorch };
  struct Range {
    std::uint64_t thread = 0;
    std::int64_t begin = 0, end = 0;
    Kind kind = Kind::call;
    RangeSaid said;
  };
  struct Entry {
    std::string name;
    std::int64_t type = 0;
    std::size_t offset = 0;
  };
  struct Payload {
    std::optional<std::uint64_t> communicator, bytes, root, ranks, rank, device;
  };

  void read_schemas(NsightDatabase& database);
  void read_events(NsightDatabase& database, const NsightStrings& strings, std::size_t most);
  void take(std::string_view name, Range range, const Payload& payload);
  std::optional<Payload> decoded(std::string_view blob) const;
  static std::optional<Payload> decoded_json(std::string_view text);
  static void set(Payload& payload, std::string_view name, std::uint64_t value);
  void put_together();

  std::map<std::pair<std::uint64_t, std::uint64_t>, std::map<std::int64_t, Entry>> schemas_;  // by domain and schema
  std::vector<Range> ranges_;         // of calls outside of groups, and of ends of groups; by thread and begin
  std::vector<Range> pytorch_;        // the same order
  std::vector<std::int64_t> latest_;  // for each of pytorch_, the latest end of its thread so far
  std::vector<CommunicatorRank> ranks_;
  bool has_events_ = false, has_payloads_ = false;
  std::size_t skipped_ = 0, unread_ = 0;
};

/// The process of a global thread: Nsight's numbers have a thread in the lowest 24 bits (documentation of the SQLite
/// export, "Serialized process and thread identifiers").
constexpr std::uint64_t process_of(std::uint64_t thread) { return thread >> 24U; }

/// True if `part` is somewhere in `text`.
constexpr bool mentions(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// The latest moment that is believed, in ns, so that sums of two do not overflow.
inline constexpr std::int64_t latest_ns = std::int64_t{1} << 61;

}  // namespace ringsim::profiles
