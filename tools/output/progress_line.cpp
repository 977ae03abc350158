#include "tools/output/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "sim/text/progress_text.hpp"
#include "tools/output/output.hpp"

namespace ringsim::tools {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// What the process occupies, from 1 GB on: ", 3.2 GB of memory".
std::string memory_text() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  if (!(file >> pages >> resident)) return "";
  const double gigabytes = resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e9;
  return gigabytes < 1 ? "" : fmt::format(", {:.1f} GB of memory", gigabytes);
}

}  // namespace

struct ProgressLine::State {
  const double parts;
  const bool on_terminal = isatty(STDERR_FILENO) != 0;
  const Clock::time_point started = Clock::now();
  std::mutex mutex;
  std::condition_variable_any woken;
  Clock::duration next = on_terminal ? 1s : 20s;  // since `started`
  double done = 0;
  std::string stage;
  bool any = false;  // the terminal shows a line of ours
  std::jthread ticker;

  explicit State(std::size_t n) : parts(static_cast<double>(n)) {
    try {
      ticker = std::jthread([this](const std::stop_token& stop) { tick(stop); });
    } catch (const std::system_error&) {
      // No more threads are to be had: the work counts, not the line.
    }
  }

  void tick(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (!stop.stop_requested()) {
      woken.wait_until(lock, stop, started + next, [] { return false; });
      if (stop.stop_requested() || Clock::now() < started + next) continue;
      next = on_terminal ? next + 250ms : 2 * next;
      any = on_terminal;
      say_styled(on_terminal ? "\r\x1b[K" + text() : fmt::format("ringsim: {}\n", text()));
    }
  }

  std::string text() const {
    const double elapsed = std::chrono::duration<double>(Clock::now() - started).count();
    std::string out;
    if (!on_terminal) out += fmt::format("after {}: ", rough_duration(elapsed));
    out += progress_text(elapsed, done, parts);
    if (!stage.empty()) out += "; " + stage;
    return out + memory_text();
  }
};

ProgressLine::ProgressLine(std::size_t parts) : state_(std::make_unique<State>(parts)) {}

ProgressLine::~ProgressLine() {
  state_->ticker = {};  // stops and joins
  if (state_->any) say_styled("\r\x1b[K");
}

void ProgressLine::add(double share) {
  const std::lock_guard lock(state_->mutex);
  state_->done += share;
}

void ProgressLine::now(const std::string& stage) {
  const std::lock_guard lock(state_->mutex);
  state_->stage = stage;
}

}  // namespace ringsim::tools
