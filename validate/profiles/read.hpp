// Profiles of one job: one file per rank or per process, of any of the formats that are read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "validate/profiles/flight_recorder.hpp"
#include "validate/profiles/pieces.hpp"
#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// The group of calls whose file does not name one.
struct AssumedGroups {
  enum class Kind : std::uint8_t { none, all, div, mod, listed };
  Kind kind = Kind::none;
  std::uint32_t n = 0;                             ///< of div and mod
  std::vector<std::vector<std::uint32_t>> listed;  ///< ranks of each group

  /// The ranks of the group that `rank` is in, of a job of `world` ranks; empty: none is assumed.
  std::vector<std::uint32_t> of(std::uint32_t rank, std::uint32_t world) const;
};

/// Reads `--group`: "all"; "DIV 8": ranks 0 to 7, 8 to 15, ...; "MOD 8": ranks 0, 8, 16, ... (both as
/// NCCL_TESTS_SPLIT); else a file, which has lists of ranks in JSON: [[0, 1], [2, 3]]. Throws InputError.
AssumedGroups read_assumed_groups(const std::string& text);

struct ReadOptions {
  std::map<std::string, std::uint32_t> ranks;  ///< by file: as `--rank FILE=N`
  AssumedGroups groups;
  Limits limits;
  ReadProgress progress;
  std::vector<FlightDump>* dumps = nullptr;  ///< filled with dumps of Flight Recorder, if it is not null
};

/// Reads files one after the other. Throws InputError for what is no profile or is damaged, for two files of one rank,
/// for files of two jobs, whose numbers of ranks or groups differ, and for dumps of Flight Recorder among others.
Profile read_profiles(const std::vector<std::string>& files, const ReadOptions& options);

/// Adds one file. Throws as read_profiles(), except for what only shows together. A dump of Flight Recorder is also
/// added to `dumps`, if that is not null.
void read_profile(Pieces& file, std::optional<std::uint32_t> rank, Profile& profile,
                  std::vector<FlightDump>* dumps = nullptr);

/// What follows once all files are there: members of groups whose ranks are all seen, groups that are assumed, and
/// sizes of which only one rank's share is known. Throws for what only shows together.
void settle(Profile& profile, const AssumedGroups& groups);

/// The number of ranks of the job: as files say it, else one more than the highest rank.
std::uint32_t world_of(const Profile& profile);

}  // namespace ringsim::profiles
