#include "sim/run/run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/base/engine.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/setting_error.hpp"
#include "sim/run/compiled_routes.hpp"
#include "sim/run/critical_path.hpp"
#include "sim/run/device_work.hpp"
#include "sim/run/fold.hpp"
#include "sim/run/path_record.hpp"
#include "sim/run/run_disturbed.hpp"
#include "sim/schedule/lanes.hpp"

namespace ringsim {

namespace {

constexpr std::uint32_t none = UINT32_MAX;

/// How far a message is on one leg of several: it goes in pieces, from room to room.
struct LegProgress {
  std::int64_t started = 0, left = 0, arrived = 0;  // pieces
  bool moving = false;                              // a piece is under way (one at a time: order is kept)
  SimTime moving_since{};
  Picoseconds busy{0};               // time with a piece under way
  ResourceId limiter = no_resource;  // what set the speed for the longest time, by majority
  Picoseconds limiter_lead{0};
};

// A message whose route has several legs, in pieces.
struct Staged {
  std::int64_t n_pieces = 1;
  std::vector<LegProgress> legs;
};

struct alignas(64) Transfer {
  LaneNumber sender = 0, receiver = 0;
  std::uint32_t route = 0;
  std::uint16_t channel = 0;
  bool sender_was_last = false;  // the sender's step began after the receiver's: it is what the message waited for
  bool has_left = false;         // kept only where messages run ahead
  bool adds = false;             // its receiver adds it, which takes time
  bool starts_apart = false;     // it has an entry in Run::ahead_ of its own: a message, or a part that slots let start
  Bytes size;
  SimTime start{};
  SimTime left{};
  ResourceId limiter = no_resource;
  std::uint32_t staged = none;        // in Run::staged_; only where the route has several legs
  std::uint32_t whole = none;         // of a part: the message that it belongs to
  std::uint32_t parts_under_way = 0;  // of a message that is cut into parts
  std::uint32_t parts_to_leave = 0;   // the same; 0: it is not followed
  std::int32_t step = 0;              // of the sender; of whole messages
};

// A message whose ends need not wait for each other: what the one that comes later, or hears of it later, must know.
// A part that starts when slots are given back has one, too: its own start, and what led there.
struct Ahead {
  bool is_met = false;  // its receive has begun
  bool has_arrived = false;
  Bytes rest;       // what has not started for want of slots
  Bytes room;       // of `rest`: what has slots, but follows a part that is still leaving
  SimTime since{};  // when the part that started last did; of a message that has arrived, the part that arrived last
  Trail trail;      // the critical path up to then
};

class Run {
  friend class Disturber<Run>;
  friend class DeviceWork<Run>;

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
        lanes_(schedule_, options.protocol->slots, *this),
        ways_(options.routing.policy,
              options.transport.nics == Transport::Nics::per_channel || topology.has_channel_rates(), *options.protocol,
              *network_, lanes_.n_lanes()) {
    sort_links();
    begun_.resize(lanes_.n_lanes());
    trails_.resize(lanes_.n_lanes());
    own_.resize(lanes_.n_lanes());
    if (options.record_path) {
      path_ = std::make_unique<PathRecord>();
      own_nodes_.resize(lanes_.n_lanes());
      job_path_ends_.resize(schedule_.jobs.size());
    }
    jobs_.resize(schedule_.jobs.size());
    runs_ahead_ = options.protocol->done_when_left;
    is_followed_ = runs_ahead_ || options.record_path;
    needs_slots_ = checked.proof().slots_needed > 0;
    if (runs_ahead_) network_->expect_changes();  // it must say when a message has left, not only when it arrives
    if (options.on_traffic) network_->watch([this](const Moved& moved) { tell_traffic(moved); });
    if (topology.has_rates()) work_ = std::make_unique<DeviceWork<Run>>(*this);
    if (!options.disturbance.empty()) disturber_ = std::make_unique<Disturber<Run>>(*this);
    timeline_.actor_finish.assign(static_cast<std::size_t>(schedule_.actors), SimTime{});
  }

  Timeline go() {
    if (disturber_) disturber_->begin();
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
    } while (!(disturber_ && lanes_.finished()) && engine_.advance());
    return finish();
  }

  // What LaneRunner asks of its handler.
  using Note = Bytes;
  Bytes note(const Op& op) const { return options_.protocol->on_wire(schedule_.size(op.region)); }
  int slots(Bytes size) const { return options_.protocol->slots_of(size); }
  /// Folded: rank 0 receives in each step what it sends, seen from its peer.
  std::uint64_t connection(Actor self, const Op& op) const {
    return folding_ == nullptr ? connection_key(self, op) : 0;
  }

  void matched(const Message<Bytes>& message) {
    if (message.slot != no_slot) return caught_up(message);
    const std::uint32_t index = new_transfer();
    Transfer& transfer = transfers_[index];
    transfer.sender = message.sender.lane;
    transfer.receiver = message.receiver.lane;
    transfer.channel = message.channel;
    transfer.step = message.sender.step;
    transfer.size = message.source;
    transfer.start = engine_.now();
    transfer.adds = message.add && adds_take_time(message.receiver.lane);
    transfer.starts_apart = false;
    transfer.whole = none;
    // LaneRunner begins one step at a time: the end that has just been posted is the one that was waited for, unless
    // both came at this instant; then it is the sender.
    transfer.sender_was_last = begun_[message.sender.lane] >= begun_[message.receiver.lane];
    const Actor to = folding_ == nullptr ? lanes_.actor(message.receiver.lane)
                                         : folding_->peer[static_cast<std::size_t>(message.sender.step)];
    transfer.route = route_from(message.sender.lane, to, message.channel);
    bytes_sent_ += transfer.size;
    bytes_expected_ += message.target;
    if (runs_ahead_) watch(index, transfer.sender_was_last ? message.sender.lane : message.receiver.lane).is_met = true;
    set_out(index);
  }

  /// Starts a message, or a part of one, on its route.
  void set_out(std::uint32_t index) {
    Transfer& transfer = transfers_[index];
    Route& way = ways_[transfer.route];
    if (way.n_legs == 1) {
      way.carried += transfer.size;
      network_->start(way.leg, transfer.size, piece(index, 0));
    } else {
      set_out_in_pieces(index);
    }
  }

  // Apart, so that what most messages need stays small.
  [[gnu::noinline]] void set_out_in_pieces(std::uint32_t index) {
    Transfer& transfer = transfers_[index];
    Route& way = ways_[transfer.route];
    if (way.n_parts > 0) return cut(index);
    way.carried += transfer.size;
    if (way.n_legs == 0) {
      transfer.left = engine_.now();
      engine_.at(engine_.now(), {Event::Kind::arrival, index, 0});
    } else {
      const std::int64_t slot = options_.transport.staging.size.count;
      const std::int64_t whole = transfer.size.count / slot;
      if (free_staged_.empty()) {
        free_staged_.push_back(static_cast<std::uint32_t>(staged_.size()));
        staged_.emplace_back();
      }
      transfer.staged = free_staged_.back();
      free_staged_.pop_back();
      Staged& staged = staged_[transfer.staged];
      staged.n_pieces = std::max<std::int64_t>(1, whole + (transfer.size.count % slot > 0 ? 1 : 0));
      staged.legs.assign(way.n_legs, {});
      start_piece(index, 0);
    }
  }

  /// Cuts a message into equal parts; the first ones are a byte longer where it does not divide.
  [[gnu::noinline]] void cut(std::uint32_t index) {
    const Route way = ways_[transfers_[index].route];
    if (way.n_parts == nowhere) return disturber_->strand(index);
    const std::int64_t size = transfers_[index].size.count;
    transfers_[index].parts_under_way = transfers_[index].parts_to_leave = way.n_parts;
    for (std::uint32_t i = 0; i < way.n_parts; ++i) {
      const std::uint32_t part = new_transfer();  // may move the others
      Transfer& made = transfers_[part];
      made.sender = transfers_[index].sender;
      made.receiver = transfers_[index].receiver;
      made.route = way.first_part + i;
      made.start = engine_.now();
      made.whole = index;
      made.has_left = made.starts_apart = false;
      made.size = {size / way.n_parts + (i < size % way.n_parts ? 1 : 0)};
      set_out(part);
    }
  }

  void local(OpPlace place, const Op& op) {
    if (op.what != Do::compute) {
      const LinkKind kind = op.what == Do::add ? LinkKind::reduce : LinkKind::copy;
      if (!work_ || !work_->takes_time(lanes_.actor(place.lane), kind)) return local_done(place.lane);
      return work_->begin(place.lane, kind, schedule_.size(op.region), trails_[place.lane]);
    }
    tell(place.lane, true);
    if (op.time.count() > 0) {
      engine_.after(op.time, {Event::Kind::local, place.lane, 0});
      return;
    }
    compute_done(place.lane);
  }
  // A send whose receiver has not begun: what has room() goes to slots.
  void left(std::uint32_t slot, OpPlace place, Bytes size, LaneNumber by) {
    const Actor self = lanes_.actor(place.lane);
    step_.clear();
    schedule_.step(self, lanes_.lane_of(place.lane), place.step, step_);
    const Op& op = step_.ops[static_cast<std::size_t>(place.op)];
    const std::uint32_t index = new_transfer();
    Transfer& transfer = transfers_[index];
    transfer.sender = place.lane;
    // Which lane will receive it is not known yet; it is the actor's first until then.
    transfer.receiver = static_cast<LaneNumber>(op.peer) * static_cast<LaneNumber>(schedule_.lanes);
    transfer.channel = op.channel;
    transfer.step = place.step;
    transfer.size = size;
    transfer.start = engine_.now();
    transfer.whole = none;
    transfer.sender_was_last = true;
    transfer.adds = false;  // see caught_up()
    transfer.route = route_from(place.lane, op.peer, op.channel);
    transfer.parts_under_way = 0;
    bytes_sent_ += size;
    largest_ = std::max(largest_, size);
    watch(index, by).rest = size;
    if (in_slot_.size() <= slot) in_slot_.resize(slot + 1);
    in_slot_[slot] = index;
  }
  void room(std::uint32_t slot, int n, LaneNumber by) { give_room(in_slot_[slot], options_.protocol->slot * n, by); }
  bool holds(LaneNumber lane) { return disturber_ && disturber_->holds(lane); }
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

  /// `cause`: the lane whose step's start let the message start.
  Ahead& watch(std::uint32_t index, LaneNumber cause) {
    if (ahead_.size() <= index) ahead_.resize(index + 1);
    ahead_[index] = {.since = engine_.now(), .trail = trails_[cause]};
    transfers_[index].starts_apart = true;
    transfers_[index].has_left = false;
    transfers_[index].parts_to_leave = 0;
    return ahead_[index];
  }

  // Lane `by` freed slots for `room` more bytes of the message.
  void give_room(std::uint32_t index, Bytes room, LaneNumber by) {
    Ahead& ahead = ahead_[index];
    ahead.room = std::min(ahead.rest, ahead.room + room);
    if (transfers_[index].parts_to_leave > 0) return;  // it starts after the part that is leaving
    ahead.trail = trails_[by];
    start_part(index);
  }

  // What of a message has room starts, if that is all of it as itself.
  void start_part(std::uint32_t index) {
    Ahead& ahead = ahead_[index];  // of which a new part has a copy
    const Bytes size = std::exchange(ahead.room, Bytes{});
    const bool is_first = ahead.rest == transfers_[index].size;
    ahead.since = engine_.now();
    ahead.rest = ahead.rest - size;
    const bool is_last = ahead.rest.count == 0;
    if (is_first && is_last) return set_out(index);
    const std::uint32_t part = new_transfer();  // may move the others
    if (ahead_.size() <= part) ahead_.resize(part + 1);
    ahead_[part].since = ahead_[index].since;
    ahead_[part].trail = ahead_[index].trail;
    Transfer& message = transfers_[index];
    if (disturber_)  // its links may be down by now
      message.route = route_from(message.sender, lanes_.actor(message.receiver), message.channel);
    message.parts_under_way += (is_first ? 1U : 0U) + (is_last ? 0U : 1U);  // with one that is to come
    message.parts_to_leave = 1;
    transfers_[part] = {.sender = message.sender,
                        .receiver = message.receiver,
                        .route = message.route,
                        .starts_apart = true,
                        .size = size,
                        .start = engine_.now(),
                        .whole = index};
    set_out(part);
  }

  // All of a transfer has left: with the last part its message, or the next part of it goes on.
  [[gnu::noinline]] void has_left(std::uint32_t index, ResourceId limiter, Picoseconds busy) {
    if (std::exchange(transfers_[index].has_left, true)) return;
    const std::uint32_t whole = transfers_[index].whole;
    if (whole == none) return end_watched_op(transfers_[index].sender, index, limiter, busy, Picoseconds{0});
    if (whole >= first_background) return;
    Transfer& message = transfers_[whole];
    if (message.parts_to_leave == 0 || --message.parts_to_leave > 0) return;
    if (message.whole != none || ahead_[whole].rest.count == 0) return has_left(whole, limiter, busy);
    if (ahead_[whole].room.count == 0) return;
    Ahead& ahead = ahead_[whole];
    if (path_)
      ahead.trail.path_end = node_after(ahead.trail, message.sender, message_of(message, Picoseconds{0}), limiter, busy,
                                        engine_.now() - ahead.since - busy);
    ahead.trail.go_on(class_of(limiter), limiter, busy, engine_.now() - ahead.since - busy);
    start_part(whole);
  }

  // Another transfer stands for a message from now on.
  void goes_on_as(std::uint32_t before, std::uint32_t now) {
    if (!runs_ahead_ || before >= ahead_.size()) return;
    if (ahead_.size() <= now) ahead_.resize(now + 1);
    ahead_[now] = ahead_[before];
    std::replace(in_slot_.begin(), in_slot_.end(), before, now);
  }

  // The receive of a message that has run ahead.
  void caught_up(const Message<Bytes>& message) {
    const std::uint32_t index = in_slot_[message.slot];
    transfers_[index].receiver = message.receiver.lane;
    bytes_expected_ += message.target;
    transfers_[index].adds = message.add && adds_take_time(message.receiver.lane);
    ahead_[index].is_met = true;
    if (ahead_[index].rest.count > 0) give_room(index, ahead_[index].rest, message.receiver.lane);
    if (!ahead_[index].has_arrived) return;
    give_back(index);
    if (transfers_[index].adds) return add(index, trails_[message.receiver.lane]);
    path_node_ = trails_[message.receiver.lane].path_end;
    end_own_op<true>(message.receiver.lane, no_resource, Picoseconds{0}, Picoseconds{0});
  }

  // A lane's operation ends with a message, by whose last part its trail goes on; see end_other_op().
  // `wire`: as PassingMessage's.
  void end_watched_op(LaneNumber lane, std::uint32_t index, ResourceId limiter, Picoseconds busy, Picoseconds wire) {
    if (lanes_.is_last(lane)) {
      if (const OwnEnd& own = own_[lane]; own.any && own.when == engine_.now()) {
        extend_by_own<true>(lane);
      } else {
        const Picoseconds latency = engine_.now() - ahead_[index].since - busy;
        trails_[lane] = ahead_[index].trail;
        if (path_)
          path_node_ = node_after(trails_[lane], lane, message_of(transfers_[index], wire), limiter, busy, latency);
        extend_trail<true>(lane, lane, limiter, busy, latency);
      }
      end_of_step(lane);
    }
    lanes_.op_done(lane);
  }

  [[gnu::noinline]] void arrived_apart(std::uint32_t index, ResourceId limiter, Picoseconds busy) {
    has_left(index, limiter, busy);  // within one device nothing has told of it
    ahead_[index].has_arrived = true;
    if (!ahead_[index].is_met) return;
    if (transfers_[index].adds) {
      Trail trail = ahead_[index].trail;
      go_on(trail, transfers_[index].receiver, index, limiter, busy, engine_.now() - ahead_[index].since - busy);
      add(index, trail);
      return give_back(index);
    }
    end_watched_op(transfers_[index].receiver, index, limiter, busy, std::exchange(wire_, Picoseconds::max()));
    give_back(index);
  }

  std::uint32_t new_transfer() {
    if (n_free_ > 0) return free_transfers_[--n_free_];
    transfers_.emplace_back();
    free_transfers_.resize(transfers_.capacity());
    return static_cast<std::uint32_t>(transfers_.size() - 1);
  }
  void give_back(std::uint32_t transfer) { free_transfers_[n_free_++] = transfer; }

  /// Of one that did not come to its end.
  void free_transfer(std::uint32_t index) {
    if (transfers_[index].staged != none) free_staged_.push_back(transfers_[index].staged);
    transfers_[index] = Transfer{};
    give_back(index);
  }

  // A lane mostly sends to whom it sent before.
  std::uint32_t route_from(LaneNumber lane, Actor to, std::uint16_t channel) {
    const Actor from = lanes_.actor(lane);
    return ways_.of(lane, from, to, channel, [&](std::uint32_t label) { return find_parts(from, to, label); });
  }
  std::uint32_t route(Actor from, Actor to, std::uint16_t channel) {
    return ways_.of(from, to, channel, [&](std::uint32_t label) { return find_parts(from, to, label); });
  }

  std::vector<Path> find_parts(Actor from, Actor to, std::uint32_t label) {
    std::vector<Path> parts = find_parts_between(from, to, label);
    const DeviceLinks* device = topology_.device(node_of(from));
    if (device == nullptr) return parts;
    std::vector<LinkId> first = device->way_out;
    if (!device->channels.empty()) first.push_back(device->channels[label % device->channels.size()]);
    for (Path& path : parts) {
      if (path.legs.empty()) continue;
      Leg& leg = path.legs.front();
      leg.links.insert(leg.links.begin(), first.begin(), first.end());
      if (!leg.shares.empty()) leg.shares.insert(leg.shares.begin(), first.size(), 1);
    }
    return parts;
  }

  std::vector<Path> find_parts_between(Actor from, Actor to, std::uint32_t label) {
    if ((ways_.size() & 0xFF) == 0xFF) stop_if_asked();  // many paths take a while before anything moves
    const NodeId here = node_of(from), there = node_of(to);
    return disturber_ && disturber_->any_down() ? disturber_->find_parts(here, there, label)
                                                : routes_.find_parts(here, there, label);
  }

  void handle(const Event& event) {
    switch (event.kind) {
      case Event::Kind::flow:
        if (const auto left = network_->due(event)) {
          if (work_ && DeviceWork<Run>::is_work(left->piece)) {
            if (left->has_arrived || !network_->tells_arrivals()) work_->done(*left);
          } else {
            left->has_arrived ? piece_landed(*left) : piece_left(*left);
          }
        }
        break;
      case Event::Kind::arrival:
        if (!disturber_ || !disturber_->swallows(event)) piece_arrived(event.id, event.stamp);
        break;
      case Event::Kind::local:
        compute_done(event.id);
        break;
      case Event::Kind::device:
        work_->started(event.id);
        break;
      case Event::Kind::disturbance:
        disturber_->due(event);
        break;
    }
  }

  [[gnu::noinline]] void piece_left(const Left& gone) {
    const auto index = static_cast<std::uint32_t>(gone.piece >> 32);
    const auto leg = static_cast<std::uint32_t>(gone.piece & UINT32_MAX);
    Transfer& transfer = transfers_[index];
    const Route& way = ways_[transfer.route];
    const Picoseconds latency = ways_.leg(way.first_leg + leg).latency;
    if (way.n_legs == 1) {
      transfer.left = engine_.now();
      transfer.limiter = gone.limiter;
      if (runs_ahead_) has_left(index, gone.limiter, transfer.left - transfer.start);
    } else {
      LegProgress& progress = staged_[transfer.staged].legs[leg];
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
      if (runs_ahead_ && leg == 0 && progress.left == staged_[transfer.staged].n_pieces)
        has_left(index, progress.limiter, progress.busy);
      start_piece(index, leg);                   // the next one of this leg
      if (leg > 0) start_piece(index, leg - 1);  // a room is free again
    }
    if (network_->tells_arrivals()) return;
    if (latency.count() == 0)
      piece_arrived(index, leg);
    else
      engine_.after(latency, {Event::Kind::arrival, index, leg});
  }

  // The network itself brought a piece to the end of its leg: all of its time but the latency is due to the links.
  void piece_landed(const Left& landed) {
    const auto index = static_cast<std::uint32_t>(landed.piece >> 32);
    const auto leg = static_cast<std::uint32_t>(landed.piece & UINT32_MAX);
    Transfer& transfer = transfers_[index];
    transfer.left = std::max(transfer.start, engine_.now() - landed.latency);
    transfer.limiter = landed.limiter;
    const Picoseconds after = ways_.leg(ways_[transfer.route].first_leg + leg).after;
    if (after.count() == 0)
      piece_arrived(index, leg);
    else
      engine_.after(after, {Event::Kind::arrival, index, leg});
  }

  // Starts the next piece of a leg, if there is one, it has arrived, and there is room for it where it goes.
  void start_piece(std::uint32_t index, std::uint32_t leg) {
    Transfer& transfer = transfers_[index];
    const Route& way = ways_[transfer.route];
    Staged& staged = staged_[transfer.staged];
    LegProgress& here = staged.legs[leg];
    if (here.moving || here.started == staged.n_pieces) return;
    if (leg > 0 && staged.legs[leg - 1].arrived <= here.started) return;
    if (leg + 1 < way.n_legs && here.started - staged.legs[leg + 1].left >= options_.transport.staging.depth) return;
    const std::int64_t slot = options_.transport.staging.size.count;
    const std::int64_t size = std::min(slot, transfer.size.count - here.started * slot);
    here.moving = true;
    here.moving_since = engine_.now();
    ++here.started;
    network_->start(ways_.leg(way.first_leg + leg).leg, {size}, piece(index, leg));
  }

  void piece_arrived(std::uint32_t index, std::uint32_t leg) {
    if (transfers_[index].staged != none)
      staged_piece_arrived(index, leg);
    else
      delivered(index);
  }

  [[gnu::noinline]] void staged_piece_arrived(std::uint32_t index, std::uint32_t leg) {
    Staged& staged = staged_[transfers_[index].staged];
    ++staged.legs[leg].arrived;
    if (leg + 1 < staged.legs.size()) return start_piece(index, leg + 1);
    if (staged.legs[leg].arrived == staged.n_pieces) delivered(index);
  }

  void delivered(std::uint32_t index) {
    Transfer& transfer = transfers_[index];
    if (transfer.whole != none) return part_delivered(index);
    const auto [limiter, busy] = held_by(transfer);
    const Picoseconds latency = engine_.now() - transfer.start - busy;

    ++timeline_.transfers;
    if (!jobs_.empty()) count_for_job(transfer);
    bytes_delivered_ += transfer.size;
    const Actor from = lanes_.actor(transfer.sender), to = lanes_.actor(transfer.receiver);
    fingerprint_ = digest(fingerprint_, CompiledRoutes::key_of(from, to, transfer.channel), transfer.size,
                          transfer.start, engine_.now());
    if (options_.record_spans) timeline_.spans.push_back(span_of(transfer));
    if (options_.on_message) options_.on_message(span_of(transfer));
    if (is_followed_ || transfer.adds) return delivered_and_followed(index, limiter, busy, latency);
    give_back(index);

    // The end that was waited for carries the trail. It ends last: until then its trail is still the one from the start
    // of its step.
    const LaneNumber cause = transfer.sender_was_last ? transfer.sender : transfer.receiver;
    const LaneNumber other = transfer.sender_was_last ? transfer.receiver : transfer.sender;
    end_other_op<false>(other, cause, limiter, busy, latency);
    end_own_op<false>(cause, limiter, busy, latency);
  }

  [[gnu::noinline]] Span span_of(const Transfer& transfer) const {
    return {.from = lanes_.actor(transfer.sender),
            .to = lanes_.actor(transfer.receiver),
            .channel = transfer.channel,
            .lane = static_cast<std::uint16_t>(lanes_.lane_of(transfer.sender)),
            .step = transfer.step,
            .bytes = transfer.size,
            .start = transfer.start,
            .finish = engine_.now()};
  }

  [[gnu::noinline]] void tell_traffic(const Moved& moved) const {
    const bool is_work = work_ && DeviceWork<Run>::is_work(moved.piece);
    const std::uint32_t route = is_work ? work_->route(moved.piece) : transfers_[moved.piece >> 32].route;
    if (disturber_ && disturber_->is_background(route)) return;
    if (moved.link != no_link) return options_.on_traffic({moved.link, moved.begin, moved.end, moved.bytes});
    const auto leg = is_work ? 0 : static_cast<std::uint32_t>(moved.piece & UINT32_MAX);
    const LegUse& use = ways_.leg(ways_[route].first_leg + leg);
    for (std::size_t l = 0; l < use.links.size(); ++l)
      options_.on_traffic(
          {use.links[l], moved.begin, moved.end, moved.bytes * (use.shares.empty() ? 1 : use.shares[l])});
  }

  // The end of delivered(), where messages run ahead, the critical path is recorded, or the message is added. Apart, so
  // that other runs do not ask; what has <true> below asks for path_, what has <false> does not.
  [[gnu::noinline]] void delivered_and_followed(std::uint32_t index, ResourceId limiter, Picoseconds busy,
                                                Picoseconds latency) {
    if (runs_ahead_) return arrived_apart(index, limiter, busy);
    const Transfer& transfer = transfers_[index];
    const LaneNumber cause = transfer.sender_was_last ? transfer.sender : transfer.receiver;
    const LaneNumber other = transfer.sender_was_last ? transfer.receiver : transfer.sender;
    if (path_)
      path_node_ = node_after(trails_[cause], cause, message_of(transfer, std::exchange(wire_, Picoseconds::max())),
                              limiter, busy, latency);
    const bool adds = transfer.adds, sender_is_other = other == transfer.sender;
    give_back(index);
    if (adds) {  // its receiver goes on when it is added
      Trail trail = trails_[cause];
      if (path_) trail.path_end = path_node_;
      trail.go_on(class_of(limiter), limiter, busy, latency);
      add(index, trail);
    }
    if (!adds || sender_is_other) end_other_op<true>(other, cause, limiter, busy, latency);
    if (!adds || !sender_is_other) end_own_op<true>(cause, limiter, busy, latency);
  }

  bool adds_take_time(LaneNumber lane) const {
    return work_ && work_->takes_time(lanes_.actor(lane), LinkKind::reduce);
  }
  /// A message that is there is added up by its receiver; `trail` leads to this moment.
  [[gnu::noinline]] void add(std::uint32_t index, const Trail& trail) {
    const Transfer& transfer = transfers_[index];
    work_->begin(transfer.receiver, LinkKind::reduce, options_.protocol->data_of(transfer.size), trail);
  }
  /// A message, recorded where paths are.
  void go_on(Trail& trail, LaneNumber lane, std::uint32_t index, ResourceId limiter, Picoseconds busy,
             Picoseconds latency) {
    if (path_)
      trail.path_end = node_after(trail, lane, message_of(transfers_[index], std::exchange(wire_, Picoseconds::max())),
                                  limiter, busy, latency);
    trail.go_on(class_of(limiter), limiter, busy, latency);
  }

  // How much of a message's time is due to the speed of a link, and which link. Staged: gives back its rooms.
  std::pair<ResourceId, Picoseconds> held_by(Transfer& transfer) {
    if (transfer.staged == none) return {transfer.limiter, transfer.left - transfer.start};
    const std::vector<LegProgress>& legs = staged_[transfer.staged].legs;
    free_staged_.push_back(transfer.staged);
    transfer.staged = none;
    if (path_) wire_ = latency_of(ways_[transfer.route]);
    const LegProgress* slowest = &legs.front();
    for (const LegProgress& leg : legs)
      if (leg.busy > slowest->busy) slowest = &leg;
    return {slowest->limiter, slowest->busy};
  }

  // The message waits for its last part: what held that one held it, since it started.
  [[gnu::noinline]] void part_delivered(std::uint32_t index) {
    const std::uint32_t whole = transfers_[index].whole;
    if (whole >= first_background) return disturber_->background_delivered(index);
    const auto [limiter, busy] = held_by(transfers_[index]);
    if (runs_ahead_) has_left(index, limiter, busy);  // see arrived_apart()
    std::uint32_t started = index;                    // as what it started
    while (!transfers_[started].starts_apart && transfers_[started].whole < first_background)
      started = transfers_[started].whole;
    if (!disturber_ || disturber_->may_free(index)) give_back(index);
    Transfer& message = transfers_[whole];
    if (--message.parts_under_way > 0) {
      wire_ = Picoseconds::max();
      return;
    }
    message.limiter = limiter;
    message.left = message.start + busy;
    if (started != whole && transfers_[started].starts_apart && transfers_[whole].starts_apart) {
      ahead_[whole].since = ahead_[started].since;
      ahead_[whole].trail = ahead_[started].trail;
    }
    delivered(whole);
  }

  JobTimeline& job_of(Actor actor) {
    const auto next = std::upper_bound(schedule_.jobs.begin(), schedule_.jobs.end(), actor);
    return jobs_[static_cast<std::size_t>(next - schedule_.jobs.begin()) - 1];
  }

  [[gnu::noinline]] void count_for_job(const Transfer& transfer) {
    JobTimeline& job = job_of(lanes_.actor(transfer.sender));
    ++job.transfers;
    job.bytes_sent += transfer.size;
  }

  // An operation of a lane ends now. The lane's trail goes on through the last operation of its step; among several at
  // one instant, through one that it caused itself (so that a lane's trail stays its own, and short). First one whose
  // message began when the lane itself began its step, then one whose message began when `cause` began its.
  template <bool may_record>
  void end_own_op(LaneNumber lane, ResourceId limiter, Picoseconds busy, Picoseconds latency) {
    if (lanes_.is_last(lane)) {
      extend_trail<may_record>(lane, lane, limiter, busy, latency);
      end_of_step(lane);
    } else {
      OwnEnd& own = own_[lane];  // field by field: see LaneRunner::post
      own.when = engine_.now();
      own.busy = busy;
      own.latency = latency;
      own.limiter = limiter;
      own.any = true;
      if (may_record && path_) own_nodes_[lane] = path_node_;
    }
    lanes_.op_done(lane);
  }
  template <bool may_record>
  void end_other_op(LaneNumber lane, LaneNumber cause, ResourceId limiter, Picoseconds busy, Picoseconds latency) {
    if (lanes_.is_last(lane)) {
      if (const OwnEnd& own = own_[lane]; own.any && own.when == engine_.now())
        extend_by_own<may_record>(lane);
      else
        extend_trail<may_record>(lane, cause, limiter, busy, latency);
      end_of_step(lane);
    }
    lanes_.op_done(lane);
  }

  template <bool may_record>
  [[gnu::always_inline]] void extend_trail(LaneNumber lane, LaneNumber from, ResourceId limiter, Picoseconds busy,
                                           Picoseconds latency) {
    Trail& trail = trails_[lane];
    if (from != lane) trail = trails_[from];
    if (may_record && path_) trail.path_end = path_node_;
    trail.go_on(class_of(limiter), limiter, busy, latency);
  }
  template <bool may_record>
  void extend_by_own(LaneNumber lane) {
    const OwnEnd& own = own_[lane];
    if (may_record && path_) trails_[lane].path_end = own_nodes_[lane];
    trails_[lane].go_on(class_of(own.limiter), own.limiter, own.busy, own.latency);
  }

  // The critical path as elements, where it is recorded: `trail` and a message after it.
  std::uint32_t node_after(const Trail& trail, LaneNumber lane, const PassingMessage& message, ResourceId limiter,
                           Picoseconds busy, Picoseconds latency) {
    PassingMessage passing = message;
    passing.by_receiver = lanes_.actor(lane) != message.from;
    return path_->add_message(trail.path_end, trail.at, lanes_.lane_of(lane), lanes_.step(lane), passing, limiter, busy,
                              latency);
  }
  [[gnu::noinline]] void record_until(LaneNumber lane, SimTime until, PathCause cause) {
    Trail& trail = trails_[lane];
    trail.path_end =
        path_->add(trail.path_end, trail.at, until, cause, lanes_.actor(lane), lanes_.lane_of(lane), lanes_.step(lane));
  }
  [[gnu::noinline]] PassingMessage message_of(const Transfer& transfer, Picoseconds wire) const {
    return {.from = lanes_.actor(transfer.sender),
            .to = folding_ == nullptr ? lanes_.actor(transfer.receiver)
                                      : folding_->peer[static_cast<std::size_t>(lanes_.step(transfer.sender))],
            .bytes = transfer.size,
            .wire = wire};
  }
  Picoseconds latency_of(const Route& way) const {
    Picoseconds sum{0};
    for (std::uint32_t leg = 0; leg < way.n_legs; ++leg)
      sum += ways_.leg(way.first_leg + leg).latency + ways_.leg(way.first_leg + leg).after;
    return sum;
  }
  void collect_path() {
    std::vector<std::uint32_t*> ends{&last_trail_.path_end};
    for (Trail& trail : trails_) ends.push_back(&trail.path_end);
    for (Ahead& ahead : ahead_) ends.push_back(&ahead.trail.path_end);
    for (std::uint32_t& end : own_nodes_) ends.push_back(&end);
    for (std::uint32_t& end : job_path_ends_) ends.push_back(&end);
    if (work_) work_->add_path_ends(ends);
    path_->collect(ends);
  }

  NodeId node_of(Actor actor) const { return placement_[static_cast<std::size_t>(actor)]; }
  std::uint32_t class_of(ResourceId resource) const { return resource == no_resource ? 0 : class_of_[resource.value]; }

  void tell(LaneNumber lane, bool begins) const {
    if (options_.on_compute)
      options_.on_compute({lanes_.actor(lane), lanes_.lane_of(lane), lanes_.step(lane), begins, engine_.now()});
  }

  void compute_done(LaneNumber lane) {
    tell(lane, false);
    local_done(lane);
  }

  void local_done(LaneNumber lane) {
    if (lanes_.is_last(lane)) {
      if (path_) record_until(lane, engine_.now(), PathCause::compute);
      trails_[lane].compute_until(engine_.now());
      end_of_step(lane);
    }
    lanes_.op_done(lane);
  }

  [[gnu::noinline]] void end_of_job_step(LaneNumber lane) {
    JobTimeline& job = job_of(lanes_.actor(lane));
    if (job.finish < engine_.now() || !job.bottleneck) {
      job.bottleneck = trails_[lane].bottleneck(engine_.now());
      if (path_) job_path_ends_[static_cast<std::size_t>(&job - jobs_.data())] = trails_[lane].path_end;
    }
    job.finish = engine_.now();
  }

  void end_of_step(LaneNumber lane) {
    ensure(trails_[lane].at == engine_.now(), "the parts of the critical path sum to the time of the run");
    own_[lane].any = false;
    timeline_.actor_finish[static_cast<std::size_t>(lanes_.actor(lane))] = engine_.now();
    if (!jobs_.empty()) end_of_job_step(lane);
    if (last_lane_ != none && timeline_.finish == engine_.now()) return;  // the first of those that are last
    last_lane_ = lane;
    timeline_.finish = engine_.now();
    if (disturber_) last_trail_ = trails_[lane];  // a step without operations may be held after it, and takes no time
  }

  static std::uint64_t digest(std::uint64_t h, std::uint64_t connection, Bytes size, SimTime start, SimTime end) {
    for (const std::uint64_t word : {connection, static_cast<std::uint64_t>(size.count),
                                     static_cast<std::uint64_t>(start.time_since_epoch().count()),
                                     static_cast<std::uint64_t>(end.time_since_epoch().count())}) {
      h = (h ^ word) * 0x9E3779B97F4A7C15U;
      h ^= h >> 32;
    }
    return h;
  }

  void stop_if_asked() const {
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed))
      throw Interrupted(fmt::format("stopped at {} us of simulated time, {} of {} steps done",
                                    microseconds(engine_.now().time_since_epoch()), lanes_.steps_done(),
                                    lanes_.n_steps()));
  }

  void look_up() {
    stop_if_asked();
    if (path_ && path_->is_full()) collect_path();
    if (options_.progress)
      options_.progress(static_cast<double>(lanes_.steps_done()) / static_cast<double>(lanes_.n_steps()));
  }

  Timeline finish() {
    if (!lanes_.finished()) stalled();
    ensure(bytes_sent_ == bytes_delivered_ && bytes_sent_ == bytes_expected_, "bytes in equal bytes out");
    const std::size_t in_use = transfers_.size() - n_free_;
    disturber_ ? disturber_->expect_all_accounted(in_use) : ensure(in_use == 0, "nothing is on its way at the end");
    timeline_.bytes_sent = bytes_sent_;
    timeline_.fingerprint = fingerprint_;
    timeline_.link_bytes = ways_.link_bytes(
        topology_.n_links(), [&](std::uint32_t route) { return !disturber_ || !disturber_->is_background(route); });
    check_link_rates();
    if (timeline_.transfers > 0 && timeline_.duration().count() > 0 && last_lane_ != none) {
      const Bottleneck found = (disturber_ ? last_trail_ : trails_[last_lane_]).bottleneck(timeline_.finish);
      if (found.resource != no_resource || found.latency.count() > 0 || found.compute.count() > 0 ||
          found.delay.count() > 0)
        timeline_.bottleneck = found;
    }
    timeline_.jobs = jobs_;
    if (path_) take_paths();
    return std::move(timeline_);
  }

  void take_paths() {
    if (last_lane_ != none) {
      timeline_.path = path_->chain((disturber_ ? last_trail_ : trails_[last_lane_]).path_end);
      expect_whole_path(timeline_.path, timeline_.finish);
    }
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      timeline_.jobs[j].path = path_->chain(job_path_ends_[j]);
      expect_whole_path(timeline_.jobs[j].path, jobs_[j].finish);
    }
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
    // The proof counts messages.
    if (const Protocol& protocol = *options_.protocol; needs_slots_ && largest_ > protocol.slot)
      throw SettingError(
          SettingError::Setting::protocol,
          fmt::format(
              "under protocol {} messages of up to {} do not run ahead of their receivers as far as the "
              "schedule {} needs them to: a connection has {} slots of {}, and at {} us all wait for each other",
              protocol.name, format(largest_), schedule_.algorithm, protocol.slots, format(protocol.slot),
              microseconds(engine_.now().time_since_epoch())),
          "cut it into smaller chunks, or take smaller sizes");
    for (LaneNumber lane = 0; lane < lanes_.n_lanes(); ++lane)
      if (!lanes_.is_through(lane))
        throw InvariantError(fmt::format("the simulation stalled: actor {}, lane {}, waits in step {} of schedule {}",
                                         lanes_.actor(lane), lanes_.lane_of(lane), lanes_.step(lane),
                                         schedule_.algorithm));
    fail_invariant("a run that is not finished has a lane that is not through");
  }

  struct OwnEnd {  // the latest operation of a lane's step that the lane itself caused
    SimTime when{};
    Picoseconds busy{0}, latency{0};
    ResourceId limiter = no_resource;
    bool any = false;
  };

  const Topology& topology_;
  const Schedule& schedule_;
  const Folding* folding_;
  const RunOptions& options_;
  std::vector<NodeId> placement_;  // [actor], then the ends of background messages
  Engine<Event> engine_;
  Routes routes_;
  std::unique_ptr<Network> network_;
  LaneRunner<Run> lanes_;
  CompiledRoutes ways_;
  std::vector<SimTime> begun_;           // [lane] when its current step began
  std::vector<Trail> trails_;            // [lane] the critical path up to the start of its current step
  std::vector<OwnEnd> own_;              // [lane]
  std::vector<std::uint32_t> class_of_;  // [resource] its class of like links
  std::vector<Transfer> transfers_;
  std::vector<std::uint32_t> free_transfers_;  // the first n_free_; room for all
  std::size_t n_free_ = 0;
  std::vector<Staged> staged_;
  std::vector<std::uint32_t> free_staged_;
  bool is_followed_ = false;                             // runs_ahead_, or path_
  bool runs_ahead_ = false;                              // the two ends of a message need not wait for each other
  std::vector<Ahead> ahead_;                             // [transfer], where they do not
  std::vector<std::uint32_t> in_slot_;                   // [slot] the transfer
  Step step_;                                            // room for left()
  bool needs_slots_ = false;                             // so says the proof
  Bytes largest_;                                        // of the messages that ran ahead
  Bytes bytes_sent_, bytes_expected_, bytes_delivered_;  // by the sends, by the receives, by what arrived
  LaneNumber last_lane_ = none;                          // the first of those that ended last
  std::unique_ptr<PathRecord> path_;                     // only where the critical path is recorded
  std::uint32_t path_node_ = 0;                          // then: of the message whose ends are being handled
  std::vector<std::uint32_t> own_nodes_;                 // [lane] of own_
  std::vector<std::uint32_t> job_path_ends_;             // [job]
  Picoseconds wire_ = Picoseconds::max();                // of the message that is being delivered, if it is staged
  Trail last_trail_;                                     // its own at that moment, where something disturbs the run
  std::uint64_t fingerprint_ = 0;
  std::vector<JobTimeline> jobs_;              // as Timeline::jobs
  std::unique_ptr<DeviceWork<Run>> work_;      // none: devices work in no time
  std::unique_ptr<Disturber<Run>> disturber_;  // none: an undisturbed run
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
  ensure(placement.size() < (std::size_t{1} << 24), "an actor's number has 24 bits, as CompiledRoutes::key_of() needs");
  return placement;
}

}  // namespace

Timeline run(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options) {
  const Protocol& protocol = *options.protocol;
  if (checked.proof().slots_needed > protocol.slots)
    throw SettingError(
        SettingError::Setting::protocol,
        fmt::format(
            "the schedule {} needs messages that run ahead of their receiver; protocol {} has {} slots for them "
            "({})",
            checked.schedule().algorithm, protocol.name,
            protocol.slots == 0 ? "no" : fmt::format("only {}", protocol.slots), to_string(checked.proof())),
        "it is right, but written for a protocol whose senders run ahead, such as NCCL's; without slots both "
        "ends of a message must begin their step");
  const std::vector<NodeId> placement = places(topology, checked.schedule(), options);
  std::string why_not;
  // A message is two operations.
  if (options.fold && checked.proof().operations / 2 >= options.fold_from) {
    if (!options.disturbance.empty())
      why_not = "something disturbs the run, so that ranks need not do the same at one time";
    else if (topology.has_rates())
      why_not = "devices add or copy at a rate, which all of them would have to share alike";
    else if (protocol.done_when_left)
      why_not = fmt::format("under protocol {} ranks may run ahead of each other", protocol.name);
    else if (const auto folding = fold(topology, checked, options, placement, why_not))
      return folding->unfold(Run(topology, checked, options, placement, &*folding).go());
  }
  Timeline timeline = Run(topology, checked, options, placement).go();
  timeline.not_folded = std::move(why_not);
  return timeline;
}

}  // namespace ringsim
