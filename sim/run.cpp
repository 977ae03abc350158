#include "sim/run.hpp"

#include <fmt/format.h>
#include <tsl/robin_map.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "sim/critical_path.hpp"
#include "sim/engine.hpp"
#include "sim/error.hpp"
#include "sim/fold.hpp"
#include "sim/lanes.hpp"

namespace ringsim {

namespace {

/// A path, made ready for the network.
struct Route {
  std::uint32_t first_leg = 0, n_legs = 0;  // in Run::legs_; none where both ends are one device
  /// Where a message is cut into equal parts, each on a path of its own: their routes stand at [first_part, first_part
  /// + n_parts); this one has no legs.
  std::uint32_t first_part = 0, n_parts = 0;
  std::uint32_t turns = 1;  // as Path::turns
  Bytes carried;            // over all messages
};

constexpr std::uint32_t no_transfer = UINT32_MAX;

struct LegUse {
  std::uint32_t leg = 0;  // the network's number
  Picoseconds latency{0};
  std::vector<LinkId> links;
  std::vector<double> shares;  // as Leg::shares
};

/// How far a message is on one leg of several: it goes in pieces, from room to room.
struct LegProgress {
  std::int64_t started = 0, left = 0, arrived = 0;  // pieces
  bool moving = false;                              // a piece is under way (one at a time: order is kept)
  SimTime moving_since{};
  Picoseconds busy{0};               // time with a piece under way
  ResourceId limiter = no_resource;  // what set the speed for the longest time, by majority
  Picoseconds limiter_lead{0};
};

struct Transfer {
  LaneNumber sender = 0, receiver = 0;
  std::uint32_t route = 0;
  std::uint16_t channel = 0;
  bool sender_was_last = false;  // the sender's step began after the receiver's: it is what the message waited for
  Bytes size;
  SimTime start{};
  SimTime left{};
  ResourceId limiter = no_resource;
  std::int64_t n_pieces = 1;
  std::vector<LegProgress> legs;      // only where the route has several
  std::uint32_t whole = no_transfer;  // of a part: the message that it belongs to
  std::uint32_t parts_under_way = 0;  // of a message that is cut into parts
};

class Run {
 public:
  /// `folding`: only rank 0 is simulated, for all of them.
  Run(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
      const std::vector<NodeId>& placement, const Folding* folding = nullptr)
      : topology_(topology),
        schedule_(folding == nullptr ? checked.schedule() : folding->one),
        folding_(folding),
        options_(options),
        placement_(placement),
        routes_(topology, options.transport, options.routing),
        network_(make_network(options.model, options.packet, topology, engine_)),
        lanes_(schedule_, 0, *this) {
    sort_links();
    begun_.resize(lanes_.n_lanes());
    trails_.resize(lanes_.n_lanes());
    own_.resize(lanes_.n_lanes());
    last_route_.resize(lanes_.n_lanes());
    timeline_.actor_finish.assign(static_cast<std::size_t>(schedule_.actors), SimTime{});
  }

  Timeline go() {
    lanes_.run_ready();
    network_->settle();
    do {
      Event event;
      do {
        while (engine_.next_now(event)) {
          handle(event);
          lanes_.run_ready();
          if ((++timeline_.events & 0x3FF) == 0) look_up();
        }
        network_->settle();
      } while (engine_.has_now());
    } while (engine_.advance());
    return finish();
  }

  // What LaneRunner asks of its handler.
  using Note = Bytes;
  Bytes note(const Op& op) const { return schedule_.size(op.region); }
  /// Folded: rank 0 receives in each step what it sends, seen from its peer.
  std::uint64_t connection(Actor self, const Op& op) const {
    return folding_ == nullptr ? connection_key(self, op) : 0;
  }

  void matched(const Message<Bytes>& message) {
    const std::uint32_t index = new_transfer();
    Transfer& transfer = transfers_[index];
    transfer.sender = message.sender.lane;
    transfer.receiver = message.receiver.lane;
    transfer.channel = message.channel;
    transfer.size = message.source;
    transfer.start = engine_.now();
    // LaneRunner begins one step at a time: the end that has just been posted is the one that was waited for, unless
    // both came at this instant; then it is the sender.
    transfer.sender_was_last = begun_[message.sender.lane] >= begun_[message.receiver.lane];
    const Actor to = folding_ == nullptr ? lanes_.actor(message.receiver.lane)
                                         : folding_->peer[static_cast<std::size_t>(message.sender.step)];
    transfer.route = route_from(message.sender.lane, to, message.channel);
    bytes_sent_ += transfer.size;
    bytes_expected_ += message.target;
    set_out(index);
  }

  /// Starts a message, or a part of one, on its route.
  void set_out(std::uint32_t index) {
    Transfer& transfer = transfers_[index];
    Route& way = compiled_[transfer.route];
    if (way.n_parts > 0) return cut(index);
    way.carried += transfer.size;
    if (way.n_legs == 0) {
      transfer.left = engine_.now();
      engine_.at(engine_.now(), {Event::Kind::arrival, index, 0});
    } else if (way.n_legs == 1) {
      network_->start(legs_[way.first_leg].leg, transfer.size, piece(index, 0));
    } else {
      const std::int64_t slot = options_.transport.staging.size.count;
      const std::int64_t whole = transfer.size.count / slot;
      transfer.n_pieces = std::max<std::int64_t>(1, whole + (transfer.size.count % slot > 0 ? 1 : 0));
      transfer.legs.assign(way.n_legs, {});
      start_piece(index, 0);
    }
  }

  /// Cuts a message into equal parts; the first ones are a byte longer where it does not divide.
  void cut(std::uint32_t index) {
    const Route way = compiled_[transfers_[index].route];
    const std::int64_t size = transfers_[index].size.count;
    transfers_[index].parts_under_way = way.n_parts;
    for (std::uint32_t i = 0; i < way.n_parts; ++i) {
      const std::uint32_t part = new_transfer();  // may move the others
      Transfer& made = transfers_[part];
      made = Transfer{};
      made.sender = transfers_[index].sender;
      made.receiver = transfers_[index].receiver;
      made.route = way.first_part + i;
      made.start = engine_.now();
      made.whole = index;
      made.size = {size / way.n_parts + (i < size % way.n_parts ? 1 : 0)};
      set_out(part);
    }
  }

  void local(OpPlace place, const Op& op) {
    if (op.what == Do::compute && op.time.count() > 0) {
      engine_.after(op.time, {Event::Kind::local, place.lane, 0});
      return;
    }
    local_done(place.lane);  // copies and adds are free
  }
  void left(std::uint32_t, OpPlace, Bytes) { fail_invariant("without slots no send runs ahead"); }
  void begins(LaneNumber lane) { begun_[lane] = engine_.now(); }
  void woken(LaneNumber lane, LaneNumber by) { trails_[lane] = trails_[by]; }

 private:
  static std::uint64_t piece(std::uint32_t transfer, std::uint32_t leg) {
    return static_cast<std::uint64_t>(transfer) << 32 | leg;
  }

  // Like links: of one kind, between devices of the same kinds, of equal bandwidth.
  void sort_links() {
    std::map<std::tuple<LinkKind, NodeKind, NodeKind, std::int64_t>, std::uint32_t> classes;
    for (std::uint32_t r = 0; r < topology_.n_resources(); ++r) {
      const Link& link = topology_.link(topology_.resource({r}).link);
      const auto next = static_cast<std::uint32_t>(classes.size());
      const auto key = std::tuple(link.kind, topology_.node(link.from).kind, topology_.node(link.to).kind,
                                  link.bandwidth.bytes_per_second);
      class_of_.push_back(classes.try_emplace(key, next).first->second);
    }
  }

  std::uint32_t new_transfer() {
    if (free_transfers_.empty()) {
      transfers_.emplace_back();
      return static_cast<std::uint32_t>(transfers_.size() - 1);
    }
    const std::uint32_t index = free_transfers_.back();
    free_transfers_.pop_back();
    return index;
  }

  // What tells the flows of a pair apart, as far as the routes look at it.
  std::uint16_t label(Actor from, Actor to, std::uint16_t channel) {
    switch (options_.routing.policy) {
      case Routing::Policy::ecmp:
        return channel;
      case Routing::Policy::flow_spray: {
        const auto known = route_of_.find(key_of(from, to, 0));
        if (known == route_of_.end()) return 0;
        const std::uint32_t turns = compiled_[known->second].turns;
        return turns == 1 ? std::uint16_t{0} : static_cast<std::uint16_t>(++messages_of_[key_of(from, to, 0)] % turns);
      }
      default:
        return 0;
    }
  }

  static std::uint64_t key_of(Actor from, Actor to, std::uint16_t label) {
    return static_cast<std::uint64_t>(from) << 40 | static_cast<std::uint64_t>(to) << 16 | label;
  }

  // A lane mostly sends to whom it sent before.
  std::uint32_t route_from(LaneNumber lane, Actor to, std::uint16_t channel) {
    LastRoute& last = last_route_[lane];
    const std::uint64_t key = key_of(lanes_.actor(lane), to, label(lanes_.actor(lane), to, channel));
    if (last.key != key) last = {key, route(key, lanes_.actor(lane), to)};
    return last.route;
  }

  std::uint32_t route(std::uint64_t key, Actor from, Actor to) {
    const auto [entry, is_new] = route_of_.try_emplace(key, 0);
    if (!is_new) return entry->second;
    const std::vector<Path> parts =
        routes_.find_parts(placement_[static_cast<std::size_t>(from)], placement_[static_cast<std::size_t>(to)],
                           static_cast<std::uint32_t>(key & UINT16_MAX));
    const auto whole = static_cast<std::uint32_t>(compiled_.size());
    if ((whole & 0xFF) == 0xFF) stop_if_asked();  // many paths take a while before anything moves
    if (parts.size() > 1) {
      compiled_.push_back(
          {.first_part = whole + 1, .n_parts = static_cast<std::uint32_t>(parts.size()), .carried = Bytes{}});
    }
    for (const Path& path : parts) compiled_.push_back(compiled(path));
    for (const Path& path : parts) compiled_[whole].turns = std::max(compiled_[whole].turns, path.turns);
    entry.value() = whole;
    return whole;
  }

  Route compiled(const Path& path) {
    Route route{.first_leg = static_cast<std::uint32_t>(legs_.size()),
                .n_legs = static_cast<std::uint32_t>(path.legs.size()),
                .carried = Bytes{}};
    for (std::size_t i = 0; i < path.legs.size(); ++i) {
      const Leg& leg = path.legs[i];
      legs_.push_back({network_->add_leg(leg, i == 0, i + 1 == path.legs.size()), leg.latency, leg.links, leg.shares});
    }
    return route;
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::flow:
        if (const auto left = network_->due(event)) left->has_arrived ? piece_landed(*left) : piece_left(*left);
        break;
      case Event::Kind::arrival:
        piece_arrived(event.id, event.stamp);
        break;
      case Event::Kind::local:
        local_done(event.id);
        break;
    }
  }

  void piece_left(const Left& gone) {
    const auto index = static_cast<std::uint32_t>(gone.piece >> 32);
    const auto leg = static_cast<std::uint32_t>(gone.piece & UINT32_MAX);
    Transfer& transfer = transfers_[index];
    const Route& way = compiled_[transfer.route];
    const Picoseconds latency = legs_[way.first_leg + leg].latency;
    if (way.n_legs == 1) {
      transfer.left = engine_.now();
      transfer.limiter = gone.limiter;
    } else {
      LegProgress& progress = transfer.legs[leg];
      const Picoseconds time = engine_.now() - progress.moving_since;
      progress.moving = false;
      progress.busy += time;
      ++progress.left;
      if (progress.limiter == gone.limiter) {
        progress.limiter_lead += time;
      } else if (progress.limiter_lead < time) {
        progress.limiter = gone.limiter;
        progress.limiter_lead = time - progress.limiter_lead;
      } else {
        progress.limiter_lead -= time;
      }
      start_piece(index, leg);                   // the next one of this leg
      if (leg > 0) start_piece(index, leg - 1);  // a room is free again
    }
    if (network_->tells_arrivals()) return;
    if (latency.count() == 0)
      piece_arrived(index, leg);
    else
      engine_.after(latency, {Event::Kind::arrival, index, leg});
  }

  // The network itself brought a piece to the end of its leg: what was not latency is owed to the links.
  void piece_landed(const Left& landed) {
    const auto index = static_cast<std::uint32_t>(landed.piece >> 32);
    const auto leg = static_cast<std::uint32_t>(landed.piece & UINT32_MAX);
    Transfer& transfer = transfers_[index];
    const Route& way = compiled_[transfer.route];
    if (way.n_legs == 1) {
      transfer.left = std::max(transfer.start, engine_.now() - legs_[way.first_leg].latency);
      transfer.limiter = landed.limiter;
    }
    piece_arrived(index, leg);
  }

  // Starts the next piece of a leg, if there is one, it has arrived, and there is room for it where it goes.
  void start_piece(std::uint32_t index, std::uint32_t leg) {
    Transfer& transfer = transfers_[index];
    const Route& way = compiled_[transfer.route];
    LegProgress& here = transfer.legs[leg];
    if (here.moving || here.started == transfer.n_pieces) return;
    if (leg > 0 && transfer.legs[leg - 1].arrived <= here.started) return;
    if (leg + 1 < way.n_legs && here.started - transfer.legs[leg + 1].left >= options_.transport.staging.depth) return;
    const std::int64_t slot = options_.transport.staging.size.count;
    const std::int64_t size = std::min(slot, transfer.size.count - here.started * slot);
    here.moving = true;
    here.moving_since = engine_.now();
    ++here.started;
    network_->start(legs_[way.first_leg + leg].leg, {size}, piece(index, leg));
  }

  void piece_arrived(std::uint32_t index, std::uint32_t leg) {
    Transfer& transfer = transfers_[index];
    const std::uint32_t n_legs = compiled_[transfer.route].n_legs;
    if (n_legs > 1) {
      ++transfer.legs[leg].arrived;
      if (leg + 1 < n_legs) return start_piece(index, leg + 1);
      if (transfer.legs[leg].arrived < transfer.n_pieces) return;
    }
    delivered(index);
  }

  void delivered(std::uint32_t index) {
    const Transfer& transfer = transfers_[index];
    if (transfer.whole != no_transfer) return part_delivered(index);
    const auto [limiter, busy] = held_by(transfer);
    const Picoseconds latency = engine_.now() - transfer.start - busy;

    ++timeline_.transfers;
    bytes_delivered_ += transfer.size;
    const Actor from = lanes_.actor(transfer.sender), to = lanes_.actor(transfer.receiver);
    digest(static_cast<std::uint64_t>(from) << 40 | static_cast<std::uint64_t>(to) << 16 | transfer.channel);
    digest(static_cast<std::uint64_t>(transfer.size.count));
    digest(static_cast<std::uint64_t>(transfer.start.time_since_epoch().count()));
    digest(static_cast<std::uint64_t>(engine_.now().time_since_epoch().count()));
    if (options_.record_spans)
      timeline_.spans.push_back({from, to, transfer.channel, transfer.size, transfer.start, engine_.now()});

    // The end that was waited for carries the trail; it is told last, while its trail is still that of its step's
    // start.
    const LaneNumber cause = transfer.sender_was_last ? transfer.sender : transfer.receiver;
    const LaneNumber other = transfer.sender_was_last ? transfer.receiver : transfer.sender;
    end_op(other, cause, limiter, busy, latency);
    end_op(cause, cause, limiter, busy, latency);
    transfers_[index].legs.clear();
    free_transfers_.push_back(index);
  }

  // Which time of a message is owed to a link's speed, and to which link.
  static std::pair<ResourceId, Picoseconds> held_by(const Transfer& transfer) {
    if (transfer.legs.empty()) return {transfer.limiter, transfer.left - transfer.start};
    const LegProgress* slowest = &transfer.legs.front();
    for (const LegProgress& leg : transfer.legs)
      if (leg.busy > slowest->busy) slowest = &leg;
    return {slowest->limiter, slowest->busy};
  }

  // The message waits for its last part: what held that one held it.
  void part_delivered(std::uint32_t index) {
    const std::uint32_t whole = transfers_[index].whole;
    const auto [limiter, busy] = held_by(transfers_[index]);
    transfers_[index] = Transfer{};
    free_transfers_.push_back(index);
    Transfer& message = transfers_[whole];
    if (--message.parts_under_way > 0) return;
    message.limiter = limiter;
    message.left = message.start + busy;
    delivered(whole);
  }

  // An operation of `lane` ends now; its message began when `cause` began its step. The lane's trail goes on through
  // the last operation of its step; among several at one instant, through one that it caused itself (so that a lane's
  // trail stays its own, and short).
  void end_op(LaneNumber lane, LaneNumber cause, ResourceId limiter, Picoseconds busy, Picoseconds latency) {
    OwnEnd& own = own_[lane];
    if (cause == lane) {  // field by field: see LaneRunner::put
      own.when = engine_.now();
      own.limiter = limiter;
      own.busy = busy;
      own.latency = latency;
      own.any = true;
    }
    if (lanes_.is_last(lane)) {
      Trail& trail = trails_[lane];
      if (own.any && own.when == engine_.now()) {
        trail.add(class_of(own.limiter), own.limiter, own.busy);
        trail.latency += own.latency;
      } else {
        trail = trails_[cause];
        trail.add(class_of(limiter), limiter, busy);
        trail.latency += latency;
      }
      own.any = false;
      end_of_step(lane);
    }
    lanes_.op_done(lane);
  }

  std::uint32_t class_of(ResourceId resource) const { return resource == no_resource ? 0 : class_of_[resource.value]; }

  void local_done(LaneNumber lane) {
    if (lanes_.is_last(lane)) {
      trails_[lane].compute += engine_.now() - begun_[lane];
      own_[lane].any = false;
      end_of_step(lane);
    }
    lanes_.op_done(lane);
  }

  void end_of_step(LaneNumber lane) {
    timeline_.actor_finish[static_cast<std::size_t>(lanes_.actor(lane))] = engine_.now();
    last_lane_ = timeline_.finish < engine_.now() || !last_lane_ ? lane : *last_lane_;
    timeline_.finish = std::max(timeline_.finish, engine_.now());
  }

  void digest(std::uint64_t word) {
    std::uint64_t& h = *timeline_.fingerprint;
    h = (h ^ word) * 0x9E3779B97F4A7C15U;
    h ^= h >> 32;
  }

  void stop_if_asked() const {
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed))
      throw Interrupted(fmt::format("stopped at {} us of simulated time, {} of {} steps done",
                                    microseconds(engine_.now().time_since_epoch()), lanes_.steps_done(),
                                    lanes_.n_steps()));
  }

  void look_up() {
    stop_if_asked();
    if (options_.progress)
      options_.progress(static_cast<double>(lanes_.steps_done()) / static_cast<double>(lanes_.n_steps()));
  }

  Timeline finish() {
    if (!lanes_.finished()) stalled();
    ensure(bytes_sent_ == bytes_delivered_ && bytes_sent_ == bytes_expected_, "bytes in equal bytes out");
    ensure(free_transfers_.size() == transfers_.size(), "nothing is on its way at the end");
    timeline_.bytes_sent = bytes_sent_;
    timeline_.link_bytes.assign(topology_.n_links(), Bytes{});
    std::vector<double> crossed(topology_.n_links(), 0);  // whole numbers but where packets are spread
    for (const Route& way : compiled_) {
      for (std::uint32_t leg = way.first_leg; leg < way.first_leg + way.n_legs; ++leg) {
        const LegUse& use = legs_[leg];
        for (std::size_t i = 0; i < use.links.size(); ++i)
          crossed[use.links[i].value] +=
              static_cast<double>(way.carried.count) * (use.shares.empty() ? 1 : use.shares[i]);
      }
    }
    for (std::size_t i = 0; i < crossed.size(); ++i) timeline_.link_bytes[i] = {std::llround(crossed[i])};
    check_link_rates();
    if (timeline_.transfers > 0 && timeline_.duration().count() > 0 && last_lane_) {
      const Bottleneck found = trails_[*last_lane_].bottleneck();
      if (found.resource != no_resource || found.latency.count() > 0 || found.compute.count() > 0)
        timeline_.bottleneck = found;
    }
    return std::move(timeline_);
  }

  // What crossed a link fits into the time in which it was busy.
  void check_link_rates() const {
    const std::vector<Carried> carried = network_->carried();
    for (std::uint32_t r = 0; r < carried.size(); ++r) {
      const double rate = static_cast<double>(topology_.resource({r}).bandwidth.bytes_per_second);
      const double seconds = static_cast<double>(carried[r].busy.count() + 2 * carried[r].pieces) / 1e12;
      ensure(carried[r].bytes <= rate * seconds * (1 + 1e-9), "no link carries more than its bandwidth");
    }
  }

  [[noreturn]] void stalled() const {
    network_->explain_stall();
    for (LaneNumber lane = 0; lane < lanes_.n_lanes(); ++lane)
      if (!lanes_.is_through(lane))
        throw InvariantError(fmt::format("the simulation stalled: actor {}, lane {}, waits in step {} of schedule {}",
                                         lanes_.actor(lane), lanes_.lane_of(lane), lanes_.step(lane),
                                         schedule_.algorithm));
    fail_invariant("a run that is not finished has a lane that is not through");
  }

  struct OwnEnd {  // the latest operation of a lane's step that the lane itself caused
    SimTime when{};
    ResourceId limiter = no_resource;
    Picoseconds busy{0}, latency{0};
    bool any = false;
  };

  const Topology& topology_;
  const Schedule& schedule_;
  const Folding* folding_;
  const RunOptions& options_;
  const std::vector<NodeId>& placement_;  // [actor]
  Engine<Event> engine_;
  Routes routes_;
  std::unique_ptr<Network> network_;
  LaneRunner<Run> lanes_;
  std::vector<SimTime> begun_;           // [lane] when its current step began
  std::vector<Trail> trails_;            // [lane] the critical path up to the start of its current step
  std::vector<OwnEnd> own_;              // [lane]
  std::vector<std::uint32_t> class_of_;  // [resource] its class of like links
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_transfers_;
  tsl::robin_map<std::uint64_t, std::uint32_t, MixedHash> route_of_;     // by key_of()
  tsl::robin_map<std::uint64_t, std::uint32_t, MixedHash> messages_of_;  // of a pair, so far: for flow_spray
  struct LastRoute {
    std::uint64_t key = UINT64_MAX;
    std::uint32_t route = 0;
  };
  std::vector<LastRoute> last_route_;  // [lane]
  std::vector<Route> compiled_;
  std::vector<LegUse> legs_;
  Bytes bytes_sent_, bytes_expected_, bytes_delivered_;  // by the sends, by the receives, by what arrived
  std::optional<LaneNumber> last_lane_;
  Timeline timeline_;
};

/// Where each actor sits.
std::vector<NodeId> places(const Topology& topology, const Schedule& schedule, const RunOptions& options) {
  std::vector<NodeId> placement = options.placement;
  if (placement.empty()) {
    const auto n_helpers = static_cast<std::size_t>(schedule.actors - schedule.collective.ranks);
    const auto n_ranks = static_cast<std::size_t>(schedule.collective.ranks);
    if (topology.ranks().size() < n_ranks || topology.helpers().size() < n_helpers)
      throw InputError(
          "", fmt::format("the schedule {} needs {} ranks and {} helpers, the topology has {} and {}",
                          schedule.algorithm, n_ranks, n_helpers, topology.ranks().size(), topology.helpers().size()));
    placement.assign(topology.ranks().begin(), topology.ranks().begin() + static_cast<std::ptrdiff_t>(n_ranks));
    placement.insert(placement.end(), topology.helpers().begin(),
                     topology.helpers().begin() + static_cast<std::ptrdiff_t>(n_helpers));
  }
  ensure(placement.size() == static_cast<std::size_t>(schedule.actors), "every actor has a place");
  ensure(placement.size() < (std::size_t{1} << 24), "an actor's number has 24 bits, as key_of() needs");
  return placement;
}

}  // namespace

Timeline run(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options) {
  if (checked.proof().slots_needed > 0)
    throw InputError(
        "",
        fmt::format("the schedule {} needs messages that run ahead of their receiver; protocol none has "
                    "no slots for them ({})",
                    checked.schedule().algorithm, to_string(checked.proof())),
        "it is right, but written for a protocol whose senders run ahead, such as NCCL's; without slots both "
        "ends of a message must begin their step");
  const std::vector<NodeId> placement = places(topology, checked.schedule(), options);
  std::string why_not;
  // A message is two operations.
  if (options.fold && checked.proof().operations / 2 >= options.fold_from)
    if (const auto folding = fold(topology, checked, options, placement, why_not))
      return folding->unfold(Run(topology, checked, options, placement, &*folding).go());
  Timeline timeline = Run(topology, checked, options, placement).go();
  timeline.not_folded = std::move(why_not);
  return timeline;
}

}  // namespace ringsim
