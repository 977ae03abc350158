// Long work that can be stopped, and that says how far it is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

/// Throws Interrupted if `stop` is set: "stopped while " + doing.
inline void throw_if_stopped(const std::atomic<bool>* stop, const std::string& doing) {
  if (stop != nullptr && stop->load(std::memory_order_relaxed)) throw Interrupted("stopped while " + doing);
}

struct Watch {
  const std::atomic<bool>* stop = nullptr;    ///< asked now and then; true ends the work with Interrupted
  std::function<void(double)> progress = {};  ///< told now and then which share of the work is done, 0 to 1
};

/// A piece of work of about `total` parts, each of which takes a few microseconds at most. `doing`: what an
/// interruption says: "stopped while a program was being proved".
class WatchedWork {
 public:
  WatchedWork(Watch watch, std::string doing, double total)
      : watch_(std::move(watch)), doing_(std::move(doing)), total_(total) {}

  /// Counts more parts as done. Throws Interrupted.
  void done(std::int64_t parts = 1) {
    if ((done_ += parts) >= next_) [[unlikely]]
      look();
  }

 private:
  static constexpr std::int64_t parts_between_looks = 1 << 14;

  void look() {
    next_ = done_ + parts_between_looks;
    throw_if_stopped(watch_.stop, doing_);
    if (watch_.progress) watch_.progress(std::min(1.0, static_cast<double>(done_) / total_));
  }

  Watch watch_;
  std::string doing_;
  double total_;
  std::int64_t done_ = 0, next_ = 0;
};

/// Does nothing without a watch.
inline void done(WatchedWork* work, std::int64_t parts = 1) {
  if (work != nullptr) work->done(parts);
}

}  // namespace ringsim
