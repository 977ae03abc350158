// Which rates flows have now: max-min fair shares, worked out again if something changed.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "sim/base/error.hpp"
#include "sim/network/network_flow.hpp"

namespace ringsim {

namespace {

// How often settle() widens its circle before it takes all that is connected: each round solves everything again.
constexpr int max_rounds = 6;

// Rates that differ by less, relatively, are one rate.
constexpr double same_rate = 1e-13;
// What floating-point noise comes to at most, relatively; chosen, far below FlowNetwork::tolerance.
constexpr double noise = 1e-12;

constexpr const char* unsure_time = "the last bits of a sum decide on a picosecond";

}  // namespace

void FlowNetwork::add_to_solve(FlowIndex index) {
  if (to_be_solved(index)) return;
  flows_[index].solve_mark = epoch_;
  to_solve_.push_back(index);
}

void FlowNetwork::settle() {
  if (!changed_.empty()) take_changes();
  if (new_flows_.empty() && dirty_.empty()) return opened_.clear();
  ++epoch_;
  to_solve_.clear();
  // What was alone until now counts as new: which of several pieces that start at one instant is the first to start
  // does not matter.
  for (const FlowIndex index : opened_)
    if (flows_[index].is_member && flows_[index].rate > 0 && !is_alone(flows_[index])) add_to_solve(index);
  opened_.clear();
  for (const FlowIndex index : new_flows_) {
    const LegInfo& leg = legs_[flows_[index].leg];
    if (is_alone(flows_[index])) {  // most flows of most schedules: nothing to work out
      const Alone alone = copies_ == 1 ? Alone{leg.alone, leg.alone_resource} : with_copies_[flows_[index].leg];
      set_rate(index, alone.rate, alone.limiter);
      schedule(index);
      continue;
    }
    add_to_solve(index);
    for (std::uint32_t u = 0; u < leg.n_uses; ++u)
      if (resources_[uses_[leg.first_use + u].resource].n_limited > 0) mark_dirty(uses_[leg.first_use + u].resource);
  }
  new_flows_.clear();
  // Those whose share of a changed resource it was that held them: they may go faster, or must make room.
  for (const std::uint32_t r : dirty_) {
    resources_[r].is_dirty = false;
    for (const Member& member : resources_[r].members)
      if (flows_[member.flow].limiter.value == r) add_to_solve(member.flow);
  }
  dirty_.clear();
  if (to_solve_.empty()) return;
  for (int round = 1;; ++round) {
    solve();
    if (!widen()) break;
    if (round == max_rounds) widen_to_all_connected();
  }
  apply();
}

void FlowNetwork::touch(std::uint32_t r) {
  ResourceState& resource = resources_[r];
  resource.touch_mark = touch_epoch_;
  resource.open_weight = 0;
  resource.n_open = 0;
  resource.residual = resource.capacity;
  for (const Member& member : resource.members) {
    const Flow& flow = flows_[member.flow];
    if (flow.solve_mark == epoch_) {
      resource.open_weight += weight(member);
      ++resource.n_open;
    } else {
      take(resource.residual, weight(member), flow.rate);
    }
  }
  touched_.push_back(r);
  if (copies_ > 1) is_exact_ = is_exact_ && is_exact(resource);
}

// Subtracts the copies one by one, as an unfolded run does, so that rounding is the same.
inline void FlowNetwork::take(double& residual, double weight, double rate) const {
  if (copies_ == 1) [[likely]] {
    residual -= weight * rate;
    return;
  }
  const double each = weight / copies_ * rate;
  for (int copy = 0; copy < copies_; ++copy) residual -= each;
}

// True if the rates decided there do not depend on the order of its members, whose copies come in another order: all
// amounts that are subtracted from its capacity before it is decided are equal, and so are those subtracted later at
// one rate.
bool FlowNetwork::is_exact(const ResourceState& resource) const {
  double outside = -1;
  for (const Member& member : resource.members) {
    const Flow& flow = flows_[member.flow];
    if (flow_is_exact_[member.flow] == 0 || member.weight != resource.members.front().weight) return false;
    if (flow.solve_mark == epoch_) continue;
    if (outside >= 0 && flow.rate != outside) return false;
    outside = flow.rate;
  }
  return true;
}

bool FlowNetwork::Level::operator<(const Level& other) const {
  if (share > other.share) return true;
  if (share < other.share) return false;
  return is_cap != other.is_cap ? other.is_cap : index > other.index;
}

// Touches the resources of a flow that is to be solved. Of those that no other flow uses only the narrowest can decide
// it (the first of those in the order of levels): the rest are left alone.
void FlowNetwork::touch_uses(const LegInfo& leg) {
  Level narrowest{.share = std::numeric_limits<double>::infinity()};
  for (std::uint32_t u = leg.first_use; u < leg.first_use + leg.n_uses; ++u) {
    const Use& use = uses_[u];
    const ResourceState& resource = resources_[use.resource];
    if (resource.members.size() > 1) {
      if (resource.touch_mark != touch_epoch_) touch(use.resource);
    } else if (const Level level{.share = resource.capacity / weight(use), .index = use.resource}; narrowest < level) {
      narrowest = level;
    }
  }
  if (narrowest.share < std::numeric_limits<double>::infinity()) touch(narrowest.index);
}

// Progressive filling: raise all undecided flows alike until a resource is full; what uses it is decided; go on.
// Shares only grow while flows are decided, so a share that lies in the heap may be too small, never too large.
void FlowNetwork::solve() {
  ++touch_epoch_;
  touched_.clear();
  levels_.clear();
  is_exact_ = copies_ > 1 && has_whole_weights_;
  undecided_ = to_solve_.size();
  flows_solved_ += static_cast<std::int64_t>(to_solve_.size());
  for (const FlowIndex index : to_solve_) {
    Flow& flow = flows_[index];
    const LegInfo& leg = legs_[flow.leg];
    flow.decided = -1;
    touch_uses(leg);
    if (!caps_.empty() && caps_[flow.leg].resource != no_resource)
      levels_.push_back({caps_[flow.leg].rate, index, true});
  }
  const auto share = [](const ResourceState& resource) {
    return std::max(resource.residual, 0.0) / resource.open_weight;
  };
  for (const std::uint32_t r : touched_) levels_.push_back({share(resources_[r]), r, false});
  std::make_heap(levels_.begin(), levels_.end());
  const double doubt = must_be_sure_ ? this->doubt() : 0;
  while (undecided_ > 0) {
    ensure(!levels_.empty(), "every flow has a bottleneck");
    std::pop_heap(levels_.begin(), levels_.end());
    Level level = levels_.back();
    levels_.pop_back();
    if (level.is_cap) {
      Flow& flow = flows_[level.index];
      if (flow.decided >= 0) continue;
      if (must_be_sure_) flow.is_unsure = !is_exact_ && cap_is_unsure(flow);
      decide(level.index, level.share, cap(flow.leg).resource);
      continue;
    }
    const ResourceState& resource = resources_[level.index];
    if (resource.n_open == 0) continue;
    level.share = share(resource);
    if (!levels_.empty() && levels_.front().share < level.share) {  // it has grown: another comes first
      levels_.push_back(level);
      std::push_heap(levels_.begin(), levels_.end());
      continue;
    }
    const auto is_open = [&](const Member& member) {
      return to_be_solved(member.flow) && flows_[member.flow].decided < 0;
    };
    for (const Member& member : resource.members) {
      if (!is_open(member)) continue;
      Flow& flow = flows_[member.flow];
      choose_limiter(flow, level.share);
      if (must_be_sure_) flow.is_unsure = !is_exact_ && limiter_is_unsure(flow, level.share, doubt);
    }
    for (const Member& member : resource.members)
      if (is_open(member)) decide(member.flow, level.share, flows_[member.flow].decided_limiter);
  }
}

// By how much a link has more room, relatively, than all that is still to be decided there takes at that rate.
double FlowNetwork::room(const Use& use, double rate) const {
  const ResourceState& resource = resources_[use.resource];
  const bool is_touched = resource.touch_mark == touch_epoch_;  // else no other flow uses it
  const double taken = rate * (is_touched ? resource.open_weight : weight(use));
  return ((is_touched ? resource.residual : resource.capacity) - taken) / taken;
}

// Chooses the link that limits the flow: the first on its way that is full at the flow's new rate, so that the choice
// does not depend on the order of links and flows. A flow that is alone gets the same one.
void FlowNetwork::choose_limiter(Flow& flow, double rate) {
  const LegInfo& leg = legs_[flow.leg];
  std::uint32_t u = leg.first_use;
  while (u < leg.first_use + leg.n_uses && room(uses_[u], rate) > full) ++u;
  ensure(u < leg.first_use + leg.n_uses, "every flow has a bottleneck");
  flow.decided_limiter = {uses_[u].resource};
}

// True if the choice of the limiter depends on an order. It does not among links that are equally full except for
// rounding. It may among links that are nearly so: the more of their other flows are decided, the more room they have.
bool FlowNetwork::limiter_is_unsure(const Flow& flow, double rate, double doubt) const {
  const LegInfo& leg = legs_[flow.leg];
  const auto uses = uses_.begin() + leg.first_use;
  const double alike = doubt < full / 2 ? doubt : -1;  // else even those that are full alike may seem not to be
  if (cap(flow.leg).rate <= rate * (1 + 2 * tolerance)) return true;  // which of the two is less?
  return leg.n_uses > 1 && std::any_of(uses, uses + leg.n_uses, [&](const Use& use) {
           const double its = room(use, rate);
           return its > alike && its <= 2 * tolerance;
         });
}

// As limiter_is_unsure(), for a flow that its cap limits: true if a link that it shares may be as full.
bool FlowNetwork::cap_is_unsure(const Flow& flow) const {
  const LegInfo& leg = legs_[flow.leg];
  const double rate = cap(flow.leg).rate;
  const auto uses = uses_.begin() + leg.first_use;
  return std::any_of(uses, uses + leg.n_uses, [&](const Use& use) { return room(use, rate) <= 2 * tolerance; });
}

void FlowNetwork::decide(FlowIndex index, double rate, ResourceId limiter) {
  Flow& flow = flows_[index];
  flow.decided = rate;
  flow.decided_limiter = limiter;
  --undecided_;
  const LegInfo& leg = legs_[flow.leg];
  for (std::uint32_t u = 0; u < leg.n_uses; ++u) {
    const Use& use = uses_[leg.first_use + u];
    ResourceState& resource = resources_[use.resource];
    if (resource.touch_mark == touch_epoch_) {
      take(resource.residual, weight(use), rate);
      resource.open_weight -= weight(use);
      --resource.n_open;
    } else {  // check_rates() does not see it
      ensure(rate * weight(use) <= resource.capacity * (1 + tolerance), "no link carries more than its bandwidth");
    }
  }
}

// Takes in the flows outside that the solution leaves without a bottleneck, or above those that it slows down.
// False if there is none: then every flow has its bottleneck, which is what max-min fair means.
bool FlowNetwork::widen() {
  const std::size_t before = to_solve_.size();
  for (const std::uint32_t r : touched_) {
    const ResourceState& resource = resources_[r];
    double total = 0, fastest = 0;
    double slowest_limited = std::numeric_limits<double>::infinity();  // of those that this resource holds back
    bool outsiders = false;
    for (const Member& member : resource.members) {
      const Flow& flow = flows_[member.flow];
      const bool inside = to_be_solved(member.flow);
      const double rate = inside ? flow.decided : flow.rate;
      total += rate * weight(member);
      fastest = std::max(fastest, rate);
      if (inside && flow.decided_limiter.value == r) slowest_limited = std::min(slowest_limited, rate);
      outsiders = outsiders || !inside;
    }
    if (!outsiders) continue;
    const bool saturated = !clearly_above(resource.capacity, total);
    for (const Member& member : resource.members) {
      const Flow& flow = flows_[member.flow];
      if (to_be_solved(member.flow)) continue;
      const bool too_fast = clearly_above(flow.rate, slowest_limited);
      const bool lost_bottleneck = flow.limiter.value == r && (!saturated || clearly_above(fastest, flow.rate));
      if (too_fast || lost_bottleneck) outside_.push_back(member.flow);
    }
  }
  for (const FlowIndex index : outside_) add_to_solve(index);
  outside_.clear();
  return to_solve_.size() > before;
}

void FlowNetwork::widen_to_all_connected() {
  ++touch_epoch_;
  for (std::size_t i = 0; i < to_solve_.size(); ++i) {  // grows as it goes
    const LegInfo leg = legs_[flows_[to_solve_[i]].leg];
    for (std::uint32_t u = 0; u < leg.n_uses; ++u) {
      ResourceState& resource = resources_[uses_[leg.first_use + u].resource];
      if (resource.touch_mark == touch_epoch_) continue;
      resource.touch_mark = touch_epoch_;
      for (const Member& member : resource.members) add_to_solve(member.flow);
    }
  }
}

void FlowNetwork::apply() {
  const double doubt = must_be_sure_ ? this->doubt() : 0;
  const std::uint64_t first_turn = engine_.take_turn();
  for (const FlowIndex index : to_solve_) {
    Flow& flow = flows_[index];
    regroup(flow.limiter);
    regroup(flow.decided_limiter);
    const double before = flow.rate;
    // The rate is unchanged except for rounding: leave the flow and its event alone.
    if (flow.rate > 0 && std::abs(flow.decided - flow.rate) <= flow.rate * same_rate)
      set_limiter(flow, flow.decided_limiter);
    else
      set_rate(index, flow.decided, flow.decided_limiter);
    if (copies_ > 1 && !is_exact_) flow_is_exact_[index] = 0;
    if (must_be_sure_ && !(copies_ > 1 && flow_is_exact_[index] != 0)) expect_sure(flow, before, doubt);
    if (flow.limiter == cap(flow.leg).resource && !flow.is_scheduled) schedule(index);  // it has no group
  }
  schedule_first_of_groups(first_turn);
  check_rates();
  if (must_be_sure_) expect_sure_rates();
}

// By how much a rate may be off, relatively. A share s is what others leave of a capacity C, divided among those that
// have it. They have no more than s each, so of n flows s is at least C / n: n roundings of C, of 2^-53 each, are n^2
// of s. Four times as much, for what is off in the shares of the others.
double FlowNetwork::doubt() const {
  std::size_t most = 1;
  for (const std::uint32_t r : touched_) most = std::max(most, resources_[r].members.size());
  const auto n = static_cast<double>(most) * copies_ + 1;
  return 4 * n * n * 0x1p-53;
}

// A flow that was decided leaves at the same picosecond if its rate, and what is left of it, are off by that much.
void FlowNetwork::expect_sure(const Flow& flow, double before, double doubt) const {
  const double change = before > 0 ? std::abs(flow.decided - before) / before : 1;
  if (change > doubt && change <= same_rate + noise) throw Unsure{unsure_time};  // is it one rate, or are these two?
  if (flow.since != engine_.now()) return;                                       // it is one, and nothing has changed
  const double time = flow.left / flow.rate * 1e12;
  const double margin = (static_cast<double>(flow.size.count) + flow.left) / flow.rate * 1e12 * doubt;
  const double due = static_cast<double>((flow.due - engine_.now()).count());
  if (whole_picoseconds(time - margin) != due || whole_picoseconds(time + margin) != due) throw Unsure{unsure_time};
}

// If rates are compared with a tolerance they are equal, or differ by more.
void FlowNetwork::expect_sure_rates() const {
  const auto is_unsure = [](double less, double more) {
    return less < more * (1 - noise) && less > more * (1 - 2 * tolerance);
  };
  for (const std::uint32_t r : touched_) {
    const ResourceState& resource = resources_[r];
    double total = 0, fastest = 0;
    for (const Member& member : resource.members) {
      total += flows_[member.flow].rate * weight(member);
      fastest = std::max(fastest, flows_[member.flow].rate);
    }
    if (is_unsure(total, resource.capacity)) throw Unsure{unsure_time};
    for (const Member& member : resource.members)
      if (is_unsure(flows_[member.flow].rate, fastest)) throw Unsure{unsure_time};
  }
}

void FlowNetwork::regroup(ResourceId limiter) {
  if (limiter == no_resource || resources_[limiter.value].is_regrouped) return;
  resources_[limiter.value].is_regrouped = true;
  regrouped_.push_back(limiter.value);
}

// Schedules only the first flows to finish among those that a resource limits. When they leave, the others get other
// rates anyway: thousands of flows over one port make as many events, not their square. The engine takes events
// of one instant best in the order of their turns: first those taken before `first_turn`, then those of this settle(),
// which were taken in the order of to_solve_.
void FlowNetwork::schedule_first_of_groups(std::uint64_t first_turn) {
  for (const std::uint32_t r : regrouped_) {
    ResourceState& resource = resources_[r];
    resource.is_regrouped = false;
    const std::size_t before = first_due_.size();
    SimTime first = SimTime::max();
    for (const Member& member : resource.members) {
      const Flow& flow = flows_[member.flow];
      if (flow.limiter.value != r || flow.due > first) continue;
      if (flow.due < first) first_due_.resize(before);
      first = flow.due;
      if (!flow.is_scheduled && flow.turn < first_turn) first_due_.push_back(member.flow);
    }
    resource.first_due = first;
  }
  regrouped_.clear();
  std::sort(first_due_.begin(), first_due_.end(),
            [&](FlowIndex a, FlowIndex b) { return flows_[a].turn < flows_[b].turn; });
  for (const FlowIndex index : first_due_) schedule(index);
  first_due_.clear();
  for (const FlowIndex index : to_solve_) {
    const Flow& flow = flows_[index];
    if (!flow.is_scheduled && flow.turn >= first_turn && flow.due == resources_[flow.limiter.value].first_due)
      schedule(index);
  }
}

void FlowNetwork::check_rates() const {
  for (const std::uint32_t r : touched_) {
    double total = 0;
    for (const Member& member : resources_[r].members) {
      const Flow& flow = flows_[member.flow];
      total += flow.rate * weight(member);
    }
    ensure(total <= resources_[r].capacity * (1 + tolerance), "no link carries more than its bandwidth");
  }
}

}  // namespace ringsim
