#include "tools/sweep/workers.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace ringsim::tools {

void for_each_index(std::size_t n, int jobs, const std::function<bool(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::mutex mutex;
  std::exception_ptr failed;
  const auto run = [&] {
    try {
      for (std::size_t i = next++; i < n; i = next++)
        if (!work(i)) next = n;
    } catch (...) {
      next = n;
      const std::lock_guard lock(mutex);
      if (!failed) failed = std::current_exception();
    }
  };
  if (jobs == 0) jobs = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  {
    std::vector<std::jthread> threads;
    try {
      for (std::size_t t = 1; t < std::min(static_cast<std::size_t>(jobs), n); ++t) threads.emplace_back(run);
    } catch (const std::system_error&) {
      // The machine gives no more threads: those that run do the work.
    }
    run();
  }
  if (failed) std::rethrow_exception(failed);
}

}  // namespace ringsim::tools
