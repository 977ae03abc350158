#include "sim/run/phase_account.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

void stretch_use(PhaseUse& use, SimTime begin, SimTime end) {
  use.first_start = std::min(use.first_start, begin);
  use.last_end = std::max(use.last_end, end);
}

/// True if something is done in it, not only waited for.
bool is_activity(PathCause cause) {
  return cause != PathCause::late && cause != PathCause::slow && cause != PathCause::jitter;
}

}  // namespace

PhaseAccount::PhaseAccount(const Schedule& schedule) : schedule_(schedule) {
  for (std::string& name : schedule.phase_names())
    phases_.push_back({.name = std::move(name), .whole = {}, .steps = {}});
}

template <class Add>
void PhaseAccount::add(Actor actor, Lane lane, int step, Add add) {
  const PhaseStep at = schedule_.phases.at(actor, lane, step);
  ensure(at.phase >= 0 && static_cast<std::size_t>(at.phase) < phases_.size() && at.step >= 0,
         "a step lies in a phase that its schedule names");
  PhaseTime& phase = phases_[static_cast<std::size_t>(at.phase)];
  const auto number = static_cast<std::size_t>(at.step);
  if (phase.steps.size() <= number) phase.steps.resize(number + 1);
  add(phase.whole);
  add(phase.steps[number]);
}

void PhaseAccount::on_message(const Span& message) {
  add(message.from, message.lane, message.step, [&](PhaseUse& use) {
    stretch_use(use, message.start, message.finish);
    if (__builtin_add_overflow(use.messages, message.count, &use.messages))
      fail_too_large("more messages than can be counted (2^63)");
    use.bytes += message.bytes * message.count;
  });
}

std::vector<PhaseTime> PhaseAccount::finish(const Timeline& timeline) {
  for (const PathElement& element : timeline.path)
    add(element.by, element.lane, element.step, [&](PhaseUse& use) {
      if (is_activity(element.cause)) stretch_use(use, element.begin, element.end);
      use.critical += element.time();
    });
  PhaseUse all;
  for (PhaseTime& phase : phases_) {
    all.critical += phase.whole.critical;
    all.messages += phase.whole.messages;
    all.bytes += phase.whole.bytes;
  }
  ensure(all.critical == timeline.duration(), "the phases' critical times sum to the time of the run");
  ensure(all.messages == timeline.transfers && all.bytes == timeline.bytes_sent, "every message belongs to one phase");
  std::erase_if(phases_, [](const PhaseTime& phase) { return !phase.whole.is_used(); });
  return std::move(phases_);
}

}  // namespace ringsim
