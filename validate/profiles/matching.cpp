#include "validate/profiles/matching.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "validate/profiles/common_subsequence.hpp"

namespace ringsim::profiles {

namespace {

/// More are two jobs, or windows that have nothing in common; memory is 8 B times its square.
constexpr std::size_t most_differences = 2000;
constexpr std::size_t most_findings = 20;

bool sizes_may_differ(const Call& call) { return call.op == CallOp::all_to_all || call.has(Call::sizes_differ); }

class Matcher {
 public:
  Matcher(const Profile& profile, const Hosts& hosts) : calls_(profile.calls), groups_(profile.groups), hosts_(hosts) {}

  Matching run() {
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_group;
    for (std::uint32_t i = 0; i < calls_.size(); ++i) {
      const Call& call = calls_[i];
      if (!call.is_usable()) continue;
      const bool alone = call.group == 0 || is_point_to_point(call.op);
      if (is_point_to_point(call.op))
        ++out_.point_to_point;
      else if (call.group == 0)
        ++out_.no_group;
      if (alone)
        out_.meetings.push_back({{i}});
      else
        by_group[call.group].push_back(i);
    }
    for (auto& [group, own] : by_group) {
      const bool numbered = std::all_of(own.begin(), own.end(), [&](auto i) { return calls_[i].sequence != no_value; });
      if (numbered)
        by_number(own);
      else
        by_order(own);
    }
    for (Meeting& meeting : out_.meetings)
      std::sort(meeting.calls.begin(), meeting.calls.end(),
                [&](auto a, auto b) { return calls_[a].rank < calls_[b].rank; });
    for (const Meeting& meeting : out_.meetings) {
      const Call& call = calls_[meeting.calls.front()];
      if (meeting.calls.size() > 1)
        out_.matched += meeting.calls.size();
      else if (call.group != 0 && !is_point_to_point(call.op))
        ++out_.no_partner;
    }
    return std::move(out_);
  }

 private:
  void find(std::string text) {
    if (out_.findings.size() < most_findings) out_.findings.push_back(std::move(text));
  }

  void by_number(std::vector<std::uint32_t>& own) {
    const auto key = [&](std::uint32_t i) {
      const Call& call = calls_[i];
      return std::tuple(call.op, call.sequence, call.rank, call.begin_ns, i);
    };
    std::sort(own.begin(), own.end(), [&](auto a, auto b) { return key(a) < key(b); });
    for (std::size_t first = 0; first < own.size();) {
      std::size_t last = first;
      while (last < own.size() && calls_[own[last]].op == calls_[own[first]].op &&
             calls_[own[last]].sequence == calls_[own[first]].sequence)
        ++last;
      // Calls of one number and size meet; the kth of a rank meets the kth of the others.
      std::map<std::pair<std::int64_t, std::size_t>, std::size_t> meetings;  // (bytes, k) -> index
      std::map<std::pair<std::int64_t, std::uint32_t>, std::size_t> seen;    // (bytes, rank) -> how many
      std::set<std::int64_t> sizes;
      for (std::size_t i = first; i < last; ++i) {
        const Call& call = calls_[own[i]];
        const std::int64_t bytes = sizes_may_differ(call) ? 0 : call.bytes;
        sizes.insert(bytes);
        const std::size_t k = seen[{bytes, call.rank}]++;
        const auto [known, is_new] = meetings.try_emplace({bytes, k}, out_.meetings.size());
        if (is_new) out_.meetings.emplace_back();
        out_.meetings[known->second].calls.push_back(own[i]);
      }
      if (sizes.size() > 1) {
        const Call& call = calls_[own[first]];
        find(fmt::format("{} number {} of group \"{}\": its ranks state different sizes, from {} to {} bytes",
                         to_string(call.op), call.sequence, groups_[call.group].name, *sizes.begin(), *sizes.rbegin()));
      }
      first = last;
    }
  }

  /// True if a call may be one of a meeting's.
  bool fits(const Meeting& meeting, std::uint32_t i) const {
    const Call& call = calls_[i];
    const Call& first = calls_[meeting.calls.front()];
    if (call.op != first.op || (call.bytes != first.bytes && !sizes_may_differ(call))) return false;
    for (const std::uint32_t other : meeting.calls) {
      const Call& its = calls_[other];
      if (hosts_.of(its.rank) != hosts_.of(call.rank) || !call.has(Call::is_timed) || !its.has(Call::is_timed))
        continue;
      if (call.begin_ns > its.end_ns || its.begin_ns > call.end_ns) return false;
    }
    return true;
  }

  void by_order(const std::vector<std::uint32_t>& own) {
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_rank;
    for (const std::uint32_t i : own) by_rank[calls_[i].rank].push_back(i);
    std::vector<Meeting> merged;
    for (auto& [rank, list] : by_rank) {
      std::sort(list.begin(), list.end(),
                [&](auto a, auto b) { return std::pair(calls_[a].begin_ns, a) < std::pair(calls_[b].begin_ns, b); });
      bool given_up = false;
      const std::vector<std::uint32_t>& theirs = list;
      const auto pairs = common_subsequence(
          merged.size(), theirs.size(), [&](std::size_t i, std::size_t j) { return fits(merged[i], theirs[j]); },
          most_differences, given_up);
      if (given_up)
        find(
            fmt::format("rank {}: its calls in group \"{}\" differ from those of lower ranks in more than {} places "
                        "and are not matched",
                        rank, groups_[calls_[list.front()].group].name, most_differences));
      std::vector<Meeting> next;
      std::size_t i = 0, j = 0;
      const auto pass_to = [&](std::size_t end_i, std::size_t end_j) {
        while (i < end_i) next.push_back(std::move(merged[i++]));
        while (j < end_j) next.push_back({{theirs[j++]}});
      };
      for (const auto& pair : pairs) {
        pass_to(pair.first, pair.second);
        merged[i].calls.push_back(theirs[j++]);
        next.push_back(std::move(merged[i++]));
      }
      pass_to(merged.size(), theirs.size());
      merged = std::move(next);
    }
    for (Meeting& meeting : merged) out_.meetings.push_back(std::move(meeting));
  }

  const std::vector<Call>& calls_;
  const std::vector<CallGroup>& groups_;
  const Hosts& hosts_;
  Matching out_;
};

}  // namespace

Hosts hosts_of(const Profile& profile, std::uint32_t ranks_per_host) {
  Hosts out;
  std::uint32_t gpus = 0;
  bool all_named = !profile.sources.empty(), all_count = all_named;
  for (const ProfileSource& source : profile.sources) {
    all_named = all_named && !source.host.empty();
    all_count = all_count && source.gpus_on_host > 1 && (gpus == 0 || gpus == source.gpus_on_host);
    gpus = source.gpus_on_host;
  }
  out.gpus = all_count ? gpus : 0;
  out.because = "one host assumed; to change this, use --ranks-per-host";
  if (ranks_per_host > 0)
    out.because = fmt::format("--ranks-per-host {}", ranks_per_host);
  else if (all_named)
    out.because = "host names in the files";
  else if (all_count)
    out.because = fmt::format("{} GPUs per host in the files", ranks_per_host = gpus);
  std::map<std::string, std::uint32_t> index;
  for (const ProfileSource& source : profile.sources) {
    const std::string key = ranks_per_host > 0 ? fmt::to_string(source.rank / ranks_per_host)
                            : all_named        ? source.host
                                               : "";
    out.by_rank[source.rank] = index.try_emplace(key, static_cast<std::uint32_t>(index.size())).first->second;
  }
  out.count = std::max<std::size_t>(index.size(), 1);
  return out;
}

Matching match(const Profile& profile, const Hosts& hosts) { return Matcher(profile, hosts).run(); }

}  // namespace ringsim::profiles
