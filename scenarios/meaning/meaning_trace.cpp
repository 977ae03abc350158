#include "scenarios/meaning/meaning_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "algorithms/traces/chakra_reader.hpp"
#include "algorithms/training/regimes.hpp"
#include "scenarios/meaning/meaning_jobs.hpp"
#include "sim/base/error.hpp"
#include "sim/text/foreign_format.hpp"

namespace ringsim::scenarios {

namespace {

using Canonical = nlohmann::json;
using traces::RankTrace;
using traces::TraceJob;

std::string pattern_of(const Canonical& canonical) { return canonical["files"]["path"].get<std::string>(); }

[[noreturn]] void refuse_trace(const std::string& path, const std::optional<ForeignFormat>& format) {
  const std::string found = format ? format->name : "something else";
  throw InputError(path, "expected a Chakra trace, found " + found,
                   format && format->is_profile
                       ? "a profile does not say what waits for what: record PyTorch's ExecutionTraceObserver as well, "
                         "and make a Chakra trace of both with chakra_trace_link and chakra_converter"
                       : "the contents are not shown because the file is named in a scenario; `ringsim trace show` "
                         "shows more");
}

std::shared_ptr<const RankTrace> rank_of(const std::string& path, const traces::GraphOptions& options,
                                         const Files& files) {
  const std::string key = fmt::format("trace {} {} {}", options.drop_missing, options.sync, path);
  return files.once<RankTrace>(key, [&] {
    traces::ChakraReader reader(path);
    bool is_first = true;
    read_pieces(path, "a Chakra trace", [&](std::string_view piece) {
      if (std::exchange(is_first, false) && !is_chakra_trace(piece.substr(0, recognized_bytes)))
        refuse_trace(path, foreign_format(piece.substr(0, recognized_bytes)));
      reader.feed(piece);
    });
    return rank_trace(reader.finish(), options);
  });
}

traces::NamedGroups groups_of(const Canonical& canonical, std::size_t n_ranks, const Blame& blame) {
  traces::NamedGroups out;
  if (!canonical.contains("groups")) return out;
  for (std::size_t i = 0; i < canonical["groups"].size(); ++i) {
    const Canonical& group = canonical["groups"][i];
    const std::string pointer = fmt::format("/trace/groups/{}", i);
    const auto [its, is_new] = out.try_emplace(group["name"].get<std::string>());
    if (!is_new) blame.fail(pointer + "/name", fmt::format("expected each name once, found \"{}\" again", its->first));
    std::set<Actor> seen;
    for (const Canonical& members : group["members"]) {
      its->second.push_back(members.get<std::vector<Actor>>());
      for (const Actor member : its->second.back()) {
        if (static_cast<std::size_t>(member) >= n_ranks)
          blame.fail(pointer + "/members", fmt::format("expected ranks from 0 to {}, found {}", n_ranks - 1, member));
        if (!seen.insert(member).second)
          blame.fail(pointer + "/members",
                     fmt::format("expected each rank in only one group of a name, found {} twice", member));
      }
    }
  }
  return out;
}

/// A name that no call has is a mistake.
void expect_used(const traces::NamedGroups& stated, const std::vector<std::shared_ptr<const RankTrace>>& ranks,
                 const Blame& blame) {
  std::set<std::string> called;
  for (const auto& rank : ranks)
    for (const traces::TracedStream& stream : rank->streams)
      if (stream.kind == traces::TracedStream::Kind::calls && stream.from < 0 && stream.to < 0)
        called.insert(stream.group);
  for (const auto& each : stated) {
    if (called.contains(each.first)) continue;
    std::string all;
    for (const std::string& name : called) all += fmt::format("{}\"{}\"", all.empty() ? "" : ", ", name);
    blame.fail("/trace/groups",
               fmt::format("expected the name of a group that the traces use, found \"{}\"", each.first),
               called.empty() ? "they use none" : "they use " + all);
  }
}

/// Warns of what the counts of all files say, and of what the first one lacks.
void warn_of(const std::vector<std::shared_ptr<const RankTrace>>& ranks, const TraceJob& job,
             const Canonical& canonical, const Blame& blame, std::vector<std::string>& warnings) {
  const auto warn = [&](const char* key, const std::string& what) {
    warnings.push_back(fmt::format("{}: {}", blame.where(fmt::format("/trace/{}", key)), what));
  };
  if (ranks.size() == 1 && job.n_ranks() > 1)
    warn("files", fmt::format("one rank's trace represents all {}", job.n_ranks()));
  for (const std::string& each : job.warnings()) warn("files", each);
  std::size_t collectives = 0, unwaited = 0, missing = 0, dropped = 0, counted = 0, cpu = 0, no_times = 0, memory = 0;
  for (const auto& rank : ranks) {
    const traces::TraceCounts& counts = rank->counts;
    collectives += counts.collectives;
    unwaited += counts.unwaited;
    missing += counts.missing_all;
    dropped += counts.dropped_control;
    counted += counts.counted_compute;
    cpu += counts.cpu_nodes;
    memory += counts.memory_nodes;
    no_times += counts.has_times ? 0U : 1U;
  }
  if (job.n_ranks() == 1 && collectives > 0)
    warn(
        "files",
        fmt::format("only one rank is replayed, so its {} collectives are not simulated: their recorded times count as "
                    "compute; add the traces of the other ranks, or write the name of one file without {{rank}}, "
                    "which then represents all ranks",
                    collectives));
  if (unwaited > 0)
    warn("files",
         fmt::format(
             "in the trace, no task waits for {} of {} collectives, so these delay only later tasks of the same stream",
             unwaited, collectives));
  if (missing > 0) warn("files", fmt::format("{} dependencies on missing nodes were dropped", missing));
  if (dropped > 0) warn("files", fmt::format("{} control dependencies in cycles were dropped", dropped));
  if (counted > 0)
    warn("files", fmt::format("{} nodes have operation counts but no durations, so they take no time", counted));
  if (memory > 0) warn("files", fmt::format("{} memory or storage nodes take their recorded time", memory));
  if (no_times > 0 && cpu > 0) warn("files", "nodes have no start times, so the replay has no gaps between CPU nodes");
  const RankTrace& first = *ranks.front();
  if (!no_times && first.counts.recorded_us > 0 && first.counts.covered_us * 10 < first.counts.recorded_us * 9)
    warn("files",
         fmt::format(
             "the nodes of {} cover {:.1f} % of its recorded {:.3f} ms; the replay has no gaps", first.file,
             100.0 * static_cast<double>(first.counts.covered_us) / static_cast<double>(first.counts.recorded_us),
             static_cast<double>(first.counts.recorded_us) / 1e3));
  if (!canonical.contains("sync")) return;
  for (const auto& rank : ranks)
    if (rank->synced_at.empty())
      blame.fail("/trace/sync",
                 fmt::format("expected a part of a kernel name, found \"{}\", which matches no kernel of {}",
                             canonical["sync"].get<std::string>(), rank->file),
                 "to see the names, run `ringsim run --trace step.pftrace` without this key");
  warn("sync",
       fmt::format("{} waits for all earlier collectives, although the trace has no such dependency", first.synced_at));
}

/// The algorithm of all groups; ring unless stated.
Canonical algorithm_in(const Canonical& canonical) {
  return canonical.contains("algorithm") ? canonical["algorithm"] : Canonical{{"name", "ring"}};
}

/// Operations that the algorithm does not do, and direct does.
void warn_of_direct(const Canonical& canonical, const TraceJob& job, const Blame& blame,
                    std::vector<std::string>& warnings) {
  const Algorithm& algorithm = algorithm_of_groups(algorithm_in(canonical), "/trace/algorithm", blame);
  if (!algorithm.supports(CollectiveOp::all_reduce))
    blame.fail("/trace/algorithm", fmt::format("expected an algorithm for all_reduce, found {}", algorithm.name),
               "`ringsim list algorithms` lists the algorithms for it");
  std::set<std::string_view> others;
  for (const PlanExchange& exchange : job.exchanges())
    if (exchange.op != CollectiveOp::send_recv && !algorithm.supports(exchange.op))
      others.insert(to_string(exchange.op));
  for (const std::string_view op : others)
    warnings.push_back(fmt::format("{}: {} does not support {}, so direct is used", blame.where("/trace/algorithm"),
                                   algorithm.name, op));
}

}  // namespace

void name_traced_ranks(Canonical& canonical, const std::vector<std::string>& gpus, const Blame& blame,
                       const Files& files) {
  const std::size_t n_files = files.numbered(pattern_of(canonical)).paths.size();
  const bool is_one = pattern_of(canonical).find("{rank}") == std::string::npos;
  if (canonical.contains("ranks")) {
    if (!is_one && canonical["ranks"].size() != n_files)
      blame.fail("/trace/ranks",
                 fmt::format("expected as many GPUs as traces, {}, found {}", n_files, canonical["ranks"].size()));
    return;
  }
  const std::size_t n = is_one ? gpus.size() : n_files;
  if (gpus.size() < n)
    blame.fail("/trace/files",
               fmt::format("expected at most as many traces as GPUs in the topology, {}, found {}", gpus.size(), n),
               "use a topology with that many GPUs");
  canonical["ranks"] = std::vector<std::string>(gpus.begin(), gpus.begin() + static_cast<std::ptrdiff_t>(n));
}

TrainingSpec trace_of(const Canonical& canonical, double speed, const Blame& blame, const Files& files,
                      std::vector<std::string>& warnings) {
  const std::string pattern = pattern_of(canonical);
  traces::GraphOptions options;
  options.drop_missing = canonical.value("missing", "refuse") == "drop";
  options.sync = canonical.value("sync", "");
  std::vector<std::shared_ptr<const RankTrace>> ranks;
  std::size_t tasks = 0;
  const std::size_t n_ranks = canonical["ranks"].size();
  TrainingSpec out;
  out.regime = &trace_regime();
  out.workload = std::filesystem::path(pattern).filename().string();
  out.compute = "recorded";
  try {
    for (const std::string& path : files.numbered(pattern).paths) {
      ranks.push_back(rank_of(path, options, files));
      tasks += ranks.back()->n_tasks();
      if (tasks > traces::most_tasks)
        throw InputError(path, fmt::format("expected at most {} tasks over all ranks, found more", traces::most_tasks),
                         "use traces of fewer steps or fewer ranks");
    }
    const traces::NamedGroups groups = groups_of(canonical, n_ranks, blame);
    expect_used(groups, ranks, blame);
    out.trace = std::make_shared<const TraceJob>(out.workload, ranks, static_cast<int>(n_ranks), groups, 1 / speed);
  } catch (const InputError& error) {
    if (error.where().starts_with(blame.where("/trace"))) throw;
    blame.fail(error.where().starts_with("/groups") ? "/trace/groups" : "/trace/files",
               error.where().starts_with("/groups") || error.where().empty()
                   ? error.message()
                   : fmt::format("{}: {}", error.where(), error.message()),
               error.hint());
  }
  warn_of(ranks, *out.trace, canonical, blame, warnings);
  warn_of_direct(canonical, *out.trace, blame, warnings);
  out.step.name = out.workload;
  out.step.steps = 1;
  return out;
}

Canonical largest_call_of(const Canonical& canonical, const TrainingSpec& spec) {
  PlanExchange largest{PlanUse::traced, 0, CollectiveOp::all_reduce, Bytes{1}};
  for (const PlanExchange& exchange : spec.trace->exchanges())
    if (exchange.op != CollectiveOp::send_recv && exchange.bytes >= largest.bytes) largest = exchange;
  Canonical algorithm = algorithm_in(canonical);
  const Algorithm* found = find_algorithm(algorithm["name"].get<std::string>());
  if (found != nullptr && !found->supports(largest.op)) largest.op = CollectiveOp::all_reduce;
  Canonical collective{
      {"op", to_string(largest.op)}, {"bytes", largest.bytes.count}, {"root", 0}, {"order", "given"}, {"seed", 0},
      {"both_ways", false}};
  collective["algorithm"] = std::move(algorithm);
  collective["ranks"] = canonical["ranks"];
  return collective;
}

}  // namespace ringsim::scenarios
