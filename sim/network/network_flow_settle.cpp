// When flows end at the rates that they have now: worked out again if something changed.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "sim/base/error.hpp"
#include "sim/network/network_flow.hpp"

namespace ringsim {

namespace {

constexpr const char* unsure_time = "the last bits of a sum decide on a picosecond";

}  // namespace

void FlowNetwork::settle() {
  if (!changed_.empty()) take_changes();
  if (new_flows_.empty() && !shares_.is_dirty()) return opened_.clear();
  shares_.begin();
  // What was alone until now counts as new: which of several pieces that start at one instant is the first to start
  // does not matter.
  for (const FlowIndex index : opened_)
    if (shares_.is_member(index) && shares_.rate(index) > 0 && !shares_.is_alone(index)) shares_.add(index);
  opened_.clear();
  for (const FlowIndex index : new_flows_) {
    if (!shares_.is_alone(index)) {
      shares_.add_new(index);
      continue;
    }
    const LegInfo& leg = legs_[shares_.route(index)];  // most flows of most schedules: nothing to work out
    const auto [rate, limiter] =
        with_copies_.empty() ? Shares::Decision{leg.alone, leg.alone_resource} : with_copies_[shares_.route(index)];
    set_rate(index, rate, limiter);
    schedule(index);
  }
  new_flows_.clear();
  if (shares_.solve()) apply();
}

void FlowNetwork::apply() {
  const double doubt = use_.any_order ? shares_.doubt() : 0;
  const std::uint64_t first_turn = engine_.take_turn();
  for (const FlowIndex index : shares_.solved()) {
    const auto [rate, limiter] = shares_.decision(index);
    regroup(shares_.limiter(index));
    regroup(limiter);
    const double before = shares_.rate(index);
    // The rate is unchanged except for rounding: leave the flow and its event alone.
    if (before > 0 && std::abs(rate - before) <= before * Shares::same_rate)
      shares_.take_limiter(index, limiter);
    else
      set_rate(index, rate, limiter);
    if (use_.any_order && !shares_.is_exact(index)) expect_sure(index, before, doubt);
    // It has no group.
    if (limiter == shares_.cap(shares_.route(index)).resource && !flows_[index].is_scheduled) schedule(index);
  }
  schedule_first_of_groups(first_turn);
  shares_.check_rates();
  if (use_.any_order && !shares_.rates_are_sure()) throw Unsure{unsure_time};
}

// A flow that was decided leaves at the same picosecond if its rate, and what is left of it, are off by that much.
void FlowNetwork::expect_sure(FlowIndex index, double before, double doubt) const {
  const Flow& flow = flows_[index];
  const double decided = shares_.decision(index).rate;
  const double change = before > 0 ? std::abs(decided - before) / before : 1;
  if (change > doubt && change <= Shares::same_rate + Shares::noise)
    throw Unsure{unsure_time};              // is it one rate, or are these two?
  if (flow.since != engine_.now()) return;  // it is one, and nothing has changed
  const double rate = shares_.rate(index);
  const double time = flow.left / rate * 1e12;
  const double margin = (static_cast<double>(flow.size.count) + flow.left) / rate * 1e12 * doubt;
  const double due = static_cast<double>((flow.due - engine_.now()).count());
  if (whole_picoseconds(time - margin) != due || whole_picoseconds(time + margin) != due) throw Unsure{unsure_time};
}

void FlowNetwork::regroup(ResourceId limiter) {
  if (limiter == no_resource || accounts_[limiter.value].is_regrouped) return;
  accounts_[limiter.value].is_regrouped = true;
  regrouped_.push_back(limiter.value);
}

// Schedules only the first flows to finish among those that a resource limits. When they leave, the others get other
// rates anyway: thousands of flows over one port make as many events, not their square. The engine takes events
// of one instant best in the order of their turns: first those taken before `first_turn`, then those of this settle(),
// which were taken in the order of Shares::solved().
void FlowNetwork::schedule_first_of_groups(std::uint64_t first_turn) {
  for (const std::uint32_t r : regrouped_) {
    accounts_[r].is_regrouped = false;
    const std::size_t before = first_due_.size();
    SimTime first = SimTime::max();
    for (const Shares::Member& member : shares_.members(r)) {
      const Flow& flow = flows_[member.flow];
      if (shares_.limiter(member.flow).value != r || flow.due > first) continue;
      if (flow.due < first) first_due_.resize(before);
      first = flow.due;
      if (!flow.is_scheduled && flow.turn < first_turn) first_due_.push_back(member.flow);
    }
    accounts_[r].first_due = first;
  }
  regrouped_.clear();
  std::sort(first_due_.begin(), first_due_.end(),
            [&](FlowIndex a, FlowIndex b) { return flows_[a].turn < flows_[b].turn; });
  for (const FlowIndex index : first_due_) schedule(index);
  first_due_.clear();
  for (const FlowIndex index : shares_.solved()) {
    const Flow& flow = flows_[index];
    if (!flow.is_scheduled && flow.turn >= first_turn && flow.due == accounts_[shares_.limiter(index).value].first_due)
      schedule(index);
  }
}

}  // namespace ringsim
