#include "sim/check/check.hpp"

#include <fmt/format.h>
#include <tsl/robin_map.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/check/check_detail.hpp"
#include "sim/schedule/lanes.hpp"

namespace ringsim {

std::string to_string(const Proof& proof) {
  std::string how;
  switch (proof.by) {
    case Proof::By::all_ranks:
      how = "every operation of every actor was checked";
      break;
    case Proof::By::symmetry:
      how = "one chunk represents all chunks; the symmetry was checked at every step of every rank";
      break;
    case Proof::By::symmetry_samples:
      how = "one chunk represents all chunks; the symmetry was checked at sampled ranks";
      break;
    case Proof::By::parts:
      how = "each call was proved separately, then the order of the calls, their data and everything between them";
      break;
    case Proof::By::matching:
      how = "matching only: every message is received and nothing waits forever, but there are no regions";
      break;
  }
  const std::string slots =
      proof.slots_needed == Proof::any_number ? "any number of" : fmt::to_string(proof.slots_needed);
  if (!proof.from.empty()) {
    std::string made = proof.copies_first ? "each rank first copies its contribution" : "";
    if (proof.pieces > 1)
      made += fmt::format("{}{} pieces share no chunk and no connection", made.empty() ? "" : ", ", proof.pieces);
    how = fmt::format("by construction from the proof of {}: {}; in it {}", proof.from, made, how);
  }
  return fmt::format("{} operations, {} slots needed: {}", proof.operations, slots, how);
}

namespace check_detail {

std::string name_of(const Schedule& schedule) {
  return fmt::format("schedule {} {} of {} ranks", schedule.algorithm, to_string(schedule.collective.op),
                     schedule.collective.ranks);
}

std::string name_of(const Schedule& schedule, Actor actor) {
  if (actor < 0 || actor >= schedule.actors) return fmt::format("actor {}", actor);  // there is none
  if (actor < schedule.collective.ranks) return fmt::format("rank {}", actor);
  return fmt::format("helper {} (actor {})", actor - schedule.collective.ranks, actor);
}

std::string describe(const Schedule& schedule, const Op& op) {
  const auto peer = [&] { return name_of(schedule, op.peer); };
  switch (op.what) {
    case Do::send:
      return fmt::format("send {} to {}", to_string(op.region), peer());
    case Do::receive_add:
      if (op.operand.count > 0)
        return fmt::format("receive_add {} from {} to {}", to_string(op.operand), peer(), to_string(op.region));
      [[fallthrough]];
    case Do::receive:
      return fmt::format("{} {} from {}", to_string(op.what), to_string(op.region), peer());
    case Do::copy:
    case Do::add:
      return fmt::format("{} {} to {}", to_string(op.what), to_string(op.operand), to_string(op.region));
    case Do::compute:
      return "compute";
  }
  fail_invariant("an operation has one of six names");
}

std::string describe(const Schedule& schedule, Actor actor, Lane lane, int step, int op) {
  Step content;
  schedule.step(actor, lane, step, content);
  const std::string what = static_cast<std::size_t>(op) < content.ops.size()
                               ? describe(schedule, content.ops[static_cast<std::size_t>(op)])
                               : std::string("no operation");
  const std::string place = schedule.place ? "; in the file " + schedule.place(actor, lane, step) : "";
  return fmt::format("{}, lane {}, step {}, operation {} ({}{})", name_of(schedule, actor), lane, step, op, what,
                     place);
}

std::string describe(const Schedule& schedule, OpPlace place) {
  const auto lanes = static_cast<unsigned>(schedule.lanes);
  return describe(schedule, static_cast<Actor>(place.lane / lanes), static_cast<Lane>(place.lane % lanes), place.step,
                  place.op);
}

void refuse(const Schedule& schedule, const std::string& message, const std::string& hint) {
  throw ScheduleError(name_of(schedule), message, hint);
}

namespace {

// Does the region lie within its buffer?
bool exists(const Schedule& schedule, const Region& region) {
  const auto n = static_cast<std::uint64_t>(schedule.layout[static_cast<std::size_t>(region.buffer)].n_chunks());
  return region.count > 0 && static_cast<std::uint64_t>(region.first) + region.count <= n;
}

}  // namespace

void look_up(const CheckOptions& options) {
  if (options.stop != nullptr && options.stop->load(std::memory_order_relaxed))
    throw Interrupted("stopped while its schedule was being proved");
}

namespace {

void check_structure(const Schedule& schedule, Actor actor, Lane lane, int i, const Step& step, ConnectionLanes& lanes,
                     Proof::Shape& shape) {
  for (const Wait& wait : step.waits) {
    if (wait.actor >= schedule.actors || wait.actor < -1)
      refuse(schedule, fmt::format("{}, lane {}, step {}: waits for actor {}, which does not exist",
                                   name_of(schedule, actor), lane, i, wait.actor));
    const Actor other = wait.of(actor);
    if (other != actor && (!schedule.process || schedule.process(other) != schedule.process(actor)))
      refuse(schedule,
             fmt::format("{}, lane {}, step {}: waits for {}, which belongs to another process",
                         name_of(schedule, actor), lane, i, name_of(schedule, other)),
             "only a message can notify another process");
    if (wait.lane < 0 || wait.lane >= schedule.lanes || wait.steps < 0 ||
        wait.steps > schedule.n_steps(other, wait.lane))
      refuse(schedule, fmt::format("{}, lane {}, step {}: waits for {} steps of lane {}, which does not have that many",
                                   name_of(schedule, actor), lane, i, wait.steps, wait.lane));
  }
  for (int k = 0; k < static_cast<int>(step.ops.size()); ++k) {
    const Op& op = step.ops[static_cast<std::size_t>(k)];
    const auto place = [&] { return describe(schedule, actor, lane, i, k); };
    const bool is_message = op.what == Do::send || op.what == Do::receive || op.what == Do::receive_add;
    shape.chunks_touched += op.region.count;
    if (is_message) shape.widest = std::max(shape.widest, op.region.count);
    shape.numbers = std::max(shape.numbers, op.channel + 1);
    if (is_message && (op.peer < 0 || op.peer >= schedule.actors || op.peer == actor))
      refuse(schedule, place() + fmt::format(": its peer is not another actor in 0..{}", schedule.actors - 1));
    if (op.what != Do::compute && !exists(schedule, op.region))
      refuse(schedule, place() + fmt::format(": {} is outside its buffer of {} chunks", to_string(op.region),
                                             schedule.layout[static_cast<std::size_t>(op.region.buffer)].n_chunks()));
    const bool has_operand = op.what == Do::receive_add && op.operand.count > 0;
    if (op.what == Do::copy || op.what == Do::add || has_operand) {
      if (!exists(schedule, op.operand))
        refuse(schedule, place() + fmt::format(": {} is outside its buffer", to_string(op.operand)));
      if (op.operand.count != op.region.count || schedule.size(op.operand) != schedule.size(op.region))
        refuse(schedule, place() + ": the two regions have different sizes");
      if (op.operand.buffer == op.region.buffer && op.operand.first < op.region.first + op.region.count &&
          op.region.first < op.operand.first + op.operand.count)
        refuse(schedule, place() + ": the two regions overlap");
    }
    if (!is_message || schedule.lanes == 1) continue;
    // One lane a direction: the order of a connection's messages is then the order of a lane's steps.
    auto& known = op.what == Do::send ? lanes.sends : lanes.receives;
    const auto [entry, is_new] = known.try_emplace(connection_key(actor, op), lane);
    if (!is_new && entry->second != lane)
      refuse(
          schedule,
          place() + fmt::format(": the {} of this connection are in lane {} as well, but they must all be in one lane",
                                op.what == Do::send ? "sends" : "receives", entry->second));
  }
}

}  // namespace

std::int64_t check_actor(const Schedule& schedule, Actor actor, ConnectionLanes& lanes, Proof::Shape& shape) {
  std::int64_t operations = 0;
  const auto look_at = [&](Lane lane, int i, const Step& step) {
    operations += static_cast<std::int64_t>(step.ops.size());
    check_structure(schedule, actor, lane, i, step, lanes, shape);
  };
  for (Lane lane = 0; lane < schedule.lanes; ++lane)
    shape.longest = std::max(shape.longest, schedule.n_steps(actor, lane));
  if (schedule.names_regions) {
    follow_accesses(schedule, actor, look_at);
    return operations;
  }
  Step step;
  for (Lane lane = 0; lane < schedule.lanes; ++lane) {
    const int n_steps = schedule.n_steps(actor, lane);
    for (int i = 0; i < n_steps; ++i) {
      step.clear();
      schedule.step(actor, lane, i, step);
      look_at(lane, i, step);
    }
  }
  return operations;
}

}  // namespace check_detail

using namespace check_detail;

namespace {

/// Contributions as numbers: rank r's of chunk c is rank_part(r) * chunk_part(c) in Z/2^64.
struct Tokens {
  explicit Tokens(int ranks) {
    for (int r = 0; r < ranks; ++r) sum += rank_part(r);
  }
  static std::uint64_t rank_part(Actor rank) { return splitmix(static_cast<std::uint64_t>(rank)); }
  static std::uint64_t chunk_part(std::uint32_t chunk) { return splitmix(0xC4A0000000000000U + chunk) | 1U; }
  /// The number that stands for the content.
  std::uint64_t of(const Content& content) const {
    return (content.who == Content::Who::all ? sum : rank_part(content.rank)) * chunk_part(content.chunk);
  }
  std::uint64_t sum = 0;
};

// ---------------------------------------------------------------------------------------------- counting by sums

/// Follows the chunks [first, last) (numbered over all buffers of an actor) of every actor through one legal order.
class SumRun {
 public:
  SumRun(const Schedule& schedule, const CheckOptions& options, const Tokens& tokens, std::uint64_t first,
         std::uint64_t last)
      : schedule_(schedule), options_(options), first_(first), last_(last) {
    for (int b = 0; b < n_buffers; ++b) {
      base_[static_cast<std::size_t>(b)] = n_chunks_;
      n_chunks_ += static_cast<std::uint64_t>(schedule.layout[static_cast<std::size_t>(b)].n_chunks());
    }
    last_ = std::min(last_, n_chunks_);
    const std::uint64_t width = last_ - first_;
    values_.resize(width * static_cast<std::uint64_t>(schedule.actors));
    written_.resize(values_.size());
    for_each_cell([&](Actor actor, Buffer buffer, std::uint32_t chunk, std::size_t cell) {
      if (actor >= schedule_.collective.ranks) return;  // helpers have nothing of their own
      const Content content = schedule_.collective.before(actor, buffer, chunk);
      if (content.who == Content::Who::nothing) return;
      values_[cell] = tokens.of(content);
      written_[cell] = true;
    });
  }

  std::uint64_t n_chunks() const { return n_chunks_; }

  /// Runs with that many slots; true if every lane came through.
  bool go(int slots) {
    LaneRunner<SumRun> lanes(schedule_, slots, *this);
    runner_ = &lanes;
    lanes.run_ready();
    runner_ = nullptr;
    if (lanes.finished()) {
      lanes.for_each_unmatched([&](OpPlace place, bool is_send) {
        if (!unmatched_ || place.lane < unmatched_->first.lane) unmatched_ = {place, is_send};
      });
      return true;
    }
    stuck_ = explain_stuck(lanes);
    return false;
  }
  /// A chunk came into the window from outside: a run of this window alone cannot judge it.
  bool moves_between_windows() const { return moves_between_windows_; }
  const std::string& stuck() const { return stuck_; }
  /// True if data moved only between chunks of one number.
  bool keeps_chunks() const { return keeps_chunks_; }
  /// A message that was sent (or awaited) and never met its other half though all lanes came through.
  const std::optional<std::pair<OpPlace, bool>>& unmatched() const { return unmatched_; }

  /// Calls wrong(actor, buffer, chunk, expected) for the first chunk whose content is not what the collective promises.
  template <class Wrong>
  void compare(const Tokens& tokens, Wrong wrong) {
    bool found = false;
    for_each_cell([&](Actor actor, Buffer buffer, std::uint32_t chunk, std::size_t cell) {
      if (found || actor >= schedule_.collective.ranks) return;
      const Content expected = schedule_.collective.after(actor, buffer, chunk);
      if (expected.who == Content::Who::nothing) return;
      if (written_[cell] && values_[cell] == tokens.of(expected)) return;
      found = true;
      wrong(actor, buffer, chunk, expected);
    });
  }

  // What LaneRunner asks.
  struct Note {
    Region region, operand;
  };
  Note note(const Op& op) const { return {op.region, op.operand}; }
  std::uint64_t connection(Actor self, const Op& op) const { return connection_key(self, op); }
  void begins(LaneNumber) {}
  void woken(LaneNumber, LaneNumber) {}
  void left(std::uint32_t slot, OpPlace place, const Note& sent, LaneNumber, std::uint32_t& /*kept*/) {
    const Region& region = sent.region;
    // The data leaves now; its sender may write over it before it is received.
    std::vector<Value>& copy = slots_[slot];
    copy.clear();
    for (std::uint32_t i = 0; i < region.count; ++i) copy.push_back(read_any(place, region, i));
    runner_->op_done(place.lane);
  }
  void matched(const Message<Note>& message, std::uint32_t& /*kept*/) {
    const Region &source = message.source.region, &target = message.target.region, &operand = message.target.operand;
    if (source.count != target.count || schedule_.size(source) != schedule_.size(target))
      refuse(schedule_, fmt::format("{} and {}: the message has {} chunks ({}), but the receiver expects {} ({})",
                                    check_detail::describe(schedule_, message.sender),
                                    check_detail::describe(schedule_, message.receiver), source.count,
                                    schedule_.size(source).count, target.count, schedule_.size(target).count));
    if ((++n_matched_ & 0xFFF) == 0) look_up(options_);
    if (source.first != target.first || (operand.count > 0 && operand.first != target.first)) keeps_chunks_ = false;
    const auto [from, to] = within_window(source, target);
    for (std::uint32_t i = from; i < to; ++i) {
      Value value = message.slot == no_slot ? read_any(message.sender, source, i) : slots_[message.slot][i];
      if (operand.count > 0) {
        const Value here = read_any(message.receiver, operand, i);
        value = {value.sum + here.sum, value.known && here.known};
      }
      write(message.receiver, target, i, value, message.add && operand.count == 0);
    }
    if (message.slot == no_slot) runner_->op_done(message.sender.lane);
    runner_->op_done(message.receiver.lane);
  }
  void local(OpPlace place, const Op& op) {
    if (op.what != Do::compute) {
      if (op.operand.first != op.region.first) keeps_chunks_ = false;
      for (std::uint32_t i = 0; i < op.region.count; ++i)
        write(place, op.region, i, read_any(place, op.operand, i), op.what == Do::add);
    }
    runner_->op_done(place.lane);
  }

 private:
  struct Value {
    std::uint64_t sum = 0;
    bool known = false;  // false: outside the window, another run follows it
  };

  template <class Visit>
  void for_each_cell(Visit visit) {
    const std::uint64_t width = last_ - first_;
    for (Actor actor = 0; actor < schedule_.actors; ++actor) {
      for (int b = 0; b < n_buffers; ++b) {
        const std::uint64_t base = base_[static_cast<std::size_t>(b)];
        const std::uint64_t end =
            base + static_cast<std::uint64_t>(schedule_.layout[static_cast<std::size_t>(b)].n_chunks());
        for (std::uint64_t c = std::max(base, first_); c < std::min(end, last_); ++c)
          visit(actor, static_cast<Buffer>(b), static_cast<std::uint32_t>(c - base),
                static_cast<std::size_t>(static_cast<std::uint64_t>(actor) * width + (c - first_)));
      }
    }
  }

  // The chunks of a message, [from, to) of its count, of which an end lies within the window.
  std::pair<std::uint32_t, std::uint32_t> within_window(const Region& source, const Region& target) const {
    std::uint32_t from = source.count, to = 0;
    for (const Region* region : {&source, &target}) {
      const std::uint64_t begin = base_[static_cast<std::size_t>(region->buffer)] + region->first;
      const std::uint64_t low = std::max(begin, first_), high = std::min(begin + region->count, last_);
      if (low >= high) continue;
      from = std::min(from, static_cast<std::uint32_t>(low - begin));
      to = std::max(to, static_cast<std::uint32_t>(high - begin));
    }
    return {from, std::max(from, to)};
  }

  // The cell of chunk i of a region; nothing if it lies outside the window.
  std::optional<std::size_t> cell(OpPlace place, const Region& region, std::uint32_t i) const {
    const std::uint64_t c = base_[static_cast<std::size_t>(region.buffer)] + region.first + i;
    if (c < first_ || c >= last_) return std::nullopt;
    const auto actor = static_cast<std::uint64_t>(runner_->actor(place.lane));
    return static_cast<std::size_t>(actor * (last_ - first_) + (c - first_));
  }

  Value read_any(OpPlace place, const Region& region, std::uint32_t i) const {
    const auto at = cell(place, region, i);
    if (!at) return {};
    if (!written_[*at] && moves_between_windows_) return {};  // what it holds may have come from outside the window
    if (!written_[*at])
      refuse(schedule_,
             fmt::format("{}: reads {}[{}] before anything has arrived there", check_detail::describe(schedule_, place),
                         to_string(region.buffer), region.first + i),
             "before it is sent, a chunk must be received or be part of the rank's own input");
    return {values_[*at], true};
  }

  void write(OpPlace place, const Region& region, std::uint32_t i, Value value, bool add) {
    const auto at = cell(place, region, i);
    if (!at) return;
    if (!value.known) {  // comes from a chunk outside the window: only runs whose window holds both may judge it
      moves_between_windows_ = true;
      return;
    }
    if (add && !written_[*at] && !moves_between_windows_ && runner_->actor(place.lane) < schedule_.collective.ranks &&
        region.buffer != Buffer::scratch)
      refuse(schedule_,
             fmt::format("{}: adds to {}[{}], where nothing has arrived yet", check_detail::describe(schedule_, place),
                         to_string(region.buffer), region.first + i));
    values_[*at] = add && written_[*at] ? values_[*at] + value.sum : value.sum;
    written_[*at] = true;
  }

  std::string explain_stuck(const LaneRunner<SumRun>& lanes) const;

  const Schedule& schedule_;
  const CheckOptions& options_;
  std::uint64_t first_, last_, n_chunks_ = 0;
  std::uint32_t n_matched_ = 0;
  std::array<std::uint64_t, n_buffers> base_{};
  std::vector<std::uint64_t> values_;
  std::vector<bool> written_;
  tsl::robin_map<std::uint32_t, std::vector<Value>> slots_;
  LaneRunner<SumRun>* runner_ = nullptr;
  std::string stuck_;
  std::optional<std::pair<OpPlace, bool>> unmatched_;
  bool moves_between_windows_ = false;
  bool keeps_chunks_ = true;
};

// Follows what each stuck lane waits for, from the first one on, until a lane comes up again or somebody has gone home.
std::string SumRun::explain_stuck(const LaneRunner<SumRun>& lanes) const {
  std::map<LaneNumber, std::pair<OpPlace, bool>> unmatched;  // [lane] its first operation without other half
  lanes.for_each_unmatched([&](OpPlace place, bool is_send) {
    const auto [entry, is_new] = unmatched.try_emplace(place.lane, place, is_send);
    if (!is_new && place.op < entry->second.first.op) entry->second = {place, is_send};
  });
  LaneNumber lane = 0;
  while (lanes.is_through(lane)) ++lane;
  std::vector<LaneNumber> chain;
  std::string text;
  for (;;) {
    const Actor actor = lanes.actor(lane);
    if (std::find(chain.begin(), chain.end(), lane) != chain.end()) {
      return text + fmt::format("; this leads back to {}, lane {}: a cycle of waits",
                                check_detail::name_of(schedule_, actor), lanes.lane_of(lane));
    }
    chain.push_back(lane);
    if (chain.size() > 1) text += "; ";
    LaneNumber next = lane;
    if (const auto found = unmatched.find(lane); found != unmatched.end()) {
      const auto [place, is_send] = found->second;
      text += check_detail::describe(schedule_, place) + (is_send ? " waits to be received" : " waits to be sent");
      Step step;
      schedule_.step(actor, lanes.lane_of(lane), place.step, step);
      const Actor peer = step.ops[static_cast<std::size_t>(place.op)].peer;
      const auto n = static_cast<LaneNumber>(schedule_.lanes);
      const LaneNumber first = static_cast<LaneNumber>(peer) * n;
      next = first;
      while (next < first + n && lanes.is_through(next)) ++next;
      if (next == first + n)
        return text + fmt::format(", but {} has finished: it is never {}", check_detail::name_of(schedule_, peer),
                                  is_send ? "received" : "sent");
    } else {
      text += fmt::format("{}, lane {}, step {} waits for another lane", check_detail::name_of(schedule_, actor),
                          lanes.lane_of(lane), lanes.step(lane));
      Step step;
      schedule_.step(actor, lanes.lane_of(lane), lanes.step(lane), step);
      bool waits = false;
      for (const Wait& wait : step.waits) {
        const LaneNumber other = static_cast<LaneNumber>(wait.of(actor)) * static_cast<LaneNumber>(schedule_.lanes) +
                                 static_cast<LaneNumber>(wait.lane);
        if (lanes.step(other) < wait.steps) {
          next = other;  // itself, if it waits for its own step: the cycle of one
          waits = true;
          break;
        }
      }
      ensure(waits, "a blocked lane waits for something");
    }
    if (chain.size() == 16) return text + "; and so on";
    lane = next;
  }
}

/// The run with the fewest slots that comes through, of the first chunks. Sets proof.slots_needed and
/// proof.shape.keeps_chunks.
std::unique_ptr<SumRun> run_with_fewest_slots(const Schedule& schedule, const CheckOptions& options,
                                              const Tokens& tokens, std::uint64_t window, Proof& proof) {
  std::string stuck;
  for (const int slots : {0, 1, 2, 8, Proof::any_number}) {
    auto run = std::make_unique<SumRun>(schedule, options, tokens, 0, window);
    if (!run->go(slots)) {
      if (stuck.empty()) stuck = run->stuck();
      continue;
    }
    if (const auto& left = run->unmatched())
      refuse(schedule,
             check_detail::describe(schedule, left->first) + (left->second ? " is never received" : " is never sent"));
    proof.slots_needed = slots;
    proof.shape.keeps_chunks = run->keeps_chunks();
    return run;
  }
  refuse(schedule, stuck, "the schedule cannot finish with any order of its messages");
}

}  // namespace

CheckedSchedule check(Schedule schedule, const CheckOptions& options) {
  Proof proof;
  ensure(schedule.actors >= schedule.collective.ranks && schedule.collective.ranks >= 1, "a schedule has its ranks");
  if (check_by_construction(schedule, options, proof)) return {std::move(schedule), proof};
  if (schedule.names_regions && schedule.symmetry.claimed() && check_by_symmetry(schedule, options, proof))
    return {std::move(schedule), proof};

  proof = {.by = schedule.names_regions ? Proof::By::all_ranks : Proof::By::matching};
  ConnectionLanes lanes;
  for (Actor actor = 0; actor < schedule.actors; ++actor) {
    look_up(options);
    proof.operations += check_actor(schedule, actor, lanes, proof.shape);
  }

  const Tokens tokens(schedule.collective.ranks);
  const auto actors = static_cast<std::uint64_t>(schedule.actors);
  std::uint64_t window = std::max<std::uint64_t>(1, options.cells_a_pass / actors);
  std::unique_ptr<SumRun> run =
      run_with_fewest_slots(schedule, options, tokens, schedule.names_regions ? window : 0, proof);
  if (!schedule.names_regions) return {std::move(schedule), proof};
  const auto run_from = [&](std::uint64_t first) {
    run = nullptr;  // gives its memory back first
    run = std::make_unique<SumRun>(schedule, options, tokens, first, first + window);
    run->go(proof.slots_needed);
  };
  for (std::uint64_t first = 0;;) {
    if (run->moves_between_windows()) {  // chunks that change their place: all of them in one pass
      first = 0;
      window = run->n_chunks();
      run_from(first);
      continue;
    }
    run->compare(tokens, [&](Actor actor, Buffer buffer, std::uint32_t chunk, const Content& expected) {
      explain_wrong_chunk(schedule, proof.slots_needed, actor, buffer, chunk, expected);
    });
    first += window;
    if (first >= run->n_chunks()) break;
    run_from(first);
  }
  return {std::move(schedule), proof};
}

}  // namespace ringsim
