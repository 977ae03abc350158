// Ctrl-C, and what batch systems and closed terminals send.
#pragma once

#include <atomic>

namespace ringsim::tools {

/// Set by Ctrl-C (SIGINT), SIGTERM and SIGHUP.
extern std::atomic<bool> stop_requested;

/// From now on Ctrl-C, SIGTERM and SIGHUP set stop_requested; a second one of its kind ends the process at once. A
/// SIGHUP that is ignored, as under nohup, stays so.
void catch_interrupts();

/// Throws Interrupted if stop_requested is set. For commands whose work is a few long stages.
void stop_if_asked();

/// While one lives, Ctrl-C, SIGTERM and SIGHUP end the process at once, with exit code 130. For long computations that
/// do not look at stop_requested, of commands that have opened no output yet and have nothing to clean up.
class EndsAtOnce {
 public:
  EndsAtOnce();  ///< throws Interrupted if stop_requested is set
  ~EndsAtOnce();
  EndsAtOnce(const EndsAtOnce&) = delete;
  EndsAtOnce& operator=(const EndsAtOnce&) = delete;
};

}  // namespace ringsim::tools
