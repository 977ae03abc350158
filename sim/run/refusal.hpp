// Why a run is not folded.
#pragma once

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/run/run.hpp"

namespace ringsim {

/// Thrown by refuse(); unless_refused() catches it.
struct Refusal {
  std::string because;  ///< a part of a sentence, for the report
};

template <class... Parts>
[[noreturn]] void refuse(fmt::format_string<Parts...> text, Parts&&... parts) {
  throw Refusal{fmt::format(text, std::forward<Parts>(parts)...)};
}

/// Returns the result of make(), or nothing if it refuses or finds no path; then `why_not` says why. A run reports a
/// missing path itself, in its own order.
template <class Make>
auto unless_refused(std::string& why_not, Make make) -> std::optional<decltype(make())> {
  try {
    return make();
  } catch (const Refusal& refusal) {
    why_not = refusal.because;
  } catch (const InputError& error) {
    why_not = error.message();
  }
  return std::nullopt;
}

inline void refuse_if_stopped(const RunOptions& options) {
  if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed)) refuse("it was stopped");
}

}  // namespace ringsim
