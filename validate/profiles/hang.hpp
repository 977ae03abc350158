// Why a job stands still: how far each rank came in each process group, by PyTorch Flight Recorder dumps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/profiles/flight_recorder.hpp"

namespace ringsim::profiles {

/// Where a rank is with respect to the first collective of a group that not all have completed.
enum class Standing : std::uint8_t {
  no_dump,      ///< no file of this rank
  not_in_dump,  ///< its dump has no call in this group, and lacks earlier ones: nothing is known
  not_called,
  scheduled,  ///< called; its kernel has not begun, as far as is known
  started,
  completed
};
std::string_view to_string(Standing standing);  ///< "not called"

/// A rank in a group. Numbers are those of collectives in the group, from 1.
struct RankProgress {
  std::uint32_t rank = 0;
  Standing standing = Standing::no_dump;
  std::int64_t called = 0, completed = 0;  ///< the last one; 0: none. Of no_dump and not_in_dump: not known
  std::int64_t first = 0;                  ///< the first one that the dump has; 0: none
  bool has_timed_out = false;              ///< PyTorch's watchdog has given up the call
  std::string last_call, place;            ///< of all groups: "all_reduce 41 of 0 (default_pg)", and the program's line
};

enum class GroupVerdict : std::uint8_t {
  finished,     ///< what one rank has called, all have completed
  mismatch,     ///< ranks call different things at a number that not all have completed
  behind,       ///< some ranks have not called what others wait in
  not_started,  ///< all have called it, but on some its kernel has not begun
  inside,       ///< all have called it, and it does not end
  no_dump       ///< all ranks of which something is known are in it
};
std::string_view to_string(GroupVerdict verdict);  ///< "ranks behind"

/// What some ranks call at a number at which others call something else.
struct Variant {
  std::string call;  ///< "all_reduce [[1024]] Float"
  std::vector<std::uint32_t> ranks;
};

struct Mismatch {
  std::int64_t number = 0;
  std::string what;               ///< "operation", "element type", "elements"
  std::vector<Variant> variants;  ///< two or more, by the number of ranks, most first
};

/// A process group.
struct GroupProgress {
  std::string name, description;
  std::vector<std::uint32_t> members;  ///< in the group's order; empty: not in the files
  std::vector<RankProgress> ranks;     ///< of all members; of those with a dump if the members are not in the files
  bool knows_starts = true;            ///< each dump in which a call is under way tells scheduled from started
  GroupVerdict verdict = GroupVerdict::finished;
  std::int64_t last = 0;  ///< the last collective that all ranks of which something is known have completed; 0: none
  std::string last_call;  ///< "all_reduce [[1024]] Float"; empty: in no dump
  std::string next_call;  ///< number last + 1, likewise
  std::vector<Mismatch> mismatches;  ///< by number: the last 20

  std::vector<std::uint32_t> in(Standing standing) const;  ///< its ranks, in order
  std::string title() const;                               ///< "0 (default_pg)"
};

/// A send or receive that has not completed: the first of its rank to, or from, its peer.
struct PendingMessage {
  std::uint32_t rank = 0, peer = 0;
  bool is_send = true;
  std::string group, call;     ///< the group's title; "send [[1024]] Float"
  std::optional<bool> is_met;  ///< the peer waits in the opposite; nothing: there is no dump of it
  std::string peers_call;      ///< of is_met
  std::string differs;         ///< of is_met: "elements", "element type"; empty: both agree
};

struct Hang {
  std::vector<GroupProgress> groups;     ///< those that stand still first, then by name
  std::vector<PendingMessage> messages;  ///< by rank
  std::vector<std::string> findings;     ///< sentences, causes before consequences
  std::string headline;                  ///< the first of them without advice; empty: there are none
  /// Ranks and groups (by their title) that findings name, in that order, each once.
  std::vector<std::uint32_t> named_ranks = {};
  std::vector<std::string> named_groups = {};
};

/// Compares dumps of one job, of different ranks.
///
/// A group's collectives run in order on one stream, so all before the first that has not completed have. A rank that
/// has not called a collective of one group and has another call pending is a consequence; one that has none is a
/// cause: its program is elsewhere. Ranks that wait for each other are also a cause. A pending call need not stop a
/// program: PyTorch's calls are asynchronous. So last calls are named as well. Dumps of a job that still runs are
/// written at different moments, and then differ by what ran between.
///
/// Compared at one number: operations; element types; numbers of elements, by the rules of each operation. Coalesced
/// operations are compared by their names, types and sums of elements. An all_to_all must take out in total what its
/// ranks put in (since version 2.4 of the format, which has its sizes). Source of the rules: PyTorch,
/// tools/flight_recorder/components/types.py.
Hang hang_of(const std::vector<FlightDump>& dumps);

}  // namespace ringsim::profiles
