#include "tools/explanations/profile_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "sim/base/version.hpp"
#include "sim/text/json.hpp"
#include "sim/text/table.hpp"
#include "sim/text/wrap.hpp"
#include "validate/profiles/rank_ranges.hpp"
#include "validate/profiles/read.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

using profiles::Account;
using profiles::ComparedCalls;
using profiles::JobComparison;
using profiles::Profile;
using profiles::RankAccount;
using profiles::Row;

namespace {

std::string plural(std::size_t n, const char* what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

std::string clocks_text(const Account& account) {
  std::string text = fmt::format("{} ({})", plural(account.hosts.count, "host"), account.hosts.because);
  if (account.hosts.count == 1) {
    if (account.spread_ns)
      text += fmt::format("; matched collectives end {:.3g} us apart (median)", *account.spread_ns / 1e3);
    return text;
  }
  double farthest = 0, drift = 0, residual = 0;
  std::size_t unknown = 0;
  for (const profiles::Clock& clock : account.clocks) {
    if (!clock.is_known) ++unknown;
    farthest = std::max(farthest, std::abs(clock.offset_ns));
    drift = std::max(drift, std::abs(clock.drift));
    residual = std::max(residual, clock.residual_ns);
  }
  if (unknown == account.hosts.count - 1 && farthest == 0) return text + "; their clock offsets are unknown";
  text +=
      fmt::format("; clocks aligned: they differed by up to {:.4g} ms and {:.3g} ppm, the median residual is {:.3g} us",
                  farthest / 1e6, drift * 1e6, residual / 1e3);
  if (unknown > 0) text += fmt::format("; unknown: {}", plural(unknown, "clock"));
  return text;
}

std::string launch_text(const Row& row) {
  return row.blocks == 0    ? ""
         : row.threads == 0 ? fmt::to_string(row.blocks)
                            : fmt::format("{} x {}", row.blocks, row.threads);
}

std::string ranks_of_text(const Row& row) { return row.group_size == 0 ? "?" : fmt::to_string(row.group_size); }

/// ns as us, to the ns.
double us(double ns) { return std::floor(ns + 0.5) / 1e3; }

}  // namespace

std::string size_text(const Row& row) {
  const auto bytes = static_cast<double>(row.bytes);
  static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  double value = bytes;
  while (value >= 999.95 && unit + 1 < std::size(units)) value /= 1000, ++unit;
  return fmt::format("{:.4g} {}{}", value, units[unit], row.is_share ? " each" : "");
}

std::string ms_text(double ns) {
  const double ms = ns / 1e6, least = 1e-4;  // from there on 3 digits have no exponent
  if (std::abs(ms) < least) return "0";
  return std::abs(ms) >= 100 ? fmt::format("{:.0f}", ms) : fmt::format("{:#.3g}", ms);
}

std::string waiting_text(const Row& row) {
  if (row.split == 0) return "";
  return (row.is_partial ? ">= " : row.is_by_shortest ? "~ " : "") + ms_text(row.longest_wait_ns);
}

std::string transfer_text(const Row& row) {
  if (row.split == 0)
    return profiles::ends_together(row.op) && !row.has_no_durations
               ? "<= " + ms_text(static_cast<double>(row.shortest_ns))
               : "";
  return (row.is_partial || row.is_by_shortest ? "<= " : "") + ms_text(row.transfer_ns);
}

std::string kernel_text(const Row& row) {
  const std::string least = ms_text(static_cast<double>(row.shortest_ns)),
                    most = ms_text(static_cast<double>(row.longest_ns));
  return least == most ? least : fmt::format("{} to {}", least, most);
}

std::string late_text(const Row& row) {
  if (std::string why = profiles::not_split_because(row); !why.empty()) return why;
  if (!row.waits_much()) return "";
  const auto late = row.late_rank();
  if (!late) return "changing ranks";
  const std::size_t n = row.last.at(*late);
  return fmt::format("rank {}{} ({} of {})", *late, row.is_partial ? " or later ones" : "", n, row.split);
}

/// What files say besides; files that say the same share a line.
static std::string about_text(const Profile& profile) {
  std::vector<std::pair<std::string, std::vector<std::uint32_t>>> lines;
  for (const profiles::ProfileSource& source : profile.sources)
    for (const std::string& line : source.about) {
      const auto known = std::find_if(lines.begin(), lines.end(), [&](const auto& each) { return each.first == line; });
      (known == lines.end() ? lines.emplace_back(line, std::vector<std::uint32_t>()) : *known)
          .second.push_back(source.rank);
    }
  std::string text;
  for (auto& [line, ranks] : lines) {
    std::sort(ranks.begin(), ranks.end());
    const std::string whose =
        profile.sources.size() == 1 ? ""
        : ranks.size() == profile.sources.size()
            ? "each rank: "
            : fmt::format("{} {}: ", ranks.size() == 1 ? "rank" : "ranks", profiles::rank_ranges(ranks));
    text += wrapped(whose + line) + '\n';
  }
  return text;
}

/// A sentence on the interference that the job measured; empty if no row has both.
static std::string interference_text(const Account& account) {
  const profiles::MeasuredInterference found = profiles::measured_interference(account.rows);
  if (found.n == 0) return "";
  const std::string least = fmt::format("{:.2f}", found.least), largest = fmt::format("{:.2f}", found.largest);
  return wrapped(fmt::format("transfers take {} while other kernels run ({} with both cases)",
                             least == largest
                                 ? fmt::format("{} times as long", least)
                                 : fmt::format("{} to {} times as long (median {:.2f})", least, largest, found.median),
                             plural(found.n, "row"))) +
         '\n';
}

std::string profile_head(const Profile& profile, const Account& account) {
  std::vector<std::uint32_t> ranks;
  std::set<std::string> formats, versions, gpus;
  std::size_t kernels = 0;
  std::uint64_t dropped = 0;
  for (const profiles::ProfileSource& source : profile.sources) {
    ranks.push_back(source.rank);
    formats.insert(source.format);
    if (!source.nccl_version.empty()) versions.insert(source.nccl_version);
    if (!source.gpu.empty()) gpus.insert(source.gpu);
    kernels += source.kernels;
    dropped += source.dropped;
  }
  std::sort(ranks.begin(), ranks.end());
  const std::uint32_t world = profiles::world_of(profile);
  std::string text = wrapped(fmt::format("{} of {} ranks ({}); {}; {}", ranks.size(), world,
                                         profiles::rank_ranges(ranks), fmt::join(formats, ", "),
                                         versions.empty() ? "the files do not contain the NCCL version"
                                                          : fmt::format("NCCL {}", fmt::join(versions, ", "))) +
                             (gpus.empty() ? "" : fmt::format("; {}", fmt::join(gpus, ", ")))) +
                     '\n';
  text += wrapped(clocks_text(account)) + '\n';
  std::vector<std::string> from;
  for (const auto& [each, n] : account.from) from.push_back(fmt::format("{} by {}", n, to_string(each)));
  std::string used = fmt::format("{} of NCCL in {}: {} with known operation and size", plural(kernels, "kernel"),
                                 plural(profile.calls.size(), "call"), account.usable);
  if (!from.empty()) used += fmt::format(" ({})", fmt::join(from, ", "));
  const profiles::Matching& matching = account.matching;
  if (profile.sources.size() > 1) {
    used += fmt::format(", {} matched", matching.matched);
    std::vector<std::string> not_matched;
    if (matching.no_partner > 0)
      not_matched.push_back(fmt::format("{} without a counterpart in another file", matching.no_partner));
    if (matching.no_group > 0)
      not_matched.push_back(fmt::format("{} whose group is not in the file (--group)", matching.no_group));
    if (matching.point_to_point > 0) not_matched.push_back(plural(matching.point_to_point, "send or receive"));
    if (!not_matched.empty()) used += fmt::format("; not matched: {}", fmt::join(not_matched, ", "));
  }
  text += wrapped(used) + '\n';
  for (const auto& [why, n] : account.lost)
    text += wrapped(fmt::format("not usable: {}, {}", n, to_string(why))) + '\n';
  text += about_text(profile);
  if (dropped > 0)
    text += wrapped(fmt::format("{} lost by the recorder (its ring buffer was full)", plural(dropped, "call"))) + '\n';
  return text + interference_text(account);
}

std::string ranks_text(const Account& account) {
  const bool any =
      std::any_of(account.ranks.begin(), account.ranks.end(), [](const RankAccount& r) { return r.split > 0; });
  if (!any) return "";
  const bool compute =
      std::all_of(account.ranks.begin(), account.ranks.end(), [](const RankAccount& r) { return r.has_compute; });
  std::vector<std::string> head{"rank", "calls", "kernels ms", "waiting ms", "arrives last in"};
  if (compute) head.emplace_back("exposed ms");
  Table table(head);
  for (const RankAccount& r : account.ranks) {
    std::vector<std::string> line{fmt::to_string(r.rank), fmt::to_string(r.calls), ms_text(r.kernel_ns),
                                  ms_text(r.wait_ns), fmt::format("{} of {}", r.last, r.split)};
    if (compute) line.push_back(ms_text(r.exposed_ns));
    table.add(line);
  }
  return '\n' + table.fitted();
}

std::string collectives_text(const Account& account) {
  if (account.rows.empty()) return "";
  Table table({"collective", "bytes", "ranks", "calls", "kernel ms", "wait ms", "transfer", "blocks", "late"});
  for (const Row& row : account.rows)
    table.add({std::string(to_string(row.op)), size_text(row), ranks_of_text(row), fmt::to_string(row.collectives),
               kernel_text(row), waiting_text(row), transfer_text(row), launch_text(row), late_text(row)});
  return '\n' + table.fitted() + ranks_text(account);
}

std::string profile_text(const Profile& profile, const Account& account) {
  return profile_head(profile, account) + collectives_text(account);
}

Json profile_about(const Profile& profile, const Account& account) {
  Json files = Json::array();
  for (const profiles::ProfileSource& source : profile.sources) {
    Json file{{"file", source.file}, {"format", source.format}, {"rank", source.rank}};
    file["host"] = source.host.empty() ? Json() : Json(source.host);
    file["nccl_version"] = source.nccl_version.empty() ? Json() : Json(source.nccl_version);
    file["gpu"] = source.gpu.empty() ? Json() : Json(source.gpu);
    file["kernels"] = source.kernels;
    file["calls"] = source.calls;
    file["dropped"] = source.dropped;
    if (!source.about.empty()) file["about"] = source.about;
    files.push_back(file);
  }
  Json clocks = Json::array();
  for (const profiles::Clock& clock : account.clocks)
    clocks.push_back(clock.is_known ? Json{{"offset_us", us(clock.offset_ns)},
                                           {"drift_ppm", clock.drift * 1e6},
                                           {"residual_us", us(clock.residual_ns)}}
                                    : Json());
  Json lost = Json::object();
  for (const auto& [why, n] : account.lost) lost[std::string(to_string(why))] = n;
  Json from = Json::object();
  for (const auto& [each, n] : account.from) from[std::string(to_string(each))] = n;
  const profiles::Matching& matching = account.matching;
  Json ranks = Json::array();
  for (const RankAccount& r : account.ranks) {
    Json rank{{"rank", r.rank}, {"calls", r.calls}, {"kernel_us", us(r.kernel_ns)}};
    rank["waiting_us"] = r.split > 0 ? Json(us(r.wait_ns)) : Json();
    rank["split"] = r.split;
    rank["last"] = r.last;
    rank["exposed_us"] = r.has_compute ? Json(us(r.exposed_ns)) : Json();
    ranks.push_back(rank);
  }
  return Json{{"ringsim", {{"version", version}, {"model_version", model_version}}},
              {"world", profiles::world_of(profile)},
              {"files", files},
              {"hosts", {{"count", account.hosts.count}, {"because", account.hosts.because}, {"clocks", clocks}}},
              {"calls",
               {{"all", profile.calls.size()},
                {"usable", account.usable},
                {"size_from", from},
                {"not_usable", lost},
                {"matched", matching.matched},
                {"without_partner", matching.no_partner},
                {"without_group", matching.no_group},
                {"point_to_point", matching.point_to_point}}},
              {"findings", matching.findings},
              {"ranks", ranks}};
}

Json row_json(const Profile& profile, const Row& row) {
  const bool is_split = row.split > 0;
  const auto time = [&](double ns) { return is_split ? Json(us(ns)) : Json(); };
  Json out{{"collective", to_string(row.op)}, {"bytes", row.bytes}, {"bytes_are", row.is_share ? "per rank" : "all"}};
  out["ranks"] = row.group_size == 0 ? Json() : Json(row.group_size);
  out["hosts"] = row.hosts;
  out["collectives"] = row.collectives;
  out["kernels"] = row.kernels;
  out["kernel_us"] = us(row.kernel_ns);
  out["kernel_min_us"] = us(static_cast<double>(row.shortest_ns));
  out["kernel_max_us"] = us(static_cast<double>(row.longest_ns));
  out["split"] = !is_split ? "none" : row.is_by_shortest ? "shortest" : "clocks";
  out["ranks_missing"] = is_split ? Json(row.is_partial) : Json();
  out["waiting_us"] = time(row.wait_ns);
  out["longest_wait_us"] = time(row.longest_wait_ns);
  out["waiting_share"] = is_split && row.split_kernel_ns > 0 ? Json(row.wait_ns / row.split_kernel_ns) : Json();
  out["transfer_us"] = time(row.transfer_ns);
  const auto late = is_split && row.waits_much() ? row.late_rank() : std::nullopt;
  out["late_rank"] = late ? Json(*late) : Json();
  out["late"] = late_text(row);
  out["overlapped_ratio"] = row.overlapped_ratio ? Json(*row.overlapped_ratio) : Json();
  out["overlap"] = row.overlap ? Json(std::floor(*row.overlap * 1e4 + 0.5) / 1e4) : Json();
  out["blocks"] = row.blocks == 0 ? Json() : Json(row.blocks);
  out["threads"] = row.threads == 0 ? Json() : Json(row.threads);
  out["algorithm"] = row.algorithm == 0 ? Json() : Json(profile.names[row.algorithm]);
  out["protocol"] = row.protocol == 0 ? Json() : Json(profile.names[row.protocol]);
  return out;
}

std::string profile_json(const Profile& profile, const Account& account) {
  Json document = profile_about(profile, account);
  Json rows = Json::array();
  for (const Row& row : account.rows) rows.push_back(row_json(profile, row));
  document["rows"] = rows;
  return json_text(document, 2) + '\n';
}

std::string verdict_text(const ComparedCalls& calls) {
  std::vector<std::string> all;
  for (const profiles::Verdict verdict : calls.verdicts) {
    std::string text(to_string(verdict));
    if (verdict == profiles::Verdict::late_rank)
      text += fmt::format(" {}{}", *calls.row.late_rank(), calls.row.is_partial ? " or later ones" : "");
    if (verdict == profiles::Verdict::slowed_by_compute) text += fmt::format(" x {:.2f}", *calls.row.overlapped_ratio);
    if (verdict == profiles::Verdict::cannot_say) text += ": " + calls.because;
    all.push_back(text);
  }
  return fmt::format("{}", fmt::join(all, "; "));
}

/// A table of launches that are not the plan's; empty if there are none.
static std::string other_launches(const JobComparison& comparison) {
  Table table({"launched otherwise", "bytes", "blocks x threads", "plan"});
  for (const ComparedCalls& calls : comparison.rows)
    if (calls.blocks_differ() || calls.threads_differ())
      table.add({std::string(to_string(calls.row.op)), size_text(calls.row), launch_text(calls.row),
                 fmt::format("{} {} {}", calls.blocks, calls.algorithm, calls.protocol)});
  return table.size() == 0 ? "" : '\n' + table.fitted();
}

std::string stated_interference(const JobComparison& comparison) {
  return fmt::format("predicted transfers take {:.6g} times as long while other kernels run (--interference)",
                     comparison.interference);
}

/// The part of the collectives' time during which no other kernel runs, of a rank in the mean. Empty if that is all of
/// it, or if no file has compute.
static std::string exposed_text(const Account& account) {
  double exposed = 0, all = 0;
  std::size_t n = 0;
  for (const profiles::RankAccount& rank : account.ranks)
    if (rank.has_compute) exposed += rank.exposed_ns, all += rank.kernel_ns, ++n;
  if (n == 0) return "";
  const auto mean = [&](double sum) { return ms_text(sum / static_cast<double>(n)); };
  if (mean(exposed) == mean(all)) return "";
  return fmt::format(
      " Of the {} ms that all collectives of a rank take, {} ms are exposed; during the rest, other "
      "kernels run.",
      mean(all), mean(exposed));
}

std::string job_text(const Profile& profile, const JobComparison& comparison) {
  std::string text = profile_head(profile, comparison.account);
  text += wrapped(fmt::format("predicted for NCCL {} ({}) on {} GPUs in {}", comparison.nccl, comparison.nccl_from,
                              comparison.gpus, plural(static_cast<std::size_t>(comparison.nodes), "node"))) +
          '\n';
  if (comparison.interference > 1) text += wrapped(stated_interference(comparison)) + '\n';
  if (!comparison.other_machine.empty())
    text += wrapped("not this machine: " + comparison.other_machine) + '\n' +
            wrapped("hint: " + comparison.other_machine_hint) + '\n';
  Table table(
      {"collective", "bytes", "ranks", "calls", "wait ms", "transfer", "predicted", "allowed", "lost ms", "verdict"});
  table.pull_out("ranks", "{} ranks");
  double lost = 0, waiting = 0;
  bool is_known = false, is_whole = true;  // of some calls it is known how long ranks waited; of all
  for (const ComparedCalls& calls : comparison.rows) {
    const Row& row = calls.row;
    const auto time = [](const std::optional<double>& ns) { return ns ? ms_text(*ns) : std::string(); };
    const bool counts = calls.predicted_ns && comparison.other_machine.empty();
    table.add({std::string(to_string(row.op)), size_text(row), ranks_of_text(row), fmt::to_string(row.collectives),
               waiting_text(row), transfer_text(row), time(calls.predicted_ns), time(calls.allowed_ns),
               counts ? ms_text(calls.lost_ns) : "", verdict_text(calls)});
    if (!counts) continue;
    lost += calls.lost_ns;
    waiting += calls.lost_waiting_ns;
    is_known = is_known || row.split > 0;
    is_whole = is_whole && row.split == row.collectives && !row.is_partial;
  }
  if (comparison.rows.empty()) return text;
  text += '\n' + table.fitted() + ranks_text(comparison.account);
  text += other_launches(comparison);
  if (lost > 0)
    text += '\n' +
            wrapped(fmt::format(
                "On average, the collectives of a rank take {} ms longer than predicted, {}.{}", ms_text(lost),
                is_known ? fmt::format("including {}{} ms of waiting", is_whole ? "" : "at least ", ms_text(waiting))
                         : "but the share of waiting is not known",
                exposed_text(comparison.account))) +
            '\n';
  return text;
}

Json compared_json(const Profile& profile, const ComparedCalls& calls) {
  Json out = row_json(profile, calls.row);
  const bool is_predicted = calls.predicted_ns.has_value();
  out["predicted_us"] = is_predicted ? Json(us(*calls.predicted_ns)) : Json();
  out["allowed_us"] = calls.allowed_ns ? Json(us(*calls.allowed_ns)) : Json();
  out["transfer_over_predicted"] =
      is_predicted && calls.row.split > 0 && *calls.predicted_ns > 0 ? Json(calls.transfer_over_predicted()) : Json();
  out["predicted_slowdown"] = is_predicted ? Json(calls.slowed) : Json();
  out["plan_algorithm"] = is_predicted ? Json(calls.algorithm) : Json();
  out["plan_protocol"] = is_predicted ? Json(calls.protocol) : Json();
  out["plan_blocks"] = calls.blocks > 0 ? Json(calls.blocks) : Json();
  out["lost_us"] = is_predicted ? Json(us(calls.lost_ns)) : Json();
  out["lost_waiting_us"] = is_predicted ? Json(us(calls.lost_waiting_ns)) : Json();
  out["verdict"] = verdict_text(calls);
  return out;
}

static Json compared_rows(const Profile& profile, const JobComparison& comparison) {
  Json rows = Json::array();
  for (const ComparedCalls& calls : comparison.rows) rows.push_back(compared_json(profile, calls));
  return rows;
}

std::string job_json(const Profile& profile, const JobComparison& comparison) {
  Json document = profile_about(profile, comparison.account);
  document["library"] = Json{{"nccl", comparison.nccl}, {"from", comparison.nccl_from}};
  document["interference"] = comparison.interference;
  document["not_this_machine"] = comparison.other_machine.empty() ? Json() : Json(comparison.other_machine);
  document["rows"] = compared_rows(profile, comparison);
  return json_text(document, 2) + '\n';
}

std::string job_csv(const Profile& profile, const JobComparison& comparison) {
  return csv_of(compared_rows(profile, comparison));
}

std::string csv_of(const Json& rows) {
  if (rows.empty()) return "";
  std::vector<std::string> head;
  for (const auto& item : rows.front().items()) head.push_back(item.key());
  std::string out = csv_line(head);
  for (const Json& row : rows) {
    std::vector<std::string> fields;
    for (const std::string& column : head) {
      const Json& value = row.at(column);
      fields.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : json_text(value));
    }
    out += csv_line(fields);
  }
  return out;
}

std::string profile_csv(const Profile& profile, const Account& account) {
  Json rows = Json::array();
  for (const Row& row : account.rows) rows.push_back(row_json(profile, row));
  return csv_of(rows);
}

}  // namespace ringsim::tools
