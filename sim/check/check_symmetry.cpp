#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <future>
#include <span>
#include <thread>
#include <tuple>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/shared_threads.hpp"
#include "sim/check/check_detail.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim::check_detail {

namespace {

// Beyond this many comparisons of chunks the equation is checked at samples: 10^8 take about a second.
constexpr std::int64_t max_touches = 300'000'000;
constexpr int n_random_samples = 64;

/// The i-th of some numbers in [1, n), spread as if by chance.
int sample(int n, int i) {
  return 1 + static_cast<int>(splitmix(static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(n - 1));
}

/// Chunk c of rank 0, seen from `actor`.
int seen_from(const Symmetry& group, Actor actor, std::uint32_t c) {
  return group.chunk_of(group.add(actor, group.actor_of(static_cast<int>(c))));
}

/// What the ranks are promised, held against what rank 0 is.
class Promises {
 public:
  explicit Promises(const Schedule& schedule) : schedule_(schedule) {
    for (std::uint32_t c = 0; c < static_cast<std::uint32_t>(schedule.symmetry.order()); ++c) {
      before_.push_back(schedule.collective.before(0, Buffer::data, c));
      after_.push_back(schedule.collective.after(0, Buffer::data, c));
    }
  }

  /// Is what `actor` has and wants of chunk actor + c what rank 0 has and wants of c, seen from itself?
  bool same(Actor actor, std::uint32_t c) const {
    const auto moved = static_cast<std::uint32_t>(seen_from(schedule_.symmetry, actor, c));
    return same(actor, before_[c], schedule_.collective.before(actor, Buffer::data, moved)) &&
           same(actor, after_[c], schedule_.collective.after(actor, Buffer::data, moved));
  }

 private:
  bool same(Actor actor, const Content& zero, const Content& here) const {
    const Symmetry& group = schedule_.symmetry;
    if (here.who != zero.who) return false;
    if (here.who == Content::Who::nothing) return true;
    if (static_cast<int>(here.chunk) != seen_from(group, actor, zero.chunk)) return false;
    return here.who != Content::Who::one || here.rank == group.add(actor, zero.rank);
  }

  const Schedule& schedule_;
  std::vector<Content> before_, after_;  // [chunk] of rank 0
};

/// The region of rank 0 with its chunks moved by `seen`, as a set.
template <class Seen>
bool same_region(Seen seen, const Region& zero, const Region& here) {
  if (zero.count == 1) return here.first == static_cast<std::uint32_t>(seen(static_cast<int>(zero.first)));
  for (std::uint32_t c = 0; c < zero.count; ++c) {
    const auto moved = static_cast<std::uint32_t>(seen(static_cast<int>(zero.first + c)));
    if (moved < here.first || moved >= here.first + here.count) return false;
  }
  return true;
}

/// step(a) = a + step(0), as sets of chunks. `plus_actor` is the group's addition of a to an actor, `seen` to a chunk.
template <class PlusActor, class Seen>
bool same_op(PlusActor plus_actor, Seen seen, const Op& zero, const Op& here) {
  const bool alike = (here.what == zero.what) & (here.channel == zero.channel) & (here.time == zero.time) &
                     (here.region.buffer == zero.region.buffer) & (here.region.count == zero.region.count) &
                     (here.operand.buffer == zero.operand.buffer) & (here.operand.count == zero.operand.count);
  if (!alike || (zero.peer >= 0 && here.peer != plus_actor(zero.peer))) return false;
  if (here.what == Do::compute) return true;  // names no chunk
  return same_region(seen, zero.region, here.region) && same_region(seen, zero.operand, here.operand);
}

template <class PlusActor, class Seen>
bool same_step(PlusActor plus_actor, Seen seen, const Step& zero, const Step& here) {
  if (here.ops.size() != zero.ops.size() || here.waits.size() != zero.waits.size()) return false;
  for (std::size_t w = 0; w < zero.waits.size(); ++w)
    if (zero.waits[w].lane != here.waits[w].lane || zero.waits[w].steps != here.waits[w].steps ||
        zero.waits[w].actor >= 0 || here.waits[w].actor >= 0)
      return false;
  return std::equal(zero.ops.begin(), zero.ops.end(), here.ops.begin(),
                    [&](const Op& one, const Op& other) { return same_op(plus_actor, seen, one, other); });
}

struct FirstUnlike {
  Lane lane = 0;
  int step = 0;
  Actor actor = -1;  // -1: nowhere
};

/// The first place at which an actor does not do what rank 0 does, seen from itself; by lane, step, and their order.
FirstUnlike first_unlike(const Schedule& schedule, std::span<const Actor> actors, const CheckOptions& options) {
  const Symmetry& group = schedule.symmetry;
  // Almost all comparisons of a large run: without a call each.
  const bool is_cyclic = group.radices().size() == 1 && group.chunks_as_actors();
  const int n = group.order();
  Step zero, here;
  for (Lane lane = 0; lane < schedule.lanes; ++lane) {
    const int n_steps = schedule.n_steps(0, lane);
    for (const Actor actor : actors)
      if (schedule.n_steps(actor, lane) != n_steps) return {lane, -1, actor};
    for (int i = 0; i < n_steps; ++i) {
      look_up(options);
      zero.clear();
      schedule.step(0, lane, i, zero);
      for (const Actor actor : actors) {
        here.clear();
        schedule.step(actor, lane, i, here);
        const auto turned = [&](int a) { return actor + a < n ? actor + a : actor + a - n; };
        const auto plus = [&](int a) { return group.add(actor, a); };
        const auto seen = [&](int c) { return seen_from(group, actor, static_cast<std::uint32_t>(c)); };
        if (!(is_cyclic ? same_step(turned, turned, zero, here) : same_step(plus, seen, zero, here)))
          return {lane, i, actor};
      }
    }
  }
  return {};
}

/// As many as there are processors, for all proofs of the process: `sweep -j` makes many at a time. What is proved does
/// not depend on who gets how many.
SharedThreads& proof_threads() {
  static SharedThreads all(static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U)));
  return all;
}

/// Returns the first actor that differs from rank 0. Uses all processors if there is much to compare: steps are pure
/// functions.
Actor unlike(const Schedule& schedule, std::span<const Actor> actors, std::int64_t touches,
             const CheckOptions& options) {
  constexpr std::int64_t much = 1 << 20;  // about 10 ms
  const SharedThreads::Some threads(proof_threads(), touches < much ? 0 : INT_MAX);
  const auto n_threads = static_cast<std::size_t>(std::max(1, threads.count()));
  std::vector<std::future<FirstUnlike>> parts;
  for (std::size_t t = 0; t < n_threads; ++t) {
    const std::size_t first = actors.size() * t / n_threads, last = actors.size() * (t + 1) / n_threads;
    parts.push_back(
        std::async(n_threads == 1 ? std::launch::deferred : std::launch::async,
                   [&, part = actors.subspan(first, last - first)] { return first_unlike(schedule, part, options); }));
  }
  FirstUnlike found;
  for (std::future<FirstUnlike>& part : parts) {
    const FirstUnlike place = part.get();
    if (place.actor < 0) continue;
    if (found.actor < 0 || std::tie(place.lane, place.step) < std::tie(found.lane, found.step)) found = place;
  }
  return found.actor;
}

/// All ranks in lockstep, seen from actor 0: what it sends to +d is what it gets from -d. Follows chunk 0 wherever it
/// is.
class Quotient {
 public:
  explicit Quotient(const Schedule& schedule) : schedule_(schedule), group_(schedule.symmetry) {
    for (int r = 0; r < group_.order(); ++r) contributed_.push_back(splitmix(static_cast<std::uint64_t>(r)));
    for (const std::uint64_t part : contributed_) all_ += part;
    sum_.resize(contributed_.size());
    held_.resize(contributed_.size());
    for (Actor a = 0; a < group_.order(); ++a) {
      const Content content = schedule.collective.before(a, Buffer::data, 0);
      if (content.who == Content::Who::nothing) continue;
      sum_[static_cast<std::size_t>(a)] = value(content);
      held_[static_cast<std::size_t>(a)] = true;
    }
    one_ = schedule_;
    one_.actors = 1;
  }

  /// False if messages do not keep chunks in their place, or lockstep does not finish: follow all ranks then.
  bool go() {
    LaneRunner<Quotient> lanes(one_, 0, *this);
    runner_ = &lanes;
    lanes.run_ready();
    return lanes.finished() && in_place_;
  }

  /// The first rank whose chunk 0 is not what the collective promises, or -1.
  Actor wrong() const {
    for (Actor a = 0; a < group_.order(); ++a) {
      const Content expected = schedule_.collective.after(a, Buffer::data, 0);
      if (expected.who == Content::Who::nothing) continue;
      if (!held_[static_cast<std::size_t>(a)] || sum_[static_cast<std::size_t>(a)] != value(expected)) return a;
    }
    return -1;
  }
  bool read_too_early() const { return read_too_early_; }

  // What LaneRunner asks. A connection is a displacement.
  using Note = Region;
  Region note(const Op& op) const { return op.region; }
  std::uint64_t connection(Actor, const Op& op) const {
    const int d = op.what == Do::send ? op.peer : group_.subtract(0, op.peer);
    return static_cast<std::uint64_t>(d) << 16 | op.channel;
  }
  void begins(LaneNumber) {}
  void woken(LaneNumber, LaneNumber) {}
  void left(std::uint32_t, OpPlace, const Region&, LaneNumber, std::uint32_t& /*kept*/) {}
  void matched(const Message<Region>& message, std::uint32_t& /*kept*/) {
    // Receiver a + d puts chunk (a + d) + t where sender a took chunk a + s: the same chunk if s = d + t.
    const Step& sent = step_of(message.sender);
    const int d = sent.ops[static_cast<std::size_t>(message.sender.op)].peer;
    in_place_ = in_place_ && message.source.count == message.target.count;
    for (std::uint32_t i = 0; i < message.source.count && in_place_; ++i) {
      const int s = group_.actor_of(static_cast<int>(message.source.first + i));
      const auto back = static_cast<std::uint32_t>(group_.chunk_of(group_.subtract(s, d)));
      in_place_ = back >= message.target.first && back < message.target.first + message.target.count;
      const Actor from = group_.subtract(0, s);  // the rank for which this is chunk 0
      const Actor to = group_.add(from, d);
      const auto source = static_cast<std::size_t>(from), target = static_cast<std::size_t>(to);
      read_too_early_ = read_too_early_ || !held_[source] || (message.add && !held_[target]);
      sum_[target] = message.add ? sum_[target] + sum_[source] : sum_[source];
      held_[target] = true;
    }
    runner_->op_done(message.sender.lane);
    runner_->op_done(message.receiver.lane);
  }
  void local(OpPlace place, const Op& op) {
    if (op.what != Do::compute) in_place_ = false;
    runner_->op_done(place.lane);
  }

 private:
  std::uint64_t value(const Content& content) const {
    return content.who == Content::Who::all ? all_ : contributed_[static_cast<std::size_t>(content.rank)];
  }
  const Step& step_of(OpPlace place) {
    step_.clear();
    schedule_.step(0, runner_->lane_of(place.lane), place.step, step_);
    return step_;
  }

  const Schedule& schedule_;
  const Symmetry& group_;
  Schedule one_;                            // the schedule of actor 0 alone
  std::vector<std::uint64_t> contributed_;  // [rank] a random number for its contribution to chunk 0
  std::uint64_t all_ = 0;
  std::vector<std::uint64_t> sum_;  // [actor] what it holds of chunk 0
  std::vector<bool> held_;
  bool in_place_ = true, read_too_early_ = false;
  LaneRunner<Quotient>* runner_ = nullptr;
  Step step_;
};

}  // namespace

bool check_by_symmetry(const Schedule& schedule, const CheckOptions& options, Proof& proof) {
  const Symmetry& group = schedule.symmetry;
  const int n = group.order();
  if (schedule.actors != n || schedule.collective.ranks != n) return false;
  for (std::size_t b = 0; b < n_buffers; ++b) {
    const int chunks = schedule.layout[b].n_chunks();
    if (chunks != (static_cast<Buffer>(b) == Buffer::data ? n : 0)) return false;
  }

  // What one rank does, and how much it would be to compare it with all the others.
  ConnectionLanes lanes;
  proof.shape = {};
  check_actor(schedule, 0, lanes, proof.shape);
  std::int64_t touches = 0, operations = 0;
  Step zero;
  for (Lane lane = 0; lane < schedule.lanes; ++lane) {
    for (int i = 0; i < schedule.n_steps(0, lane); ++i) {
      zero.clear();
      schedule.step(0, lane, i, zero);
      operations += static_cast<std::int64_t>(zero.ops.size());
      for (const Op& op : zero.ops) {
        if (op.what == Do::receive_add && op.operand.count > 0)
          return false;  // follows chunks that stay where they are
        touches += op.region.count;
      }
    }
  }
  proof.operations = operations * n;
  proof.shape.chunks_touched *= n;
  const bool complete = touches + n <= max_touches / n;  // what the ranks do, and what they are promised
  proof.by = complete ? Proof::By::symmetry : Proof::By::symmetry_samples;

  std::vector<Actor> actors;
  if (complete) {
    for (Actor actor = 1; actor < n; ++actor) actors.push_back(actor);
  } else {  // a step either way in every digit, and ranks anywhere
    int weight = 1;
    for (auto radix = group.radices().rbegin(); radix != group.radices().rend(); ++radix) {
      if (*radix > 1) actors.insert(actors.end(), {weight, weight * (*radix - 1)});
      weight *= *radix;
    }
    for (int i = 0; i < n_random_samples; ++i) actors.push_back(sample(n, i));
  }

  const auto refuse_unlike = [&](Actor actor) {
    const std::string unlike =
        fmt::format("{} does not do what rank 0 does, relative to its own rank", name_of(schedule, actor));
    // Most mistakes break the symmetry as well. Following every rank says which it is, of a small schedule at once.
    constexpr int most_ranks = 64;
    constexpr std::int64_t most_operations = 1'000'000;
    if (n <= most_ranks && proof.operations <= most_operations) {
      Schedule other = schedule;
      other.symmetry = {};
      try {
        check(std::move(other), options);
      } catch (const ScheduleError& mistake) {
        throw ScheduleError(mistake.where(), mistake.message(),
                            fmt::format("{}{}this breaks the claimed symmetry as well: {}", mistake.hint(),
                                        mistake.hint().empty() ? "" : "; ", unlike));
      }
    }
    refuse(schedule, "a symmetry is claimed, but " + unlike,
           "fix the algorithm, or remove its symmetry (in a schedule file, the key \"symmetry\")");
  };
  if (const Actor actor = unlike(schedule, actors, complete ? touches * n : 0, options); actor >= 0)
    refuse_unlike(actor);
  const Promises promises(schedule);
  const bool known = group.chunks_as_actors() && promises_are_alike(schedule.collective);
  for (const Actor actor : known ? std::vector<Actor>{} : actors) {
    look_up(options);
    bool same = true;
    if (complete) {
      for (int c = 0; c < n && same; ++c) same = promises.same(actor, static_cast<std::uint32_t>(c));
    } else {
      for (int i = 0; i < n_random_samples && same; ++i)
        same = promises.same(actor, static_cast<std::uint32_t>(sample(n, actor + i)));
      for (const int c : {0, 1, actor, n - 1}) same = same && promises.same(actor, static_cast<std::uint32_t>(c));
    }
    if (!same) refuse_unlike(actor);
  }

  // The quotient follows one chunk number; a promise that moves chunks to other numbers needs all ranks followed.
  for (Actor actor = 0; actor < n; ++actor)
    for (const auto* promise : {&schedule.collective.before, &schedule.collective.after})
      if (const Content content = (*promise)(actor, Buffer::data, 0);
          content.who != Content::Who::nothing && content.chunk != 0)
        return false;

  Quotient quotient(schedule);
  if (!quotient.go()) return false;
  proof.slots_needed = 0;
  if (quotient.read_too_early()) return false;  // following all ranks names the operation
  if (const Actor actor = quotient.wrong(); actor >= 0)
    explain_wrong_chunk(schedule, 0, actor, Buffer::data, 0, schedule.collective.after(actor, Buffer::data, 0));
  proof.symmetry = group;
  return true;
}

}  // namespace ringsim::check_detail
