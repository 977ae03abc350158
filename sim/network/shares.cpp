#include "sim/network/shares.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

// How often solve() widens its circle before it takes all that is connected: each round solves everything again.
constexpr int max_rounds = 6;

}  // namespace

// --- resources and routes --------------------------------------------------------------------------------------------

void Shares::make_resources(const std::vector<double>& capacities) {
  std::vector<Resource> made(capacities.size());
  for (std::size_t r = 0; r < made.size(); ++r) made[r].capacity = capacities[r];
  resources_ = std::move(made);
}

std::uint32_t Shares::weight_number(double weight) {
  if (weight == weights_[0]) return 0;
  const auto [entry, is_new] = weight_numbers_.try_emplace(weight, static_cast<std::uint32_t>(weights_.size()));
  if (is_new) weights_.push_back(weight);
  if (weights_.size() > 1U << 16)
    throw InputError("", "expected links and devices to carry at most 65536 different shares of a message, found more",
                     "use fewer different device rates, or spread messages over fewer paths");
  return entry->second;
}

Shares::Route Shares::add_route(std::span<const Wanted> uses) {
  ensure(uses.size() < 1U << 16, "a route has less than 2^16 resources");
  routes_.push_back(
      {.first_use = static_cast<std::uint32_t>(uses_.size()), .n_uses = static_cast<std::uint32_t>(uses.size())});
  for (const Wanted& each : uses) {
    has_whole_weights_ = has_whole_weights_ && each.weight == std::floor(each.weight);
    uses_.push_back({.resource = each.resource, .weight = weight_number(each.weight * copies_)});
  }
  return static_cast<Route>(routes_.size() - 1);
}

void Shares::set_cap(Route route, const Cap& cap) {
  if (caps_.size() <= route) caps_.resize(route + 1);
  caps_[route] = cap;
}

// As solve() works it out, and choose_limiter().
Shares::Decision Shares::alone(Route route) const {
  const std::span<const Use> its = uses(route);
  const Cap most = cap(route);
  Decision alone{.rate = most.rate, .limiter = most.resource};
  for (const Use& use : its) alone.rate = std::min(alone.rate, capacity(use.resource) / weight(use));
  const auto is_full = [&](const Use& use) {
    const double taken = alone.rate * weight(use);
    return (capacity(use.resource) - taken) / taken <= full;
  };
  if (alone.rate < most.rate) alone.limiter = {std::find_if(its.begin(), its.end(), is_full)->resource};
  return alone;
}

// --- flows -----------------------------------------------------------------------------------------------------------

void Shares::make(Flow flow, Route route) {
  if (flows_.size() <= flow) flows_.resize(flow + 1);
  FlowState& made = flows_[flow];
  made.route = route;
  made.rate = -1;
  made.limiter = no_resource;
  made.is_member = false;
  made.is_unsure = false;
  if (copies_ == 1) return;
  flow_is_exact_.resize(flows_.size());
  flow_is_exact_[flow] = 1;
}

void Shares::enter(Flow index) {
  FlowState& flow = flows_[index];
  const std::span<const Use> its = uses_of(flow);
  flow.is_member = true;
  if (flow.n_places < its.size()) {
    flow.first_place = static_cast<std::uint32_t>(places_.size());
    flow.n_places = static_cast<std::uint16_t>(its.size());
    places_.resize(places_.size() + its.size());
  }
  for (std::uint32_t u = 0; u < its.size(); ++u) {
    std::vector<Member>& members = resources_[its[u].resource].members;
    places_[flow.first_place + u] = static_cast<std::uint32_t>(members.size());
    members.push_back({index, static_cast<std::uint16_t>(u), static_cast<std::uint16_t>(its[u].weight)});
  }
}

void Shares::leave(Flow index) {
  FlowState& flow = flows_[index];
  const std::span<const Use> its = uses_of(flow);
  flow.is_member = false;
  if (flow.limiter != no_resource) --resources_[flow.limiter.value].n_limited;  // it is still to be told
  for (std::uint32_t u = 0; u < its.size(); ++u) {
    Resource& resource = resources_[its[u].resource];
    const std::uint32_t place = places_[flow.first_place + u];
    const Member& last = resource.members.back();
    places_[flows_[last.flow].first_place + last.use] = place;
    resource.members[place] = last;
    resource.members.pop_back();
    // If the resource limits no member, more room changes nothing.
    if (resource.n_limited > 0) mark_dirty(its[u].resource);
  }
}

bool Shares::is_alone(Flow flow) const {
  const std::span<const Use> its = uses_of(flows_[flow]);
  if (copies_ > 1 && !has_whole_weights_ && !its.empty()) return false;
  return std::all_of(its.begin(), its.end(),
                     [&](const Use& use) { return resources_[use.resource].members.size() == 1; });
}

void Shares::take(Flow flow, double rate, ResourceId limiter) {
  flows_[flow].rate = rate;
  take_limiter(flow, limiter);
}

void Shares::take_limiter(Flow index, ResourceId limiter) {
  FlowState& flow = flows_[index];
  if (flow.limiter == limiter) return;
  if (flow.is_member) {
    if (flow.limiter != no_resource) --resources_[flow.limiter.value].n_limited;
    ++resources_[limiter.value].n_limited;
  }
  flow.limiter = limiter;
}

// --- solving ---------------------------------------------------------------------------------------------------------

void Shares::mark_dirty(std::uint32_t resource) {
  if (resources_[resource].is_dirty) return;
  resources_[resource].is_dirty = true;
  dirty_.push_back(resource);
}

void Shares::begin() {
  ++epoch_;
  to_solve_.clear();
}

void Shares::add(Flow flow) {
  if (to_be_solved(flow)) return;
  flows_[flow].solve_mark = epoch_;
  to_solve_.push_back(flow);
}

void Shares::add_new(Flow flow) {
  add(flow);
  for (const Use& use : uses_of(flows_[flow]))
    if (resources_[use.resource].n_limited > 0) mark_dirty(use.resource);
}

bool Shares::solve() {
  // Those whose share of a changed resource it was that held them: they may go faster, or must make room.
  for (const std::uint32_t r : dirty_) {
    resources_[r].is_dirty = false;
    for (const Member& member : resources_[r].members)
      if (flows_[member.flow].limiter.value == r) add(member.flow);
  }
  dirty_.clear();
  if (to_solve_.empty()) return false;
  for (int round = 1;; ++round) {
    fill();
    if (!widen()) break;
    if (round == max_rounds) widen_to_all_connected();
  }
  if (copies_ > 1 && !is_exact_)
    for (const Flow flow : to_solve_) flow_is_exact_[flow] = 0;
  return true;
}

void Shares::touch(std::uint32_t r) {
  Resource& resource = resources_[r];
  resource.touch_mark = touch_epoch_;
  resource.open_weight = 0;
  resource.n_open = 0;
  resource.residual = resource.capacity;
  for (const Member& member : resource.members) {
    const FlowState& flow = flows_[member.flow];
    if (flow.solve_mark == epoch_) {
      resource.open_weight += weight(member);
      ++resource.n_open;
    } else {
      subtract(resource.residual, weight(member), flow.rate);
    }
  }
  touched_.push_back(r);
  if (copies_ > 1) is_exact_ = is_exact_ && is_exact_on(resource);
}

// Subtracts the copies one by one, as an unfolded run does, so that rounding is the same.
inline void Shares::subtract(double& residual, double weight, double rate) const {
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
bool Shares::is_exact_on(const Resource& resource) const {
  double outside = -1;
  for (const Member& member : resource.members) {
    const FlowState& flow = flows_[member.flow];
    if (flow_is_exact_[member.flow] == 0 || member.weight != resource.members.front().weight) return false;
    if (flow.solve_mark == epoch_) continue;
    if (outside >= 0 && flow.rate != outside) return false;
    outside = flow.rate;
  }
  return true;
}

bool Shares::Level::operator<(const Level& other) const {
  if (share > other.share) return true;
  if (share < other.share) return false;
  return is_cap != other.is_cap ? other.is_cap : index > other.index;
}

// Touches the resources of a flow that is to be solved. Of those that no other flow uses only the narrowest can decide
// it (the first of those in the order of levels): the rest are left alone.
void Shares::touch_uses(const FlowState& flow) {
  Level narrowest{.share = std::numeric_limits<double>::infinity()};
  for (const Use& use : uses_of(flow)) {
    const Resource& resource = resources_[use.resource];
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
void Shares::fill() {
  ++touch_epoch_;
  touched_.clear();
  levels_.clear();
  is_exact_ = copies_ > 1 && has_whole_weights_;
  undecided_ = to_solve_.size();
  flows_solved_ += static_cast<std::int64_t>(to_solve_.size());
  for (const Flow index : to_solve_) {
    FlowState& flow = flows_[index];
    flow.decided = -1;
    touch_uses(flow);
    if (!caps_.empty() && caps_[flow.route].resource != no_resource)
      levels_.push_back({caps_[flow.route].rate, index, true});
  }
  const auto share = [](const Resource& resource) { return std::max(resource.residual, 0.0) / resource.open_weight; };
  for (const std::uint32_t r : touched_) levels_.push_back({share(resources_[r]), r, false});
  std::make_heap(levels_.begin(), levels_.end());
  const double doubt = must_be_sure_ ? this->doubt() : 0;
  while (undecided_ > 0) {
    ensure(!levels_.empty(), "every flow has a bottleneck");
    std::pop_heap(levels_.begin(), levels_.end());
    Level level = levels_.back();
    levels_.pop_back();
    if (level.is_cap) {
      FlowState& flow = flows_[level.index];
      if (flow.decided >= 0) continue;
      if (must_be_sure_) flow.is_unsure = !is_exact_ && cap_is_unsure(flow);
      decide(level.index, level.share, cap(flow.route).resource);
      continue;
    }
    const Resource& resource = resources_[level.index];
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
      FlowState& flow = flows_[member.flow];
      choose_limiter(flow, level.share);
      if (must_be_sure_) flow.is_unsure = !is_exact_ && limiter_is_unsure(flow, level.share, doubt);
    }
    for (const Member& member : resource.members)
      if (is_open(member)) decide(member.flow, level.share, flows_[member.flow].decided_limiter);
  }
}

// By how much a resource has more room, relatively, than all that is still to be decided there takes at that rate.
double Shares::room(const Use& use, double rate) const {
  const Resource& resource = resources_[use.resource];
  const bool is_touched = resource.touch_mark == touch_epoch_;  // else no other flow uses it
  const double taken = rate * (is_touched ? resource.open_weight : weight(use));
  return ((is_touched ? resource.residual : resource.capacity) - taken) / taken;
}

// Chooses the resource that limits the flow: the first on its route that is full at the flow's new rate, so that the
// choice does not depend on the order of resources and flows. A flow that is alone gets the same one.
void Shares::choose_limiter(FlowState& flow, double rate) {
  const std::span<const Use> its = uses_of(flow);
  const auto found = std::find_if(its.begin(), its.end(), [&](const Use& use) { return !(room(use, rate) > full); });
  ensure(found != its.end(), "every flow has a bottleneck");
  flow.decided_limiter = {found->resource};
}

// True if the choice of the limiter depends on an order. It does not among resources that are equally full except for
// rounding. It may among those that are nearly so: the more of their other flows are decided, the more room they have.
bool Shares::limiter_is_unsure(const FlowState& flow, double rate, double doubt) const {
  const std::span<const Use> its = uses_of(flow);
  const double alike = doubt < full / 2 ? doubt : -1;  // else even those that are full alike may seem not to be
  if (cap(flow.route).rate <= rate * (1 + 2 * tolerance)) return true;  // which of the two is less?
  return its.size() > 1 && std::any_of(its.begin(), its.end(), [&](const Use& use) {
           const double more = room(use, rate);
           return more > alike && more <= 2 * tolerance;
         });
}

// As limiter_is_unsure(), for a flow that its cap limits: true if a resource that it shares may be as full.
bool Shares::cap_is_unsure(const FlowState& flow) const {
  const std::span<const Use> its = uses_of(flow);
  const double rate = cap(flow.route).rate;
  return std::any_of(its.begin(), its.end(), [&](const Use& use) { return room(use, rate) <= 2 * tolerance; });
}

void Shares::decide(Flow index, double rate, ResourceId limiter) {
  FlowState& flow = flows_[index];
  flow.decided = rate;
  flow.decided_limiter = limiter;
  --undecided_;
  for (const Use& use : uses_of(flow)) {
    Resource& resource = resources_[use.resource];
    if (resource.touch_mark == touch_epoch_) {
      subtract(resource.residual, weight(use), rate);
      resource.open_weight -= weight(use);
      --resource.n_open;
    } else {  // check_rates() does not see it
      ensure(rate * weight(use) <= resource.capacity * (1 + tolerance), "no link carries more than its bandwidth");
    }
  }
}

// Takes in the flows outside that the solution leaves without a bottleneck, or above those that it slows down.
// False if there is none: then every flow has its bottleneck, which is what max-min fair means.
bool Shares::widen() {
  const std::size_t before = to_solve_.size();
  for (const std::uint32_t r : touched_) {
    const Resource& resource = resources_[r];
    double total = 0, fastest = 0;
    double slowest_limited = std::numeric_limits<double>::infinity();  // of those that this resource holds back
    bool outsiders = false;
    for (const Member& member : resource.members) {
      const FlowState& flow = flows_[member.flow];
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
      const FlowState& flow = flows_[member.flow];
      if (to_be_solved(member.flow)) continue;
      const bool too_fast = clearly_above(flow.rate, slowest_limited);
      const bool lost_bottleneck = flow.limiter.value == r && (!saturated || clearly_above(fastest, flow.rate));
      if (too_fast || lost_bottleneck) outside_.push_back(member.flow);
    }
  }
  for (const Flow flow : outside_) add(flow);
  outside_.clear();
  return to_solve_.size() > before;
}

void Shares::widen_to_all_connected() {
  ++touch_epoch_;
  for (std::size_t i = 0; i < to_solve_.size(); ++i) {  // grows as it goes
    for (const Use& use : uses_of(flows_[to_solve_[i]])) {
      Resource& resource = resources_[use.resource];
      if (resource.touch_mark == touch_epoch_) continue;
      resource.touch_mark = touch_epoch_;
      for (const Member& member : resource.members) add(member.flow);
    }
  }
}

void Shares::check_rates() const {
  for (const std::uint32_t r : touched_) {
    double total = 0;
    for (const Member& member : resources_[r].members) total += flows_[member.flow].rate * weight(member);
    ensure(total <= resources_[r].capacity * (1 + tolerance), "no link carries more than its bandwidth");
  }
}

// A share s is what others leave of a capacity C, divided among those that have it. They have no more than s each, so
// of n flows s is at least C / n: n roundings of C, of 2^-53 each, are n^2 of s. Four times as much, for what is off in
// the shares of the others.
double Shares::doubt() const {
  std::size_t most = 1;
  for (const std::uint32_t r : touched_) most = std::max(most, resources_[r].members.size());
  const auto n = static_cast<double>(most) * copies_ + 1;
  return 4 * n * n * 0x1p-53;
}

// If rates are compared with a tolerance they are equal, or differ by more.
bool Shares::rates_are_sure() const {
  const auto is_unsure = [](double less, double more) {
    return less < more * (1 - noise) && less > more * (1 - 2 * tolerance);
  };
  for (const std::uint32_t r : touched_) {
    const Resource& resource = resources_[r];
    double total = 0, fastest = 0;
    for (const Member& member : resource.members) {
      total += flows_[member.flow].rate * weight(member);
      fastest = std::max(fastest, flows_[member.flow].rate);
    }
    if (is_unsure(total, resource.capacity)) return false;
    for (const Member& member : resource.members)
      if (is_unsure(flows_[member.flow].rate, fastest)) return false;
  }
  return true;
}

}  // namespace ringsim
