#include "sim/schedule/phases.hpp"

#include <cstddef>

#include "sim/base/error.hpp"

namespace ringsim {

Phases phases_in_turn(const std::vector<std::pair<std::string, int>>& phases) {
  Phases made;
  std::vector<int> ends;  // [phase] the step after its last
  for (const auto& [name, steps] : phases) {
    if (steps == 0) continue;
    made.names.push_back(name);
    ends.push_back((ends.empty() ? 0 : ends.back()) + steps);
  }
  made.of = [ends](Actor, Lane, int i) {
    for (std::size_t p = 0; p < ends.size(); ++p)
      if (i < ends[p]) return PhaseStep{static_cast<int>(p), p == 0 ? i : i - ends[p - 1]};
    fail_invariant("a phase is asked only for steps that its schedule has");
  };
  return made;
}

}  // namespace ringsim
