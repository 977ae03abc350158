// Phases and steps from a whole timeline: every message kept, every step looked up again, one map.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/run/phase_account.hpp"
#include "sim/run/timeline.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// [name of the phase, step; -1 for the whole phase]. `timeline` has spans and path, and was not folded.
inline std::map<std::pair<std::string, int>, PhaseUse> naive_phases(const Schedule& schedule,
                                                                    const Timeline& timeline) {
  std::map<std::pair<std::string, int>, PhaseUse> found;
  const auto uses = [&](Actor actor, Lane lane, int step) {
    const PhaseStep at = schedule.phases.at(actor, lane, step);
    const std::string name = schedule.phase_names().at(static_cast<std::size_t>(at.phase));
    return std::pair{&found[{name, -1}], &found[{name, at.step}]};
  };
  const auto widen = [](PhaseUse& use, SimTime begin, SimTime end) {
    use.first_start = std::min(use.first_start, begin);
    use.last_end = std::max(use.last_end, end);
  };
  for (const Span& span : timeline.spans) {
    const auto [whole, step] = uses(span.from, span.lane, span.step);
    for (PhaseUse* use : {whole, step}) {
      widen(*use, span.start, span.finish);
      ++use->messages;
      use->bytes += span.bytes;
    }
  }
  for (const PathElement& element : timeline.path) {
    const auto [whole, step] = uses(element.by, element.lane, element.step);
    const bool waits =
        element.cause == PathCause::late || element.cause == PathCause::slow || element.cause == PathCause::jitter;
    for (PhaseUse* use : {whole, step}) {
      if (!waits) widen(*use, element.begin, element.end);
      use->critical += element.time();
    }
  }
  return found;
}

/// The phases as an account found them.
inline std::map<std::pair<std::string, int>, PhaseUse> as_map(const std::vector<PhaseTime>& phases) {
  std::map<std::pair<std::string, int>, PhaseUse> found;
  for (const PhaseTime& phase : phases) {
    found[{phase.name, -1}] = phase.whole;
    for (std::size_t i = 0; i < phase.steps.size(); ++i)
      if (phase.steps[i].is_used()) found[{phase.name, static_cast<int>(i)}] = phase.steps[i];
  }
  return found;
}

}  // namespace ringsim
