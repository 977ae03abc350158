#include "tools/reports/explained_rows.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "tools/exit.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/workers.hpp"
#include "validate/closed_forms/bound.hpp"
#include "validate/results/columns.hpp"
#include "validate/score/baselines.hpp"
#include "validate/score/compare.hpp"

namespace ringsim::tools {

namespace {

/// Paths and values, without the size.
std::vector<std::string> what_varies(const Prediction& prediction) {
  std::vector<std::string> out;
  for (const auto& [path, value] : prediction.varied)
    if (path != "collective.bytes") out.push_back(fmt::format("{} varies", path));
  return out;
}

}  // namespace

std::vector<ComparedRow> explained_rows(const ScenarioFile& file, const MeasuredTable& table, int jobs) {
  std::vector<ComparedRow> rows(file.size());
  Warnings warnings;
  for (std::size_t i = 0; i < file.size(); ++i) {
    rows[i].scenario = file.point(i);
    warnings.say(rows[i].scenario.warnings);
  }
  Bounds bounds;
  ProgressLine progress(rows.size());
  for_each_index(rows.size(), jobs, [&](std::size_t i) {
    stop_if_asked();
    ComparedRow& row = rows[i];
    row.result = std::move(results_of(row.scenario, {.stop = &stop_requested, .explain = true}, &bounds).front());
    row.algorithm = algorithm_text(row.result.prediction);
    row.protocol = protocol_text(row.result.prediction);
    progress.add(1.0);
    return true;
  });
  IdleSettings idle;
  Beside matcher(table);
  for (ComparedRow& row : rows) {
    matcher.add(row.result);
    idle.add(row.result.prediction.settings);
  }
  idle.say();
  std::stable_sort(rows.begin(), rows.end(),
                   [](const ComparedRow& a, const ComparedRow& b) { return a.bytes() < b.bytes(); });
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (rows[i].bytes() == rows[i - 1].bytes())
      throw UsageError("--explain",
                       fmt::format("expected one prediction for each size, found several for {}: {}",
                                   format(rows[i].bytes()), fmt::join(what_varies(rows[i].result.prediction), ", ")),
                       "choose one with --set, or let the library choose: --set library=nccl, with null for the keys "
                       "that it replaces, such as collective.algorithm");
  return rows;
}

std::vector<MismatchRange> explained_ranges(const std::vector<ComparedRow>& rows, const std::string& release,
                                            const ScenarioText& input, const std::vector<std::string>& set, int jobs) {
  struct Work {
    std::size_t range;
    Trial trial;
  };
  std::vector<MismatchRange> ranges = mismatches_of(rows, release);
  const auto rows_of = [&](const MismatchRange& range) {
    return std::span<const ComparedRow>(rows).subspan(range.first, range.size());
  };
  std::vector<Work> work;
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    const auto own = rows_of(ranges[r]);
    Picoseconds launch_off{0};
    if (own.back().scenario.library) {
      std::vector<std::string> off = set;
      off.push_back(fmt::format("collective.bytes={} B", own.back().bytes().count));
      off.emplace_back("devices.gpu.launch=0 us");
      launch_off = launch_of(ScenarioFile::parse(input.text, input.name, off).point(0));
    }
    std::vector<Alternative> all = alternatives_of(own, launch_off, release, ranges[r].shared_us);
    for (Alternative& each : other_releases(own, release, input.text, input.name, set)) all.push_back(std::move(each));
    for (Alternative& each : all)
      work.push_back({.range = r, .trial = {.what = std::move(each), .rows = {}, .refused = {}, .error = {}}});
  }
  ProgressLine progress(work.size());
  progress.now("running again with changes");
  for_each_index(work.size(), jobs, [&](std::size_t i) {
    stop_if_asked();
    run_trial(work[i].trial, input.text, input.name, set, rows, ranges[work[i].range], {.stop = &stop_requested});
    progress.add(1.0);
    return true;
  });
  for (std::size_t r = 0; r < ranges.size(); ++r) {
    std::vector<Trial> own;
    for (Work& each : work)
      if (each.range == r) own.push_back(std::move(each.trial));
    rank_trials(ranges[r], std::move(own));
  }
  compare_ranges(ranges, rows);
  return ranges;
}

std::vector<std::string> unlike_table(const MeasuredTable& table, const std::vector<ComparedRow>& rows) {
  std::vector<std::string> out;
  const std::optional<SaidLibrary> said = said_library(table.about);
  if (!said || !rows.front().scenario.library) return out;
  const auto compare = [&](const char* what, const char* variable, std::string_view forced, auto member) {
    for (const ComparedRow& row : rows) {
      if (row.*member == forced) continue;
      out.push_back(fmt::format(
          "{}: the file states {} {}, but the scenario leads to {} at {}; to force it, add --set library.env.{}={}",
          table.file, what, forced, row.*member, format(row.bytes()), variable, forced));
      return;
    }
  };
  if (said->algorithm) compare("algorithm", "NCCL_ALGO", to_string(*said->algorithm), &ComparedRow::algorithm);
  if (said->protocol) compare("protocol", "NCCL_PROTO", to_string(*said->protocol), &ComparedRow::protocol);
  return out;
}

std::string release_of(const std::map<std::string, std::string>& about) {
  const std::optional<SaidLibrary> said = said_library(about);
  if (!said || said->is_rccl || said->version.empty()) return "";
  try {
    nccl::release_of_version(said->version);
    return said->version;
  } catch (const InputError&) {
    return "";
  }
}

}  // namespace ringsim::tools
