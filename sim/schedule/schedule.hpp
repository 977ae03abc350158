// Schedules: which rank sends which chunk to which rank in which step. One representation for the engine that times it,
// the checker that proves it and the writers that show it.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/schedule/phases.hpp"

namespace ringsim {

/// The memories of an actor that a schedule names.
enum class Buffer : std::uint8_t {
  data,     ///< input and result in one place
  input,    ///< what the rank contributes
  output,   ///< where the result goes
  scratch,  ///< room to work in; a helper's only memory besides data
};
inline constexpr int n_buffers = 4;
std::string_view to_string(Buffer buffer);

/// A run of chunks [first, first + count) of one buffer.
struct Region {
  Buffer buffer = Buffer::data;
  std::uint32_t first = 0;
  std::uint32_t count = 1;
  auto operator<=>(const Region&) const = default;
};
std::string to_string(const Region& region);  ///< "data[3]", "data[4..7]"

/// One chunk of the data buffer.
inline Region chunk(int index) { return {Buffer::data, static_cast<std::uint32_t>(index), 1}; }
/// `count` chunks of the data buffer, from `first` on.
inline Region chunks(int first, int count) {
  return {Buffer::data, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)};
}

enum class Do : std::uint8_t { send, receive, receive_add, copy, add, compute };
std::string_view to_string(Do what);

/// The time of a `compute` whose end RunOptions::courses says.
inline constexpr Picoseconds until_told{-1};

/// One thing that an actor does within a step.
struct Op {
  Do what = Do::send;
  std::uint16_t channel = 0;   ///< send, receive: number of the connection to the peer; compute: see unit()
  Actor peer = -1;             ///< send: to whom; receive, receive_add: from whom
  Region region;               ///< send: read; receive, receive_add, copy, add: written
  Region operand{.count = 0};  ///< copy, add: read; receive_add: what is added to, if it is not `region` itself
  Picoseconds time{0};         ///< compute: how long; until_told: as long as RunOptions::courses says

  /// compute: which unit of the schedule does it, one at a time, first come first served; -1: none is shared. (A field
  /// of its own would make every operation larger.)
  int unit() const { return what == Do::compute ? channel - 1 : -1; }
};

/// Before the step starts, `lane` must have completed `steps` steps: of the same actor, or of another one of its
/// process.
struct Wait {
  Lane lane = 0;
  int steps = 0;
  Actor actor = -1;  ///< -1: the step's own

  Actor of(Actor self) const { return actor < 0 ? self : actor; }
};

/// Operations that start together. The step is done when all of them are.
struct Step {
  std::vector<Op> ops;
  std::vector<Wait> waits;

  void clear() {
    ops.clear();
    waits.clear();
  }
  void send(Actor to, Region what, int channel = 0) { push(Do::send, to, what, channel); }
  void receive(Actor from, Region where, int channel = 0) { push(Do::receive, from, where, channel); }
  /// region = region + what comes in
  void receive_add(Actor from, Region where, int channel = 0) { push(Do::receive_add, from, where, channel); }
  /// region = operand + what comes in
  void receive_add(Actor from, Region operand, Region where, int channel) {
    push(Do::receive_add, from, where, channel);
    if (operand != where) ops.back().operand = operand;
  }
  void copy(Region from, Region to) { ops.push_back({.what = Do::copy, .region = to, .operand = from}); }
  /// to = to + from
  void add(Region from, Region to) { ops.push_back({.what = Do::add, .region = to, .operand = from}); }
  void compute(Picoseconds time, int unit = -1) {
    ensure(unit >= -1 && unit < UINT16_MAX, "a unit is a number from 0 to 65534");
    ops.push_back({.what = Do::compute, .channel = static_cast<std::uint16_t>(unit + 1), .time = time});
  }
  void wait(Lane lane, int steps, Actor actor = -1) { waits.push_back({lane, steps, actor}); }

 private:
  void push(Do what, Actor peer, Region region, int channel) {
    ensure(channel >= 0 && channel <= UINT16_MAX, "a channel is a number from 0 to 65535");
    ops.push_back({.what = what, .channel = static_cast<std::uint16_t>(channel), .peer = peer, .region = region});
  }
};

/// How many bytes each chunk of a buffer has: chunk i is bytes [offset(i), offset(i + 1)).
class Layout {
 public:
  Layout() = default;  ///< no chunks
  /// n chunks as equal as can be: chunk i is bytes [floor(i size/n), floor((i+1) size/n)); with size < n some are
  /// empty.
  static Layout near_equal(Bytes size, int n);
  /// Chunks of the given sizes.
  static Layout of_sizes(const std::vector<Bytes>& sizes);
  /// n near-equal stretches of `parts` near-equal chunks each. However many they are it takes no memory: a size is
  /// worked out when it is asked for, by a few divisions.
  static Layout two_level(Bytes size, int n, int parts);
  /// Every chunk cut into near-equal parts: chunk c becomes chunks [c * parts, (c + 1) * parts). As above it takes no
  /// memory for them. Requires a layout that is not cut yet.
  Layout cut(int parts) const;

  /// Every chunk n times as large: a layout of elements becomes one of their bytes.
  Layout times(int n) const;

  int n_chunks() const { return parts_ == 0 ? static_cast<int>(offsets_.size()) - 1 : n_ * parts_; }
  Bytes total() const { return {parts_ == 0 ? offsets_.back() : times_ * uncut(n_)}; }
  Bytes size(std::uint32_t first, std::uint32_t count) const {
    // A division costs more than all else that is done for a message here.
    if (parts_ == 0) [[likely]]
      return {offsets_[first + count] - offsets_[first]};
    return {each_ >= 0 ? each_ * count : offset(first + count) - offset(first)};
  }
  /// True if every chunk has the same number of bytes.
  bool uniform() const { return parts_ > 0 ? each_ >= 0 : has_equal_offsets(); }
  bool operator==(const Layout&) const = default;

 private:
  /// The offset of uncut chunk i. floor(i size/n) = i q + floor(i r/n) with size = q n + r: never leaves 64 bits, since
  /// r < n < 2^31.
  std::int64_t uncut(std::int64_t i) const {
    return offsets_.empty() ? i * (size_ / n_) + i * (size_ % n_) / n_ : offsets_[static_cast<std::size_t>(i)];
  }
  std::int64_t offset(std::uint32_t chunk) const;
  bool has_equal_offsets() const;
  void set_parts(int n, int parts);

  std::vector<std::int64_t> offsets_{0};  // [chunk], one more than there are chunks; empty: near-equal, n_ of size_
  std::int64_t size_ = 0;
  int n_ = 0;               // if chunks are cut: how many there are uncut
  int parts_ = 0;           // into how many parts each is cut; 0: not cut
  int times_ = 1;           // if chunks are cut: how many bytes one of the above stands for
  std::int64_t each_ = -1;  // if chunks are cut: the bytes of each, if all are equal
};

/// The MPI name of what a collective computes.
enum class CollectiveOp : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  all_to_all,
  pairs,
  reduce,
  scatter,
  gather,
  send_recv,
  barrier
};
std::string_view to_string(CollectiveOp op);
/// All of them, in that order.
std::span<const CollectiveOp> collective_ops();
/// broadcast, reduce, scatter, gather: one rank has, or gets, what the others do not.
bool has_root(CollectiveOp op);
/// NCCL makes sends and receives of it (src/enqueue.cc of NCCL 2.30.7); the others have kernels and channels of their
/// own.
bool is_point_to_point(CollectiveOp op);

/// What one chunk of a rank's buffer holds before, or must hold after: nothing (do not care), what one rank
/// contributed, or the sum over all ranks; of which chunk of the contributions.
struct Content {
  enum class Who : std::uint8_t { nothing, one, all };
  Who who = Who::nothing;
  Actor rank = -1;          ///< of one
  std::uint32_t chunk = 0;  ///< which chunk of the contribution
  bool operator==(const Content&) const = default;
};

/// What a schedule promises: n ranks, what they have, what they want.
struct Collective {
  CollectiveOp op = CollectiveOp::all_reduce;
  int ranks = 0;
  /// The message size, as nccl-tests counts it for this op (see busbw_factor).
  Bytes bytes;
  Actor root = 0;  ///< if has_root(op)
  std::function<Content(Actor, Buffer, std::uint32_t chunk)> before, after;
};

/// busbw = algbw * factor: 2(n-1)/n all_reduce; (n-1)/n reduce_scatter, all_gather, all_to_all, scatter and gather; 1
/// broadcast, reduce, send_recv and pairs (nccl-tests, doc/PERFORMANCE.md and src/*.cu). 0 if nothing is moved: for
/// one rank, and for a barrier.
double busbw_factor(CollectiveOp op, int ranks);

/// Actors and chunks form a group under digit-wise addition in these radices ({K} for a ring, {2,...,2} for
/// halving-doubling, {a,b,c} for a torus), and step(g + a) = g + step(a): all ranks do the same, seen from themselves.
/// The last radix varies fastest. No radices: no symmetry is claimed.
///
/// Chunks may be numbered in another order than actors: if actor a = high * group + low, its chunk is low * (order /
/// group) + high. So two levels have it: a rank of a node keeps a run of chunks, one for each node.
class Symmetry {
 public:
  Symmetry() = default;
  explicit Symmetry(std::vector<int> radices, int group = 1);

  bool claimed() const { return !radices_.empty(); }
  int order() const { return order_; }  ///< the product of the radices
  const std::vector<int>& radices() const { return radices_; }
  /// Digit by digit, without carry.
  int add(int a, int b) const {
    if (binary_) return a ^ b;
    if (radices_.size() == 1) return a + b < order_ ? a + b : a + b - order_;
    return add_digits(a, b);
  }
  /// The d with add(d, b) = a.
  int subtract(int a, int b) const {
    if (binary_) return a ^ b;
    if (radices_.size() == 1) return a >= b ? a - b : a - b + order_;
    return subtract_digits(a, b);
  }
  bool chunks_as_actors() const { return group_ == 1; }  ///< chunks are in the actors' order
  int chunk_of(int actor) const { return actor % group_ * (order_ / group_) + actor / group_; }
  int actor_of(int chunk) const { return chunk % (order_ / group_) * group_ + chunk / (order_ / group_); }

 private:
  int add_digits(int a, int b) const;
  int subtract_digits(int a, int b) const;

  std::vector<int> radices_;
  int order_ = 0;
  int group_ = 1;
  bool binary_ = false;  // all radices are 2: digit-wise addition is exclusive or
};

/// A schedule is a pure function of (actor, lane, step), evaluated while it runs: nothing is stored a transfer.
struct Schedule {
  std::string algorithm;  ///< its name in the catalog, with parameters: "halving_doubling fold=naive"
  Collective collective;
  int actors = 0;                        ///< ranks first, then helpers; of several groups, group by group
  int groups = 1;                        ///< that do the same, with equally many actors (sim/check/in_groups.hpp)
  int lanes = 1;                         ///< of each actor
  std::array<Layout, n_buffers> layout;  ///< [buffer]; the same for every actor
  Symmetry symmetry;
  /// Set if the helpers are switches that join the ranks: [actor] the parent of each, -1 for the root. Empty: helpers
  /// are endpoints.
  std::vector<Actor> tree;
  /// The process of an actor: a step may wait for actors of its own process alone, others must send messages. Empty:
  /// each actor is a process of its own.
  std::function<int(Actor)> process;
  /// False: of a format that tells sizes only. Regions then stand for their bytes; what they hold cannot be proved.
  bool names_regions = true;
  /// How many steps the lane has. Cheap: it is asked often.
  std::function<int(Actor, Lane)> n_steps;
  /// Appends operations and waits of step i to `out`, which comes empty. Pure: equal arguments, equal steps.
  std::function<void(Actor, Lane, int i, Step& out)> step;
  /// For reports: no run and no proof looks at them.
  Phases phases;
  /// For errors: where the file of the schedule has the step, if it numbers steps otherwise: "thread block 0, step 6,
  /// line 10". Empty: it does not, or there is no file.
  std::function<std::string(Actor, Lane, int i)> place;

  /// The phases' names, of which there is at least one.
  std::vector<std::string> phase_names() const {
    return phases.names.empty() ? std::vector{std::string(to_string(collective.op))} : phases.names;
  }
  Bytes size(const Region& region) const {
    return layout[static_cast<std::size_t>(region.buffer)].size(region.first, region.count);
  }
};

/// Made for so many elements, it moves elements of `element` bytes: every chunk is that many times as large.
Schedule stretched(Schedule schedule, int element);

/// visit(op) for every operation of the actor, lane by lane, step by step.
template <class Visit>
void each_op(const Schedule& schedule, Actor actor, Visit visit) {
  Step step;
  for (Lane lane = 0; lane < schedule.lanes; ++lane) {
    for (int i = 0; i < schedule.n_steps(actor, lane); ++i) {
      step.clear();
      schedule.step(actor, lane, i, step);
      for (const Op& op : step.ops) visit(op);
    }
  }
}

/// a modulo n, from 0 to n - 1, for negative a too.
inline int wrap(int a, int n) {
  // Steps ask for what is near: a division costs more than all the rest of a step.
  if (a < 0) a += n;
  if (a < 0) a += n;
  if (a >= n) a -= n;
  if (a >= 0 && a < n) [[likely]]
    return a;
  const int r = a % n;
  return r < 0 ? r + n : r;
}

}  // namespace ringsim
