#include "tools/explanations/phases_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "sim/base/quantity.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/wrap.hpp"

namespace ringsim::tools {

namespace {

TableCell phase_moment(const PhaseUse& use, SimTime when) {
  return use.has_moments() ? TableCell(when.time_since_epoch()) : "";
}
std::string phase_share(Picoseconds part, Picoseconds whole) {
  if (whole.count() == 0) return "";
  return fmt::format("{:.1f} %", 100 * static_cast<double>(part.count()) / static_cast<double>(whole.count()));
}
std::string sent_text(const PhaseUse& use) { return use.messages > 0 ? size_text(use.bytes) : ""; }

std::ptrdiff_t used_steps(const PhaseTime& phase) {
  return std::count_if(phase.steps.begin(), phase.steps.end(), [](const PhaseUse& step) { return step.is_used(); });
}

}  // namespace

Table phase_table(const Prediction& prediction) {
  Table table({"phase", "steps", "from", "to", "path", "share", "longest step", "sent"});
  table.parts_of(prediction.time);
  const TimeUnit unit = TimeUnit::of(prediction.time);
  for (const PhaseTime& phase : prediction.phases) {
    const PhaseUse& whole = phase.whole;
    const auto longest = std::max_element(phase.steps.begin(), phase.steps.end(),
                                          [](const PhaseUse& a, const PhaseUse& b) { return a.critical < b.critical; });
    const bool shows_longest = used_steps(phase) > 1 && longest->critical.count() > 0;
    table.add({phase.name, phase.steps.empty() ? "" : fmt::to_string(used_steps(phase)),
               phase_moment(whole, whole.first_start), phase_moment(whole, whole.last_end), whole.critical,
               phase_share(whole.critical, prediction.time),
               shows_longest ? fmt::format("{}: {} {}", longest - phase.steps.begin() + 1,
                                           unit.number(longest->critical), unit.name())
                             : "",
               sent_text(whole)});
  }
  return table;
}

std::string phases_text(const Prediction& prediction) {
  if (prediction.phases.empty()) return "";
  return fmt::format("\nThe phases of the algorithm; the times on the critical path sum to {}:\n{}",
                     time_text(prediction.time), phase_table(prediction).fitted());
}

std::string phase_steps_text(const Prediction& prediction) {
  constexpr std::ptrdiff_t most = 40;
  std::ptrdiff_t n = 0;
  Table table({"phase", "step", "from", "to", "path", "messages", "sent"});
  table.parts_of(prediction.time);
  for (const PhaseTime& phase : prediction.phases) n += used_steps(phase);
  if (n > most) return '\n' + wrapped(fmt::format("{} steps; --format json prints the time of each", n)) + '\n';
  for (const PhaseTime& phase : prediction.phases)
    for (std::size_t i = 0; i < phase.steps.size(); ++i) {
      const PhaseUse& step = phase.steps[i];
      if (step.is_used())
        table.add({phase.name, fmt::to_string(i + 1), phase_moment(step, step.first_start),
                   phase_moment(step, step.last_end), step.critical, fmt::to_string(step.messages), sent_text(step)});
    }
  return table.size() > 0 ? '\n' + table.fitted() : "";
}

}  // namespace ringsim::tools
