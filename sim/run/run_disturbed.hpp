// What a disturbance does to a run, apart from the run itself: an undisturbed run skips all of it.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/network/network.hpp"
#include "sim/run/compiled_routes.hpp"
#include "sim/run/disturbance.hpp"
#include "sim/run/staged_transfers.hpp"
#include "sim/run/timeline.hpp"
#include "sim/run/transfers.hpp"
#include "sim/schedule/lanes.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

/// Run is the class of that name in simulate.cpp, whose friend this is. One template, and so one long file: what links
/// do to messages needs all that a run knows of them.
///
/// Who sends background messages: two actors each, beyond those of the schedule.
template <class Run>
class Disturber {
 public:
  explicit Disturber(Run& run)
      : run_(run),
        what_(run.options_.disturbance),
        states_(run.topology_, what_.links),
        messages_(what_.background.size()) {
    ensure(what_.background.size() < (1U << 16), "background messages are numbered with 16 bits");
    delays_ = !what_.late.empty() || !what_.slow.empty() || what_.jitter.most.count() > 0;
    if (delays_) take_delays();
    for (const Disturbance::Background& each : what_.background) {
      ensure(each.bytes.count > 0 && each.from != each.to && (!each.every || each.every->count() > 0),
             "a background message has bytes and a way to go");
      run.placement_.push_back(each.from);
      run.placement_.push_back(each.to);
    }
    run.network_->expect_changes();
    if (!takes_back(run.options_.model))
      for (const LinkChange& change : what_.links)
        if (change.to == LinkChange::To::down)
          throw InputError("",
                           fmt::format("links that go down cannot be combined with the network model {}",
                                       to_string(run.options_.model)),
                           "packets cannot be taken back from the buffers they wait in: take the model fair");
  }

  /// Before anything begins: what changes at 0 counts from the first step on; all else is scheduled first, so that it
  /// comes first at its instant.
  void begin() {
    for (std::uint32_t i = 0; i < states_.instants().size(); ++i) {
      if (states_.instants()[i] == SimTime{})
        change_links();
      else
        schedule(states_.instants()[i], What::change);
    }
    for (std::uint32_t b = 0; b < what_.background.size(); ++b)
      schedule(what_.background[b].start, What::background, b);
  }

  void due(const Event& event) {
    switch (static_cast<What>(event.stamp)) {
      case What::change:
        return change_links();
      case What::resume:
        return run_.lanes_.resume(event.id);
      case What::background:
        if (run_.is_over_) return;
        return start_background(event.id);
    }
  }

  // --- ranks -------------------------------------------------------------------------------------------------------

  void take_delays() {
    const auto n_lanes = static_cast<std::size_t>(run_.schedule_.lanes);
    const std::size_t all = static_cast<std::size_t>(run_.schedule_.actors) * n_lanes;
    held_.resize(all, no_hold);
    late_.resize(all);
    slow_.resize(all, Picoseconds{0});
    const auto on_lanes = [&](Actor actor, const Disturbance::Lanes& lanes, const auto& change) {
      const Lane end = lanes.count < 0 ? run_.schedule_.lanes : lanes.first + lanes.count;
      for (Lane lane = lanes.first; lane < end; ++lane)
        change(static_cast<std::size_t>(actor) * n_lanes + static_cast<std::size_t>(lane));
    };
    for (const Disturbance::Late& each : what_.late)
      on_lanes(each.actor, each.lanes, [&](std::size_t lane) { late_.at(lane) = std::max(late_[lane], each.by); });
    for (const Disturbance::Slow& each : what_.slow)
      on_lanes(each.actor, each.lanes, [&](std::size_t lane) { slow_.at(lane) = add(slow_[lane], each.step_delay); });
  }

  /// What a step of the lane waits for because its rank is slow, and because of the jitter.
  std::pair<Picoseconds, Picoseconds> delays_of(LaneNumber lane) const {
    const Actor actor = run_.lanes_.actor(lane);
    const Lane own = run_.lanes_.lane_of(lane);
    const int step = run_.lanes_.step(lane);
    if (what_.delays && !what_.delays(actor, own, step)) return {};
    return {slow_[lane], jitter_of(what_.jitter, actor, own, step)};
  }

  /// True if the lane's next step, which could begin now, does not yet.
  bool holds(LaneNumber lane) {
    if (!delays_) return false;
    SimTime& since = held_[lane];
    const SimTime now = run_.engine_.now();
    if (since != no_hold) {
      end_hold(lane, since);
      since = no_hold;
      return false;
    }
    const SimTime free = std::max(now, late_[lane]);
    const auto [slow, jitter] = delays_of(lane);
    const SimTime begins{add(free.time_since_epoch(), add(slow, jitter))};
    if (begins == now) return false;
    since = now;
    schedule(begins, What::resume, lane);
    return true;
  }

  /// The critical path waited until now because the lane's actor is late, then because it is slow, then for the jitter.
  void end_hold(LaneNumber lane, SimTime since) {
    const SimTime free = std::max(since, late_[lane]);
    run_.trails_.delay_until(lane, free, PathCause::late);
    run_.trails_.delay_until(lane, free + delays_of(lane).first, PathCause::slow);
    run_.trails_.delay_until(lane, run_.engine_.now(), PathCause::jitter);
  }

  // --- links -------------------------------------------------------------------------------------------------------

  bool any_down() const { return states_.any_down(); }
  /// The routes of now, if links are down.
  std::vector<Path> find_parts(NodeId from, NodeId to, std::uint32_t label) {
    try {
      return detours_->find_parts(from, to, label);
    } catch (const InputError&) {
      run_.routes_.find_parts(from, to, label);  // throws if links that are down are not the reason
      return {};
    }
  }

  /// The links that are down leave the message no way: it waits for one that comes back.
  void strand(std::uint32_t transfer) {
    stranded_.push_back(transfer);
    if (!states_.some_come_back()) fail_stranded();
  }

  /// An arrival within a staged message whose way was given up: true if nobody waits for it.
  bool swallows(std::uint32_t index, std::uint32_t leg) {
    const auto found = given_up_.find(index);
    if (found == given_up_.end()) return false;
    if (leg + 1 == run_.ways_[run_.transfers_[index].route].n_legs) return false;
    if (--found->second.on_their_way > 0) return true;
    const bool over = found->second.is_over;
    given_up_.erase(found);
    if (over) run_.drop(index);
    return true;
  }
  /// A transfer has been posted, while links may have gone down.
  void posted(std::uint32_t index) {
    if (find_way(index)) run_.go_posted(index);
    expect_a_way_some_day();
  }
  /// A part is delivered; false if its number is still in use.
  bool may_free(std::uint32_t part) {
    const auto found = given_up_.find(part);
    if (found == given_up_.end()) return true;
    found->second.is_over = true;
    return false;
  }

  // --- background --------------------------------------------------------------------------------------------------

  void background_delivered(std::uint32_t index) {
    const std::uint32_t number = run_.transfers_[index].whole - first_background;
    run_.drop(index);
    const Disturbance::Background& each = what_.background[number];
    if (each.every) return;
    // Never twice at one instant, however little there is to send.
    const SimTime next =
        std::max(run_.engine_.now(), SimTime{add(messages_[number].time_since_epoch(), Picoseconds{1})});
    schedule(next, What::background, number);
  }

  bool is_background(std::uint32_t route) const { return background_routes_.contains(route); }

  /// The run is over when its schedule is; what nobody waits for is left where it is.
  void expect_all_accounted(std::size_t in_use) const {
    if (what_.background.empty()) ensure(in_use == given_up_.size(), "nothing is on its way at the end");
  }

 private:
  using Taken = std::map<std::uint64_t, Network::Withdrawn>;  // by piece
  enum class What : std::uint32_t { change, resume, background };
  static constexpr SimTime no_hold = SimTime::min();

  void schedule(SimTime when, What what, std::uint32_t id = 0) {
    run_.engine_.at(when, {Event::Kind::disturbance, id, static_cast<std::uint32_t>(what)});
  }

  void change_links() {
    const LinkStates::Applied applied = states_.advance();
    for (const auto& [resource, bandwidth] : applied.rates) run_.network_->set_bandwidth(resource, bandwidth);
    // Restored and down again at one instant: no link has changed, but the last restoring may have gone by.
    if (!applied.routes_changed) return expect_a_way_some_day();
    detours_ = std::make_unique<PlannedRoutes>(run_.topology_, run_.options_, states_.down());
    run_.ways_.forget();
    run_.lanes_.forget_kept();
    if (!applied.gone.empty()) give_up_ways(applied.gone);
    for (const std::uint32_t transfer : std::exchange(stranded_, {})) set_out(transfer);
    expect_a_way_some_day();
  }

  void expect_a_way_some_day() {
    if (!stranded_.empty() && !states_.some_come_back()) fail_stranded();
  }

  void set_out(std::uint32_t index) {
    if (find_way(index)) run_.set_out(index);
  }
  /// Finds the transfer a way as of now; false if there is none: it waits for one.
  bool find_way(std::uint32_t index) {
    const auto [from, to, channel] = ends(index);
    run_.transfers_[index].route = route(from, to, channel);
    const bool is_stranded = run_.ways_[run_.transfers_[index].route].n_parts == nowhere;
    if (is_stranded) stranded_.push_back(index);
    return !is_stranded;
  }

  std::uint32_t route(Actor from, Actor to, std::uint16_t channel) {
    const std::uint32_t found = run_.route(from, to, channel);
    if (from >= run_.schedule_.actors)
      for (std::uint32_t part = 0; part <= (run_.ways_[found].n_parts == nowhere ? 0 : run_.ways_[found].n_parts);
           ++part)
        background_routes_.insert(found + part);
    return found;
  }

  struct Ends {
    Actor from, to;
    std::uint16_t channel;
  };
  Ends ends(std::uint32_t index) const {
    const auto* message = &run_.transfers_[index];
    while (message->whole < first_background) message = &run_.transfers_[message->whole];
    if (message->whole < no_transfer) {
      const auto sender = run_.schedule_.actors + 2 * static_cast<Actor>(message->whole - first_background);
      return {sender, sender + 1, 0};
    }
    return {run_.lanes_.actor(message->sender), run_.lanes_.actor(message->receiver), message->channel};
  }

  // --- links that go down ------------------------------------------------------------------------------------------

  void give_up_ways(const std::vector<LinkId>& gone) {
    std::vector<bool> is_gone(run_.topology_.n_links(), false);
    for (const LinkId link : gone) is_gone[link.value] = true;
    std::vector<std::uint32_t> hit = hit_by(is_gone);
    Taken taken = withdraw(pieces_of(hit, [&](std::uint32_t leg) { return crosses(leg, is_gone); }));
    for (const std::uint32_t index : std::exchange(hit, {})) {
      const std::uint32_t n_legs = run_.ways_[run_.transfers_[index].route].n_legs;
      if (n_legs == 1) {
        const auto found = taken.find(piece_of(index, 0));
        if (found != taken.end()) give_up(index, found->second);  // else all of it has left before
        continue;
      }
      for (std::uint32_t leg = 0; leg < n_legs; ++leg) note_if_left(index, leg, taken);
      if (leads_over(index, is_gone)) hit.push_back(index);
    }
    // Staged data that is to come over a link that is gone: it is given up on the other legs as well.
    Taken others = withdraw(pieces_of(hit, [](std::uint32_t) { return true; }));
    for (const std::uint32_t index : hit) {
      const std::uint32_t n_legs = run_.ways_[run_.transfers_[index].route].n_legs;
      for (std::uint32_t leg = 0; leg < n_legs; ++leg) note_if_left(index, leg, others);
    }
    taken.merge(others);
    // Messages of a connection stay in order on their new way as well.
    const auto number = [&](std::uint32_t index) { return run_.staged_.of(index).number; };
    std::sort(hit.begin(), hit.end(), [&](std::uint32_t a, std::uint32_t b) { return number(a) < number(b); });
    for (const std::uint32_t index : hit) give_up_staged(index, taken);
  }

  // The transfers that are still to cross one of the links; of one in parts, its parts.
  std::vector<std::uint32_t> hit_by(const std::vector<bool>& links) const {
    std::vector<bool> is_free(run_.transfers_.size(), false);
    for (const std::uint32_t index : run_.transfers_.free()) is_free[index] = true;
    for (const auto& [index, left] : given_up_) is_free[index] = true;
    for (const std::uint32_t index : stranded_) is_free[index] = true;
    std::vector<std::uint32_t> hit;
    for (std::uint32_t index = 0; index < run_.transfers_.size(); ++index)
      if (!is_free[index] && run_.transfers_[index].parts_under_way == 0 && leads_over(index, links))
        hit.push_back(index);
    return hit;
  }

  // The pieces of the transfers, on the legs (in CompiledRoutes) that `counts` says.
  template <class Counts>
  std::vector<std::uint64_t> pieces_of(const std::vector<std::uint32_t>& transfers, Counts counts) const {
    std::vector<std::uint64_t> pieces;
    for (const std::uint32_t index : transfers) {
      const Route& way = run_.ways_[run_.transfers_[index].route];
      for (std::uint32_t leg = 0; leg < way.n_legs; ++leg)
        if (counts(way.first + leg)) pieces.push_back(piece_of(index, leg));
    }
    return pieces;
  }

  Taken withdraw(std::vector<std::uint64_t> pieces) {
    std::sort(pieces.begin(), pieces.end());
    Taken taken;
    if (!pieces.empty())
      for (const Network::Withdrawn& each : run_.network_->withdraw(pieces)) taken[each.piece] = each;
    return taken;
  }

  // A piece of a staged message that leaves at this very instant.
  void note_if_left(std::uint32_t index, std::uint32_t leg, const Taken& taken) {
    const auto found = taken.find(piece_of(index, leg));
    if (found == taken.end() || found->second.rest.count > 0) return;
    run_.staged_.note_left(index, leg, found->second.limiter);
  }

  bool crosses(std::uint32_t leg, const std::vector<bool>& links) const {
    const auto all = run_.ways_.links(run_.ways_.leg(leg));
    return std::any_of(all.begin(), all.end(), [&](LinkId link) { return links[link.value]; });
  }

  static bool is_through(const Staged& staged, std::uint32_t leg) { return staged.legs[leg].left == staged.n_pieces; }

  // True if anything of the transfer is still to cross one of these links.
  bool leads_over(std::uint32_t index, const std::vector<bool>& links) const {
    const auto& transfer = run_.transfers_[index];
    const auto& way = run_.ways_[transfer.route];
    if (way.n_legs > 1 && transfer.staged == not_staged) return false;  // it lies in slots, and waits for its receive
    for (std::uint32_t leg = 0; leg < way.n_legs; ++leg) {
      if (way.n_legs > 1 && is_through(run_.staged_.of(index), leg)) continue;
      if (crosses(way.first + leg, links)) return true;
    }
    return false;
  }

  // What has left goes on under the old number; a new one stands for the whole, and another for the rest.
  void give_up(std::uint32_t index, const Network::Withdrawn& taken) {
    if (taken.rest == run_.transfers_[index].size) {
      carried_less(run_.transfers_[index].route, taken.rest);
      return set_out(index);
    }
    if (taken.rest.count > 0) set_out(split(index, taken.rest));
  }

  // The pieces that have left on the last leg arrive; all others are given up.
  void give_up_staged(std::uint32_t index, const Taken& taken) {
    const auto& transfer = run_.transfers_[index];
    const std::int64_t slot = run_.options_.plan(transfer.channel).transport.staging.size.count;
    const auto& way = run_.ways_[transfer.route];
    const std::uint32_t last = way.n_legs - 1;
    const Staged& staged = run_.staged_.of(index);
    const std::int64_t kept = staged.legs[last].left;  // not all pieces, so that these are whole slots
    for (std::uint32_t leg = 0; leg <= last; ++leg) {
      std::int64_t sent = std::min(staged.legs[leg].started * slot, transfer.size.count);
      if (const auto found = taken.find(piece_of(index, leg)); found != taken.end()) sent -= found->second.rest.count;
      run_.ways_.crossed_beyond(way.first + leg, sent - kept * slot);
    }
    const std::uint32_t on_their_way = run_.staged_.keep_what_left(index);
    const bool over = staged.legs[last].arrived == kept;
    const std::uint32_t other = split(index, Bytes{transfer.size.count - kept * slot});  // moves the transfers
    if (over) --run_.transfers_[run_.transfers_[index].whole].parts_under_way;
    if (on_their_way > 0)
      given_up_[index] = {on_their_way, over};
    else if (over)
      run_.drop(index);
    set_out(other);
  }

  void carried_less(std::uint32_t route, Bytes by) {
    Bytes& carried = run_.ways_[route].carried;
    carried = carried - by;
  }

  // The transfer becomes a part of a new one that takes its place; so does the rest, whose number is returned.
  std::uint32_t split(std::uint32_t index, Bytes rest) {
    const std::uint32_t whole = run_.transfers_.make(), other = run_.transfers_.make();
    auto& old = run_.transfers_[index];
    auto& message = run_.transfers_[whole];
    message = old;
    message.staged = not_staged;
    message.parts_under_way = 2;
    carried_less(old.route, rest);
    old.size = old.size - rest;
    old.whole = whole;
    old.marks.starts_apart = false;  // the message has it now
    auto& made = run_.transfers_[other];
    made = {};
    made.sender = old.sender;
    made.receiver = old.receiver;
    made.channel = old.channel;
    made.start = old.start;  // so that the time until now counts to the link that sets its speed in the end
    made.whole = whole;
    made.size = rest;
    if (run_.ahead_) run_.ahead_->goes_on_as(index, whole);
    return other;
  }

  [[noreturn]] void fail_stranded() {
    std::set<std::pair<Actor, Actor>> flows;
    std::set<std::string> links;
    for (const std::uint32_t index : stranded_) {
      const auto [from, to, channel] = ends(index);
      flows.insert({from, to});
      for (const Path& path : run_.routes_.find_parts(place(from), place(to), run_.ways_.label(from, to, channel)))
        for (const Leg& leg : path.legs)
          for (const LinkId link : leg.links)
            if (states_.down()[link.value]) links.insert(run_.topology_.link_name(link));
    }
    const auto name = [&](Actor actor) {
      const std::string& device = run_.topology_.node(place(actor)).name;
      const bool is_rank = actor < run_.schedule_.collective.ranks && run_.options_.jobs.empty();
      return is_rank ? fmt::format("rank {} ({})", actor, device) : device;
    };
    std::vector<std::string> pairs;
    for (const auto& [from, to] : flows) pairs.push_back(fmt::format("{} -> {}", name(from), name(to)));
    if (links.empty())  // the way of old is one of several that would have been taken in turn
      for (std::uint32_t l = 0; l < states_.down().size(); ++l)
        if (states_.down()[l]) links.insert(run_.topology_.link_name({l}));
    const auto few = [](auto names) {
      std::vector<std::string> all(names.begin(), names.end());
      const std::size_t n = all.size();
      if (n > 4) all.resize(3);
      return fmt::format("{}{}", fmt::join(all, ", "), n > 4 ? fmt::format(" and {} more", n - 3) : "");
    };
    throw StrandedError("",
                        fmt::format("no way is left at {} us for {}: down for good {} {}",
                                    microseconds(run_.engine_.now().time_since_epoch()), few(pairs),
                                    links.size() == 1 ? "is" : "are", few(links)),
                        "have the link restored (then messages wait for it), or give the topology another way");
  }

  NodeId place(Actor actor) const { return run_.placement_[static_cast<std::size_t>(actor)]; }

  /// Other runs have stalled if no event is left. Background messages go on for ever, so that it is looked now and
  /// then whether anything else is under way.
  void expect_progress() {
    const std::int64_t done = run_.lanes_.steps_done();
    if (done != std::exchange(steps_seen_, done)) started_since_ = 0;
    if (++started_since_ % 1024 == 0 && !schedule_moves()) run_.all_wait();
  }

  bool schedule_moves() const {
    const auto is_own = [&](std::uint32_t transfer) {
      while (run_.transfers_[transfer].whole < first_background) transfer = run_.transfers_[transfer].whole;
      return run_.transfers_[transfer].whole == no_transfer;
    };
    const auto is_own_event = [&](const Event& event) {
      switch (event.kind()) {
        case Event::Kind::flow:
          return false;  // the network says what is under way
        case Event::Kind::within:
        case Event::Kind::posted:
          return is_own(event.id);
        case Event::Kind::disturbance:
          return static_cast<What>(event.stamp) != What::background;
        case Event::Kind::local:
        case Event::Kind::told:
        case Event::Kind::device:
          return true;
      }
      fail_invariant("every kind of event is known");
    };
    const auto is_own_piece = [&](std::uint64_t piece) {
      return DeviceWork<Run>::is_work(piece) || is_own(transfer_of(piece));
    };
    return run_.engine_.any_waiting(is_own_event) || run_.network_->any_under_way(is_own_piece);
  }

  void start_background(std::uint32_t number) {
    const Disturbance::Background& each = what_.background[number];
    const SimTime now = run_.engine_.now();
    if (run_.lanes_.finished() || (each.until && now > *each.until)) return;
    expect_progress();
    messages_[number] = now;
    if (each.every) schedule(SimTime{add(now.time_since_epoch(), *each.every)}, What::background, number);
    const std::uint32_t index = run_.transfers_.make();
    auto& transfer = run_.transfers_[index];
    transfer = {};
    transfer.start = now;
    transfer.size = each.bytes;
    transfer.whole = first_background + number;
    set_out(index);
    expect_a_way_some_day();
  }

  struct GivenUp {
    std::uint32_t on_their_way = 0;  // arrivals that are to be swallowed
    bool is_over = false;            // its number is free when they are
  };

  Run& run_;
  const Disturbance& what_;
  LinkStates states_;
  std::unique_ptr<PlannedRoutes> detours_;
  bool delays_ = false;
  std::vector<SimTime> late_;      // [lane]
  std::vector<Picoseconds> slow_;  // [lane]
  std::vector<SimTime> held_;      // [lane] since when its next step could begin
  std::vector<std::uint32_t> stranded_;
  std::map<std::uint32_t, GivenUp> given_up_;
  std::vector<SimTime> messages_;  // [background] when its last message started
  std::int64_t steps_seen_ = 0;    // the schedule's steps that were done when one last started
  std::int64_t started_since_ = 0;
  std::set<std::uint32_t> background_routes_;
};

}  // namespace ringsim
