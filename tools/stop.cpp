#include "tools/stop.hpp"

#include <unistd.h>

#include <csignal>
#include <string>
#include <string_view>

#include "sim/base/error.hpp"
#include "tools/exit.hpp"

namespace ringsim::tools {

std::atomic<bool> stop_requested{false};

namespace {

std::atomic<bool> ends_at_once{false};

constexpr std::string_view not_written = "stopped before the result was written";

/// What ending_of() says and does, as far as a handler of signals may.
void end_at_once() {
  for (const std::string_view part : {std::string_view("ringsim: interrupted: "), not_written, std::string_view("\n")})
    [[maybe_unused]] const ssize_t ignored = write(STDERR_FILENO, part.data(), part.size());
  _exit(interrupted);
}

void on_interrupt(int) {
  stop_requested.store(true, std::memory_order_seq_cst);
  if (ends_at_once.load(std::memory_order_seq_cst)) end_at_once();
}

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
  if (stop_requested.load(std::memory_order_relaxed)) throw Interrupted(std::string(not_written));
}

EndsAtOnce::EndsAtOnce() {
  // Either the handler sees the first, or this sees what the handler has stored.
  ends_at_once.store(true, std::memory_order_seq_cst);
  if (stop_requested.load(std::memory_order_seq_cst)) {  // by a signal that came before
    ends_at_once.store(false, std::memory_order_relaxed);
    stop_if_asked();
  }
}

EndsAtOnce::~EndsAtOnce() { ends_at_once.store(false, std::memory_order_relaxed); }

}  // namespace ringsim::tools
