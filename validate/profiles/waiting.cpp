#include "validate/profiles/waiting.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <utility>

namespace ringsim::profiles {

namespace {

/// Sums of a row while it grows.
struct Sums {
  Row row;
  double kernel = 0, wait = 0, split_kernel = 0, longest_wait = 0, overlap = 0;
  std::size_t waits = 0, overlaps = 0;
  std::vector<double> transfers;
  double residual = 0;
  double with_compute = 0, without_compute = 0;
  std::size_t n_with = 0, n_without = 0;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::size_t> launches;
  std::set<std::uint16_t> algorithms, protocols;
};

void add_call(Sums& sums, const Call& call) {
  Row& row = sums.row;
  const std::int64_t time = call.duration_ns();
  row.shortest_ns = row.kernels == 0 ? time : std::min(row.shortest_ns, time);
  row.longest_ns = std::max(row.longest_ns, time);
  ++row.kernels;
  sums.kernel += static_cast<double>(time);
  if (call.overlap != Call::no_overlap) {
    sums.overlap += call.overlap / 1000.0;
    ++sums.overlaps;
  }
  if (call.blocks > 0) ++sums.launches[{call.blocks, call.threads}];
  sums.algorithms.insert(call.algorithm);
  sums.protocols.insert(call.protocol);
}

/// The transfer of a collective with and without compute next to it; without a split the kernel's own time.
void add_to_overlap(Sums& sums, const Call& call, double time) {
  if (call.overlap == Call::no_overlap) return;
  sums.row.overlaps.push_back(call.overlap);
  if (call.overlap >= much_overlap)
    sums.with_compute += time, ++sums.n_with;
  else if (call.overlap < no_overlap_to_speak_of)
    sums.without_compute += time, ++sums.n_without;
}

Row finished(Sums& sums) {
  Row row = sums.row;
  row.kernel_ns = sums.kernel / static_cast<double>(row.kernels);
  row.has_no_durations = sums.kernel == 0;
  if (row.has_no_durations) row.split = 0;
  if (row.split > 0) {
    row.split_kernels = sums.waits;
    row.wait_ns = sums.wait / static_cast<double>(sums.waits);
    row.split_kernel_ns = sums.split_kernel / static_cast<double>(sums.waits);
    row.longest_wait_ns = sums.longest_wait / static_cast<double>(row.split);
    double all = 0;
    for (const double each : sums.transfers) all += each;
    row.mean_transfer_ns = all / static_cast<double>(row.split);
    row.transfer_ns = median_of(sums.transfers);
    if (!row.is_by_shortest && sums.residual > 0.1 * row.transfer_ns) {
      row.clock_is_too_rough = true;
      row.split = 0;
    }
  }
  if (sums.overlaps > 0) row.overlap = sums.overlap / static_cast<double>(sums.overlaps);
  if (sums.n_with > 0 && sums.n_without > 0 && sums.without_compute > 0)
    row.overlapped_ratio = (sums.with_compute / static_cast<double>(sums.n_with)) /
                           (sums.without_compute / static_cast<double>(sums.n_without));
  std::size_t most = 0;
  for (const auto& [launch, n] : sums.launches)
    if (n > most) most = n, row.blocks = launch.first, row.threads = launch.second;
  if (sums.algorithms.size() == 1) row.algorithm = *sums.algorithms.begin();
  if (sums.protocols.size() == 1) row.protocol = *sums.protocols.begin();
  return row;
}

}  // namespace

std::optional<std::uint32_t> Row::late_rank() const {
  double all = 0;
  for (const auto& [rank, ns] : waits_ns) all += ns;
  for (const auto& [rank, ns] : caused_ns)
    if (ns > 0.6 * all) return rank;
  return std::nullopt;
}

std::string not_split_because(const Row& row) {
  if (row.has_no_durations) return "no durations";
  if (row.clock_is_too_rough) return "clocks too inaccurate";
  if (!ends_together(row.op)) return "ranks may end early";
  return row.split == 0 ? "not matched" : "";
}

Split split(const Profile& profile, const Hosts& hosts, const std::vector<Clock>& clocks, const Meeting& meeting) {
  Split out;
  const Call& first = profile.calls[meeting.calls.front()];
  if (meeting.calls.size() < 2 || !ends_together(first.op) || first.has(Call::sizes_differ)) return out;
  out.all_there = meeting.calls.size() == profile.groups[first.group].size;
  bool on_one_clock = true;
  for (const std::uint32_t i : meeting.calls) {
    const Call& call = profile.calls[i];
    on_one_clock = on_one_clock && call.has(Call::is_timed) && clocks[hosts.of(call.rank)].is_known;
  }
  out.by = on_one_clock ? SplitBy::clocks : SplitBy::shortest;
  std::vector<std::int64_t> arrivals;
  std::int64_t last_end = std::numeric_limits<std::int64_t>::min();
  for (const std::uint32_t i : meeting.calls) {
    const Call& call = profile.calls[i];
    const Clock& clock = clocks[hosts.of(call.rank)];
    // Without moments all end together, so the last to arrive has the shortest kernel.
    arrivals.push_back(on_one_clock ? clock.shift(call.begin_ns) : -call.duration_ns());
    last_end = std::max(last_end, on_one_clock ? clock.shift(call.end_ns) : 0);
  }
  const auto last = std::max_element(arrivals.begin(), arrivals.end());
  if (std::count(arrivals.begin(), arrivals.end(), *last) == 1)
    out.last = static_cast<std::size_t>(last - arrivals.begin());
  out.transfer_ns = std::max<std::int64_t>(last_end - *last, 0);
  for (std::size_t i = 0; i < arrivals.size(); ++i)
    out.waits.push_back(std::min(*last - arrivals[i], profile.calls[meeting.calls[i]].duration_ns()));
  return out;
}

std::string placement_of(const std::vector<std::uint32_t>& members, std::uint32_t ranks_per_node) {
  std::string out;
  std::map<std::uint32_t, std::size_t> nodes;
  for (const std::uint32_t rank : members) {
    const std::size_t node = nodes.try_emplace(rank / ranks_per_node, nodes.size()).first->second;
    out += fmt::format("{}{}.{}", out.empty() ? "" : " ", node, rank % ranks_per_node);
  }
  return out;
}

Account account_of(const Profile& profile, std::uint32_t ranks_per_host, std::uint32_t ranks_per_node) {
  Account out;
  out.hosts = hosts_of(profile, ranks_per_host);
  out.matching = match(profile, out.hosts);
  out.clocks = clocks_of(profile, out.hosts, out.matching.meetings);
  std::map<std::uint32_t, RankAccount> ranks;
  for (const ProfileSource& source : profile.sources) {
    RankAccount& account = ranks[source.rank];
    account.rank = source.rank;
    account.has_compute = source.has_compute;
  }
  for (const Call& call : profile.calls) {
    if (call.is_usable()) {
      ++out.usable;
      ++out.from[call.size_from];
    } else {
      ++out.lost[call.lost];
    }
    RankAccount& account = ranks[call.rank];
    ++account.calls;
    const auto time = static_cast<double>(call.duration_ns());
    account.kernel_ns += time;
    if (call.overlap != Call::no_overlap) account.exposed_ns += time * (1 - call.overlap / 1000.0);
  }
  std::vector<std::string> placements;  // by group
  for (const CallGroup& group : profile.groups)
    placements.push_back(ranks_per_node > 0 ? placement_of(group.members, ranks_per_node) : "");
  std::map<std::tuple<CallOp, std::int64_t, bool, std::uint32_t, std::uint32_t, std::string>, Sums> rows;
  std::vector<double> spreads;
  for (const Meeting& meeting : out.matching.meetings) {
    const Call& first = profile.calls[meeting.calls.front()];
    std::set<std::uint32_t> hosts;
    std::int64_t bytes = 0;
    for (const std::uint32_t i : meeting.calls) {
      hosts.insert(out.hosts.of(profile.calls[i].rank));
      bytes = std::max(bytes, profile.calls[i].bytes);
    }
    const CallGroup& group = profile.groups[first.group];
    const auto n_hosts = static_cast<std::uint32_t>(hosts.size());
    Sums& sums = rows[{first.op, bytes, first.has(Call::is_share), group.size, n_hosts, placements[first.group]}];
    Row& row = sums.row;
    row.op = first.op;
    row.bytes = bytes;
    row.is_share = first.has(Call::is_share);
    row.group_size = group.size;
    row.hosts = n_hosts;
    row.group = first.group;
    ++row.collectives;
    for (const std::uint32_t i : meeting.calls) add_call(sums, profile.calls[i]);
    const Split found = split(profile, out.hosts, out.clocks, meeting);
    if (found.by == SplitBy::none) {
      for (const std::uint32_t i : meeting.calls)
        add_to_overlap(sums, profile.calls[i], static_cast<double>(profile.calls[i].duration_ns()));
      continue;
    }
    ++row.split;
    row.is_partial = row.is_partial || !found.all_there;
    row.is_by_shortest = row.is_by_shortest || found.by == SplitBy::shortest;
    sums.transfers.push_back(static_cast<double>(found.transfer_ns));
    if (found.last) {
      const std::uint32_t rank = profile.calls[meeting.calls[*found.last]].rank;
      ++row.last[rank];
      for (const std::int64_t wait : found.waits) row.caused_ns[rank] += static_cast<double>(wait);
    }
    std::int64_t longest = 0, least_end = std::numeric_limits<std::int64_t>::max(), most_end = 0;
    // Compute next to any rank slows the collective for all.
    const Call* most_overlapped = &first;
    for (std::size_t i = 0; i < meeting.calls.size(); ++i) {
      const Call& call = profile.calls[meeting.calls[i]];
      const std::int64_t wait = found.waits[i];
      longest = std::max(longest, wait);
      sums.wait += static_cast<double>(wait);
      sums.split_kernel += static_cast<double>(call.duration_ns());
      ++sums.waits;
      row.waits_ns[call.rank] += static_cast<double>(wait);
      RankAccount& account = ranks[call.rank];
      account.wait_ns += static_cast<double>(wait);
      ++account.split;
      if (i == found.last) ++account.last;
      least_end = std::min(least_end, call.end_ns);
      most_end = std::max(most_end, call.end_ns);
      sums.residual = std::max(sums.residual, out.clocks[out.hosts.of(call.rank)].residual_ns);
      if (call.overlap == Call::no_overlap) continue;
      if (most_overlapped->overlap == Call::no_overlap || call.overlap > most_overlapped->overlap)
        most_overlapped = &call;
    }
    sums.longest_wait += static_cast<double>(longest);
    add_to_overlap(sums, *most_overlapped, static_cast<double>(found.transfer_ns));
    if (found.by == SplitBy::clocks && n_hosts == 1) spreads.push_back(static_cast<double>(most_end - least_end));
  }
  for (auto& entry : rows) out.rows.push_back(finished(entry.second));
  std::stable_sort(out.rows.begin(), out.rows.end(), [](const Row& a, const Row& b) {
    return a.kernel_ns * static_cast<double>(a.kernels) > b.kernel_ns * static_cast<double>(b.kernels);
  });
  for (const auto& entry : ranks) out.ranks.push_back(entry.second);
  if (!spreads.empty()) out.spread_ns = median_of(spreads);
  return out;
}

}  // namespace ringsim::profiles
