// The one reader of schedules: which steps may start, and which sends and receives have met. The engine that times a
// schedule and the checker that proves it both drive their lanes with it.
#pragma once

#include <tsl/robin_map.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/key_index.hpp"
#include "sim/schedule/lane_states.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Which operation: for messages and errors.
struct OpPlace {
  LaneNumber lane = 0;
  std::int32_t step = 0;
  std::int32_t op = 0;

  bool operator==(const OpPlace&) const = default;
};

/// A send and the receive that it met; of each operation what the handler noted when it was posted.
template <class Note>
struct Message {
  OpPlace sender, receiver;
  Note source, target;
  bool add = false;  ///< receive_add
  std::uint16_t channel = 0;
  std::uint32_t slot = 0;  ///< if the sender was ahead: the number given to Handler::left(); else no_slot
};
inline constexpr std::uint32_t no_slot = UINT32_MAX;
inline constexpr std::uint32_t nothing_kept = UINT32_MAX;

/// Drives all lanes of a schedule. The handler decides how long things take.
///
/// Handler gives:
///   type Note, Note note(const Op&)                       what a message must remember of an operation: its region and
///                                                         size
///   std::uint64_t connection(Actor self, const Op& op)    equal for a send and the receives that it may meet
///   void matched(const Message<Note>&, Kept)              both ends have begun; later op_done() for each end
///   void local(OpPlace, const Op&)                        copy, add, compute has begun; later op_done()
///   void left(std::uint32_t slot, OpPlace, const Note&, LaneNumber by, Kept)
///                                         a send runs ahead: its lane has begun it (by: itself), or another lane's
///                                         receive has made room
///   void begins(LaneNumber lane)                          a step begins: its waits are met
///   void woken(LaneNumber lane, LaneNumber by)            the waits of a parked lane are met; `by` completed a step
/// and may give
///   int slots(const Note&, std::uint64_t connection)    how many slots a message fills; without: one each
///   int most_slots(std::uint64_t connection)            how many slots it has; without: as the constructor says
///   void room(std::uint32_t slot, int n, LaneNumber by)
///                                       n slots are free for a message that left(), the first ones or more; the rest
///                                       of it needs none once it has matched()
///   bool holds(LaneNumber lane)         asked before a step begins, its waits being met; true: it begins only at
///                                       resume(lane)
///   void many_begin()                   called now and then while very many steps begin at one instant
/// Kept: std::uint32_t&, a number that the handler may keep with a connection. It is nothing_kept at first and after
/// forget_kept(), and may become so at any time: if there are many connections, those on which nothing waits are
/// dropped.
///
/// Slots: how many a connection has for what its sender is ahead; 0 is rendezvous. A message holds its slots until it
/// has matched(). They are given to the messages in order: none overtakes one that still lacks some of its own.
///
/// Waits: a step is kept until its waits are met, so that Schedule::step() is called once per step (once more if the
/// handler held it). The order in which lanes begin at one instant is part of a run's result: it is as if each
/// completed step made all waiting lanes of its actor check their waits again; see Round.
///
/// Memory: 36 bytes per lane, the operations that wait for their other half, and the steps that wait for another lane.
/// Once a step has waited, also 2 bits per lane (at least 16 bytes per actor), and for each Round that is ready 1 bit
/// per lane of its actor.
template <class Handler>
class LaneRunner : public LaneStates {
  using Note = typename Handler::Note;

 public:
  LaneRunner(const Schedule& schedule, int slots, Handler& handler)
      : LaneStates(schedule), schedule_(schedule), slots_(slots), handler_(handler) {
    most_mailboxes_ = 1024 + 4 * lanes_.size();
    ensure(lanes_.size() < first_round, "a schedule has less than 2^31 lanes");
    last_send_.resize(lanes_.size(), &no_mailbox_);
    last_receive_.resize(lanes_.size(), &no_mailbox_);
    by_connection_.expect(lanes_.size());  // each has one at least to which it sends, in most schedules
    ready_.resize(lanes_.size() + 2);      // one more for a round whose lanes have all begun
    for (LaneNumber lane = 0; lane < lanes_.size(); ++lane)
      if (lanes_[lane].n_steps > 0) make_ready(lane);
  }

  /// Begins steps until no lane can go on before something else is done.
  void run_ready() {
    if (first_ready_ != end_of_ready_) begin_ready();
  }

  /// A step that the handler holds is tried again (and the handler asked again).
  void resume(LaneNumber number) { make_ready(number); }

  /// One operation of the lane's current step is done.
  void op_done(LaneNumber number) {
    State& lane = lanes_[number];
    ensure(lane.open > 0, "an operation ends once, within its step");
    if (--lane.open == 0) complete(number);
  }

  /// What handlers keep with connections is kept no longer.
  void forget_kept() {
    for (Mailbox& box : mailboxes_) box.kept = nothing_kept;
  }

  /// Calls visit(OpPlace, is_send) for every operation that still waits for its other half.
  template <class Visit>
  void for_each_unmatched(Visit visit) const {
    for (const Mailbox& box : mailboxes_)
      if (box.sends != 0) {
        visit(box.first.place, box.sends > 0);
        for (std::uint32_t i = box.first.next; i != none; i = waiting_[i].next) visit(waiting_[i].place, box.sends > 0);
      }
  }

 private:
  static constexpr std::uint32_t first_round = 1U << 31;

  struct Half {  // a send or a receive that waits for the other
    std::uint32_t next = none;
    OpPlace place;
    Note note{};
    std::uint32_t slot = no_slot;  // of a send that has gone ahead: the number given to Handler::left()
    std::int32_t held = 0;         // slots; kept only if there are some
    bool add = false;
  };
  struct alignas(64) Mailbox {  // first come, first served: the k-th send meets the k-th receive
    std::uint64_t connection = UINT64_MAX;
    std::int32_t sends = 0;     // how many wait; below 0: so many receives do
    std::uint32_t last = none;  // in waiting_; none if there is no second
    std::int32_t held = 0;      // slots, by all that wait
    std::uint32_t kept = nothing_kept;
    Half first;  // in here, because most often it is the only one; the others are in waiting_
  };
  struct Parked {  // a step whose waits are not all met
    Step step;
    LaneNumber lane = 0;
    std::uint32_t wait = 0;     // the first of its waits that is not met: it is listed in waits_on_
    std::uint32_t next = none;  // in parked_: the next one of that list
  };
  // The lanes of an actor that were parked when its lane `by` completed a step (or a lane of another actor, for which
  // one of them waited). When the round's turn in ready_ comes, they check their waits in the order of their numbers:
  // those whose waits are met by then begin, the others are parked again. A lane is one bit in in_round_ and is_met_,
  // so that 64 lanes check their waits with a few instructions.
  struct Round {
    LaneNumber by = 0;
    Actor of = 0;          // of `by`, or of its process
    std::size_t word = 0;  // the first with lanes that have not checked
  };
  void begin_ready() {
    unsigned n = 0;
    while (first_ready_ != end_of_ready_) {
      if constexpr (requires { handler_.many_begin(); })
        if ((++n & 0x3FFFU) == 0) [[unlikely]]
          handler_.many_begin();
      LaneNumber number = ready_[first_ready_];
      if (number >= first_round) [[unlikely]] {
        number = next_met(number - first_round);
        if (number == none) {
          pop_ready();
          continue;
        }
      } else {
        pop_ready();
        scratch_.clear();
        schedule_.step(actor(number), lane_of(number), lanes_[number].step, scratch_);
        if (!scratch_.waits.empty() && park(number)) continue;
      }
      begin(number);
    }
  }

  void pop_ready() {
    if (++first_ready_ == ready_.size()) first_ready_ = 0;
  }

  // A lane is in ready_, or in a round that is, once at most: there is room for all.
  void make_ready(std::uint32_t lane_or_round) {
    ready_[end_of_ready_] = lane_or_round;
    if (++end_of_ready_ == ready_.size()) end_of_ready_ = 0;
    ensure(end_of_ready_ != first_ready_, "a lane is ready once at most");
  }

  // The lane's step is in scratch_; its waits are met.
  void begin(LaneNumber number) {
    State& lane = lanes_[number];
    const Actor self = actor(number);
    if constexpr (requires { handler_.holds(number); })
      if (handler_.holds(number)) return;
    handler_.begins(number);
    const auto n_ops = static_cast<std::int32_t>(scratch_.ops.size());
    lane.open = n_ops;
    if (n_ops == 0) return complete(number);
    for (std::int32_t i = 0; i < n_ops; ++i) {
      const Op& op = scratch_.ops[static_cast<std::size_t>(i)];
      const bool is_send = op.what == Do::send;
      if (is_send || op.what == Do::receive || op.what == Do::receive_add)
        post(self, number, i, op, is_send);
      else
        handler_.local({number, lane.step, i}, op);
    }
  }

  // The mailbox of a connection; `last`: the one that the lane used before, as it mostly sends to whom it sent, and
  // hears from whom it heard. Empty ones are cleared away only when there are many: memory grows with the lanes and
  // with what waits, not with the connections.
  Mailbox& mailbox(std::uint64_t connection, Mailbox*& last) {
    if (last->connection != connection) {
      Mailbox* const found = find_mailbox(connection);  // may clear `last`
      last = found;
    }
    return *last;
  }

  // Apart, so that what most operations need stays small.
  [[gnu::noinline]] Mailbox* find_mailbox(std::uint64_t connection) {
    if (const std::uint32_t known = by_connection_.find(connection); known != none) return &mailboxes_[known];
    if (mailboxes_.size() >= most_mailboxes_) clear_empty_mailboxes();
    Mailbox& made = mailboxes_.emplace_back();
    made.connection = connection;
    by_connection_.insert(static_cast<std::uint32_t>(mailboxes_.size() - 1));
    return &made;
  }

  void clear_empty_mailboxes() {
    by_connection_.clear();
    std::uint32_t kept = 0;
    for (const Mailbox& box : mailboxes_)
      if (box.sends != 0) mailboxes_[kept++] = box;
    mailboxes_.resize(kept);
    for (std::uint32_t box = 0; box < kept; ++box) by_connection_.insert(box);
    most_mailboxes_ = std::max(most_mailboxes_, mailboxes_.size() + mailboxes_.size() / 4);
    std::fill(last_send_.begin(), last_send_.end(), &no_mailbox_);
    std::fill(last_receive_.begin(), last_receive_.end(), &no_mailbox_);
  }

  // Places are handed on and stored number by number: a struct put together on the stack and copied at once makes the
  // processor wait for its parts.
  void post(Actor self, LaneNumber number, std::int32_t index, const Op& op, bool is_send) {
    Mailbox& box = mailbox(handler_.connection(self, op), (is_send ? last_send_ : last_receive_)[number]);
    const std::int32_t before = box.sends;
    box.sends = is_send ? before + 1 : before - 1;
    if (is_send ? before < 0 : before > 0) return meet(box, number, index, op, is_send);
    Half& half = before == 0 ? box.first : behind(box, before);
    half.next = none;
    half.place.lane = number;
    half.place.step = lanes_[number].step;
    half.place.op = index;
    half.note = handler_.note(op);
    half.slot = no_slot;
    half.add = op.what == Do::receive_add;
    if (slots_ == 0) return;
    half.held = 0;
    if (is_send && box.held < most_slots(box)) give_slots(box, half, number);  // some are free only if nobody lacks any
  }

  // The operation meets the first that waits.
  void meet(Mailbox& box, LaneNumber number, std::int32_t index, const Op& op, bool is_send) {
    Message<Note> message;
    OpPlace& mine = is_send ? message.sender : message.receiver;
    OpPlace& theirs = is_send ? message.receiver : message.sender;
    mine.lane = number;
    mine.step = lanes_[number].step;
    mine.op = index;
    theirs.lane = box.first.place.lane;
    theirs.step = box.first.place.step;
    theirs.op = box.first.place.op;
    (is_send ? message.source : message.target) = handler_.note(op);
    (is_send ? message.target : message.source) = box.first.note;
    message.add = is_send ? box.first.add : op.what == Do::receive_add;
    message.channel = op.channel;
    message.slot = box.first.slot;
    if (message.slot != no_slot) box.held -= box.first.held;
    if (box.sends != 0) {  // an empty mailbox stays: most connections are used again
      free_.push_back(box.first.next);
      box.first = waiting_[box.first.next];
    }
    handler_.matched(message, box.kept);
    if (message.slot == no_slot) return;
    free_slots_.push_back(message.slot);
    if (box.sends == 0 || has_all_slots(box, last(box))) return;
    Half* next = &box.first;
    while (has_all_slots(box, *next)) next = &waiting_[next->next];
    give_slots(box, *next, message.receiver.lane);
    while (box.held < most_slots(box) && next->next != none) {
      next = &waiting_[next->next];
      give_slots(box, *next, message.receiver.lane);
    }
  }

  Half& last(Mailbox& box) { return box.sends == 1 ? box.first : waiting_[box.last]; }

  int most_slots(const Mailbox& box) const {
    if constexpr (requires { handler_.most_slots(box.connection); })
      return handler_.most_slots(box.connection);
    else
      return slots_;
  }
  int needs(const Mailbox& box, const Half& half) const {
    if constexpr (requires { handler_.slots(half.note, box.connection); })
      return handler_.slots(half.note, box.connection);
    else
      return 1;
  }
  bool has_all_slots(const Mailbox& box, const Half& half) const { return half.held == needs(box, half); }

  // As many as it lacks, or as there are.
  void give_slots(Mailbox& box, Half& half, LaneNumber by) {
    const int more = std::min(needs(box, half) - half.held, most_slots(box) - box.held);
    half.held += more;
    box.held += more;
    if (half.slot == no_slot) {
      if (free_slots_.empty()) free_slots_.push_back(n_slots_++);
      half.slot = free_slots_.back();
      free_slots_.pop_back();
      handler_.left(half.slot, half.place, half.note, by, box.kept);
    }
    if constexpr (requires { handler_.room(half.slot, more, by); }) handler_.room(half.slot, more, by);
  }

  // Room for one more that waits, behind `before` others (below 0: receives).
  [[gnu::noinline]] Half& behind(Mailbox& box, std::int32_t before) {
    if (free_.empty()) {
      free_.push_back(static_cast<std::uint32_t>(waiting_.size()));
      waiting_.emplace_back();
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    (before == 1 || before == -1 ? box.first : waiting_[box.last]).next = index;
    box.last = index;
    return waiting_[index];
  }

  void complete(LaneNumber number) {
    State& lane = lanes_[number];
    ++lane.step;
    ++steps_done_;
    if (lane.step < lane.n_steps) make_ready(number);
    if (n_parked_ > 0) [[unlikely]]
      wake_siblings(number);
  }

  // Parks the lane with its step, which is in scratch_; false if all waits of the step are met.
  [[gnu::noinline]] bool park(LaneNumber number) {
    const std::uint32_t first = first_unmet(actor(number), scratch_, 0);
    if (first == scratch_.waits.size()) return false;
    if (is_parked_.empty()) {
      n_words_ = (n_lanes_ + 63) / 64;
      is_parked_.resize(static_cast<std::size_t>(schedule_.actors) * n_words_);
      is_met_.resize(is_parked_.size());
    }
    if (free_parked_.empty()) {
      free_parked_.push_back(static_cast<std::uint32_t>(parked_.size()));
      parked_.emplace_back();
    }
    const std::uint32_t index = free_parked_.back();
    free_parked_.pop_back();
    lanes_[number].parked = index;
    ++n_parked_;
    std::swap(parked_[index].step, scratch_);
    parked_[index].lane = number;
    parked_[index].wait = first;
    wait_on(index);
    is_parked_[word_of(number)] |= bit_of(number);
    return true;
  }

  std::uint32_t first_unmet(Actor self, const Step& step, std::uint32_t from) const {
    const auto n = static_cast<std::uint32_t>(step.waits.size());
    while (from < n && lanes_[awaited(self, step.waits[from])].step >= step.waits[from].steps) ++from;
    return from;
  }

  // A lane completes one step at a time, so a wait is met at the moment when the lane has completed exactly `steps`.
  static std::uint64_t moment(LaneNumber number, std::int32_t steps) {
    return static_cast<std::uint64_t>(number) << 32 | static_cast<std::uint32_t>(steps);
  }

  // Lists a parked step under the first of its waits that is not met.
  void wait_on(std::uint32_t index) {
    Parked& parked = parked_[index];
    const Wait& wait = parked.step.waits[parked.wait];
    const auto [entry, is_new] = waits_on_.try_emplace(moment(awaited(actor(parked.lane), wait), wait.steps), index);
    parked.next = is_new ? none : std::exchange(entry.value(), index);
  }

  // Lane `number` has completed a step.
  [[gnu::noinline]] void wake_siblings(LaneNumber number) {
    meet_waits(number);
    start_round(number, actor(number));
    for (const Actor other : others_met_) start_round(number, other);
    others_met_.clear();
  }

  void meet_waits(LaneNumber number) {
    const auto found = waits_on_.find(moment(number, lanes_[number].step));
    if (found == waits_on_.end()) return;
    std::uint32_t next = found->second;
    waits_on_.erase(found);
    while (next != none) {
      Parked& parked = parked_[next];
      const std::uint32_t index = std::exchange(next, parked.next);
      parked.wait = first_unmet(actor(parked.lane), parked.step, parked.wait);
      if (parked.wait < parked.step.waits.size()) {
        wait_on(index);
        continue;
      }
      is_met_[word_of(parked.lane)] |= bit_of(parked.lane);
      if (actor(parked.lane) != actor(number)) others_met_.push_back(actor(parked.lane));
    }
  }

  // All parked lanes of the actor join a new round, even if no wait is met yet: one may be met before its turn.
  void start_round(LaneNumber by, Actor of) {
    const auto first = is_parked_.begin() + static_cast<std::ptrdiff_t>(first_word(of));
    const auto end = first + static_cast<std::ptrdiff_t>(n_words_);
    if (std::all_of(first, end, [](std::uint64_t word) { return word == 0; })) return;
    if (free_rounds_.empty()) {
      free_rounds_.push_back(static_cast<std::uint32_t>(rounds_.size()));
      rounds_.emplace_back();
      in_round_.resize(in_round_.size() + n_words_);
    }
    const std::uint32_t index = free_rounds_.back();
    free_rounds_.pop_back();
    rounds_[index] = {.by = by, .of = of};
    std::swap_ranges(first, end, in_round_.begin() + static_cast<std::ptrdiff_t>(index * n_words_));  // those are 0
    make_ready(first_round + index);
  }

  // Takes the next lane whose waits are met out of a round, and puts its step into scratch_; none: the round is over.
  [[gnu::noinline]] LaneNumber next_met(std::uint32_t index) {
    Round& round = rounds_[index];
    const std::size_t first = first_word(round.of);
    for (; round.word < n_words_; ++round.word) {
      std::uint64_t& in_round = in_round_[index * n_words_ + round.word];
      std::uint64_t& is_met = is_met_[first + round.word];
      const std::uint64_t begins = in_round & is_met;
      const std::uint64_t up_to = begins ^ (begins - 1);  // the bits up to the lowest of `begins`; all if it is 0
      is_parked_[first + round.word] |= in_round & up_to & ~begins;
      in_round &= ~up_to;
      if (begins == 0) continue;
      is_met &= ~(begins & up_to);
      const LaneNumber number =
          lane_number(round.of, static_cast<Lane>(round.word * 64)) + static_cast<LaneNumber>(std::countr_zero(begins));
      const std::uint32_t parked = std::exchange(lanes_[number].parked, none);
      std::swap(parked_[parked].step, scratch_);
      free_parked_.push_back(parked);
      --n_parked_;
      handler_.woken(number, round.by);
      return number;
    }
    free_rounds_.push_back(index);
    return none;
  }

  // Finds a lane's bit: the lanes of each actor begin with a new word.
  std::size_t first_word(Actor of) const { return static_cast<std::size_t>(of) * n_words_; }
  std::size_t word_of(LaneNumber number) const {
    return first_word(actor(number)) + static_cast<std::size_t>(lane_of(number)) / 64;
  }
  std::uint64_t bit_of(LaneNumber number) const { return std::uint64_t{1} << (lane_of(number) % 64); }

  LaneNumber awaited(Actor self, const Wait& wait) const { return lane_number(wait.of(self), wait.lane); }

  const Schedule& schedule_;
  int slots_;
  Handler& handler_;
  std::vector<std::uint32_t> ready_;  // first in, first out, in a circle: lanes, and rounds from first_round on
  std::size_t first_ready_ = 0, end_of_ready_ = 0;
  std::deque<Mailbox> mailboxes_;
  KeyIndex<std::deque<Mailbox>, &Mailbox::connection> by_connection_{mailboxes_};
  Mailbox no_mailbox_;                              // of no connection
  std::vector<Mailbox*> last_send_, last_receive_;  // [lane]
  std::size_t most_mailboxes_ = 0;                  // when it is time to clear the empty ones away
  std::vector<Half> waiting_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t n_slots_ = 0;
  Step scratch_;
  std::vector<Parked> parked_;
  std::vector<std::uint32_t> free_parked_;
  std::uint32_t n_parked_ = 0;
  tsl::robin_map<std::uint64_t, std::uint32_t, MixedHash> waits_on_;  // [moment] the first in parked_ that waits
  std::size_t n_words_ = 0;                                           // of each actor, for a bit per lane
  std::vector<std::uint64_t> is_parked_, is_met_;  // [actor][word] of parked lanes: in no round; waits are met
  std::vector<Actor> others_met_;                  // whose lanes wait for other actors, and may begin now
  std::vector<Round> rounds_;
  std::vector<std::uint64_t> in_round_;  // [round][word] its lanes that have not checked
  std::vector<std::uint32_t> free_rounds_;
};

/// The usual connection: from, to, channel.
inline std::uint64_t connection_key(Actor self, const Op& op) {
  const auto from = static_cast<std::uint64_t>(op.what == Do::send ? self : op.peer);
  const auto to = static_cast<std::uint64_t>(op.what == Do::send ? op.peer : self);
  return from << 40 | to << 16 | op.channel;
}

}  // namespace ringsim
