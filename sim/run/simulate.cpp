#include "sim/run/simulate.hpp"

#include <fmt/format.h>
#include <tsl/robin_map.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/setting_error.hpp"
#include "sim/network/network.hpp"
#include "sim/run/courses.hpp"
#include "sim/run/device_work.hpp"
#include "sim/run/fingerprint.hpp"
#include "sim/run/lane_trails.hpp"
#include "sim/run/messages_ahead.hpp"
#include "sim/run/movement.hpp"
#include "sim/run/run_disturbed.hpp"
#include "sim/run/stand_ins.hpp"
#include "sim/run/transfers.hpp"
#include "sim/run/units.hpp"
#include "sim/schedule/lanes.hpp"

namespace ringsim {

namespace {

// What crossed a link fits into the time in which it was busy.
void expect_link_rates(const Topology& topology, const Network& network) {
  for (std::uint32_t r = 0; r < topology.n_resources(); ++r) {
    const Carried carried = network.carried({r});
    const double rate = static_cast<double>(topology.resource({r}).bandwidth.bytes_per_second);
    const double seconds = static_cast<double>(carried.busy.count() + 2 * carried.pieces) / 1e12;
    ensure(carried.bytes <= rate * seconds * (1 + 1e-9), "no link carries more than its bandwidth");
  }
}

/// The loop, the operations of lanes, and the sums over all messages.
class Run : private Movement<Run> {
  friend class Movement<Run>;
  friend class Disturber<Run>;
  friend class DeviceWork<Run>;
  friend class Posts<Run>;
  friend class MessagesAhead<Run>;
  using Trails = LaneTrails<LaneRunner<Run>>;

 public:
  Run(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
      const std::vector<NodeId>& placement, const Part& part)
      : Movement(topology, schedule_of(checked, part), options, placement),
        folding_(part.folding),
        by_turns_(part.by_turns),
        by_channels_(part.by_channels),
        stand_ins_(options.stand_ins),
        is_folded_(folding_ != nullptr || by_turns_ != nullptr || stand_ins_ != nullptr),
        has_any_order_(by_turns_ != nullptr || by_channels_ != nullptr),
        lanes_(schedule_, options.plans.front().protocol->slots, *this),
        trails_(topology, lanes_, folding_, !options.disturbance.empty(), options.stop) {
    ensure(stand_ins_ == nullptr || (options.disturbance.empty() && !options.record_path && !options.record_spans),
           "actors that stand for others are not disturbed, and nobody asks for each of their messages");
    if (!options.jobs.empty()) {
      ensure(options.jobs.size() == static_cast<std::size_t>(schedule_.lanes), "every lane belongs to a job");
      jobs_.resize(*std::max_element(options.jobs.begin(), options.jobs.end()) + 1);
    }
    if (options.record_path) trails_.record(jobs_.size());
    if (options.on_end) trails_.keep_origins();
    keeps_routes_ = ways_.are_fixed() && folding_ == nullptr;
    if (options.plans.size() == 1) only_protocol_ = options.plans.front().protocol;
    runs_ahead_ = options.plans.front().protocol->done_when_left;
    is_followed_ = runs_ahead_ || options.record_path || has_any_order_;
    protocol_adds_ = std::any_of(options.plans.begin(), options.plans.end(),
                                 [](const CallPlan& plan) { return plan.protocol->adds_bytes(); });
    may_hold_ = !options.disturbance.empty() || options.enough;
    is_watched_ = !options.jobs.empty() || options.record_spans || options.on_message || stand_ins_ != nullptr;
    needs_slots_ = checked.proof().slots_needed > 0;
    if (runs_ahead_) {
      ahead_ = std::make_unique<MessagesAhead<Run>>(*this);
      network_->expect_left();
    }
    if (has_any_order_) {
      network_->expect_any_order();
      trails_.weigh_ties();
    }
    if (by_channels_ != nullptr) {
      network_->expect_copies(by_channels_->channels);
      ways_.stand_for(by_channels_->channels);
    }
    if (options.on_traffic) network_->watch([this](const Moved& moved) { tell_traffic(moved); });
    if (options_.may_post(topology)) posts_ = std::make_unique<Posts<Run>>(*this);
    if (topology.has_work_rates()) work_ = std::make_unique<DeviceWork<Run>>(*this);
    if (!options.disturbance.empty()) disturber_ = std::make_unique<Disturber<Run>>(*this);
    timeline_.actor_finish.assign(static_cast<std::size_t>(schedule_.actors), SimTime{});
  }

  Timeline go() {
    if (disturber_) disturber_->begin();
    lanes_.run_ready();
    settle();
    engine_.run(
        [this](const Event& event) {
          handle(event);
          lanes_.run_ready();
          if ((++timeline_.events & 0x3FF) == 0) look_up();
        },
        [this] { settle(); }, [this] { return !(disturber_ && lanes_.finished()); });
    return finish();
  }

  // What LaneRunner asks of its handler.
  using Note = Bytes;
  Bytes note(const Op& op) const {
    const Bytes data = schedule_.size(op.region);
    return protocol_adds_ ? protocol(op.channel).on_wire(data) : data;
  }
  int slots(Bytes size, std::uint64_t connection) const {
    return protocol(static_cast<std::uint16_t>(connection)).slots_of(size);
  }
  int most_slots(std::uint64_t connection) const { return protocol(static_cast<std::uint16_t>(connection)).slots; }
  /// Folded: rank 0 receives in each step what it sends, seen from its peer.
  std::uint64_t connection(Actor self, const Op& op) const {
    if (is_folded_) [[unlikely]]
      return folded_connection(self, op);
    return connection_key(self, op);
  }

  void matched(const Message<Bytes>& message, std::uint32_t& kept) {
    if (message.slot != no_slot) return caught_up(message);
    const std::uint32_t index = transfers_.make();
    Transfer& transfer = transfers_[index];
    transfer.sender = message.sender.lane;
    transfer.receiver = message.receiver.lane;
    transfer.channel = message.channel;
    transfer.step = message.sender.step;
    transfer.size = message.source;
    transfer.start = engine_.now();
    transfer.whole = no_transfer;
    // LaneRunner begins one step at a time: the end that has just been posted is the one that was waited for, unless
    // both came at this instant; then it is the sender.
    transfer.marks = {.sender_was_last = trails_.sender_was_last(message.sender.lane, message.receiver.lane),
                      .adds = work_ && message.add && adds_take_time(message.receiver.lane)};
    transfer.route = kept != nothing_kept ? kept : find_route(message, kept);
    bytes_sent_ += transfer.size;
    bytes_expected_ += message.target;
    if (ahead_) ahead_->met(index, transfer.marks.sender_was_last ? message.sender.lane : message.receiver.lane);
    set_out(index);
  }

  void local(OpPlace place, const Op& op) {
    if (op.what != Do::compute) {
      if (trails_.weighs_ties()) trails_.weigh(place.lane, trails_[place.lane], engine_.now());
      const LinkKind kind = op.what == Do::add ? LinkKind::reduce : LinkKind::copy;
      if (!work_ || !work_->takes_time(lanes_.actor(place.lane), kind)) return local_done(place.lane);
      return work_->begin(place.lane, kind, schedule_.size(op.region), trails_[place.lane]);
    }
    if (op.time == until_told) return begins_untold(place.lane);
    const int unit = op.unit();
    if (unit >= 0 && !units_.take(unit, {place.lane, op.time})) return;
    if (begins_compute(place.lane, op.time, unit)) compute_done(place.lane, unit);
  }
  /// A send whose receiver has not begun.
  void left(std::uint32_t slot, OpPlace place, Bytes size, LaneNumber by, std::uint32_t& kept) {
    bytes_sent_ += size;
    ahead_->left(slot, place, size, by, kept);
  }
  void room(std::uint32_t slot, int n, LaneNumber by) { ahead_->room(slot, n, by); }
  bool holds(LaneNumber lane) { return may_hold_ && (is_over_ || (disturber_ && disturber_->holds(lane))); }
  void begins(LaneNumber lane) {
    trails_.begins(lane, engine_.now());
    if (by_channels_ != nullptr && schedule_.lanes > 1) [[unlikely]]
      weigh_waits(lane);
  }
  void woken(LaneNumber lane, LaneNumber by) { trails_.woken(lane, by); }
  void many_begin() const { stop_if_asked(); }

 private:
  static const Schedule& schedule_of(const CheckedSchedule& checked, const Part& part) {
    if (part.folding != nullptr) return part.folding->one;
    if (part.by_turns != nullptr) return part.by_turns->first;
    return part.by_channels != nullptr ? part.by_channels->one : checked.schedule();
  }

  // Which of the lanes that a step waits for was last may be up to the order within an instant.
  [[gnu::noinline]] void weigh_waits(LaneNumber lane) {
    const Actor self = lanes_.actor(lane);
    waits_.clear();
    schedule_.step(self, lanes_.lane_of(lane), lanes_.step(lane), waits_);
    for (const Wait& wait : waits_.waits)
      trails_.weigh_wait(lane, static_cast<LaneNumber>(wait.of(self) * schedule_.lanes + wait.lane));
  }

  [[gnu::noinline]] std::uint64_t folded_connection(Actor self, const Op& op) const {
    if (by_turns_ != nullptr) return by_turns_->connection(self, op);
    if (stand_ins_ == nullptr) return 0;
    const std::uint64_t key = connection_key(self, op);
    return op.what == Do::send ? key : stand_ins_->sent_for(key);
  }

  /// Folded: the one that is not simulated as well.
  Actor receiver_of(const Message<Bytes>& message) {
    if (is_folded_) [[unlikely]] {
      if (by_turns_ != nullptr) return by_turns_->peers[message.sender.lane];
      if (folding_ != nullptr) return folding_->peer(lanes_.lane_of(message.sender.lane), message.sender.step);
      asked_.clear();
      schedule_.step(lanes_.actor(message.sender.lane), lanes_.lane_of(message.sender.lane), message.sender.step,
                     asked_);
      return asked_.ops[static_cast<std::size_t>(message.sender.op)].peer;
    }
    return lanes_.actor(message.receiver.lane);
  }
  /// As receiver_of(), of a message on its way.
  Actor receiver_of(const Transfer& transfer) const {
    if (stand_ins_ != nullptr) [[unlikely]]
      return CompiledRoutes::receiver_of(ways_[transfer.route].key);
    return lanes_.actor(transfer.receiver);
  }
  /// Which lane will receive a message is not known before it is received; it is the actor's first until then. Folded,
  /// it is one of the same number.
  LaneNumber expected_receiver(LaneNumber sender, Actor peer) const {
    const auto lanes = static_cast<LaneNumber>(schedule_.lanes);
    if (stand_ins_ != nullptr) return static_cast<LaneNumber>(stand_ins_->actor(peer)) * lanes;
    if (by_turns_ == nullptr) return static_cast<LaneNumber>(peer) * lanes;
    return static_cast<LaneNumber>(by_turns_->simulated_for(peer)) * lanes + sender % lanes;
  }
  /// The links that are simulated for those of a path.
  void take_simulated_links(std::vector<Path>& paths) const {
    if (by_turns_ == nullptr && stand_ins_ == nullptr) return;
    for (Path& path : paths)
      path = by_turns_ != nullptr ? by_turns_->turned(std::move(path)) : stand_ins_->turned(std::move(path));
  }

  DeviceLinks::Work simulated(DeviceLinks::Work work) const {
    if (stand_ins_ != nullptr && work.link != no_link) work.link = stand_ins_->links[work.link.value];
    return work;
  }

  [[gnu::noinline]] std::uint32_t find_route(const Message<Bytes>& message, std::uint32_t& kept) {
    return route_from(message.sender.lane, receiver_of(message), message.channel, kept);
  }

  void caught_up(const Message<Bytes>& message) {
    bytes_expected_ += message.target;
    ahead_->caught_up(message);
  }

  /// All that happens at this instant has happened.
  void settle() {
    if (posts_) posts_->take_turns();
    network_->settle();
  }

  void handle(Event event) {
    switch (event.kind()) {
      case Event::Kind::flow:
        if (const auto told = network_->due(event)) {
          turn_ = told->turn;
          if (work_ && DeviceWork<Run>::is_work(told->piece)) {
            if (told->has_arrived) work_->done(*told);
          } else {
            this->told(*told);
          }
        }
        break;
      case Event::Kind::within:
        turn_ = engine_.now();
        all_arrived(event.id, no_resource, Picoseconds{0});
        break;
      case Event::Kind::local:
        if (options_.longer && takes_longer(event)) break;
        compute_done(event.id, static_cast<int>(event.stamp) - 1);
        break;
      case Event::Kind::told:
        told_end(event.id);
        break;
      case Event::Kind::device:
        work_->started(event.id);
        break;
      case Event::Kind::posted:
        disturber_ ? disturber_->posted(event.id) : go_posted(event.id);
        break;
      case Event::Kind::disturbance:
        disturber_->due(event);
        break;
    }
  }

  /// Records the end of a whole message.
  void delivered(std::uint32_t index, const MessageTime& time) {
    const Transfer& transfer = transfers_[index];
    ++timeline_.transfers;
    bytes_delivered_ += transfer.size;
    const Actor from = lanes_.actor(transfer.sender), to = lanes_.actor(transfer.receiver);
    fingerprint_.add(CompiledRoutes::key_of(from, to, transfer.channel), transfer.size, transfer.start, engine_.now());
    if (is_watched_) [[unlikely]]
      tell_delivered(transfer);
    if (is_followed_ || transfer.marks.adds)
      return delivered_and_followed(index, time.busy, time.latency, time.limiter);
    const LaneNumber cause = transfer.cause(), other = transfer.other();
    transfers_.give_back(index);
    end_ops(cause, other, time);
  }

  [[gnu::noinline]] void tell_delivered(const Transfer& transfer) {
    if (stand_ins_ != nullptr) return tell_all_delivered(transfer);
    if (!jobs_.empty()) count_for_job(transfer);
    if (options_.record_spans) timeline_.spans.push_back(span_of(transfer));
    if (options_.on_message) options_.on_message(span_of(transfer));
  }
  // Like ones arrive now, of actors that are not simulated.
  [[gnu::noinline]] void tell_all_delivered(const Transfer& transfer) {
    const std::int64_t n_others = stand_ins_->counts[static_cast<std::size_t>(lanes_.actor(transfer.sender))] - 1;
    if (__builtin_add_overflow(timeline_.transfers, n_others, &timeline_.transfers))
      fail_too_large("more messages than can be counted (2^63)");
    bytes_sent_by_others_ += transfer.size * n_others;
    if (!options_.on_message) return;
    Span span = span_of(transfer);
    span.to = receiver_of(transfer);
    options_.on_message(span);
  }
  Span span_of(const Transfer& transfer) const {
    return {.from = lanes_.actor(transfer.sender),
            .to = lanes_.actor(transfer.receiver),
            .channel = transfer.channel,
            .lane = static_cast<std::uint16_t>(lanes_.lane_of(transfer.sender)),
            .step = transfer.step,
            .bytes = transfer.size,
            .start = transfer.start,
            .finish = engine_.now()};
  }

  // The end that was waited for carries the trail. It ends last: until then its trail is still the one from the start
  // of its step.
  [[gnu::always_inline]] void end_ops(LaneNumber cause, LaneNumber other, const MessageTime& time) {
    end_other_op(other, cause, time);
    end_own_op(cause, time);
  }

  // The end of delivered(), if messages run ahead, the critical path is recorded, ties are weighed, or the message
  // is added. Apart, so that other runs do not ask.
  [[gnu::noinline]] void delivered_and_followed(std::uint32_t index, Picoseconds busy, Picoseconds latency,
                                                ResourceId limiter) {
    if (ahead_) return ahead_->arrived(index, limiter, busy);
    const Transfer& transfer = transfers_[index];
    const Picoseconds wire = take_wire();
    const MessageTime time{.busy = busy,
                           .latency = latency,
                           .node = trails_.record(transfer.cause(), transfer, wire, busy, latency, limiter),
                           .limiter = limiter,
                           .is_unsure = transfer.marks.limiter_is_unsure};
    if (transfer.marks.adds) {
      delivered_and_added(index, time);
    } else {
      const LaneNumber cause = transfer.cause(), other = transfer.other();
      if (trails_.weighs_ties())
        for (const LaneNumber lane : {other, cause}) trails_.weigh(lane, trails_[cause], time, engine_.now());
      end_ops(cause, other, time);
    }
    transfers_.give_back(index);
  }
  // Its receiver goes on when it is added.
  [[gnu::noinline]] void delivered_and_added(std::uint32_t index, const MessageTime& time) {
    const LaneNumber sender = transfers_[index].sender, cause = transfers_[index].cause();
    Trail trail = trails_[cause];
    trails_.go_on(trail, time);
    add(index, trail);
    cause == sender ? end_own_op(sender, time) : end_other_op(sender, cause, time);
  }

  // Asked for every message: most runs have one plan.
  const Protocol& protocol(std::uint16_t channel) const {
    return only_protocol_ != nullptr ? *only_protocol_ : *options_.plan(channel).protocol;
  }

  bool adds_take_time(LaneNumber lane) const {
    return work_ && work_->takes_time(lanes_.actor(lane), LinkKind::reduce);
  }
  /// A message that is there is added up by its receiver; `trail` leads to this moment.
  [[gnu::noinline]] void add(std::uint32_t index, const Trail& trail) {
    const Transfer& transfer = transfers_[index];
    work_->begin(transfer.receiver, LinkKind::reduce, protocol(transfer.channel).data_of(transfer.size), trail);
  }

  JobTimeline& job_of(LaneNumber lane) { return jobs_[options_.jobs[static_cast<std::size_t>(lanes_.lane_of(lane))]]; }

  void count_for_job(const Transfer& transfer) {
    JobTimeline& job = job_of(transfer.sender);
    ++job.transfers;
    job.bytes_sent += transfer.size;
  }

  // An operation of a lane ends now with a message that began when the lane itself began its step, or when `cause`
  // began its; see LaneTrails.
  [[gnu::always_inline]] void end_own_op(LaneNumber lane, const MessageTime& time) {
    if (lanes_.is_last(lane)) {
      trails_.go_on(lane, lane, time);
      end_of_step(lane);
    } else {
      trails_.keep_own(lane, time, engine_.now());
    }
    lanes_.op_done(lane);
  }
  void end_other_op(LaneNumber lane, LaneNumber cause, const MessageTime& time) {
    if (lanes_.is_last(lane)) {
      if (!trails_.go_on_by_own(lane, engine_.now())) trails_.go_on(lane, cause, time);
      end_of_step(lane);
    }
    lanes_.op_done(lane);
  }

  void collect_path() {
    std::vector<PathEnd*> ends;
    if (ahead_) ahead_->add_path_ends(ends);
    if (work_) work_->add_path_ends(ends);
    for (auto told = told_.begin(); told != told_.end(); ++told) ends.push_back(&told.value().path_end);
    trails_.collect(std::move(ends));
  }

  void tell(LaneNumber lane, bool begins) const {
    if (!options_.on_compute) return;
    ComputeEvent event{lanes_.actor(lane), lanes_.lane_of(lane), lanes_.step(lane), begins, engine_.now()};
    options_.on_compute(event);
    if (folding_ == nullptr) return;
    for (event.actor = 1; event.actor < folding_->ranks; ++event.actor) options_.on_compute(event);
  }

  [[gnu::noinline]] bool takes_longer(const Event& event) {
    const Picoseconds more = options_.longer(
        {lanes_.actor(event.id), lanes_.lane_of(event.id), lanes_.step(event.id), false, engine_.now()});
    if (more.count() > 0) engine_.after(more, event);
    return more.count() > 0;
  }
  /// True if it ends at once.
  bool begins_compute(LaneNumber lane, Picoseconds time, int unit) {
    tell(lane, true);
    if (time.count() == 0) return true;
    engine_.after(time, {Event::Kind::local, lane, static_cast<std::uint32_t>(unit + 1)});
    return false;
  }
  void compute_done(LaneNumber lane, int unit) {
    for (;;) {
      tell(lane, false);
      if (options_.enough && options_.enough()) is_over_ = true;
      local_done(lane);
      if (unit < 0) return;
      const std::optional<ComputeUnits::Job> next = units_.next(unit);
      if (!next) return;
      trails_.woken(next->lane, lane);  // what it waited for
      if (!begins_compute(next->lane, next->time, unit)) return;
      lane = next->lane;
    }
  }

  [[gnu::noinline]] void begins_untold(LaneNumber lane) {
    ensure(options_.courses != nullptr, "somebody knows when it ends");
    tell(lane, true);
    const auto n_lanes = static_cast<LaneNumber>(schedule_.lanes);
    for (const Courses::End& end :
         options_.courses->begins(lanes_.actor(lane), lanes_.lane_of(lane), lanes_.step(lane), engine_.now())) {
      const LaneNumber ends = static_cast<LaneNumber>(end.actor) * n_lanes + static_cast<LaneNumber>(end.lane),
                       since = static_cast<LaneNumber>(end.since) * n_lanes + static_cast<LaneNumber>(end.lane);
      Trail trail = trails_[since];
      trail.path_end = trails_.record_known(since, ends, end.way->at.time_since_epoch());
      trail.go_on(*end.way);
      told_[ends] = trail;
      engine_.at(end.when, {Event::Kind::told, ends, 0});
    }
  }
  [[gnu::noinline]] void told_end(LaneNumber lane) {
    const auto found = told_.find(lane);
    trails_.take(lane, found->second);
    told_.erase(found);
    tell(lane, false);
    local_done(lane);
  }

  void local_done(LaneNumber lane) {
    if (lanes_.is_last(lane)) {
      trails_.compute_until(lane, engine_.now());
      end_of_step(lane);
    }
    lanes_.op_done(lane);
  }

  [[gnu::noinline]] void end_of_job_step(LaneNumber lane) {
    JobTimeline& job = job_of(lane);
    if (job.finish < engine_.now() || !job.bottleneck) {
      job.bottleneck = trails_[lane].bottleneck(engine_.now());
      trails_.is_last_of_job(static_cast<std::size_t>(&job - jobs_.data()), lane);
    }
    job.finish = engine_.now();
  }

  void end_of_step(LaneNumber lane) {
    trails_.step_ends(lane, engine_.now());
    timeline_.actor_finish[static_cast<std::size_t>(lanes_.actor(lane))] = engine_.now();
    if (is_watched_ && !jobs_.empty()) end_of_job_step(lane);
    if (trails_.has_last() && timeline_.finish == engine_.now()) {  // the first of those that are last
      if (trails_.weighs_ties()) trails_.is_last_too(lane, engine_.now(), turn_);
      return;
    }
    trails_.is_last(lane, turn_);
    timeline_.finish = engine_.now();
  }

  void stop_if_asked() const {
    if (options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed))
      throw Interrupted(fmt::format("stopped at {} us of simulated time, {} of {} steps done",
                                    microseconds(engine_.now().time_since_epoch()), lanes_.steps_done(),
                                    lanes_.n_steps()));
  }

  void look_up() {
    stop_if_asked();
    if (trails_.is_full()) collect_path();
    if (options_.progress)
      options_.progress(static_cast<double>(lanes_.steps_done()) / static_cast<double>(lanes_.n_steps()));
  }

  Timeline finish() {
    if (!lanes_.finished() && !is_over_) stalled();
    if (is_over_ && ahead_) {  // a message may have left whose receiver never began
      ensure(bytes_delivered_ <= bytes_sent_ && bytes_expected_ <= bytes_sent_, "no more bytes arrive than were sent");
    } else {
      ensure(bytes_sent_ == bytes_delivered_ && bytes_sent_ == bytes_expected_, "bytes in equal bytes out");
      disturber_ ? disturber_->expect_all_accounted(transfers_.in_use())
                 : ensure(transfers_.in_use() == 0, "nothing is on its way at the end");
    }
    timeline_.bytes_sent = bytes_sent_ + bytes_sent_by_others_;
    timeline_.fingerprint = fingerprint_.value();
    timeline_.link_bytes = ways_.link_bytes(
        topology_.n_links(), [&](std::uint32_t route) { return !disturber_ || !disturber_->is_background(route); },
        timeline_.link_rests);
    timeline_.has_choice = ways_.has_choice();
    if (stand_ins_ != nullptr) take_for_others();
    if (!disturber_ && !is_folded_ && !is_over_) ways_.expect_balance(topology_, timeline_.link_bytes, bytes_sent_);
    if (has_any_order_) expect_sure();
    expect_link_rates(topology_, *network_);
    const bool moved = timeline_.transfers > 0 || options_.courses != nullptr;
    if (moved && timeline_.duration().count() > 0 && trails_.has_last()) {
      const Bottleneck found = trails_.last().bottleneck(timeline_.finish);
      if (found.resource != no_resource || found.latency.count() > 0 || found.compute.count() > 0 ||
          found.delay.count() > 0)
        timeline_.bottleneck = found;
    }
    timeline_.jobs = jobs_;
    if (trails_.is_recorded()) take_paths();
    if (options_.on_end) tell_ends();
    return std::move(timeline_);
  }

  /// Each link has carried what the link that stands for it has.
  void take_for_others() {
    for (std::size_t link = 0; link < timeline_.link_bytes.size(); ++link) {
      timeline_.link_bytes[link] = timeline_.link_bytes[stand_ins_->links[link].value];
      if (!timeline_.link_rests.empty())
        timeline_.link_rests[link] = timeline_.link_rests[stand_ins_->links[link].value];
    }
    timeline_.fingerprint.reset();
  }

  /// No figure of the run may depend on the order in which things happen at one instant.
  void expect_sure() const {
    if (!ways_.bytes_are_sure(topology_.n_links())) throw Unsure{"the last bits of a sum decide on a byte"};
    if (trails_.has_last() && trails_.last_is_unsure())
      throw Unsure{"of equally long critical paths some have their time divided otherwise"};
  }

  void take_paths() {
    if (trails_.has_last()) timeline_.path = trails_.path(timeline_.finish);
    for (const Actor actor : options_.paths_of) {
      const auto lane = static_cast<LaneNumber>(actor * schedule_.lanes);
      timeline_.paths_of.push_back(trails_.path_of_lane(lane, timeline_.actor_finish[static_cast<std::size_t>(actor)]));
    }
    for (std::size_t j = 0; j < jobs_.size(); ++j) timeline_.jobs[j].path = trails_.path_of_job(j, jobs_[j].finish);
  }

  void tell_ends() const {
    for (Actor actor = 0; actor < schedule_.actors; ++actor) {
      if (schedule_.n_steps(actor, 0) == 0) continue;
      const Trail trail = trails_[static_cast<LaneNumber>(actor * schedule_.lanes)];
      options_.on_end(actor, trail, lanes_.actor(trail.origin));
    }
  }

  [[noreturn]] void stalled() const {
    network_->explain_stall();
    all_wait();
  }

  /// Nothing of the schedule is under way, and its lanes wait for each other.
  [[noreturn]] void all_wait() const {
    // The proof counts messages.
    for (std::size_t plan = 0; needs_slots_ && ahead_ && plan < options_.plans.size(); ++plan) {
      const Protocol& protocol = *options_.plans[plan].protocol;
      const Bytes largest = ahead_->largest(plan);
      if (largest <= protocol.slot) continue;
      throw SettingError(
          SettingError::Setting::protocol,
          fmt::format(
              "under protocol {} messages of up to {} do not run ahead of their receivers as far as the "
              "schedule {} needs them to: a connection has {} slots of {}, and at {} us all wait for each other",
              protocol.name, format(largest), schedule_.algorithm, protocol.slots, format(protocol.slot),
              microseconds(engine_.now().time_since_epoch())),
          "cut it into smaller chunks, or take smaller sizes");
    }
    for (LaneNumber lane = 0; lane < lanes_.n_lanes(); ++lane)
      if (!lanes_.is_through(lane))
        throw InvariantError(fmt::format("the simulation stalled: actor {}, lane {}, waits in step {} of schedule {}",
                                         lanes_.actor(lane), lanes_.lane_of(lane), lanes_.step(lane),
                                         schedule_.algorithm));
    fail_invariant("a run that is not finished has a lane that is not through");
  }

  const Folding* folding_;
  const FoldingByTurns* by_turns_;
  const FoldingByChannels* by_channels_;
  const StandIns* stand_ins_;
  bool is_folded_;      // rank 0, the first ranks, or some actors stand for others
  bool has_any_order_;  // no figure may depend on the order in which things happen at one instant
  LaneRunner<Run> lanes_;
  Trails trails_;
  bool keeps_routes_ = false;                // with the connections; folded, rank 0 has one connection to all its peers
  bool protocol_adds_ = false;               // bytes to those of the data
  const Protocol* only_protocol_ = nullptr;  // if all messages have one
  bool runs_ahead_ = false;                  // a message may leave before its receive begins
  bool is_followed_ = false;                 // ahead_, or the critical path is recorded, or ties are weighed
  bool is_watched_ = false;                  // jobs, spans or a caller want to know of every message
  bool needs_slots_ = false;                 // so says the proof
  SimTime turn_{};         // when the event that is handled took its place in the order within this instant
  bool may_hold_ = false;  // a step may be held whose waits are met
  bool is_over_ = false;   // RunOptions::enough said so: no step begins any more
  ComputeUnits units_;
  Step waits_;                                           // room for weigh_waits()
  Step asked_;                                           // room for receiver_of()
  Bytes bytes_sent_, bytes_expected_, bytes_delivered_;  // by the sends, by the receives, by what arrived
  Bytes bytes_sent_by_others_;                           // which have no steps: RunOptions::stand_ins
  Fingerprint fingerprint_;
  std::vector<JobTimeline> jobs_;              // as Timeline::jobs
  tsl::robin_map<LaneNumber, Trail> told_;     // by lane: the critical path to the end of its compute, which is known
  std::unique_ptr<MessagesAhead<Run>> ahead_;  // none: the two ends of a message wait for each other
  std::unique_ptr<DeviceWork<Run>> work_;      // none: devices work in no time
  std::unique_ptr<Disturber<Run>> disturber_;  // none: an undisturbed run
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                  const std::vector<NodeId>& placement, const Part& part) {
  return Run(topology, checked, options, placement, part).go();
}

}  // namespace ringsim
