#include "validate/replay/actor_run.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"

namespace ringsim::replay {

namespace {

bool receives(const Op& op) { return op.what == Do::receive || op.what == Do::receive_add; }

// where += what, element by element; if `base` is another place: where = base + what
void add(std::span<const float> base, std::span<const float> what, std::span<float> where) {
  ensure(base.size() == where.size() && what.size() == where.size(), "regions that are added are of one size");
  for (std::size_t i = 0; i < where.size(); ++i) where[i] = base[i] + what[i];
}

}  // namespace

ActorRun::ActorRun(const Schedule& schedule, Actor actor, ActorMemory& memory, Messages& messages, ProgramData* program)
    : schedule_(schedule), actor_(actor), memory_(memory), messages_(messages), program_(program) {
  lanes_.resize(static_cast<std::size_t>(schedule.lanes));
}

void ActorRun::start() {
  lanes_through_ = 0;
  for (Lane lane = 0; lane < schedule_.lanes; ++lane) {
    LaneState& state = lanes_[static_cast<std::size_t>(lane)];
    state = {.n_steps = schedule_.n_steps(actor_, lane)};
    if (state.n_steps == 0) ++lanes_through_;
  }
  begin_ready();
}

// Until no lane can go on: one that completes a step at once may let another begin.
void ActorRun::begin_ready() {
  for (bool any = true; any;) {
    any = false;
    for (Lane lane = 0; lane < schedule_.lanes; ++lane) any = begin(lane) || any;
  }
}

bool ActorRun::begin(Lane lane) {
  LaneState& state = lanes_[static_cast<std::size_t>(lane)];
  if (state.open > 0 || state.step == state.n_steps) return false;
  scratch_.clear();
  schedule_.step(actor_, lane, state.step, scratch_);
  const auto is_met = [&](const Wait& wait) {
    ensure(wait.of(actor_) == actor_, "what is replayed waits for its own actor alone");
    return lanes_[static_cast<std::size_t>(wait.lane)].step >= wait.steps;
  };
  if (!std::all_of(scratch_.waits.begin(), scratch_.waits.end(), is_met)) return false;
  if (program_ != nullptr) program_->begins(lane, state.step);
  state.open = static_cast<int>(scratch_.ops.size()) + 1;  // one for the step itself, so that it ends after all began
  for (const Op& op : scratch_.ops) begin(lane, op);
  complete_operation(lane);
  return true;
}

void ActorRun::begin(Lane lane, const Op& op) {
  if (op.what == Do::copy || op.what == Do::add) {
    const auto from = memory_.at(op.operand), to = memory_.at(op.region);
    ensure(from.size() == to.size(), "regions that are copied are of one size");
    if (op.what == Do::copy)
      std::copy(from.begin(), from.end(), to.begin());
    else
      add(to, from, to);
    return complete_operation(lane);
  }
  if (free_.empty()) {
    free_.push_back(static_cast<Ticket>(started_.size()));
    started_.emplace_back();
  }
  const Ticket ticket = free_.back();
  free_.pop_back();
  Started& started = started_[ticket];
  started.lane = lane;
  started.op = op;
  started.is_open = true;
  if (op.what == Do::compute)
    return messages_.start_compute(std::chrono::ceil<std::chrono::nanoseconds>(op.time), ticket);
  if (op.what == Do::send) return messages_.start_send({actor_, op.peer, op.channel}, memory_.at(op.region), ticket);
  std::span<float> where = memory_.at(op.region);
  if (op.what == Do::receive_add) {
    // Never shrinks: growing again would zero memory that is overwritten at once, while the run waits.
    if (started.incoming.size() < where.size()) started.incoming.resize(where.size());
    where = std::span(started.incoming).first(where.size());
  }
  messages_.start_receive({op.peer, actor_, op.channel}, where, ticket);
}

void ActorRun::done(Ticket ticket) {
  ensure(ticket < started_.size() && started_[ticket].is_open, "what is done was started, once");
  Started& started = started_[ticket];
  started.is_open = false;
  free_.push_back(ticket);
  if (started.op.what == Do::receive_add) {
    const Region& base = started.op.operand.count > 0 ? started.op.operand : started.op.region;
    const std::span<float> where = memory_.at(started.op.region);
    add(memory_.at(base), std::span(started.incoming).first(where.size()), where);
  }
  complete_operation(started.lane);
  begin_ready();
}

void ActorRun::complete_operation(Lane lane) {
  LaneState& state = lanes_[static_cast<std::size_t>(lane)];
  if (--state.open > 0) return;
  if (program_ != nullptr) program_->ends(lane, state.step);
  if (++state.step == state.n_steps) ++lanes_through_;
}

std::string ActorRun::open() const {
  for (const Started& started : started_) {
    if (!started.is_open) continue;
    const Op& op = started.op;
    std::string text = fmt::format("lane {}, step {}: {}", started.lane,
                                   lanes_[static_cast<std::size_t>(started.lane)].step, to_string(op.what));
    if (op.what == Do::compute) return text;
    return text + fmt::format(" {} {} {} {}, channel {}", to_string(op.region), receives(op) ? "from" : "to",
                              op.peer < schedule_.collective.ranks ? "rank" : "helper", op.peer, op.channel);
  }
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    if (lanes_[lane].step < lanes_[lane].n_steps)
      return fmt::format("lane {}, step {}: waits for another lane", lane, lanes_[lane].step);
  return "";
}

}  // namespace ringsim::replay
