#include "sim/schedule/relocated.hpp"

#include <memory>
#include <utility>

namespace ringsim {

namespace {

using MadeByCopy = std::shared_ptr<const Relocated>;

bool copies_first(const Relocated& made, Actor actor) { return actor < made.plain.collective.ranks; }

// The functions of the schedule are types with a name, so that relocated() can recognize them.

struct StepsAfterCopy {
  MadeByCopy made;
  int operator()(Actor actor, Lane lane) const {
    return made->plain.n_steps(actor, lane) + (copies_first(*made, actor) && lane == 0 ? 1 : 0);
  }
};

struct StepAfterCopy {
  MadeByCopy made;
  void operator()(Actor actor, Lane lane, int i, Step& out) const {
    const bool copies = copies_first(*made, actor);
    if (copies && lane == 0 && i == 0) return copy(actor, out);
    made->plain.step(actor, lane, copies && lane == 0 ? i - 1 : i, out);
    for (Op& op : out.ops) {
      op.region = made->moved(op.region);
      if (op.operand.count > 0) op.operand = made->moved(op.operand);
    }
    if (!copies) return;
    for (Wait& wait : out.waits)
      if (wait.lane == 0) ++wait.steps;
    if (lane > 0 && i == 0) out.wait(0, 1);
  }

 private:
  void copy(Actor rank, Step& out) const {
    Region from = made->contributed(rank);
    if (from.count == 0) return;
    from.buffer = made->input;
    const Region to = made->moved(from);
    from.buffer = made->source;
    out.copy(from, to);
  }
};

/// The copy is phase 0; of the plain schedule's, a copy of its own that has the same name belongs to it.
struct PhaseAfterCopy {
  MadeByCopy made;
  bool is_shared = false;  ///< the plain schedule's first phase is "copy in" as well
  PhaseStep operator()(Actor actor, Lane lane, int i) const {
    const bool copies = copies_first(*made, actor) && lane == 0;
    if (copies && i == 0) return {};
    PhaseStep at = made->plain.phases.at(actor, lane, copies ? i - 1 : i);
    if (!is_shared)
      ++at.phase;
    else if (at.phase == 0)
      ++at.step;
    return at;
  }
};

struct RelocatedBefore {
  MadeByCopy made;
  Content operator()(Actor rank, Buffer buffer, std::uint32_t chunk) const {
    return buffer == made->source ? made->plain.collective.before(rank, made->input, chunk) : Content{};
  }
};

struct RelocatedAfter {
  MadeByCopy made;
  Content operator()(Actor rank, Buffer buffer, std::uint32_t chunk) const {
    bool is_kept = buffer == made->source;
    for (std::size_t b = 0; b < n_buffers; ++b) {
      const auto n = static_cast<std::uint32_t>(made->plain.layout[b].n_chunks());
      const Relocated::Place& place = made->place[b];
      if (n == 0 || place.buffer != buffer) continue;
      if (chunk >= place.first && chunk - place.first < n)
        return made->plain.collective.after(rank, static_cast<Buffer>(b), chunk - place.first);
      is_kept = false;
    }
    return is_kept ? made->plain.collective.before(rank, made->input, chunk) : Content{};
  }
};

}  // namespace

Schedule run_relocated(Relocated description) {
  const auto made = std::make_shared<const Relocated>(std::move(description));
  Schedule s = made->plain;
  s.symmetry = {};
  s.n_steps = StepsAfterCopy{made};
  s.step = StepAfterCopy{made};
  s.place = {};
  s.phases.names = made->plain.phase_names();
  const bool is_shared = s.phases.names.front() == "copy in";
  if (!is_shared) s.phases.names.insert(s.phases.names.begin(), "copy in");
  s.phases.of = PhaseAfterCopy{made, is_shared};
  s.collective.before = RelocatedBefore{made};
  s.collective.after = RelocatedAfter{made};
  return s;
}

const Relocated* relocated(const Schedule& schedule) {
  const auto* n_steps = schedule.n_steps.target<StepsAfterCopy>();
  const auto* step = schedule.step.target<StepAfterCopy>();
  const auto* before = schedule.collective.before.target<RelocatedBefore>();
  const auto* after = schedule.collective.after.target<RelocatedAfter>();
  if (n_steps == nullptr || step == nullptr || before == nullptr || after == nullptr) return nullptr;
  const MadeByCopy& made = step->made;
  const bool is_one = n_steps->made == made && before->made == made && after->made == made;
  return is_one ? made.get() : nullptr;
}

}  // namespace ringsim
