#include "tools/stop.hpp"

#include <csignal>

#include "sim/base/error.hpp"

namespace ringsim::tools {

std::atomic<bool> stop_requested{false};

namespace {

void on_interrupt(int) { stop_requested.store(true, std::memory_order_relaxed); }

}  // namespace

void catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one finds the default action
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before = {};
    if (signal == SIGHUP && sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_IGN)
      continue;  // nohup
    sigaction(signal, &action, nullptr);
  }
}

void stop_if_asked() {
  if (stop_requested.load(std::memory_order_relaxed)) throw Interrupted("stopped before the result was written");
}

}  // namespace ringsim::tools
