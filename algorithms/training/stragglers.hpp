// Ranks that compute slower than others: for good, for a while, or by chance.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "algorithms/training/ddp.hpp"
#include "sim/program/draws.hpp"

namespace ringsim {

/// What makes ranks compute unequally. Steps count from 0, the warm-up included.
struct Stragglers {
  /// All that a rank computes in steps [from, until) takes `millionths` / 10^6 of the time, rounded down task by task.
  struct Slow {
    Actor rank = 0;
    std::int64_t millionths = 1'000'000;
    std::int64_t from = 0, until = INT64_MAX;
  };
  std::vector<Slow> slow;
  /// Added to the first task of every step of every rank: draw `step` of the rank.
  std::optional<Draws> jitter;

  bool any() const { return !slow.empty() || jitter.has_value(); }
  /// How long a task of a rank takes; `is_first` of the step.
  Picoseconds time(Picoseconds time, Actor rank, std::int64_t step, bool is_first) const;
};

/// Lets the ranks of a program compute as `stragglers` say. `every`: steps in one iteration, of equally many tasks.
void add_stragglers(Program& program, const Stragglers& stragglers, int every);

/// When rank r is done with both passes of a step that it begins at `begin`, without a host.
Picoseconds passes_end(const TrainingStep& step, const Stragglers& stragglers, Actor rank, std::int64_t number,
                       Picoseconds begin);

/// The mean of the steps after `warmup` iterations, of the rank that ends last (of several, the first), if an
/// all-reduce ends at all ranks at one instant, its time after the last of them has launched it: the barrel effect.
/// Each iteration has `every` steps and then, if there are buckets, their all-reduces; without overlap step_i = max_r
/// C(r,i) + T. `times`: [bucket], with its launch; of local SGD the average. No host's launches.
Picoseconds barrel_step_time(const TrainingStep& step, const Stragglers& stragglers, int ranks,
                             const std::vector<Picoseconds>& times, int every, int warmup);

/// The mean step time with one parameter server: `master`, a rank, or -1: a separate one. Workers that end early have
/// pushed before the others: the server's port takes one after the other, `once` each, and none before the server is
/// ready. With a the latency of a path: the update begins at the end of that queue plus a; then all n workers pull in n
/// once + a.
Picoseconds server_queue_step_time(const TrainingStep& step, const Stragglers& stragglers, int ranks, Actor master,
                                   Picoseconds once, Picoseconds a, int warmup);

}  // namespace ringsim
