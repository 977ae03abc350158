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
#include "sim/run/background_traffic.hpp"
#include "sim/run/courses.hpp"
#include "sim/run/device_work.hpp"
#include "sim/run/fingerprint.hpp"
#include "sim/run/held_lanes.hpp"
#include "sim/run/lane_trails.hpp"
#include "sim/run/link_faults.hpp"
#include "sim/run/messages_ahead.hpp"
#include "sim/run/represented.hpp"
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

/// The loop, the operations of lanes, and the sums and laws over all messages. What moves is Transfers', what a lane
/// waited for LaneTrails'.
class Run final : public OperationEnds {
 public:
  Run(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
      const std::vector<NodeId>& placement, const Part& part)
      : topology_(topology),
        options_(options),
        represented_(part, options.stand_ins),
        schedule_(represented_.schedule_of(checked)),
        transfers_(topology, options, placement, schedule_.actors, represented_,
                   make_network(options.model, options.packet, topology, engine_, use_of_network()), engine_),
        lanes_(schedule_, options.plans.front().protocol->slots, *this),
        trails_(topology, lanes_, represented_.folding(), !options.disturbance.empty(), options.stop),
        is_folded_(represented_.folds_actors()) {
    ensure(options.stand_ins == nullptr || !options.record_path, "nobody asks for the path of one call of several");
    ensure(represented_.stand_ins() == nullptr || (options.disturbance.empty() && !options.record_spans),
           "actors that stand for others are not disturbed, and nobody asks for each of their messages");
    if (!options.jobs.empty()) {
      ensure(options.jobs.size() == static_cast<std::size_t>(schedule_.lanes), "every lane belongs to a job");
      jobs_.resize(*std::max_element(options.jobs.begin(), options.jobs.end()) + 1);
    }
    if (options.record_path) trails_.record(jobs_.size());
    if (options.on_end) trails_.keep_origins();
    if (options.plans.size() == 1) only_protocol_ = options.plans.front().protocol;
    is_followed_ = messages_run_ahead() || options.record_path || represented_.must_hold_in_any_order();
    protocol_adds_ = std::any_of(options.plans.begin(), options.plans.end(),
                                 [](const CallPlan& plan) { return plan.protocol->adds_bytes(); });
    may_hold_ = !options.disturbance.empty() || options.enough;
    is_watched_ =
        !options.jobs.empty() || options.record_spans || options.on_message || represented_.stand_ins() != nullptr;
    needs_slots_ = checked.proof().slots_needed > 0;
    if (&schedule_ == &checked.schedule() || part.alike != nullptr) n_messages_ = checked.proof().operations / 2;
    if (topology.has_work_rates())
      work_ = std::make_unique<DeviceWork>(topology, represented_, lanes_, engine_, transfers_, trails_);
    if (messages_run_ahead())
      ahead_ = std::make_unique<MessagesAhead>(schedule_, options, represented_, engine_, lanes_, trails_, transfers_,
                                               work_.get(), *this);
    if (represented_.must_hold_in_any_order()) trails_.weigh_ties();
    if (represented_.folds_channels()) transfers_.ways().stand_for(represented_.channels());
    transfers_.while_routing([this] { stop_if_asked(); });
    if (options.on_traffic) transfers_.network().watch([this](const Moved& moved) { tell_traffic(moved); });
    if (!options.disturbance.empty()) make_disturbance();
    timeline_.actor_finish.assign(static_cast<std::size_t>(schedule_.actors), SimTime{});
  }

  Timeline go() {
    if (faults_) {  // what they schedule comes first at its instant
      faults_->begin();
      background_->begin();
    }
    lanes_.run_ready();
    settle();
    engine_.run(
        [this](const Event& event) {
          handle(event);
          lanes_.run_ready();
          if ((++timeline_.events & 0x3FF) == 0) look_up();
        },
        [this] { settle(); }, [this] { return !(faults_ && lanes_.finished()); });
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
  std::uint64_t connection(Actor self, const Op& op) const {
    if (is_folded_) [[unlikely]]
      return represented_.connection(self, op);
    return connection_key(self, op);
  }

  void matched(const Message<Bytes>& message, std::uint32_t& kept) {
    if (message.slot != no_slot) return caught_up(message);
    const std::uint32_t index = transfers_.table().make();
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
                      .adds = work_ && message.add && work_->takes_time(message.receiver.lane, LinkKind::reduce)};
    transfer.route = kept != nothing_kept ? kept : find_route(message, kept);
    bytes_sent_ += transfer.size;
    bytes_expected_ += message.target;
    if (ahead_) ahead_->met(index, transfer.marks.sender_was_last ? message.sender.lane : message.receiver.lane);
    transfers_.set_out(index);
  }

  void local(OpPlace place, const Op& op) {
    if (op.what != Do::compute) {
      if (trails_.weighs_ties()) trails_.weigh(place.lane, trails_[place.lane], engine_.now());
      const LinkKind kind = op.what == Do::add ? LinkKind::reduce : LinkKind::copy;
      if (!work_ || !work_->takes_time(place.lane, kind)) return local_done(place.lane);
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
  bool holds(LaneNumber lane) { return may_hold_ && (is_over_ || (held_ && held_->holds(lane))); }
  void begins(LaneNumber lane) {
    trails_.begins(lane, engine_.now());
    if (represented_.folds_channels() && schedule_.lanes > 1) [[unlikely]]
      weigh_waits(lane);
  }
  void woken(LaneNumber lane, LaneNumber by) { trails_.woken(lane, by); }
  void many_begin() const { stop_if_asked(); }

 private:
  // Messages may leave before their receives begin.
  bool messages_run_ahead() const { return options_.plans.front().protocol->done_when_left; }
  NetworkUse use_of_network() const {
    return {.tells_left = messages_run_ahead(),
            .any_order = represented_.must_hold_in_any_order(),
            .copies = represented_.channels(),
            .may_change = !options_.disturbance.empty()};
  }
  // Links that fail, lanes that are held, and traffic of others.
  void make_disturbance() {
    const int n_ranks = options_.jobs.empty() ? schedule_.collective.ranks : 0;
    faults_ = std::make_unique<LinkFaults>(topology_, options_, n_ranks, engine_, transfers_);
    held_ = std::make_unique<HeldLanes>(options_.disturbance, lanes_, trails_, engine_);
    background_ = std::make_unique<BackgroundTraffic>(options_.disturbance.background, engine_, transfers_, *faults_);
  }

  // Which of the lanes that a step waits for was last may be up to the order within an instant.
  [[gnu::noinline]] void weigh_waits(LaneNumber lane) {
    const Actor self = lanes_.actor(lane);
    waits_.clear();
    schedule_.step(self, lanes_.lane_of(lane), lanes_.step(lane), waits_);
    for (const Wait& wait : waits_.waits)
      trails_.weigh_wait(lane, static_cast<LaneNumber>(wait.of(self) * schedule_.lanes + wait.lane));
  }

  [[gnu::noinline]] std::uint32_t find_route(const Message<Bytes>& message, std::uint32_t& kept) {
    const Actor to = is_folded_ ? represented_.receiver_of(message.sender, lanes_, schedule_, asked_)
                                : lanes_.actor(message.receiver.lane);
    return transfers_.route(lanes_.actor(message.sender.lane), to, message.channel, kept);
  }

  void caught_up(const Message<Bytes>& message) {
    bytes_expected_ += message.target;
    ahead_->caught_up(message);
  }

  /// All that happens at this instant has happened.
  void settle() {
    transfers_.take_turns();
    transfers_.network().settle();
  }

  void handle(Event event) {
    switch (event.kind()) {
      case Event::Kind::flow:
        if (const auto told = transfers_.network().due(event)) {
          turn_ = told->turn;
          if (work_ && DeviceWork::is_work(told->piece)) {
            if (told->has_arrived) op_ends(work_->done(*told));
          } else if (const Arrived* arrived = transfers_.told(*told)) {
            delivered(*arrived);
          }
        }
        break;
      case Event::Kind::within:
        turn_ = engine_.now();
        if (const Arrived* arrived = transfers_.within(event.id)) delivered(*arrived);
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
        faults_ ? faults_->posted(event.id) : transfers_.go_posted(event.id);
        break;
      case Event::Kind::link_change:
        if (faults_->change_links()) lanes_.forget_kept();
        break;
      case Event::Kind::resume:
        lanes_.resume(event.id);
        break;
      case Event::Kind::background:
        send_background(event.id);
        break;
    }
  }

  [[gnu::noinline]] void send_background(std::uint32_t number) {
    if (is_over_ || lanes_.finished() || background_->is_over(number)) return;
    if (background_->is_all_there_is(lanes_.steps_done())) all_wait();
    background_->start(number);
  }

  /// Records the end of a message.
  void delivered(const Arrived& arrived) {
    const Transfer& transfer = transfers_[arrived.transfer];
    ++timeline_.transfers;
    bytes_delivered_ += transfer.size;
    const Actor from = lanes_.actor(transfer.sender), to = lanes_.actor(transfer.receiver);
    fingerprint_.add(CompiledRoutes::key_of(from, to, transfer.channel), transfer.size, transfer.start, engine_.now());
    if (is_watched_) [[unlikely]]
      tell_delivered(transfer);
    if (is_followed_ || transfer.marks.adds) return delivered_and_followed(arrived);
    const LaneNumber cause = transfer.cause(), other = transfer.other();
    transfers_.table().give_back(arrived.transfer);
    end_ops(cause, other, arrived.time);
  }

  [[gnu::noinline]] void tell_delivered(const Transfer& transfer) {
    if (represented_.stand_ins() != nullptr) return tell_all_delivered(transfer);
    if (!jobs_.empty()) count_for_job(transfer);
    if (options_.record_spans) timeline_.spans.push_back(span_of(transfer));
    if (options_.on_message) options_.on_message(span_of(transfer));
  }
  // Like ones arrive now, of actors that are not simulated.
  [[gnu::noinline]] void tell_all_delivered(const Transfer& transfer) {
    const std::int64_t n_others = represented_.count(lanes_.actor(transfer.sender)) - 1;
    if (__builtin_add_overflow(timeline_.transfers, n_others, &timeline_.transfers))
      fail_too_large("more messages than can be counted (2^63)");
    bytes_sent_by_others_ += transfer.size * n_others;
    if (!options_.on_message) return;
    Span span = span_of(transfer);
    span.to = CompiledRoutes::receiver_of(transfers_.ways()[transfer.route].key);
    options_.on_message(span);
  }
  Span span_of(const Transfer& transfer) const {
    return {.from = lanes_.actor(transfer.sender),
            .to = lanes_.actor(transfer.receiver),
            .channel = transfer.channel,
            .lane = static_cast<std::uint16_t>(lanes_.lane_of(transfer.sender)),
            .step = transfer.step,
            .count = represented_.count(lanes_.actor(transfer.sender)),
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
  [[gnu::always_inline]] void end_own_op(LaneNumber lane, const MessageTime& time) {
    trails_.end_own(lane, time, engine_.now());
    op_ends(lane);
  }
  [[gnu::always_inline]] void end_other_op(LaneNumber lane, LaneNumber cause, const MessageTime& time) {
    trails_.end_by_other(lane, cause, time, engine_.now());
    op_ends(lane);
  }
  void op_ends(LaneNumber lane) override {
    if (lanes_.is_last(lane)) end_of_step(lane);
    lanes_.op_done(lane);
  }

  // The end of delivered(), if messages run ahead, the critical path is recorded, ties are weighed, or the message
  // is added. Apart, so that other runs do not ask.
  [[gnu::noinline]] void delivered_and_followed(const Arrived& arrived) {
    if (ahead_) return ahead_->arrived(arrived);
    const Transfer& transfer = transfers_[arrived.transfer];
    const LaneNumber cause = transfer.cause(), other = transfer.other();
    MessageTime time = arrived.time;
    time.node = trails_.record(cause, transfer, arrived.wire, time.busy, time.latency, time.limiter);
    if (transfer.marks.adds) {
      delivered_and_added(transfer, time);
    } else {
      if (trails_.weighs_ties())
        for (const LaneNumber lane : {other, cause}) trails_.weigh(lane, trails_[cause], time, engine_.now());
      end_ops(cause, other, time);
    }
    transfers_.table().give_back(arrived.transfer);
  }
  // Its receiver goes on when it is added.
  [[gnu::noinline]] void delivered_and_added(const Transfer& transfer, const MessageTime& time) {
    const LaneNumber sender = transfer.sender, cause = transfer.cause();
    Trail trail = trails_[cause];
    trails_.go_on(trail, time);
    work_->begin(transfer.receiver, LinkKind::reduce, protocol(transfer.channel).data_of(transfer.size), trail);
    cause == sender ? end_own_op(sender, time) : end_other_op(sender, cause, time);
  }

  // Asked for every message: most runs have one plan.
  const Protocol& protocol(std::uint16_t channel) const {
    return only_protocol_ != nullptr ? *only_protocol_ : *options_.plan(channel).protocol;
  }

  [[gnu::noinline]] void tell_traffic(const Moved& moved) const {
    const bool is_work = work_ && DeviceWork::is_work(moved.piece);
    const std::uint32_t route = is_work ? work_->route(moved.piece) : transfers_[transfer_of(moved.piece)].route;
    if (faults_ && faults_->is_background(route)) return;
    if (moved.link != no_link) return options_.on_traffic({moved.link, moved.begin, moved.end, moved.bytes});
    const CompiledRoutes& ways = transfers_.ways();
    const LegUse& use = ways.leg(ways[route].first + (is_work ? 0 : leg_of(moved.piece)));
    for (std::size_t l = 0; l < use.n_links; ++l)
      options_.on_traffic({ways.links(use)[l], moved.begin, moved.end, moved.bytes * ways.share(use, l)});
  }

  JobTimeline& job_of(LaneNumber lane) { return jobs_[options_.jobs[static_cast<std::size_t>(lanes_.lane_of(lane))]]; }

  void count_for_job(const Transfer& transfer) {
    JobTimeline& job = job_of(transfer.sender);
    ++job.transfers;
    job.bytes_sent += transfer.size;
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
    if (represented_.folding() == nullptr) return;
    for (event.actor = 1; event.actor < represented_.folding()->ranks; ++event.actor) options_.on_compute(event);
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
    if (lanes_.is_last(lane)) trails_.compute_until(lane, engine_.now());
    op_ends(lane);
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

  // A step may have most of the run's messages.
  double share_done() const {
    const double steps = static_cast<double>(lanes_.steps_done()) / static_cast<double>(lanes_.n_steps());
    if (n_messages_ == 0) return steps;
    return std::max(steps, static_cast<double>(timeline_.transfers) / static_cast<double>(n_messages_));
  }

  void look_up() {
    stop_if_asked();
    if (trails_.is_full()) collect_path();
    if (options_.progress) options_.progress(share_done());
  }

  Timeline finish() {
    if (!lanes_.finished() && !is_over_) stalled();
    if (is_over_ && ahead_) {  // a message may have left whose receiver never began
      ensure(bytes_delivered_ <= bytes_sent_ && bytes_expected_ <= bytes_sent_, "no more bytes arrive than were sent");
    } else {
      ensure(bytes_sent_ == bytes_delivered_ && bytes_sent_ == bytes_expected_, "bytes in equal bytes out");
      // Background messages that nobody waits for are left where they are.
      if (options_.disturbance.background.empty())
        ensure(transfers_.table().in_use() == (faults_ ? faults_->n_given_up() : 0),
               "nothing is on its way at the end");
    }
    timeline_.bytes_sent = bytes_sent_ + bytes_sent_by_others_;
    timeline_.fingerprint = fingerprint_.value();
    const CompiledRoutes& ways = transfers_.ways();
    timeline_.link_bytes = ways.link_bytes(
        topology_.n_links(), [&](std::uint32_t route) { return !faults_ || !faults_->is_background(route); },
        timeline_.link_rests);
    timeline_.has_choice = ways.has_choice();
    if (represented_.stand_ins() != nullptr) take_for_others();
    if (!faults_ && !is_folded_ && !is_over_) ways.expect_balance(topology_, timeline_.link_bytes, bytes_sent_);
    if (represented_.must_hold_in_any_order()) expect_sure();
    expect_link_rates(topology_, transfers_.network());
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
      timeline_.link_bytes[link] = timeline_.link_bytes[represented_.stand_ins()->links[link].value];
      if (!timeline_.link_rests.empty())
        timeline_.link_rests[link] = timeline_.link_rests[represented_.stand_ins()->links[link].value];
    }
    timeline_.fingerprint.reset();
  }

  /// No figure of the run may depend on the order in which things happen at one instant.
  void expect_sure() const {
    if (!transfers_.ways().bytes_are_sure(topology_.n_links())) throw Unsure{"the last bits of a sum decide on a byte"};
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
    transfers_.network().explain_stall();
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
              "with protocol {}, messages of up to {} are not sent as far ahead of their receivers as the schedule {} "
              "requires: a connection has {} slots of {}, and at {} us all ranks wait for each other",
              protocol.name, format(largest), schedule_.algorithm, protocol.slots, format(protocol.slot),
              microseconds(engine_.now().time_since_epoch())),
          "cut the buffer into smaller pieces with transport.chunk, or use smaller sizes");
    }
    for (LaneNumber lane = 0; lane < lanes_.n_lanes(); ++lane)
      if (!lanes_.is_through(lane))
        throw InvariantError(fmt::format("the simulation stalled: actor {}, lane {}, waits in step {} of schedule {}",
                                         lanes_.actor(lane), lanes_.lane_of(lane), lanes_.step(lane),
                                         schedule_.algorithm));
    fail_invariant("a run that is not finished has a lane that is not through");
  }

  const Topology& topology_;
  const RunOptions& options_;
  const Represented represented_;
  const Schedule& schedule_;
  Engine<Event> engine_;
  Transfers transfers_;
  LaneRunner<Run> lanes_;
  LaneTrails trails_;
  bool is_folded_;                           // some actors are simulated for others
  bool protocol_adds_ = false;               // bytes to those of the data
  const Protocol* only_protocol_ = nullptr;  // if all messages have one
  bool is_followed_ = false;                 // ahead_, or the critical path is recorded, or ties are weighed
  bool is_watched_ = false;                  // jobs, spans or a caller want to know of every message
  bool needs_slots_ = false;                 // so says the proof
  std::int64_t n_messages_ = 0;              // of all actors; 0 if unknown
  SimTime turn_{};         // when the event that is handled took its place in the order within this instant
  bool may_hold_ = false;  // a step may be held whose waits are met
  bool is_over_ = false;   // RunOptions::enough said so: no step begins any more
  ComputeUnits units_;
  Step waits_;                                           // room for weigh_waits()
  Step asked_;                                           // room for find_route()
  Bytes bytes_sent_, bytes_expected_, bytes_delivered_;  // by the sends, by the receives, by what arrived
  Bytes bytes_sent_by_others_;                           // which have no steps: RunOptions::stand_ins
  Fingerprint fingerprint_;
  std::vector<JobTimeline> jobs_;           // as Timeline::jobs
  tsl::robin_map<LaneNumber, Trail> told_;  // by lane: the critical path to the end of its compute, which is known
  std::unique_ptr<DeviceWork> work_;        // none: devices work in no time
  std::unique_ptr<MessagesAhead> ahead_;    // none: the two ends of a message wait for each other
  std::unique_ptr<LinkFaults> faults_;      // none, like the next two: an undisturbed run
  std::unique_ptr<HeldLanes> held_;
  std::unique_ptr<BackgroundTraffic> background_;
  Timeline timeline_;
};

}  // namespace

Timeline simulate(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                  const std::vector<NodeId>& placement, const Part& part) {
  return Run(topology, checked, options, placement, part).go();
}

}  // namespace ringsim
