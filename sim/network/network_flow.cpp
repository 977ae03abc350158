#include "sim/network/network_flow.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

Picoseconds fluid_time(double bytes, double rate) {
  const double time = bytes / rate * 1e12;
  if (time >= 9e18) fail_too_long();
  return Picoseconds{static_cast<std::int64_t>(FlowNetwork::whole_picoseconds(time))};
}

// What was left of a flow is what passed at its last rate; `size` is all of it.
void check_all_left(double left, double rate, Picoseconds time, Bytes size) {
  const double error = std::abs(left - rate * (static_cast<double>(time.count()) * 1e-12));
  ensure(error <= rate * 2e-12 + static_cast<double>(size.count) * FlowNetwork::tolerance,
         "a flow ends when its last byte has left: bytes in equal bytes out");
}

}  // namespace

FlowNetwork::FlowNetwork(NetworkModel model, const Topology& topology, Engine<Event>& engine)
    : topology_(topology), engine_(engine), model_(model), usage_(topology.n_resources()) {}

void FlowNetwork::make_resources() {
  if (!resources_.empty()) return;
  std::vector<ResourceState> made(usage_.size());
  for (std::uint32_t r = 0; r < made.size(); ++r) made[r].capacity = capacity(r);
  resources_ = std::move(made);
}

double FlowNetwork::capacity(std::uint32_t resource) const {
  return resources_.empty() ? static_cast<double>(topology_.resource({resource}).bandwidth.bytes_per_second)
                            : resources_[resource].capacity;
}

std::uint32_t FlowNetwork::weight_number(double weight) {
  if (weight == weights_[0]) return 0;
  const auto [entry, is_new] = weight_numbers_.try_emplace(weight, static_cast<std::uint32_t>(weights_.size()));
  if (is_new) weights_.push_back(weight);
  if (weights_.size() > 1U << 16)
    throw InputError("",
                     "expected at most 65536 different shares of a message that links and devices carry, found more",
                     "give fewer different rates to devices, or spread messages over fewer ways");
  return entry->second;
}

// The least rate so far, and whose it is: of equal ones the first one's.
void FlowNetwork::narrow(double& least, ResourceId& whose, double rate, ResourceId resource) {
  if (rate < least * (1 - full)) whose = resource;
  least = std::min(least, rate);
}

std::uint32_t FlowNetwork::add_leg(const Leg& leg, bool first, bool last) {
  ensure(!leg.links.empty(), "a leg has links");
  LegInfo info;
  Inner inner{.first = static_cast<std::uint32_t>(inner_.size())};
  info.first_use = static_cast<std::uint32_t>(uses_.size());
  Cap cap;
  info.alone = std::numeric_limits<double>::infinity();
  // Several links of a spread leg may leave the source, or enter the destination.
  const NodeId source = topology_.link(leg.links.front()).from, destination = topology_.link(leg.links.back()).to;
  const auto number = static_cast<std::uint32_t>(legs_.size()) + 1;
  // Nobody else uses its resources. If links change, or a flow stands for several, all flows are entered. If
  // tells_all_left_ they need not be; but else the events of one instant would come in another order, and runs under
  // protocols with slots would have other fingerprints.
  bool has_all = !keeps_inner_ && !tells_all_left_ && copies_ == 1;
  std::vector<double>& weights = new_weights_;  // [use] of this leg
  weights.clear();
  for (std::size_t i = 0; i < leg.links.size(); ++i) {
    const Link& link = topology_.link(leg.links[i]);
    const bool is_port = (first && link.from == source) || (last && link.to == destination);
    auto rate = capacity(link.resource.value);
    if (keeps_inner_ && !shares_all_links(model_) && !is_port)
      inner_.push_back({link.resource.value, weight_number(leg.share(i))});
    if (shares_all_links(model_) || is_port) {
      Usage& usage = usage_[link.resource.value];
      if (usage.last_leg != number) {
        has_all = has_all && usage.last_leg == 0;
        usage.last_leg = number;
        usage.last_use = static_cast<std::uint32_t>(uses_.size());
        uses_.push_back({.resource = link.resource.value});
        weights.push_back(0);
      }
      double& weight = weights[usage.last_use - info.first_use];
      weight += leg.share(i);
      rate /= weight;
    } else {
      rate /= leg.share(i);
      narrow(cap.rate, cap.resource, rate, link.resource);
    }
    narrow(info.alone, info.alone_resource, rate, link.resource);
  }
  inner.n = static_cast<std::uint32_t>(inner_.size()) - inner.first;
  if (keeps_inner_) inner_of_.push_back(inner);
  info.n_uses = static_cast<std::uint32_t>(uses_.size()) - info.first_use;
  ensure(info.n_uses <= 1U << 16, "a leg has 2^16 links at most");
  info.latency = leg.latency + leg.beyond;
  info.is_whole_path = first && last;
  info.tells_left = tells_all_left_ || !info.is_whole_path;
  for (std::uint32_t u = info.first_use; u < uses_.size(); ++u) {
    const double each = weights[u - info.first_use];
    has_whole_weights_ = has_whole_weights_ && each == std::floor(each);
    uses_[u].weight = weight_number(each * copies_);
    if (const std::uint32_t owner = usage_[uses_[u].resource].owner; owner != none) open_up(owner);
  }
  if (has_all) {
    for (std::uint32_t u = info.first_use; u < uses_.size(); ++u) usage_[uses_[u].resource].owner = number - 1;
    if (free_own_legs_.empty()) {
      ensure(own_legs_.size() < own_event, "a run has less than 2^31 legs");
      free_own_legs_.push_back(static_cast<std::uint32_t>(own_legs_.size()));
      own_legs_.emplace_back();
      own_carried_.emplace_back();
    }
    info.own = free_own_legs_.back();
    free_own_legs_.pop_back();
    own_carried_[info.own] = {};
    OwnLeg& own = own_legs_[info.own];
    own = {.leg = number - 1,
           .stamp = own.stamp,  // events of who had it before stay void
           .latency = info.latency,
           .limiter = info.alone_resource,
           .tells_left = info.tells_left};
  }
  legs_.push_back(info);
  if (!shares_all_links(model_)) caps_.push_back(cap);
  if (copies_ > 1) add_rate_with_copies(number - 1);
  return number - 1;
}

// As solve() works it out, and choose_limiter().
void FlowNetwork::add_rate_with_copies(std::uint32_t number) {
  const LegInfo& leg = legs_[number];
  const Cap cap = this->cap(number);
  const auto first = uses_.begin() + leg.first_use, end = first + leg.n_uses;
  Alone alone{.rate = cap.rate, .limiter = cap.resource};
  for (auto use = first; use != end; ++use) alone.rate = std::min(alone.rate, capacity(use->resource) / weight(*use));
  const auto is_full = [&](const Use& use) {
    const double taken = alone.rate * weight(use);
    return (capacity(use.resource) - taken) / taken <= full;
  };
  if (alone.rate < cap.rate) alone.limiter = {std::find_if(first, end, is_full)->resource};
  with_copies_.push_back(alone);
}

// The leg is no longer alone on its resources, or has a second piece: from now on what is on it is entered there.
void FlowNetwork::open_up(std::uint32_t number) {
  LegInfo& leg = legs_[number];
  OwnLeg& own = own_legs_[leg.own];
  make_resources();
  const bool is_moving = this->is_moving(own);
  for (std::uint32_t u = leg.first_use; u < leg.first_use + leg.n_uses; ++u) {
    Carried& carried = resources_[uses_[u].resource].carried;
    carried += carried_by(leg, uses_[u]);
    if (is_moving) carried.busy -= own.time;  // counted again as it leaves
    usage_[uses_[u].resource].owner = none;
  }
  free_own_legs_.push_back(std::exchange(leg.own, none));
  if (!own.is_taken()) return;
  if (watcher_ && !is_moving) tell_moved(own);
  ++own.stamp;
  if (!is_moving && !leg.tells_left) return land(number, own.piece, own.limiter, false, own.until + leg.latency);
  const FlowIndex index = new_flow(number, own.size, own.piece);
  Flow& flow = flows_[index];
  flow.since = own.until - own.time;
  flow.rate = leg.alone;
  flow.limiter = leg.alone_resource;
  if (is_moving) {
    enter(index);
    for (std::uint32_t u = leg.first_use; u < leg.first_use + leg.n_uses; ++u)
      resources_[uses_[u].resource].busy_since = flow.since;
    ++resources_[flow.limiter.value].n_limited;
    opened_.push_back(index);
  }
  flow.due = own.until;
  take_turn(index);
  schedule(index);
}

void FlowNetwork::take_turn(FlowIndex index) {
  flows_[index].turn = engine_.take_turn();
  if (must_be_sure_) turn_taken_[index] = engine_.now();
}

FlowNetwork::FlowIndex FlowNetwork::new_flow(std::uint32_t leg, Bytes size, std::uint64_t piece) {
  FlowIndex index = 0;
  if (free_flows_.empty()) {
    ensure(flows_.size() < landing_event, "a run has less than 2^30 flows under way");
    index = static_cast<FlowIndex>(flows_.size());
    flows_.emplace_back();
  } else {
    index = free_flows_.back();
    free_flows_.pop_back();
  }
  Flow& flow = flows_[index];
  flow.piece = piece;
  flow.leg = leg;
  flow.size = size;
  flow.left = static_cast<double>(size.count);
  flow.rate = -1;
  flow.since = engine_.now();
  if (must_be_sure_) {
    turn_taken_.resize(flows_.size());
    turn_taken_[index] = engine_.now();
  }
  if (copies_ > 1) {
    flow_is_exact_.resize(flows_.size());
    flow_is_exact_[index] = 1;
  }
  flow.limiter = no_resource;
  flow.is_member = false;
  flow.is_unsure = false;
  flow.is_scheduled = false;
  return index;
}

void FlowNetwork::start(std::uint32_t leg, Bytes size, std::uint64_t piece) {
  const std::uint32_t own = legs_[leg].own;
  if (own != none && size.count > 0 && !own_legs_[own].is_taken())
    go_alone(own, size, piece);
  else
    start_flow(leg, size, piece);
}

// Apart, so that what pieces need which have a leg for themselves stays small.
[[gnu::noinline]] void FlowNetwork::start_flow(std::uint32_t leg, Bytes size, std::uint64_t piece) {
  if (legs_[leg].own != none && size.count > 0) open_up(leg);
  const FlowIndex index = new_flow(leg, size, piece);
  if (size.count == 0) {  // nothing to share: it has left as it starts
    flows_[index].rate = 0;
    engine_.at(engine_.now(), {Event::Kind::flow, index, flows_[index].stamp});
    return;
  }
  join(index);
  new_flows_.push_back(index);
}

// The piece has its leg for itself: nothing to work out. Unless it is to be told when it has left, one event is enough.
inline void FlowNetwork::go_alone(std::uint32_t number, Bytes size, std::uint64_t piece) {
  OwnLeg& own = own_legs_[number];
  if (own.size != size) take_size(own, size);  // most pieces are as large as the one before
  ++own.stamp;
  own.piece = piece;
  own.until = SimTime{add(engine_.now().time_since_epoch(), own.time)};
  ++own.alike;
  engine_.at(own.tells_left ? own.until : SimTime{add(own.until.time_since_epoch(), own.latency)},
             {Event::Kind::flow, number | own_event, own.stamp});
}

[[gnu::noinline]] void FlowNetwork::take_size(OwnLeg& own, Bytes size) {
  const LegInfo& leg = legs_[own.leg];
  count_alike(own, own_carried_[leg.own]);
  own.alike = 0;
  own.time = time_alone(leg, size);
  own.size = size;
  check_all_left(static_cast<double>(size.count), leg.alone, own.time, size);
}

void FlowNetwork::count_alike(const OwnLeg& own, Carried& carried) {
  carried.pieces += own.alike;
  carried.bytes += static_cast<double>(own.alike) * static_cast<double>(own.size.count);
  carried.busy += own.alike * own.time;
}

// What crossed a resource of the leg while the leg has had it for itself.
Carried FlowNetwork::carried_by(const LegInfo& leg, const Use& use) const {
  Carried sum = own_carried_[leg.own];
  count_alike(own_legs_[leg.own], sum);
  sum.bytes *= weight(use);
  return sum;
}

void FlowNetwork::join(FlowIndex index) {
  enter(index);
  const LegInfo& leg = legs_[flows_[index].leg];
  const auto size = static_cast<double>(flows_[index].size.count);
  for (std::uint32_t u = leg.first_use; u < leg.first_use + leg.n_uses; ++u) {
    Carried& carried = resources_[uses_[u].resource].carried;
    carried.pieces += copies_;
    carried.bytes += size * weight(uses_[u]);
  }
}

void FlowNetwork::enter(FlowIndex index) {
  Flow& flow = flows_[index];
  const LegInfo& leg = legs_[flow.leg];
  make_resources();
  flow.is_member = true;
  if (flow.n_places < leg.n_uses) {
    flow.first_place = static_cast<std::uint32_t>(places_.size());
    flow.n_places = leg.n_uses;
    places_.resize(places_.size() + leg.n_uses);
  }
  for (std::uint32_t u = 0; u < leg.n_uses; ++u) {
    const Use& use = uses_[leg.first_use + u];
    ResourceState& resource = resources_[use.resource];
    if (resource.members.empty()) resource.busy_since = engine_.now();
    places_[flow.first_place + u] = static_cast<std::uint32_t>(resource.members.size());
    resource.members.push_back({index, static_cast<std::uint16_t>(u), static_cast<std::uint16_t>(use.weight)});
  }
}

void FlowNetwork::leave(FlowIndex index) {
  Flow& flow = flows_[index];
  const LegInfo& leg = legs_[flow.leg];
  flow.is_member = false;
  if (flow.limiter != no_resource) --resources_[flow.limiter.value].n_limited;  // it is still to be told
  for (std::uint32_t u = 0; u < leg.n_uses; ++u) {
    const std::uint32_t r = uses_[leg.first_use + u].resource;
    ResourceState& resource = resources_[r];
    const std::uint32_t place = places_[flow.first_place + u];
    const Member& last = resource.members.back();
    places_[flows_[last.flow].first_place + last.use] = place;
    resource.members[place] = last;
    resource.members.pop_back();
    if (resource.members.empty()) resource.carried.busy += engine_.now() - resource.busy_since;
    // If the resource limits no member, more room changes nothing.
    if (resource.n_limited > 0) mark_dirty(r);
  }
}

// But for its copies. Only if sums of their shares are exact: else solve() looks whether they decide on anything.
bool FlowNetwork::is_alone(const Flow& flow) const {
  const LegInfo& leg = legs_[flow.leg];
  if (copies_ > 1 && !has_whole_weights_ && leg.n_uses > 0) return false;
  for (std::uint32_t u = 0; u < leg.n_uses; ++u)
    if (resources_[uses_[leg.first_use + u].resource].members.size() > 1) return false;
  return true;
}

void FlowNetwork::mark_dirty(std::uint32_t resource) {
  if (resources_[resource].is_dirty) return;
  resources_[resource].is_dirty = true;
  dirty_.push_back(resource);
}

void FlowNetwork::schedule(FlowIndex index) {
  Flow& flow = flows_[index];
  engine_.at(flow.due, {Event::Kind::flow, index, flow.stamp}, flow.turn);
  flow.is_scheduled = true;
}

void FlowNetwork::set_limiter(Flow& flow, ResourceId limiter) {
  if (flow.limiter == limiter) return;
  if (flow.limiter != no_resource) --resources_[flow.limiter.value].n_limited;
  ++resources_[limiter.value].n_limited;
  flow.limiter = limiter;
}

void FlowNetwork::set_rate(FlowIndex index, double rate, ResourceId limiter) {
  ensure(rate > 0, "a flow that has bytes left has a rate");
  Flow& flow = flows_[index];
  const double before = flow.left;
  flow.left = bytes_left(flow);
  if (watcher_) tell_moved(flow, before - flow.left);
  flow.since = engine_.now();
  flow.rate = rate;
  set_limiter(flow, limiter);
  ++flow.stamp;
  flow.is_scheduled = false;
  flow.due = SimTime{add(engine_.now().time_since_epoch(), time_left(flow))};
  take_turn(index);
}

// Since the flow's last change of rate.
void FlowNetwork::tell_moved(const Flow& flow, double bytes) const {
  if (bytes > 0) watcher_({.piece = flow.piece, .begin = flow.since, .end = engine_.now(), .bytes = bytes});
}

// All of a piece that has had its leg for itself.
void FlowNetwork::tell_moved(const OwnLeg& own) const {
  watcher_({.piece = own.piece,
            .begin = own.until - own.time,
            .end = own.until,
            .bytes = static_cast<double>(own.size.count)});
}

// A flow that has its leg for itself from its first byte: exact, and equal in `ideal` and `fair`.
Picoseconds FlowNetwork::time_alone(const LegInfo& leg, Bytes size) {
  if (leg.alone == std::floor(leg.alone)) return transfer_time(size, {static_cast<std::int64_t>(leg.alone)});
  return fluid_time(static_cast<double>(size.count), leg.alone);
}

// Whole bytes until something has moved, so that a flow which is alone from its start is exact.
double FlowNetwork::bytes_left(const Flow& flow) const {
  if (flow.rate <= 0) return flow.left;
  const double seconds = static_cast<double>((engine_.now() - flow.since).count()) / 1e12;
  return std::max(0.0, flow.left - flow.rate * seconds);
}

Picoseconds FlowNetwork::time_left(const Flow& flow) const {
  const LegInfo& leg = legs_[flow.leg];
  if (flow.rate == leg.alone && flow.left == static_cast<double>(flow.size.count)) return time_alone(leg, flow.size);
  return fluid_time(flow.left, flow.rate);
}

std::optional<Told> FlowNetwork::due(Event event) {
  if ((event.id & own_event) != 0) return own_due(event);
  if ((event.id & landing_event) != 0) return arrived(event.id & ~landing_event);
  return flow_due(event);
}

inline std::optional<Told> FlowNetwork::own_due(Event event) {
  OwnLeg& own = own_legs_[event.id & ~own_event];
  if (own.stamp != event.stamp) return std::nullopt;  // a flow has taken its place
  if (watcher_) tell_moved(own);
  ++own.stamp;
  const Told told{.piece = own.piece,
                  .has_left = own.tells_left,
                  .has_arrived = !own.tells_left || own.latency.count() == 0,
                  .limiter = own.limiter,
                  .latency = own.latency,
                  .turn = own.until - own.time};
  if (!told.has_arrived) land(own.leg, own.piece, own.limiter, false, later(own.latency));
  return told;
}

// Apart, as start_flow().
[[gnu::noinline]] std::optional<Told> FlowNetwork::flow_due(Event event) {
  Flow& flow = flows_[event.id];
  if (flow.stamp != event.stamp) return std::nullopt;  // overtaken by a change of rate
  if (flow.is_member) {
    check_all_left(flow.left, flow.rate, engine_.now() - flow.since, flow.size);
    if (watcher_) tell_moved(flow, flow.left);
    leave(event.id);
  }
  ++flow.stamp;
  flow.rate = -1;
  free_flows_.push_back(event.id);
  const LegInfo& leg = legs_[flow.leg];
  const bool has_arrived = leg.latency.count() == 0;
  if (!has_arrived) land(flow);
  if (!has_arrived && !leg.tells_left) return std::nullopt;
  return Told{.piece = flow.piece,
              .has_left = leg.tells_left,
              .has_arrived = has_arrived,
              .limiter = flow.limiter,
              .latency = leg.latency,
              .turn = must_be_sure_ ? turn_taken_[event.id] : SimTime{},
              .is_unsure = flow.is_unsure};
}

// All of it has left: it arrives a latency later.
void FlowNetwork::land(const Flow& flow) {
  land(flow.leg, flow.piece, flow.limiter, flow.is_unsure, later(legs_[flow.leg].latency));
}

void FlowNetwork::land(std::uint32_t leg, std::uint64_t piece, ResourceId limiter, bool is_unsure, SimTime due) {
  if (free_landing_ == none) {
    if (landings_.empty()) landings_.reserve(flows_.size());  // so that it need not move, if all arrive at one time
    ensure(landings_.size() < landing_event, "a run has less than 2^30 pieces between their links' ends");
    free_landing_ = landings_.size();
    landings_.push_back({.piece = none});
  }
  const auto index = static_cast<std::uint32_t>(free_landing_);
  free_landing_ = landings_[index].piece;
  landings_[index] = {.piece = piece, .leg = leg, .limiter = limiter};
  if (must_be_sure_) {
    landing_orders_.resize(landings_.size());
    landing_orders_[index] = {.turn = engine_.now(), .is_unsure = is_unsure};
  }
  engine_.at(due, {Event::Kind::flow, index | landing_event, 0});
}

Told FlowNetwork::arrived(std::uint32_t index) {
  const Landing landed = std::exchange(landings_[index], {.piece = free_landing_});
  const Order order = must_be_sure_ ? landing_orders_[index] : Order{};
  free_landing_ = index;
  return {.piece = landed.piece,
          .has_arrived = true,
          .limiter = landed.limiter,
          .latency = legs_[landed.leg].latency,
          .turn = order.turn,
          .is_unsure = order.is_unsure};
}

// What crossed a resource that one leg has for itself.
void FlowNetwork::add_own_leg(std::uint32_t resource, Carried& sum) const {
  const LegInfo& leg = legs_[usage_[resource].owner];
  const OwnLeg& own = own_legs_[leg.own];
  for (std::uint32_t u = leg.first_use; u < leg.first_use + leg.n_uses; ++u) {
    if (uses_[u].resource != resource) continue;
    sum += carried_by(leg, uses_[u]);
    if (!is_moving(own)) continue;
    const Picoseconds rest = own.until - engine_.now();
    sum.busy -= rest;
    const double bytes = leg.alone * (static_cast<double>(rest.count()) / 1e12);
    sum.bytes -= std::min(bytes, static_cast<double>(own.size.count)) * weight(uses_[u]);
  }
}

Carried FlowNetwork::carried(ResourceId resource) const {
  Carried sum;
  if (!resources_.empty()) {
    const ResourceState& state = resources_[resource.value];
    sum = state.carried;
    if (!state.members.empty()) sum.busy += engine_.now() - state.busy_since;
    for (const Member& member : state.members) sum.bytes -= bytes_left(flows_[member.flow]) * weight(member);
  }
  if (usage_[resource.value].owner != none) add_own_leg(resource.value, sum);
  return sum;
}

double FlowNetwork::rate_of(std::uint64_t piece) const {
  for (const Flow& flow : flows_)
    if (flow.rate > 0 && flow.piece == piece) return flow.rate;
  for (const OwnLeg& own : own_legs_)
    if (is_moving(own) && own.piece == piece) return legs_[own.leg].alone;
  return 0;
}

}  // namespace ringsim
