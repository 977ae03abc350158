// The critical path of each lane of a run, and so that of the run and of its jobs.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/watch.hpp"
#include "sim/run/critical_path.hpp"
#include "sim/run/fold.hpp"
#include "sim/run/path_record.hpp"
#include "sim/run/transfer_table.hpp"
#include "sim/schedule/lane_states.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// A Trail per lane: the critical path up to the start of the lane's current step. If RunOptions::record_path asks
/// for it, a trail is a chain in a PathRecord as well.
///
/// A trail goes on through the last operation of a step. Among several that end at one instant it is one that the lane
/// caused itself, so that a lane's trail stays its own, and short: first one whose message began when the lane itself
/// began its step, then one whose message began when another lane began its.
///
/// All references must outlive it.
class LaneTrails {
 public:
  /// `folding`: as Part's, or null. `last_may_pass`: the lane that ends last may be held after its end. `stop`: true
  /// ends the constructor with Interrupted; it may take gigabytes.
  LaneTrails(const Topology& topology, const LaneStates& lanes, const Folding* folding, bool last_may_pass,
             const std::atomic<bool>* stop)
      : lanes_(lanes),
        folding_(folding),
        last_may_pass_(last_may_pass),
        class_of_(sorted_links(topology)),
        trails_(lanes.n_lanes(), n_classes(), stop) {
    own_.resize(lanes.n_lanes());
    if (lanes.n_lanes() > TrailTable::many) throw_if_stopped(stop, "the run was being prepared");
    began_.resize(lanes.n_lanes());
  }

  /// Has the elements of the critical paths recorded.
  void record(std::size_t n_jobs) {
    path_ = std::make_unique<PathRecord>();
    job_ends_.resize(n_jobs);
  }
  bool is_recorded() const { return path_ != nullptr; }

  /// Trails know where they begin. Comes before the first step.
  void keep_origins() {
    for (LaneNumber lane = 0; lane < trails_.size(); ++lane) trails_.sums(lane).origin = lane;
  }

  Trail operator[](LaneNumber lane) const { return trails_[lane]; }
  PathEnd path_end(LaneNumber lane) const { return trails_.sums(lane).path_end; }

  /// Trails say whether they are unsure from now on. Comes before the first step.
  void weigh_ties() {
    weighs_ties_ = true;
    ended_.resize(trails_.size());
  }
  bool weighs_ties() const { return weighs_ties_; }
  /// An operation of the lane ends now, or might if what happens now happened in another order; the trail goes on to it
  /// that way.
  [[gnu::noinline]] void weigh(LaneNumber lane, const Trail& way, SimTime now) {
    Ended& ended = ended_[lane];
    const std::uint64_t division = ringsim::division(way, way.entries);
    if (ended.when != now) ended = {.when = now, .division = division};
    ended.is_unsure = ended.is_unsure || way.is_unsure || ended.division != division;
  }
  void weigh(LaneNumber lane, Trail way, const MessageTime& time, SimTime now) {
    go_on(way, time);
    weigh(lane, way, now);
  }
  /// True if the steps of both lanes begin now, after trails whose time is divided otherwise.
  bool begin_unlike(LaneNumber a, LaneNumber b, SimTime now) const {
    if (began_[a] != now || began_[b] != now) return false;
    return trails_.sums(a).is_unsure || trails_.sums(b).is_unsure || division_of(a) != division_of(b);
  }
  SimTime began(LaneNumber lane) const { return began_[lane]; }

  // --- steps -------------------------------------------------------------------------------------------------------

  /// A step begins.
  void begins(LaneNumber lane, SimTime now) { began_[lane] = now; }
  /// True if the sender's step began no sooner than the receiver's.
  bool sender_was_last(LaneNumber sender, LaneNumber receiver) const { return began_[sender] >= began_[receiver]; }
  /// The step waited for one of lane `by`, which ends now.
  void woken(LaneNumber lane, LaneNumber by) {
    const bool is_unsure = weighs_ties_ && are_unlike(lane, by);
    trails_.copy(by, lane);
    if (is_unsure) trails_.sums(lane).is_unsure = true;
  }
  /// The lane's step begins now, which waited for one of lane `other`; they may end at one instant, in any order.
  void weigh_wait(LaneNumber lane, LaneNumber other) {
    if (are_unlike(lane, other)) trails_.sums(lane).is_unsure = true;
  }
  /// The step ends, and the trail has gone on through the last of its operations.
  void step_ends(LaneNumber lane, SimTime now) {
    ensure(trails_.sums(lane).at == now, "the parts of the critical path sum to the time of the run");
    own_[lane].when = never;
    if (weighs_ties()) [[unlikely]]
      take_doubt(lane, now);
  }

  // --- what a trail goes on through --------------------------------------------------------------------------------

  /// An operation of the lane ends now with a message that began when the lane itself began its step.
  [[gnu::always_inline]] void end_own(LaneNumber lane, const MessageTime& time, SimTime now) {
    lanes_.is_last(lane) ? go_on(lane, time) : keep_own(lane, time, now);
  }
  /// As end_own(), with a message that began when lane `cause` began its step.
  [[gnu::always_inline]] void end_by_other(LaneNumber lane, LaneNumber cause, const MessageTime& time, SimTime now) {
    if (lanes_.is_last(lane) && !go_on_by_own(lane, now)) go_on(lane, cause, time);
  }
  /// The last operation of the lane's step ends with a message that began when lane `from` began its step.
  [[gnu::always_inline]] void go_on(LaneNumber lane, LaneNumber from, const MessageTime& time) {
    if (from != lane) trails_.copy(from, lane);
    go_on(lane, time);
  }
  /// The trail goes on through an operation that the lane caused itself, if one ended now.
  bool go_on_by_own(LaneNumber lane, SimTime now) {
    if (own_[lane].when != now) return false;
    go_on(lane, own_[lane].time);
    return true;
  }
  /// An operation that the lane caused itself ends, not the last of the step.
  void keep_own(LaneNumber lane, const MessageTime& time, SimTime now) {
    OwnEnd& own = own_[lane];  // field by field: see LaneRunner::post
    own.when = now;
    own.time.busy = time.busy;
    own.time.latency = time.latency;
    own.time.limiter = time.limiter;
    own.time.node = time.node;
    own.time.is_unsure = time.is_unsure;
  }
  /// The last operation of the lane's step ends; `trail` leads to this moment.
  void take(LaneNumber lane, const Trail& trail) { trails_.set(lane, trail); }

  void compute_until(LaneNumber lane, SimTime now) {
    if (path_) record_until(lane, now, PathCause::compute);
    trails_.sums(lane).compute_until(now);
  }
  /// The lane's step was held until then, because its rank is late, slow or unsteady.
  void delay_until(LaneNumber lane, SimTime until, PathCause cause) {
    if (path_) record_until(lane, until, cause);
    TrailSums& sums = trails_.sums(lane);
    sums.delay_until(std::max(sums.at, until));
  }

  /// A trail that leads to the start of a message, or of a part of one, goes on to its end. `lane`: that of the two
  /// whose step let it start. `wire`: as record()'s.
  [[gnu::always_inline]] void go_on(Trail& trail, LaneNumber lane, const Transfer& transfer, Picoseconds wire,
                                    MessageTime time) {
    if (path_) time.node = node_after(trail.path_end, lane, transfer, wire, time.busy, time.latency, time.limiter);
    go_on(trail, time);
  }
  [[gnu::always_inline]] void go_on(LaneNumber lane, const Transfer& transfer, Picoseconds wire, MessageTime time) {
    time.node = record(lane, transfer, wire, time.busy, time.latency, time.limiter);
    go_on(lane, time);
  }
  /// A trail that leads to the start of work within the lane's device goes on to its end.
  void go_on(Trail& trail, LaneNumber lane, Bytes work, MessageTime time) {
    if (path_)
      time.node = path_->add(trail.path_end,
                             {.busy = time.busy,
                              .latency = time.latency,
                              .bytes = work,
                              .resource = time.limiter,
                              .from = lane,
                              .to = lane},
                             lanes_.step(lane));
    go_on(trail, time);
  }
  /// Puts the message after the trail, into the record only, if there is one. `wire`: at most so much of its latency
  /// is its links', the rest is staging.
  [[gnu::always_inline]] PathEnd record(LaneNumber lane, const Transfer& transfer, Picoseconds wire, Picoseconds busy,
                                        Picoseconds latency, ResourceId limiter) {
    if (!path_) return {};
    return node_after(path_end(lane), lane, transfer, wire, busy, latency, limiter);
  }
  /// Puts `time` after the start of the step of lane `since`, of which another simulation knows that it leads to the
  /// end of the step of lane `end`; into the record only, if there is one.
  PathEnd record_known(LaneNumber since, LaneNumber end, Picoseconds time) {
    if (!path_) return {};
    return path_->add(path_end(since), {.busy = time, .from = end, .to = since, .cause = PathCause::known},
                      lanes_.step(end));
  }
  /// Extends a trail that has no record.
  [[gnu::always_inline]] void go_on(Trail& trail, const MessageTime& time) const { go_on(trail, trail.entries, time); }

  // --- the ends of the run and of its jobs -------------------------------------------------------------------------

  /// The lane's step ends last so far. `turn`: when the event that ends it took its place in the order of this instant.
  void is_last(LaneNumber lane, SimTime turn) {
    last_lane_ = lane;
    last_turn_ = turn;
    last_is_unsure_ = false;
    if (last_may_pass_) last_trail_ = trails_[lane];
  }
  /// The lane's step ends when the last one did so far, and after it. Requires weighs_ties().
  [[gnu::noinline]] void is_last_too(LaneNumber lane, SimTime now, SimTime turn) {
    if (last_is_unsure_) return;
    if (turn > last_turn_) return;  // so it does in any order of what happened then
    const auto division = [&](const Trail& trail) {
      const Bottleneck held = trail.bottleneck(now);
      return std::tuple(held.busy, held.latency, held.compute, held.delay, class_of(held.resource));
    };
    last_is_unsure_ = trails_.sums(lane).is_unsure || division(trails_[lane]) != division(last());
  }
  /// True if another trail may as well be last(), with its time divided otherwise.
  bool last_is_unsure() const { return last_is_unsure_ || last().is_unsure; }
  bool has_last() const { return last_lane_ != no_lane; }
  /// That of the run. Requires has_last().
  Trail last() const { return last_may_pass_ ? last_trail_ : trails_[last_lane_]; }
  /// The lane's step is the first of the job's that ends at this instant.
  void is_last_of_job(std::size_t job, LaneNumber lane) {
    if (path_) job_ends_[job] = path_end(lane);
  }

  /// Elements of the recorded paths, checked against their end. All require is_recorded().
  std::vector<PathElement> path(SimTime finish) const { return whole_path(last().path_end, finish); }
  std::vector<PathElement> path_of_lane(LaneNumber lane, SimTime finish) const {
    return whole_path(path_end(lane), finish);
  }
  std::vector<PathElement> path_of_job(std::size_t job, SimTime finish) const {
    return whole_path(job_ends_[job], finish);
  }

  /// True if it is time to collect().
  bool is_full() const { return path_ && path_->is_full(); }
  /// Drops what no path needs any more. `ends`: of those that are kept elsewhere.
  void collect(std::vector<PathEnd*> ends) {
    ends.push_back(&last_trail_.path_end);
    for (LaneNumber lane = 0; lane < trails_.size(); ++lane) ends.push_back(&trails_.sums(lane).path_end);
    for (OwnEnd& own : own_) ends.push_back(&own.time.node);
    for (PathEnd& end : job_ends_) ends.push_back(&end);
    path_->collect(ends);
  }

 private:
  static constexpr LaneNumber no_lane = UINT32_MAX;
  static constexpr SimTime never = SimTime::min();
  struct OwnEnd {  // the latest operation of a lane's step that the lane itself caused
    SimTime when = never;
    MessageTime time;
  };

  struct Ended {  // of a lane's operations that end at one instant
    SimTime when = never;
    std::uint64_t division = 0;  // of the trail by the first of them
    bool is_unsure = false;
  };

  [[gnu::always_inline]] void go_on(TrailSums& sums, std::span<TrailEntry> entries, const MessageTime& time) const {
    sums.path_end = time.node;
    if (time.is_unsure) [[unlikely]]
      sums.is_unsure = true;
    sums.go_on(time.busy, time.latency);
    hold_back(entries, class_of(time.limiter), time.limiter, time.busy);
  }
  [[gnu::always_inline]] void go_on(LaneNumber lane, const MessageTime& time) {
    go_on(trails_.sums(lane), trails_.entries(lane), time);
  }
  // Trails that lead to one moment, with their time divided otherwise.
  bool are_unlike(LaneNumber a, LaneNumber b) const {
    const TrailSums &one = trails_.sums(a), &other = trails_.sums(b);
    return one.at == other.at && (one.is_unsure || other.is_unsure || division_of(a) != division_of(b));
  }
  std::uint64_t division_of(LaneNumber lane) const { return division(trails_.sums(lane), trails_.entries(lane)); }

  [[gnu::noinline]] void take_doubt(LaneNumber lane, SimTime now) {
    if (ended_[lane].when == now && ended_[lane].is_unsure) trails_.sums(lane).is_unsure = true;
  }

  // [resource] its class of like links: of one kind, between devices of the same kinds, of equal bandwidth.
  static std::vector<std::uint32_t> sorted_links(const Topology& topology) {
    std::vector<std::uint32_t> class_of;
    class_of.reserve(topology.n_resources());
    std::map<std::tuple<LinkKind, NodeKind, NodeKind, std::int64_t>, std::uint32_t> classes;
    for (std::uint32_t r = 0; r < topology.n_resources(); ++r) {
      const Link& link = topology.link(topology.resource({r}).link);
      const auto next = static_cast<std::uint32_t>(classes.size());
      const auto key = std::tuple(link.kind, topology.node(link.from).kind, topology.node(link.to).kind,
                                  link.bandwidth.bytes_per_second);
      class_of.push_back(classes.try_emplace(key, next).first->second);
    }
    return class_of;
  }
  std::size_t n_classes() const {
    return class_of_.empty() ? 0 : std::size_t{*std::max_element(class_of_.begin(), class_of_.end())} + 1;
  }
  std::uint32_t class_of(ResourceId resource) const { return resource == no_resource ? 0 : class_of_[resource.value]; }

  // `lane`: that of the two whose step let the message start. `wire`: at most so much of its latency is its links'; the
  // rest is staging.
  [[gnu::always_inline]] PathEnd node_after(PathEnd before, LaneNumber lane, const Transfer& transfer, Picoseconds wire,
                                            Picoseconds busy, Picoseconds latency, ResourceId limiter) {
    const auto element = [&]() -> PassedElement {
      return {.busy = busy,
              .staging = latency - std::min(latency, wire),
              .latency = std::min(latency, wire),
              .bytes = transfer.size,
              .resource = limiter,
              .from = transfer.sender,
              .to = transfer.receiver,
              .by_receiver = lane != transfer.sender};
    };
    const int step = lanes_.step(lane);
    if (path_->goes_on(before, element(), step)) return before.once_more();
    return path_->add_node(before, element(), step);
  }
  [[gnu::noinline]] void record_until(LaneNumber lane, SimTime until, PathCause cause) {
    TrailSums& sums = trails_.sums(lane);
    if (sums.at >= until) return;
    sums.path_end = path_->add(sums.path_end, {.busy = until - sums.at, .from = lane, .to = lane, .cause = cause},
                               lanes_.step(lane));
  }
  std::vector<PathElement> whole_path(PathEnd end, SimTime finish) const {
    std::vector<PathElement> path = path_->chain(end, [&](const PassedElement& element, PathElement& named) {
      const LaneNumber by = element.by_receiver ? element.to : element.from;
      const Lane lane = lanes_.lane_of(by);
      named.from = lanes_.actor(element.from);
      named.to = lanes_.actor(element.to);
      named.by = lanes_.actor(by);
      named.lane = static_cast<std::uint16_t>(lane);
      // Folded: all lanes are rank 0's, which receives from one peer while it sends to another.
      if (folding_ != nullptr && element.cause == PathCause::link) named.to = folding_->peer(lane, named.step);
    });
    expect_whole_path(path, finish);
    return path;
  }

  const LaneStates& lanes_;
  const Folding* folding_;
  bool last_may_pass_;
  std::vector<std::uint32_t> class_of_;  // [resource] its class of like links
  std::vector<SimTime> began_;           // [lane] when its current step began
  TrailTable trails_;
  std::vector<OwnEnd> own_;   // [lane]
  bool weighs_ties_ = false;  // trails say whether they are unsure
  std::vector<Ended> ended_;  // [lane], then
  bool last_is_unsure_ = false;
  SimTime last_turn_{};
  LaneNumber last_lane_ = no_lane;    // the first of those that ended last
  Trail last_trail_;                  // its own at that moment, if last_may_pass_
  std::unique_ptr<PathRecord> path_;  // only if the critical path is recorded
  std::vector<PathEnd> job_ends_;     // [job] in path_
};

}  // namespace ringsim
