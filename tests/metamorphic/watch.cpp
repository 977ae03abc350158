#include "tests/metamorphic/watch.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <utility>

namespace ringsim::metamorphic {

namespace {

// What handlers read: they run anywhere, so that a text is complete before its pointer is set, and nothing is
// allocated.
struct Text {
  const char* volatile begin = nullptr;
  volatile std::size_t size = 0;
  std::string kept;

  void set(std::string text) {
    size = 0;
    kept = std::move(text);
    begin = kept.data();
    size = kept.size();
  }
};

struct Watched {
  std::int64_t limit_seconds = 0;
  Text run, scenario, too_long;
  std::array<struct sigaction, 64> before{};
};

Watched& watched() {
  static Watched found;
  return found;
}

void print(const Text& text) {
  if (text.size > 0) [[maybe_unused]]
    const ssize_t ignored = write(STDERR_FILENO, text.begin, text.size);
}

void print_all() {
  print(watched().run);
  print(watched().scenario);
}

/// Prints, then gives the signal to its former handler: a sanitizer's, which reports, or the system's.
void on_end(int signal) {
  print_all();
  sigaction(signal, &watched().before[static_cast<std::size_t>(signal)], nullptr);
  raise(signal);
}

void on_limit(int /*signal*/) {
  print_all();
  print(watched().too_long);
  _exit(1);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  sigaction(signal, &action, &watched().before[static_cast<std::size_t>(signal)]);
}

}  // namespace

void watch_runs(std::int64_t limit_seconds) {
  static std::array<char, 1 << 16> stack;  // for a crash because the stack is full
  stack_t own{};
  own.ss_sp = stack.data();
  own.ss_size = stack.size();
  sigaltstack(&own, nullptr);
  watched().limit_seconds = limit_seconds;
  watched().too_long.set(
      fmt::format("  expected at most {} s of processor time, found more: ended (--limit)\n", limit_seconds));
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT, SIGTERM, SIGHUP}) handle(signal, on_end);
  handle(SIGPROF, on_limit);
}

void run_begins(std::uint64_t seed, std::string_view law) {
  watched().run.set(fmt::format(
      "\nseed {}: {} was under way\n  again: ringsim_metamorphic --runs 1 --seed {} --law {}\n", seed, law, seed, law));
  watched().scenario.set("");
  itimerval limit{};
  limit.it_value.tv_sec = static_cast<time_t>(watched().limit_seconds);
  setitimer(ITIMER_PROF, &limit, nullptr);
}

void scenario_begins(std::string scenario) { watched().scenario.set(std::move(scenario) + '\n'); }

}  // namespace ringsim::metamorphic
