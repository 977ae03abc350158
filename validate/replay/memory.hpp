// The buffers of one actor, with real numbers in them: what goes in, and whether what comes out is right.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "validate/replay/contribution.hpp"

namespace ringsim::replay {

/// Elements are float32.
inline constexpr int element_bytes = static_cast<int>(sizeof(float));

/// An element that is not what the collective promises.
struct WrongElement {
  Actor rank = 0;
  Buffer buffer = Buffer::data;
  std::uint32_t chunk = 0;
  std::int64_t element = 0;  ///< of the chunk, from 0
  float expected = 0, found = 0;
};
/// "rank 2: data[3], element 17: expected 1234, found nan"
std::string to_string(const WrongElement& wrong);

struct Verdict {
  std::int64_t checked = 0;           ///< elements that were compared
  std::int64_t wrong = 0;             ///< of them
  std::optional<WrongElement> first;  ///< in the order of buffers, chunks and elements
};

class ActorMemory {
 public:
  /// Requires that every chunk lies on whole elements (require_replayable). `schedule` must outlive it.
  ActorMemory(const Schedule& schedule, Actor actor);

  /// As before a run: what the rank contributes is in place; all else of a rank's is poison (not a number: whatever is
  /// worked out from it shows), but for scratch, which is 0, as a helper's memory is: adding to it starts from there.
  void fill();
  /// As fill(), without contributions: a program makes them as it goes.
  void blank();
  /// Every element that the collective promises, compared to the bit. A helper is promised nothing.
  Verdict check() const;

  std::span<float> at(const Region& region);
  std::span<const float> at(const Region& region) const;

 private:
  std::int64_t begin(Buffer buffer, std::uint32_t chunk) const;  // in elements

  const Schedule* schedule_;
  Actor actor_;
  std::array<std::vector<float>, n_buffers> buffers_;
};

}  // namespace ringsim::replay
