#include "algorithms/training/stragglers.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// The mean over the iterations after the warm-up, of the rank that ends last. `ends`: [rank][iteration].
Picoseconds mean_of_last(const std::vector<std::vector<Picoseconds>>& ends, int every, int warmup) {
  const auto last =
      std::max_element(ends.begin(), ends.end(), [](const auto& a, const auto& b) { return a.back() < b.back(); });
  const Picoseconds before = warmup == 0 ? Picoseconds{0} : (*last)[static_cast<std::size_t>(warmup) - 1];
  return (last->back() - before) / (static_cast<std::int64_t>(last->size()) - warmup) / every;
}

}  // namespace

Picoseconds Stragglers::time(Picoseconds time, Actor rank, std::int64_t step, bool is_first) const {
  for (const Slow& each : slow) {
    if (each.rank != rank || step < each.from || step >= each.until) continue;
    __extension__ using Wide128 = __int128;
    const Wide128 longer = static_cast<Wide128>(time.count()) * each.millionths / 1'000'000;
    if (longer > INT64_MAX) fail_too_long();
    time = Picoseconds{static_cast<std::int64_t>(longer)};
  }
  return is_first && jitter ? add(time, jitter->of(rank, step)) : time;
}

void add_stragglers(Program& program, const Stragglers& stragglers, int every) {
  if (!stragglers.any()) return;
  auto roles = std::make_shared<const std::vector<Program::Role>>(program.roles);
  auto role_of = program.role_of;
  program.time = [stragglers, every, roles, role_of, ranks = program.ranks](Actor actor, Stream stream, int task,
                                                                            int iteration) {
    const auto role = static_cast<std::size_t>(role_of.empty() ? 0 : role_of[static_cast<std::size_t>(actor)]);
    const auto& tasks = (*roles)[role].streams[static_cast<std::size_t>(stream)];
    const Program::Task& it = tasks[static_cast<std::size_t>(task)];
    if (stream != 0 || it.call >= 0 || actor >= ranks) return it.time;
    const int per_step = static_cast<int>(tasks.size()) / every;
    const std::int64_t step = static_cast<std::int64_t>(iteration) * every + task / per_step;
    return stragglers.time(it.time, actor, step, task % per_step == 0);
  };
}

Picoseconds passes_end(const TrainingStep& step, const Stragglers& stragglers, Actor rank, std::int64_t number,
                       Picoseconds begin) {
  bool is_first = true;
  for (const LayerCost& layer : step.layers)
    begin = add(begin, stragglers.time(layer.forward, rank, number, std::exchange(is_first, false)));
  for (std::size_t l = step.layers.size(); l-- > 0;)
    begin = add(begin, stragglers.time(step.layers[l].backward, rank, number, false));
  return begin;
}

Picoseconds barrel_step_time(const TrainingStep& step, const Stragglers& stragglers, int ranks,
                             const std::vector<Picoseconds>& times, int every, int warmup) {
  const auto n = static_cast<std::size_t>(ranks);
  std::vector<Picoseconds> now(n, Picoseconds{0});
  std::vector<std::vector<Picoseconds>> ends(n);
  const bool is_average = step.buckets.empty();  // after the updates, not before them
  for (int iteration = 0; iteration < step.steps; ++iteration) {
    std::vector<Picoseconds> launch(times.size(), Picoseconds{0});  // [bucket] by the last rank
    for (Actor rank = 0; rank < ranks; ++rank) {
      Picoseconds& gpu = now[static_cast<std::size_t>(rank)];
      for (int i = 0; i < every; ++i) {
        const std::int64_t number = static_cast<std::int64_t>(iteration) * every + i;
        bool is_first = true;
        for (const LayerCost& layer : step.layers)
          gpu = add(gpu, stragglers.time(layer.forward, rank, number, std::exchange(is_first, false)));
        std::size_t b = 0;
        for (std::size_t l = step.layers.size(); l-- > 0;) {
          gpu = add(gpu, stragglers.time(step.layers[l].backward, rank, number, false));
          for (; b < step.buckets.size() && step.buckets[b].ready == static_cast<int>(l); ++b) {
            gpu = add(gpu, stragglers.time(step.hook, rank, number, false));
            launch[b] = std::max(launch[b], gpu);
          }
        }
        if (is_average) gpu = add(gpu, stragglers.time(step.update, rank, number, false));
      }
      for (std::size_t b = 0; b < times.size(); ++b)
        if (is_average || !step.overlap) launch[b] = std::max(launch[b], gpu);
    }
    Picoseconds calls{0};
    for (std::size_t b = 0; b < times.size(); ++b) calls = add(std::max(calls, launch[b]), times[b]);
    for (Actor rank = 0; rank < ranks; ++rank) {
      Picoseconds& gpu = now[static_cast<std::size_t>(rank)];
      gpu = std::max(gpu, calls);
      if (!is_average) gpu = add(gpu, stragglers.time(step.update, rank, iteration, false));
      ends[static_cast<std::size_t>(rank)].push_back(gpu);
    }
  }
  return mean_of_last(ends, every, warmup);
}

Picoseconds server_queue_step_time(const TrainingStep& step, const Stragglers& stragglers, int ranks, Actor master,
                                   Picoseconds once, Picoseconds a, int warmup) {
  Picoseconds now{0};
  std::vector<std::vector<Picoseconds>> ends(1);  // all ranks end together
  for (int iteration = 0; iteration < step.steps; ++iteration) {
    const auto launched_by = [&](Actor rank) {
      return add(passes_end(step, stragglers, rank, iteration, now), step.launch);
    };
    const Picoseconds ready = master >= 0 ? launched_by(master) : add(now, step.launch);
    std::vector<Picoseconds> pushes;
    for (Actor rank = 0; rank < ranks; ++rank)
      if (rank != master) pushes.push_back(std::max(ready, launched_by(rank)));
    std::sort(pushes.begin(), pushes.end());
    now = ready;
    for (const Picoseconds push : pushes) now = add(std::max(now, push), once);
    if (!pushes.empty()) now = add(now, a);
    now = add(now, master >= 0 ? stragglers.time(step.update, master, iteration, false) : step.update);
    const auto n = static_cast<std::int64_t>(pushes.size());
    now = add(add(now, step.launch), add(times(n, once), a));
    ends[0].push_back(now);
  }
  return mean_of_last(ends, 1, warmup);
}

}  // namespace ringsim
