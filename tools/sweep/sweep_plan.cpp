#include "tools/sweep/sweep_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <string_view>
#include <utility>

#include "scenarios/predict/expected_work.hpp"
#include "sim/base/error.hpp"
#include "tools/output/output.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/workers.hpp"
#include "validate/results/result.hpp"

namespace ringsim::tools {

namespace {

std::optional<std::size_t> whole(std::string_view text) {
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

std::optional<std::size_t> variable(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr) return std::nullopt;
  const std::optional<std::size_t> number = whole(text);
  if (!number)
    throw InputError(name, fmt::format("expected a whole number, found \"{}\"", text), "set --shard instead");
  return number;
}

/// A point that cannot be decoded fails at once.
std::int64_t work_of(const ScenarioFile& file, std::size_t i) {
  try {
    return expected_work(file.point(i));
  } catch (const InputError&) {
    return 1;
  }
}

/// In order. `work`: [point of the file]
std::vector<std::size_t> points_of_shard(std::vector<std::size_t> points, const std::vector<std::int64_t>& work,
                                         Shard shard) {
  std::stable_sort(points.begin(), points.end(), [&](std::size_t a, std::size_t b) { return work[a] > work[b]; });
  using Load = std::pair<std::int64_t, std::size_t>;  // its work, and which shard
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  for (std::size_t i = 0; i < shard.n; ++i) least.emplace(0, i);
  std::vector<std::size_t> own;
  for (const std::size_t point : points) {
    const auto [load, which] = least.top();
    least.pop();
    if (which == shard.i - 1) own.push_back(point);
    least.emplace(load + work[point], which);
  }
  std::sort(own.begin(), own.end());
  return own;
}

}  // namespace

Shard parse_shard(const std::string& text) {
  const std::size_t slash = text.find('/');
  if (slash != std::string::npos) {
    const auto i = whole(std::string_view(text).substr(0, slash)), n = whole(std::string_view(text).substr(slash + 1));
    if (i && n && *i >= 1 && *i <= *n) return {*i, *n};
  }
  throw InputError("--shard", fmt::format("expected I/N with I from 1 to N, such as 2/4, found \"{}\"", text));
}

Shard shard_of_slurm() {
  const auto id = variable("SLURM_ARRAY_TASK_ID"), n = variable("SLURM_ARRAY_TASK_COUNT"),
             first = variable("SLURM_ARRAY_TASK_MIN");
  if (!id || !n || !first) return {};
  const std::size_t step = variable("SLURM_ARRAY_TASK_STEP").value_or(1);
  const bool even = *n >= 1 && step >= 1 && *id >= *first && (*id - *first) % step == 0 && (*id - *first) / step < *n;
  if (!even)
    throw InputError(
        "SLURM_ARRAY_TASK_ID",
        fmt::format("expected one of {} numbers that start at {} and increase by {}, found {}", *n, *first, step, *id),
        "set --shard instead");
  const Shard shard{(*id - *first) / step + 1, *n};
  say(fmt::format("shard {}/{}, from the Slurm job array\n", shard.i, shard.n));
  return shard;
}

SweepPlan sweep_plan_of(const ScenarioFile& file, Shard shard, int jobs, bool bounded, bool with_work) {
  SweepPlan plan;
  with_work = with_work || shard.n > 1;
  plan.work.resize(with_work ? file.size() : 0);
  std::vector<std::string> keys(file.size());
  std::mutex mutex;
  ProgressLine progress(file.size());
  progress.now("reading the points");
  for_each_index(file.size(), jobs, [&](std::size_t i) {
    stop_if_asked();
    progress.add(1.0);
    const PointId id = file.id(i);
    keys[i] = result_key(file.name(), id, bounded);
    if (with_work) plan.work[i] = work_of(file, i);
    const std::lock_guard lock(mutex);
    for (const auto& [path, value] : id.varied) plan.varied.insert(path);
    return true;
  });
  plan.by_key.reserve(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (!plan.by_key.emplace(std::move(keys[i]), i).second) {
      ++plan.n_repeated;
      if (with_work) plan.work[i] = 0;
    } else {
      plan.points.push_back(i);
    }
  }
  if (shard.n > 1) plan.points = points_of_shard(plan.points, plan.work, shard);
  return plan;
}

bool DoneRows::take(const ResultRow& row, const std::string& where) {
  const auto found = plan_.by_key.find(row.key);
  if (found != plan_.by_key.end()) {
    done_[found->second].insert(row.job());
    if (row.failed()) failed_.insert(found->second);
    return true;
  }
  if (row.failed()) return false;
  throw InputError(
      where,
      fmt::format("expected a result of this scenario with this version of ringsim and its model, found another: {}",
                  row.label()),
      "the scenario or ringsim has changed, or only one of the sweeps uses --bound; write to another file");
}

std::vector<std::size_t> DoneRows::to_do() const {
  std::vector<std::size_t> points;
  for (const std::size_t point : plan_.points) {
    const auto found = done_.find(point);
    // A row without a job's name is alone; others are as many as the point has results.
    const bool done =
        found != done_.end() && (found->second.contains("") || found->second.size() >= n_results(file_.point(point)));
    if (!done) points.push_back(point);
  }
  return points;
}

}  // namespace ringsim::tools
