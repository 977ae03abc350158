// Waiting told from transfer: for each collective, who came last and how long the data took from then on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "validate/profiles/clocks.hpp"
#include "validate/profiles/matching.hpp"
#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// In 1/1000: a kernel overlaps with compute from a tenth of its time on, and does not below a hundredth. Chosen.
inline constexpr std::uint16_t much_overlap = 100, no_overlap_to_speak_of = 10;

/// How waiting and transfer were separated.
enum class SplitBy : std::uint8_t {
  none,      ///< they were not: one rank alone, or an operation whose ranks end by themselves
  clocks,    ///< by the moments at which the ranks arrived
  shortest,  ///< without moments: the shortest kernel is that of the last rank, whose time is the transfer at most
};

/// One collective, split.
struct Split {
  SplitBy by = SplitBy::none;
  bool all_there = false;  ///< every rank of the group has a file; else waits are at least, the transfer at most that
  std::int64_t transfer_ns = 0;     ///< from the last arrival to the last end
  std::vector<std::int64_t> waits;  ///< [call of the meeting] from its arrival to the last one
  std::optional<std::size_t> last;  ///< the call that arrived last; none if several did
};

/// Splits a meeting. transfer = last end - last arrival, wait = last arrival - own arrival.
Split split(const Profile& profile, const Hosts& hosts, const std::vector<Clock>& clocks, const Meeting& meeting);

/// Collectives of one operation, size and placement.
struct Row {
  CallOp op = CallOp::unknown;
  std::int64_t bytes = 0;
  bool is_share = false;         ///< `bytes` are one rank's share: the number of ranks is not known
  std::uint32_t group_size = 0;  ///< 0: not known
  std::uint32_t hosts = 0;       ///< that the ranks with a file lie on
  std::uint32_t group = 0;       ///< one of its groups

  std::size_t collectives = 0, kernels = 0;  ///< meetings, and calls in them
  double kernel_ns = 0;                      ///< mean
  std::int64_t shortest_ns = 0, longest_ns = 0;

  std::size_t split = 0;            ///< how many collectives could be split
  std::size_t split_kernels = 0;    ///< calls in them
  bool is_partial = false;          ///< ranks are missing in some: waits are at least, transfers at most that
  bool is_by_shortest = false;      ///< some are split by the shortest kernel
  bool has_no_durations = false;    ///< all its calls take 0, as in traces of programs that have not run: not split
  bool clock_is_too_rough = false;  ///< residual of the clocks above 10 % of the transfer: not split
  double wait_ns = 0;               ///< mean over the ranks and collectives that are split
  double split_kernel_ns = 0;       ///< mean kernel time of those
  double longest_wait_ns = 0;       ///< mean over collectives of the longest wait
  double transfer_ns = 0;           ///< median
  double mean_transfer_ns = 0;
  std::map<std::uint32_t, std::size_t> last;  ///< rank -> in how many it arrived last, without others
  std::map<std::uint32_t, double> caused_ns;  ///< rank -> how long all ranks waited in these
  std::map<std::uint32_t, double> waits_ns;   ///< rank -> sum of its waits

  std::optional<double> overlap;  ///< mean share of the kernels' time in which other kernels ran
  /// [collective, if it is known] the largest such share among its ranks, in 1/1000: compute next to one rank slows it
  /// for all.
  std::vector<std::uint16_t> overlaps;
  std::optional<double> overlapped_ratio;     ///< mean time of those that overlap with compute / of those that do not
  std::uint16_t blocks = 0, threads = 0;      ///< of most kernels; 0: not known
  std::uint16_t algorithm = 0, protocol = 0;  ///< names, if all agree; else 0

  /// Waiting is more than 20 % of the kernel time.
  bool waits_much() const { return split > 0 && wait_ns > 0.2 * split_kernel_ns; }
  /// The rank that caused more than 60 % of the waiting, by arriving last. A count of collectives would not do: if all
  /// arrive nearly together, the order is chance.
  std::optional<std::uint32_t> late_rank() const;
};

/// Why a row is not split, in words; empty if it is.
std::string not_split_because(const Row& row);

/// What one rank did.
struct RankAccount {
  std::uint32_t rank = 0;
  std::size_t calls = 0;
  double kernel_ns = 0, wait_ns = 0;  ///< sums
  double exposed_ns = 0;              ///< of kernel_ns: no other kernel ran; only if has_compute
  bool has_compute = false;
  std::size_t split = 0, last = 0;  ///< collectives that were split, and in how many it alone arrived last
};

struct Account {
  Hosts hosts;
  std::vector<Clock> clocks;  ///< [host]
  Matching matching;
  std::vector<Row> rows;  ///< by kernel time, most first
  std::vector<RankAccount> ranks;
  std::map<Lost, std::size_t> lost;  ///< calls without operation or size, by reason
  std::size_t usable = 0;
  std::map<SizeFrom, std::size_t> from;  ///< of usable calls
  /// Median distance of the ends of collectives on one host; nothing without such collectives. Large ones mean that the
  /// ranks do not share a clock.
  std::optional<double> spread_ns;
};

/// Matches, aligns, splits and sums up. Groups of one size and like hosts share rows; with `ranks_per_node` above 0
/// those that lie alike on nodes of so many GPUs.
Account account_of(const Profile& profile, std::uint32_t ranks_per_host, std::uint32_t ranks_per_node = 0);

/// The ranks of a group as (node, GPU), nodes numbered as they come: "0.0 0.1 1.0". Groups that lie alike have one
/// text.
std::string placement_of(const std::vector<std::uint32_t>& members, std::uint32_t ranks_per_node);

}  // namespace ringsim::profiles
