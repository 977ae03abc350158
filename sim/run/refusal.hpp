// Why a run is not folded.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "sim/run/run.hpp"

namespace ringsim {

/// Thrown by refuse(); fold(), fold_by_turns() and fold_channels() catch it.
struct Refusal {
  std::string because;  ///< a part of a sentence, for the report
};

template <class... Parts>
[[noreturn]] void refuse(fmt::format_string<Parts...> text, Parts&&... parts) {
  throw Refusal{fmt::format(text, std::forward<Parts>(parts)...)};
}

inline void refuse_if_stopped(const RunOptions& options) {
  if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) refuse("it was stopped");
}

}  // namespace ringsim
