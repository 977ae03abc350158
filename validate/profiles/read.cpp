#include "validate/profiles/read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/foreign_format.hpp"
#include "sim/text/json.hpp"
#include "sim/text/json_place.hpp"
#include "sim/text/json_scan.hpp"
#include "validate/profiles/chakra.hpp"
#include "validate/profiles/inspector.hpp"
#include "validate/profiles/kineto.hpp"
#include "validate/profiles/nsight.hpp"
#include "validate/profiles/nsight_database.hpp"

namespace ringsim::profiles {

namespace {

constexpr const char* what =
    "a profile of PyTorch (Kineto, Flight Recorder), a log of NCCL Inspector, a Chakra trace or a report of Nsight "
    "Systems in SQLite";

/// Enough for the keys before the events: distributedInfo of a large job has its groups.
constexpr std::size_t looked_at = std::size_t{1} << 20;

/// "DIV 8": the 8; nothing if it is another word.
std::optional<std::uint32_t> number_after(std::string_view text, std::string_view word) {
  if (!text.starts_with(word)) return std::nullopt;
  text.remove_prefix(word.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  std::uint32_t n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(n) : std::nullopt;
}

AssumedGroups read_listed(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in)
    throw InputError(
        "", fmt::format("expected all, \"DIV n\", \"MOD n\" or a file of groups, found no file {}", in_quotes(path)),
        "DIV 8: ranks 0 to 7 form a group; MOD 8: ranks 0, 8, 16, ...");
  std::string text(std::size_t{1} << 24, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  const Json lists = parse_json(text, path);
  AssumedGroups out{.kind = AssumedGroups::Kind::listed, .n = 0, .listed = {}};
  std::vector<std::uint32_t> seen;
  const Place place{lists, path, ""};
  for (const Place& list : place.items()) {
    std::vector<std::uint32_t> ranks;
    for (const Place& rank : list.items())
      ranks.push_back(static_cast<std::uint32_t>(rank.whole(0, Limits().ranks - 1)));
    seen.insert(seen.end(), ranks.begin(), ranks.end());
    out.listed.push_back(std::move(ranks));
  }
  std::sort(seen.begin(), seen.end());
  if (const auto twice = std::adjacent_find(seen.begin(), seen.end()); twice != seen.end())
    throw InputError(path, fmt::format("expected each rank in only one group, found rank {} twice", *twice));
  return out;
}

void refuse_other_job(const ProfileSource& a, const ProfileSource& b) {
  constexpr const char* hint = "use files from a single job";
  if (a.world != 0 && b.world != 0 && a.world != b.world)
    throw InputError(b.file,
                     fmt::format("expected a job with {} ranks as in {}, found one with {}", a.world, a.file, b.world),
                     hint);
  // Of one job each rank lists the groups that it is in; only without the number of ranks do lists tell jobs apart.
  if (!a.groups.empty() && !b.groups.empty() && a.groups != b.groups && a.world == 0)
    throw InputError(b.file, fmt::format("expected the same process groups as in {}, found others", a.file), hint);
  if (!a.nccl_version.empty() && !b.nccl_version.empty() && a.nccl_version != b.nccl_version)
    throw InputError(b.file, fmt::format("expected NCCL {} as in {}, found {}", a.nccl_version, a.file, b.nccl_version),
                     hint);
}

/// Calls of Flight Recorder have no moments, and calls that have not ended are not among them.
void refuse_other_kind(const ProfileSource& a, const ProfileSource& b) {
  const auto is_dump = [](const ProfileSource& source) { return source.format.starts_with(flight_recorder_format); };
  if (is_dump(a) == is_dump(b)) return;
  throw InputError(b.file,
                   fmt::format("expected files of one kind ({}, like {}), found {}", a.format, a.file, b.format),
                   "use Flight Recorder dumps without other profiles");
}

}  // namespace

std::vector<std::uint32_t> AssumedGroups::of(std::uint32_t rank, std::uint32_t world) const {
  std::vector<std::uint32_t> out;
  switch (kind) {
    case Kind::none:
      break;
    case Kind::all:
      for (std::uint32_t r = 0; r < world; ++r) out.push_back(r);
      break;
    case Kind::div:
      for (std::uint32_t r = rank / n * n; r < std::min(world, rank / n * n + n); ++r) out.push_back(r);
      break;
    case Kind::mod:
      for (std::uint32_t r = rank % n; r < world; r += n) out.push_back(r);
      break;
    case Kind::listed:
      for (const auto& group : listed)
        if (std::find(group.begin(), group.end(), rank) != group.end()) return group;
      break;
  }
  return out;
}

AssumedGroups read_assumed_groups(const std::string& text) {
  using Kind = AssumedGroups::Kind;
  if (text == "all") return {.kind = Kind::all, .n = 0, .listed = {}};
  for (const auto& [word, kind] : {std::pair{"DIV", Kind::div}, std::pair{"MOD", Kind::mod}}) {
    const auto n = number_after(text, word);
    if (!n) continue;
    if (*n == 0) throw InputError("", fmt::format("expected {} and a number above 0, found \"{}\"", word, text));
    return {.kind = kind, .n = *n, .listed = {}};
  }
  return read_listed(text);
}

void read_profile(Pieces& file, std::optional<std::uint32_t> rank, Profile& profile, std::vector<FlightDump>* dumps) {
  const std::string_view text = file.beginning(looked_at);
  if (is_sqlite(text)) return read_nsight(file, rank, profile);
  if (is_chakra(file.name(), text)) return read_chakra_profile(file, rank, profile);
  const auto keys = first_keys(text.substr(0, std::min(text.size(), looked_at)));
  const auto has = [&](std::initializer_list<const char*> some) {
    return std::any_of(some.begin(), some.end(), [&](const char* key) { return keys.contains(key); });
  };
  if (!is_json_list(text) && has({"traceEvents", "schemaVersion", "deviceProperties", "distributedInfo"}))
    return read_kineto(file, rank, profile);
  if (!is_json_list(text) && has({"coll_perf", "p2p_perf", "dump_stats", "metadata", "header"}))
    return read_inspector(file, rank, profile);
  if (!is_json_list(text) && has({"pg_config", "pg_status", "nccl_comm_state", "entries"})) {
    FlightDump dump = read_flight_recorder(file, rank);
    add_calls(dump, profile);
    if (dumps != nullptr) dumps->push_back(std::move(dump));
    return;
  }
  refuse_foreign_format(text.substr(0, recognized_bytes), file.name(), what);
  throw InputError(file.name(), fmt::format("expected {}, found something else", what),
                   "PyTorch profiles are written by export_chrome_trace(), or are Flight Recorder dumps in JSON; NCCL "
                   "Inspector logs have one JSON object per line; Chakra traces (*.et) are written by "
                   "chakra_converter; Nsight Systems reports are written by nsys export --type sqlite");
}

std::uint32_t world_of(const Profile& profile) {
  std::uint32_t said = 0, seen = 0;
  for (const ProfileSource& source : profile.sources) {
    said = std::max(said, source.world);
    seen = std::max(seen, source.rank + 1);
  }
  return std::max(said, seen);
}

void settle(Profile& profile, const AssumedGroups& groups) {
  std::map<std::uint32_t, const ProfileSource*> by_rank;
  for (const ProfileSource& source : profile.sources) {
    refuse_other_job(profile.sources.front(), source);
    refuse_other_kind(profile.sources.front(), source);
    const auto [known, is_new] = by_rank.try_emplace(source.rank, &source);
    if (is_new) continue;
    throw InputError(
        source.file,
        fmt::format("expected one file per rank, found rank {} in {} as well", source.rank, known->second->file),
        fmt::format("remove one of them, or set the rank with --rank {}=N", source.file));
  }
  for (CallGroup& group : profile.groups) {
    if (group.size == 0 || group.places.size() != group.size || !group.members.empty()) continue;
    for (const auto& [place, rank] : group.places) group.members.push_back(rank);
  }
  const std::uint32_t world = world_of(profile);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>
      assumed;  // by rank and what the file calls the group
  for (Call& call : profile.calls) {
    if (profile.groups[call.group].size == 0 && groups.kind != AssumedGroups::Kind::none &&
        !is_point_to_point(call.op)) {
      const auto [known, is_new] = assumed.try_emplace({call.rank, call.group}, call.group);
      if (is_new) {
        const std::vector<std::uint32_t> members = groups.of(call.rank, world);
        if (!members.empty())
          known->second = profile.group(call.group == 0 ? "(assumed)" : std::string(profile.groups[call.group].name),
                                        static_cast<std::uint32_t>(members.size()), members);
      }
      call.group = known->second;
    }
    const std::uint32_t size = profile.groups[call.group].size;
    if (!call.has(Call::is_share) || size == 0) continue;
    if (__builtin_mul_overflow(call.bytes, std::int64_t{size}, &call.bytes))
      throw InputError("", fmt::format("expected sizes below 9.2 EB, found a share of {} ranks beyond it", size));
    call.flags &= static_cast<std::uint8_t>(~Call::is_share);
  }
}

Profile read_profiles(const std::vector<std::string>& files, const ReadOptions& options) {
  Profile profile;
  for (const std::string& path : files) {
    Pieces file(path, options.limits, options.progress);
    const auto said = options.ranks.find(path);
    read_profile(file, said == options.ranks.end() ? std::nullopt : std::optional(said->second), profile,
                 options.dumps);
  }
  settle(profile, options.groups);
  return profile;
}

}  // namespace ringsim::profiles
