#include "validate/analysis/plan_search.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "scenarios/predict/plan_training.hpp"
#include "sim/base/error.hpp"
#include "sim/run/run.hpp"
#include "validate/analysis/plan_bound.hpp"

namespace ringsim {

namespace {

/// Plans that are simulated before the next are chosen, whatever the number of threads. More would be wasted: each
/// result tightens the limit.
constexpr std::size_t plans_at_a_time = 2;

/// Times of collectives by themselves, each simulated once.
class AloneTimes {
 public:
  AloneTimes(const OpenPlans& plans, PredictOptions options) : plans_(plans), options_(std::move(options)) {
    options_.most_messages.reset();
  }

  Picoseconds of(const PlanSpec& program, PlanUse use, CollectiveOp op, Bytes bytes) {
    Program::Groups groups = plan_groups(program, use, 0);
    if (use == PlanUse::tensor || use == PlanUse::forward) groups.resize(1);
    if (groups.front().size() == 1) return Picoseconds{0};
    if (bytes <= 2 * large) return simulated(op, bytes, groups);
    const Picoseconds first = simulated(op, large, groups),
                      second = std::max(first, simulated(op, 2 * large, groups)) - first;
    const auto more = static_cast<double>((bytes - large).count) / static_cast<double>(large.count);
    return first + Picoseconds{static_cast<std::int64_t>(more * static_cast<double>(second.count()))};
  }
  std::size_t size() const { return known_.size(); }

 private:
  using Key = std::tuple<CollectiveOp, Bytes, Program::Groups>;

  Picoseconds simulated(CollectiveOp op, Bytes bytes, const Program::Groups& groups) {
    const Key key{op, bytes, groups};
    {
      const std::lock_guard lock(mutex_);
      if (const auto found = known_.find(key); found != known_.end()) return found->second;
    }
    const Picoseconds time = predict(plans_.collective(op, bytes, groups), options_).time;
    const std::lock_guard lock(mutex_);  // two threads may have found the same
    return known_.emplace(key, time).first->second;
  }

  /// Above twice that, times are extrapolated from it and from twice it: a library cuts large messages into chunks of
  /// one size, and to simulate all of them would take longer than the plan.
  static constexpr Bytes large{std::int64_t{1} << 31};

  const OpenPlans& plans_;
  PredictOptions options_;
  std::mutex mutex_;
  std::map<Key, Picoseconds> known_;
};

/// What the GPU that needs most needs.
Bytes most_memory(const PlanTraining& plan) {
  Bytes most;
  for (const PlanMemory& stage : plan.memory) most = std::max(most, stage.total());
  return most;
}

/// A plan on its way to be simulated.
struct BoundedPlan {
  RankedPlan plan;
  bool has_data = false;    ///< the bound counts data groups
  bool is_refused = false;  ///< it cannot be
};

/// The mistake that makes the work impossible; nothing if it is done.
template <class Work>
std::optional<InputError> refusal_of(const Work& work) {
  try {
    work();
    return std::nullopt;
  } catch (const InputError& error) {
    return error;
  }
}

class BestFirst {
 public:
  BestFirst(const OpenPlans& plans, const PlanSearchOptions& options)
      : plans_(plans), options_(options), alone_(plans, options.run) {}

  PlanSearch run() {
    out_.plans = plans_.size();
    filter();
    try {
      if (options_.simulate) simulate_best_first();
      if (out_.ranked.size() < options_.top) complete_bounds(options_.top - out_.ranked.size(), Picoseconds::max());
    } catch (const Interrupted& stopped) {
      out_.interrupted = stopped.what();
      std::stable_sort(left_.begin(), left_.end(), has_less);
    }
    finish();
    return std::move(out_);
  }

 private:
  void check_stop() const {
    if (options_.run.stop != nullptr && *options_.run.stop) throw Interrupted("the search for plans was stopped");
  }

  Picoseconds bound_of(const Scenario& scenario, bool data) {
    const PlanTraining& plan = *scenario.training->plan;
    return plan_bound(
        plan, [&](PlanUse use, CollectiveOp op, Bytes bytes) { return alone_.of(plan.program, use, op, bytes); }, data);
  }

  /// Works on each of `n` with a count of those done.
  void each(const std::string& stage, std::size_t n, const std::function<void(std::size_t)>& work) {
    std::size_t done = 0;
    if (options_.progress) options_.progress(stage, 0);
    options_.for_each(n, [&](std::size_t i) {
      check_stop();
      work(i);
      const std::lock_guard lock(mutex_);
      ++done;
      if (options_.progress) options_.progress(stage, static_cast<double>(done) / static_cast<double>(n));
      return true;
    });
  }

  void filter() {
    std::vector<std::optional<BoundedPlan>> found(out_.plans);
    std::vector<std::optional<InputError>> refused(out_.plans);
    std::vector<LackOfMemory> lacks(out_.plans);
    each("plans that fit", out_.plans, [&](std::size_t i) {
      refused[i] = refusal_of([&] {
        const Scenario scenario = plans_.plain(i);
        const PlanTraining& plan = *scenario.training->plan;
        if (!plan.ignores_memory)
          lacks[i] = lack_of_memory(*scenario.training, plans_.ranks(), plans_.setup().topology);
        if (lacks[i].rank >= 0) return;
        const PlanGrid& grid = plan.program.grid;
        found[i] = BoundedPlan{.plan = {.plan = i,
                                        .data = grid.data() / grid.context(),
                                        .memory = most_memory(plan),
                                        .bound = bound_of(scenario, false),
                                        .result = std::nullopt}};
      });
    });
    for (std::size_t i = 0; i < out_.plans; ++i) {
      if (refused[i]) note_refusal(*refused[i]);
      if (lacks[i].rank >= 0 && (out_.too_large++ == 0 || lacks[i].needs < out_.least)) {
        out_.least = lacks[i].needs;
        out_.room = lacks[i].has;
      }
      if (found[i]) left_.push_back(*found[i]);
    }
  }

  void note_refusal(const InputError& error) {
    if (!first_refusal_) first_refusal_.emplace(error);
    auto found = std::find_if(out_.refused.begin(), out_.refused.end(),
                              [&](const auto& one) { return one.first == error.message(); });
    if (found == out_.refused.end()) found = out_.refused.insert(out_.refused.end(), {error.message(), 0});
    ++found->second;
  }

  /// Plans with a larger bound are not simulated.
  Picoseconds limit() const {
    std::vector<Picoseconds> times;
    for (const RankedPlan& one : out_.ranked)
      if (one.result) times.push_back(one.least());
    if (times.empty()) return Picoseconds::max();
    std::sort(times.begin(), times.end());
    constexpr double most = 9e18;  // picoseconds that 64 bits hold
    const double within = std::min(most, static_cast<double>(times.front().count()) * (1 + options_.within));
    const Picoseconds latest{static_cast<std::int64_t>(within)};
    return times.size() < options_.top ? latest : std::min(latest, times[options_.top - 1]);
  }

  static bool has_less(const BoundedPlan& a, const BoundedPlan& b) { return a.plan.bound < b.plan.bound; }

  /// Until the first `n` plans of those left have whole bounds, or bounds beyond `limit`.
  void complete_bounds(std::size_t n, Picoseconds limit) {
    for (;;) {
      std::stable_sort(left_.begin(), left_.end(), has_less);
      std::vector<BoundedPlan*> open;
      for (std::size_t i = 0; i < std::min(n, left_.size()); ++i)
        if (!left_[i].has_data && left_[i].plan.bound <= limit) open.push_back(&left_[i]);
      if (open.empty()) return;
      std::vector<std::optional<InputError>> refused(open.size());
      each("bounds of plans", open.size(), [&](std::size_t i) {
        refused[i] = refusal_of([&] { open[i]->plan.bound = bound_of(plans_.plain(open[i]->plan.plan), true); });
        open[i]->has_data = true;
        open[i]->is_refused = refused[i].has_value();
      });
      for (const std::optional<InputError>& one : refused)
        if (one) note_refusal(*one);
      std::erase_if(left_, [](const BoundedPlan& one) { return one.is_refused; });
    }
  }

  void simulate_best_first() {
    for (;;) {
      complete_bounds(plans_at_a_time, limit());
      std::vector<RankedPlan> batch;
      while (batch.size() < plans_at_a_time && !left_.empty() && left_.front().plan.bound <= limit()) {
        batch.push_back(std::move(left_.front().plan));
        left_.erase(left_.begin());
      }
      if (batch.empty()) return;
      std::vector<std::optional<InputError>> refused(batch.size());
      try {
        each("simulations", batch.size(), [&](std::size_t i) {
          try {
            refused[i] =
                refusal_of([&] { batch[i].result = whole_of(results_of(plans_.whole(batch[i].plan), options_.run)); });
          } catch (const TooManyMessages& too_many) {
            batch[i].messages = too_many.messages;
          }
        });
      } catch (const Interrupted&) {
        for (RankedPlan& plan : batch)
          if (plan.result)
            out_.ranked.push_back(std::move(plan));
          else
            left_.push_back({.plan = std::move(plan)});
        throw;
      }
      for (std::size_t i = 0; i < batch.size(); ++i) {
        if (refused[i]) note_refusal(*refused[i]);
        out_.too_long += batch[i].messages > 0 ? std::size_t{1} : 0;
        if (!refused[i]) out_.ranked.push_back(std::move(batch[i]));
      }
    }
  }

  void finish() {
    if (out_.ranked.empty() && left_.empty() && out_.too_large == 0) {
      ensure(first_refusal_.has_value(), "a search has plans");
      throw InputError(*first_refusal_);
    }
    out_.collectives = alone_.size();
    out_.simulated = out_.ranked.size() - out_.too_long;
    out_.not_simulated = left_.size();
    if (!left_.empty()) out_.others = left_.front().plan.bound;
    std::stable_sort(out_.ranked.begin(), out_.ranked.end(), [](const RankedPlan& a, const RankedPlan& b) {
      return std::pair{a.least(), a.plan} < std::pair{b.least(), b.plan};
    });
    for (std::size_t i = 0; i < left_.size() && out_.ranked.size() < options_.top; ++i)
      out_.ranked.push_back(std::move(left_[i].plan));
    std::stable_sort(out_.refused.begin(), out_.refused.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
  }

  const OpenPlans& plans_;
  const PlanSearchOptions& options_;
  AloneTimes alone_;
  std::mutex mutex_;
  std::vector<BoundedPlan> left_;
  std::optional<InputError> first_refusal_;
  PlanSearch out_;
};

}  // namespace

PlanSearch search_plans(const OpenPlans& plans, const PlanSearchOptions& options) {
  return BestFirst(plans, options).run();
}

}  // namespace ringsim
