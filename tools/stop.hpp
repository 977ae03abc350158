// Ctrl-C.
#pragma once

#include <atomic>

namespace ringsim::tools {

/// Set by Ctrl-C.
extern std::atomic<bool> stop_requested;

/// From now on Ctrl-C sets stop_requested. A second Ctrl-C ends the process at once.
void catch_interrupts();

/// Throws Interrupted if stop_requested is set. For commands whose work is a few long stages.
void stop_if_asked();

}  // namespace ringsim::tools
