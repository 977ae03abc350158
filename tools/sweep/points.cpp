#include "tools/sweep/points.hpp"

#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "sim/base/error.hpp"
#include "tools/memory.hpp"
#include "tools/output/progress_line.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/workers.hpp"

namespace ringsim::tools {

namespace {

struct Outcome {
  std::vector<Result> results;
  std::exception_ptr error;
};

/// Takes points in any order, and hands results on in that of the scenario.
class Queue {
 public:
  Queue(const ScenarioFile& file, bool fold, const std::function<void(Result&&)>& take,
        const std::function<void(const UnservedError&)>& unserved, Bounds* bounds, Recording* recording, bool phases,
        bool explain)
      : file_(file),
        fold_(fold),
        take_(take),
        unserved_(unserved),
        bounds_(bounds),
        recording_(recording),
        phases_(phases),
        explain_(explain),
        progress_(file.size()) {}

  /// Simulates the point. Returns whether the others are wanted.
  bool work(std::size_t point) {
    Outcome outcome;
    double shown = 0;
    const auto progress = [&](double share) {
      progress_.add(share - shown);
      shown = share;
    };
    try {
      outcome.results = results_of(file_.point(point),
                                   {.stop = &stop_requested,
                                    .progress = progress,
                                    .stage = [&](const std::string& text) { progress_.now(text); },
                                    .max_memory = memory_limit(),
                                    .fold = fold_,
                                    .explain = explain_,
                                    .phases = phases_,
                                    .recording = recording_},
                                   bounds_);
    } catch (...) {
      outcome.error = std::current_exception();
    }
    progress(1.0);
    const std::lock_guard lock(mutex_);
    done_.emplace(point, std::move(outcome));
    hand_on();
    return !failed_;
  }

  void finish() const {
    if (failed_) std::rethrow_exception(failed_);
    idle_.say();
  }

 private:
  void hand_on() {  // under the mutex
    for (auto first = done_.begin(); !failed_ && first != done_.end() && first->first == handed_;
         first = done_.erase(first), ++handed_) {
      try {
        if (first->second.error && was_unserved(first->second.error)) continue;
        if (first->second.error) std::rethrow_exception(first->second.error);
        warnings_.say(first->second.results.front().prediction.warnings);
        idle_.add(first->second.results.front().prediction.settings);
        for (Result& result : first->second.results) take_(std::move(result));
      } catch (...) {
        failed_ = std::current_exception();
        return;
      }
    }
  }

  /// True if the error is an UnservedError and a handler took it.
  bool was_unserved(const std::exception_ptr& error) const {
    if (!unserved_) return false;
    try {
      std::rethrow_exception(error);
    } catch (const UnservedError& found) {
      unserved_(found);
      return true;
    } catch (...) {
      return false;
    }
  }

  const ScenarioFile& file_;
  bool fold_;
  const std::function<void(Result&&)>& take_;
  const std::function<void(const UnservedError&)>& unserved_;
  Bounds* bounds_;
  Recording* recording_;
  bool phases_;
  bool explain_;
  ProgressLine progress_;
  Warnings warnings_;
  IdleSettings idle_;
  std::mutex mutex_;
  std::size_t handed_ = 0;
  std::map<std::size_t, Outcome> done_;  // waiting for a point before them
  std::exception_ptr failed_;
};

}  // namespace

void predict_points(const ScenarioFile& file, int jobs, bool fold, const std::function<void(Result&&)>& take,
                    const std::function<void(const UnservedError&)>& unserved, Bounds* bounds, Recording* recording,
                    bool phases, bool explain) {
  {
    PointWarnings warnings;
    ProgressLine reading(file.size());
    reading.now("reading the points");
    for (std::size_t i = 0; i < file.size(); ++i) {
      if (stop_requested) throw Interrupted("stopped while the points were being read");
      try {
        const Scenario scenario = file.point(i);
        warnings.add(scenario.warnings, set_text(scenario.varied));
      } catch (const UnservedError&) {
        if (!unserved) throw;  // else it is reported in its turn
      } catch (...) {
        warnings.say();
        throw;
      }
      reading.add(1.0);
    }
    warnings.say();
  }
  ensure(recording == nullptr || file.size() == 1, "one point is recorded");
  Queue queue(file, fold, take, unserved, bounds, recording, phases, explain);
  for_each_index(file.size(), jobs, [&](std::size_t point) { return queue.work(point); });
  queue.finish();
}

}  // namespace ringsim::tools
