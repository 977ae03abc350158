#include "tools/sweep/points.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "sim/base/error.hpp"
#include "tools/output/output.hpp"
#include "tools/output/warnings.hpp"
#include "tools/stop.hpp"

namespace ringsim::tools {

namespace {

struct Outcome {
  std::vector<Result> results;
  std::exception_ptr error;
};

/// Hands points out, and results on in order.
class Queue {
 public:
  Queue(const ScenarioFile& file, bool fold, const std::function<void(Result&&)>& take,
        const std::function<void(const UnservedError&)>& unserved)
      : file_(file), fold_(fold), take_(take), unserved_(unserved), progress_(file.size()) {}

  void work() {
    for (;;) {
      std::size_t point = 0;
      {
        const std::lock_guard lock(mutex_);
        if (failed_ || next_ == file_.size()) return;
        point = next_++;
      }
      Outcome outcome;
      try {
        outcome.results = results_of(
            file_.point(point),
            {.stop = &stop_requested, .progress = [&](double share) { progress_.set(point, share); }, .fold = fold_});
      } catch (...) {
        outcome.error = std::current_exception();
      }
      progress_.set(point, 1.0);
      const std::lock_guard lock(mutex_);
      done_.emplace(point, std::move(outcome));
      hand_on();
    }
  }

  void rethrow() const {
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  void hand_on() {  // under the mutex
    for (auto first = done_.begin(); !failed_ && first != done_.end() && first->first == handed_;
         first = done_.erase(first), ++handed_) {
      try {
        if (first->second.error && was_unserved(first->second.error)) continue;
        if (first->second.error) std::rethrow_exception(first->second.error);
        for (Result& result : first->second.results) take_(std::move(result));
      } catch (...) {
        failed_ = std::current_exception();
        return;
      }
    }
  }

  /// Whether it was, and somebody took it.
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
  ProgressLine progress_;
  std::mutex mutex_;
  std::size_t next_ = 0, handed_ = 0;
  std::map<std::size_t, Outcome> done_;  // not handed on yet: something before it is still at work
  std::exception_ptr failed_;
};

}  // namespace

void predict_points(const ScenarioFile& file, int jobs, bool fold, const std::function<void(Result&&)>& take,
                    const std::function<void(const UnservedError&)>& unserved) {
  Warnings warnings;
  for (std::size_t i = 0; i < file.size(); ++i) {
    if (stop_requested) throw Interrupted("stopped while the points were being read");
    try {
      warnings.say(file.point(i).warnings);
    } catch (const UnservedError&) {
      if (!unserved) throw;  // else it is told when it is its turn
    }
  }
  if (jobs == 0) jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  const std::size_t n_threads = std::min(static_cast<std::size_t>(jobs), file.size());
  Queue queue(file, fold, take, unserved);
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t i = 1; i < n_threads; ++i) threads.emplace_back([&] { queue.work(); });
    } catch (const std::system_error&) {
      // The machine gives no more threads: those that run do the work.
    }
    queue.work();
  }
  queue.rethrow();
}

}  // namespace ringsim::tools
