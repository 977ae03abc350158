#include "tools/output/progress_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <thread>

#include "tools/output/output.hpp"

namespace ringsim::tools {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

std::string duration_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

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
  Clock::duration next = on_terminal ? Clock::duration(1s) : Clock::duration(1min);  // since `started`
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
    const double share = done / parts;
    std::string out;
    if (!on_terminal) out += fmt::format("after {}: ", duration_text(elapsed));
    if (parts > 1) out += fmt::format("{:.0f} of {:.0f} done, ", std::floor(done), parts);
    if (share < 0.001)  // too early for a forecast
      out += fmt::format("{:.1f} %", 100 * share);
    else
      out += fmt::format("{:.{}f} %, about {} left", 100 * share, share < 0.01 ? 1 : 0,
                         duration_text(elapsed * (1 - share) / share));
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
