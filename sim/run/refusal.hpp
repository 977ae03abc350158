// Why a run is not folded.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

namespace ringsim {

/// Thrown by refuse(); fold(), fold_by_turns() and fold_channels() catch it.
struct Refusal {
  std::string because;  ///< a part of a sentence, for the report
};

template <class... Parts>
[[noreturn]] void refuse(fmt::format_string<Parts...> text, Parts&&... parts) {
  throw Refusal{fmt::format(text, std::forward<Parts>(parts)...)};
}

}  // namespace ringsim
