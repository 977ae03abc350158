// Threads that all callers share.
#pragma once

#include <algorithm>
#include <atomic>

namespace ringsim {

/// How many threads there may be, of all users together.
class SharedThreads {
 public:
  explicit SharedThreads(int n) : free_(n) {}

  /// Some of the free threads, as long as it lives.
  class Some {
   public:
    Some(SharedThreads& from, int wanted) : from_(from), n_(from.take(wanted)) {}
    ~Some() { from_.free_ += n_; }
    Some(const Some&) = delete;
    Some& operator=(const Some&) = delete;
    /// As many as wanted, or as were free; perhaps none.
    int count() const { return n_; }

   private:
    SharedThreads& from_;
    int n_;
  };

 private:
  int take(int wanted) {
    int free = free_.load();
    int taken = 0;
    do taken = std::clamp(wanted, 0, free);
    while (!free_.compare_exchange_weak(free, free - taken));
    return taken;
  }

  std::atomic<int> free_;
};

}  // namespace ringsim
