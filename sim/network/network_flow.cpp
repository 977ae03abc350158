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
  ensure(error <= rate * 2e-12 + static_cast<double>(size.count) * Shares::tolerance,
         "a flow ends when its last byte has left: bytes in equal bytes out");
}

}  // namespace

FlowNetwork::FlowNetwork(NetworkModel model, const Topology& topology, Engine<Event>& engine, const NetworkUse& use)
    : topology_(topology),
      engine_(engine),
      model_(model),
      use_(use),
      shares_(use.copies, use.any_order),
      usage_(topology.n_resources()) {}

void FlowNetwork::make_resources() {
  if (shares_.has_resources()) return;
  std::vector<double> capacities;
  capacities.reserve(usage_.size());
  for (std::uint32_t r = 0; r < usage_.size(); ++r) capacities.push_back(capacity(r));
  shares_.make_resources(capacities);
  accounts_.resize(usage_.size());
}

double FlowNetwork::capacity(std::uint32_t resource) const {
  return shares_.has_resources() ? shares_.capacity(resource)
                                 : static_cast<double>(topology_.resource({resource}).bandwidth.bytes_per_second);
}

// The least rate so far, and whose it is: of equal ones the first one's.
void FlowNetwork::narrow(double& least, ResourceId& whose, double rate, ResourceId resource) {
  if (rate < least * (1 - Shares::full)) whose = resource;
  least = std::min(least, rate);
}

std::uint32_t FlowNetwork::add_leg(const Leg& leg, bool first, bool last) {
  ensure(!leg.links.empty(), "a leg has links");
  LegInfo info;
  Inner inner{.first = static_cast<std::uint32_t>(inner_.size())};
  Shares::Cap cap;
  info.alone = std::numeric_limits<double>::infinity();
  // Several links of a spread leg may leave the source, or enter the destination.
  const NodeId source = topology_.link(leg.links.front()).from, destination = topology_.link(leg.links.back()).to;
  const auto number = static_cast<std::uint32_t>(legs_.size()) + 1;
  // Nobody else uses its resources. If links change, or a flow stands for several, all flows are entered. If
  // use_.tells_left they need not be; but else the events of one instant would come in another order, and runs under
  // protocols with slots would have other fingerprints.
  bool has_all = !use_.may_change && !use_.tells_left && shares_.copies() == 1;
  wanted_.clear();
  for (std::size_t i = 0; i < leg.links.size(); ++i) {
    const Link& link = topology_.link(leg.links[i]);
    const bool is_port = (first && link.from == source) || (last && link.to == destination);
    auto rate = capacity(link.resource.value);
    if (use_.may_change && !shares_all_links(model_) && !is_port)
      inner_.push_back({link.resource.value, shares_.weight_number(leg.share(i))});
    if (shares_all_links(model_) || is_port) {
      Usage& usage = usage_[link.resource.value];
      if (usage.last_leg != number) {
        has_all = has_all && usage.last_leg == 0;
        usage.last_leg = number;
        usage.last_use = static_cast<std::uint32_t>(wanted_.size());
        wanted_.push_back({.resource = link.resource.value, .weight = 0});
      }
      double& weight = wanted_[usage.last_use].weight;
      weight += leg.share(i);
      rate /= weight;
    } else {
      rate /= leg.share(i);
      narrow(cap.rate, cap.resource, rate, link.resource);
    }
    narrow(info.alone, info.alone_resource, rate, link.resource);
  }
  inner.n = static_cast<std::uint32_t>(inner_.size()) - inner.first;
  if (use_.may_change) inner_of_.push_back(inner);
  info.latency = leg.latency + leg.beyond;
  info.is_whole_path = first && last;
  info.tells_left = use_.tells_left || !info.is_whole_path;
  const Shares::Route route = shares_.add_route(wanted_);
  ensure(route == legs_.size(), "a leg and its route have one number");
  if (!shares_all_links(model_)) shares_.set_cap(route, cap);
  for (const Use& use : shares_.uses(route))
    if (const std::uint32_t owner = usage_[use.resource].owner; owner != none) open_up(owner);
  if (has_all) {
    for (const Use& use : shares_.uses(route)) usage_[use.resource].owner = route;
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
    own = {.leg = route,
           .stamp = own.stamp,  // events of who had it before stay void
           .latency = info.latency,
           .limiter = info.alone_resource,
           .tells_left = info.tells_left};
  }
  legs_.push_back(info);
  if (shares_.copies() > 1) {
    make_resources();
    with_copies_.push_back(shares_.alone(route));
  }
  return route;
}

// The leg is no longer alone on its resources, or has a second piece: from now on what is on it is entered there.
void FlowNetwork::open_up(std::uint32_t number) {
  LegInfo& leg = legs_[number];
  OwnLeg& own = own_legs_[leg.own];
  make_resources();
  const bool is_moving = this->is_moving(own);
  for (const Use& use : shares_.uses(number)) {
    Carried& carried = accounts_[use.resource].carried;
    carried += carried_by(leg, use);
    if (is_moving) carried.busy -= own.time;  // counted again as it leaves
    usage_[use.resource].owner = none;
  }
  free_own_legs_.push_back(std::exchange(leg.own, none));
  if (!own.is_taken()) return;
  if (watcher_ && !is_moving) tell_moved(own);
  ++own.stamp;
  if (!is_moving && !leg.tells_left) return land(number, own.piece, own.limiter, false, own.until + leg.latency);
  const FlowIndex index = new_flow(number, own.size, own.piece);
  Flow& flow = flows_[index];
  flow.since = own.until - own.time;
  if (is_moving) {
    enter(index);
    for (const Use& use : shares_.uses(number)) accounts_[use.resource].busy_since = flow.since;
    opened_.push_back(index);
  }
  shares_.take(index, leg.alone, leg.alone_resource);
  flow.due = own.until;
  take_turn(index);
  schedule(index);
}

void FlowNetwork::take_turn(FlowIndex index) {
  flows_[index].turn = engine_.take_turn();
  if (use_.any_order) turn_taken_[index] = engine_.now();
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
  flow.size = size;
  flow.left = static_cast<double>(size.count);
  flow.since = engine_.now();
  if (use_.any_order) {
    turn_taken_.resize(flows_.size());
    turn_taken_[index] = engine_.now();
  }
  flow.is_scheduled = false;
  shares_.make(index, leg);
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
    shares_.set_no_rate(index, 0);
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
  sum.bytes *= shares_.weight(use);
  return sum;
}

void FlowNetwork::join(FlowIndex index) {
  enter(index);
  const auto size = static_cast<double>(flows_[index].size.count);
  for (const Use& use : shares_.uses(shares_.route(index))) {
    Carried& carried = accounts_[use.resource].carried;
    carried.pieces += shares_.copies();
    carried.bytes += size * shares_.weight(use);
  }
}

void FlowNetwork::enter(FlowIndex index) {
  make_resources();
  for (const Use& use : shares_.uses(shares_.route(index)))
    if (shares_.members(use.resource).empty()) accounts_[use.resource].busy_since = engine_.now();
  shares_.enter(index);
}

void FlowNetwork::leave(FlowIndex index) {
  shares_.leave(index);
  for (const Use& use : shares_.uses(shares_.route(index)))
    if (Account& account = accounts_[use.resource]; shares_.members(use.resource).empty())
      account.carried.busy += engine_.now() - account.busy_since;
}

void FlowNetwork::schedule(FlowIndex index) {
  Flow& flow = flows_[index];
  engine_.at(flow.due, {Event::Kind::flow, index, flow.stamp}, flow.turn);
  flow.is_scheduled = true;
}

void FlowNetwork::set_rate(FlowIndex index, double rate, ResourceId limiter) {
  ensure(rate > 0, "a flow that has bytes left has a rate");
  Flow& flow = flows_[index];
  const double before = flow.left;
  flow.left = bytes_left(index);
  if (watcher_) tell_moved(flow, before - flow.left);
  flow.since = engine_.now();
  shares_.take(index, rate, limiter);
  ++flow.stamp;
  flow.is_scheduled = false;
  flow.due = SimTime{add(engine_.now().time_since_epoch(), time_left(index))};
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
double FlowNetwork::bytes_left(FlowIndex index) const {
  const Flow& flow = flows_[index];
  const double rate = shares_.rate(index);
  if (rate <= 0) return flow.left;
  const double seconds = static_cast<double>((engine_.now() - flow.since).count()) / 1e12;
  return std::max(0.0, flow.left - rate * seconds);
}

Picoseconds FlowNetwork::time_left(FlowIndex index) const {
  const Flow& flow = flows_[index];
  const LegInfo& leg = legs_[shares_.route(index)];
  const double rate = shares_.rate(index);
  if (rate == leg.alone && flow.left == static_cast<double>(flow.size.count)) return time_alone(leg, flow.size);
  return fluid_time(flow.left, rate);
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
  if (shares_.is_member(event.id)) {
    check_all_left(flow.left, shares_.rate(event.id), engine_.now() - flow.since, flow.size);
    if (watcher_) tell_moved(flow, flow.left);
    leave(event.id);
  }
  ++flow.stamp;
  shares_.set_no_rate(event.id, -1);
  free_flows_.push_back(event.id);
  const LegInfo& leg = legs_[shares_.route(event.id)];
  const bool has_arrived = leg.latency.count() == 0;
  if (!has_arrived) land(event.id);
  if (!has_arrived && !leg.tells_left) return std::nullopt;
  return Told{.piece = flow.piece,
              .has_left = leg.tells_left,
              .has_arrived = has_arrived,
              .limiter = shares_.limiter(event.id),
              .latency = leg.latency,
              .turn = use_.any_order ? turn_taken_[event.id] : SimTime{},
              .is_unsure = shares_.is_unsure(event.id)};
}

// All of it has left: it arrives a latency later.
void FlowNetwork::land(FlowIndex index) {
  const Flow& flow = flows_[index];
  const std::uint32_t leg = shares_.route(index);
  land(leg, flow.piece, shares_.limiter(index), shares_.is_unsure(index), later(legs_[leg].latency));
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
  if (use_.any_order) {
    landing_orders_.resize(landings_.size());
    landing_orders_[index] = {.turn = engine_.now(), .is_unsure = is_unsure};
  }
  engine_.at(due, {Event::Kind::flow, index | landing_event, 0});
}

Told FlowNetwork::arrived(std::uint32_t index) {
  const Landing landed = std::exchange(landings_[index], {.piece = free_landing_});
  const Order order = use_.any_order ? landing_orders_[index] : Order{};
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
  for (const Use& use : shares_.uses(own.leg)) {
    if (use.resource != resource) continue;
    sum += carried_by(leg, use);
    if (!is_moving(own)) continue;
    const Picoseconds rest = own.until - engine_.now();
    sum.busy -= rest;
    const double bytes = leg.alone * (static_cast<double>(rest.count()) / 1e12);
    sum.bytes -= std::min(bytes, static_cast<double>(own.size.count)) * shares_.weight(use);
  }
}

Carried FlowNetwork::carried(ResourceId resource) const {
  Carried sum;
  if (!accounts_.empty()) {
    const Account& account = accounts_[resource.value];
    const std::span<const Shares::Member> members = shares_.members(resource.value);
    sum = account.carried;
    if (!members.empty()) sum.busy += engine_.now() - account.busy_since;
    for (const Shares::Member& member : members) sum.bytes -= bytes_left(member.flow) * shares_.weight(member);
  }
  if (usage_[resource.value].owner != none) add_own_leg(resource.value, sum);
  return sum;
}

double FlowNetwork::rate_of(std::uint64_t piece) const {
  for (FlowIndex f = 0; f < flows_.size(); ++f)
    if (shares_.rate(f) > 0 && flows_[f].piece == piece) return shares_.rate(f);
  for (const OwnLeg& own : own_legs_)
    if (is_moving(own) && own.piece == piece) return legs_[own.leg].alone;
  return 0;
}

}  // namespace ringsim
