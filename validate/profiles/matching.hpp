// Which calls of different ranks are one collective, and on which host each rank runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// Ranks of one host share a clock.
struct Hosts {
  std::map<std::uint32_t, std::uint32_t> by_rank;  ///< rank -> index of its host
  std::size_t count = 1;
  std::uint32_t gpus = 0;  ///< of a host, as all files list them; 0: not all do, or not alike
  std::string because;     ///< "host names in the files", for the head of a table

  std::uint32_t of(std::uint32_t rank) const { return by_rank.at(rank); }
};

/// `ranks_per_host` if it is above 0; else the hosts that all files name; else the number of GPUs that all files list,
/// if it is above 1; else one host is assumed.
Hosts hosts_of(const Profile& profile, std::uint32_t ranks_per_host);

/// One collective: the calls of its ranks, as indices into Profile::calls, in the order of ranks; at most one per rank.
struct Meeting {
  std::vector<std::uint32_t> calls;
};

struct Matching {
  std::vector<Meeting> meetings;      ///< of usable calls; one without a partner is a meeting of one
  std::size_t matched = 0;            ///< calls that have a partner
  std::size_t no_partner = 0;         ///< in no other file
  std::size_t no_group = 0;           ///< the file does not say between which ranks
  std::size_t point_to_point = 0;     ///< sends and receives: not matched
  std::vector<std::string> findings;  ///< calls of one number whose sizes differ, ranks whose order differs
};

/// Matches usable calls by (group, op, sequence). A group of which a call has no sequence is matched in the order of
/// the calls: two lists are aligned by a longest common subsequence over (op, bytes), where calls on one host must also
/// overlap in time. What stays without a partner is counted, never guessed. Sizes of an all_to_all may differ.
Matching match(const Profile& profile, const Hosts& hosts);

}  // namespace ringsim::profiles
