#include "sim/schedule/piecewise.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

using MadeOfPieces = std::shared_ptr<const Piecewise>;

/// The place of the plain schedule's regions in the whole, seen from a channel.
struct Place {
  const Cut& cut;
  std::uint32_t piece;
  const Cast* cast;  // nullptr: each rank has its own position

  Region moved(Region plain) const {
    if (cut.parts && cast != nullptr)  // one chunk, by take_apart()
      plain.first = cast->chunk_of(plain.first, cut.chunks[static_cast<std::size_t>(plain.buffer)]);
    plain.first = cut.chunk(plain.buffer, {plain.first, piece});
    return plain;
  }
};

// Operation k of those that replace an operation on several chunks that are not adjacent in the whole.
Op single(const Op& op, std::uint32_t k, const Place& place) {
  Op one = op;
  one.region = place.moved({op.region.buffer, op.region.first + k, 1});
  if (op.operand.count > 0) one.operand = place.moved({op.operand.buffer, op.operand.first + k, 1});
  return one;
}

// Backwards and in place: this needs no memory except for the operations themselves.
void take_apart(std::vector<Op>& ops, const Place& place) {
  std::size_t n = 0;
  for (const Op& op : ops) n += op.region.count;
  std::size_t from = ops.size(), to = n;
  ops.resize(n);
  while (from > 0) {
    const Op op = ops[--from];
    for (std::uint32_t k = op.region.count; k > 0; --k) ops[--to] = single(op, k - 1, place);
  }
}

void move_to_piece(std::vector<Op>& ops, const Place& place) {
  if (place.cut.parts) return take_apart(ops, place);
  for (Op& op : ops) {
    op.region = place.moved(op.region);
    if (op.operand.count > 0) op.operand = place.moved(op.operand);
  }
}

const Cast* cast_of(const Piecewise& made, int channel) {
  return made.casts.empty() ? nullptr : &made.casts[static_cast<std::size_t>(channel)];
}
Actor position_of(const Piecewise& made, int channel, Actor actor) {
  const Cast* cast = cast_of(made, channel);
  return cast == nullptr ? actor : cast->position[static_cast<std::size_t>(actor)];
}

// The functions of the schedule are types with a name, so that piecewise() can recognize them.

struct StepsOnPieces {
  MadeOfPieces made;
  int operator()(Actor actor, Lane lane) const {
    const Schedule& plain = made->plain;
    return plain.n_steps(position_of(*made, lane / plain.lanes, actor), lane % plain.lanes) * made->rounds;
  }
};

struct StepOnPieces {
  MadeOfPieces made;
  void operator()(Actor actor, Lane lane, int i, Step& out) const {
    const Schedule& plain = made->plain;
    const int channel = lane / plain.lanes, own = lane % plain.lanes;
    const Actor position = position_of(*made, channel, actor);
    const int n = plain.n_steps(position, own), round = i / n;
    plain.step(position, own, i % n, out);
    const Cast* cast = cast_of(*made, channel);
    move_to_piece(out.ops, {made->cut, static_cast<std::uint32_t>(channel * made->rounds + round), cast});
    for (Op& op : out.ops) {
      if (op.what != Do::compute) op.channel = static_cast<std::uint16_t>(op.channel * made->stride + channel);
      if (cast != nullptr && (op.what == Do::send || op.what == Do::receive || op.what == Do::receive_add))
        op.peer = cast->rank[static_cast<std::size_t>(op.peer)];
    }
    for (Wait& wait : out.waits) {
      wait.steps += round * plain.n_steps(position, wait.lane);
      wait.lane += channel * plain.lanes;
    }
  }
};

// All rounds and channels of a plain step count together.
struct PhaseOfPieces {
  MadeOfPieces made;
  PhaseStep operator()(Actor actor, Lane lane, int i) const {
    const Schedule& plain = made->plain;
    const int channel = lane / plain.lanes, own = lane % plain.lanes;
    const Actor position = position_of(*made, channel, actor);
    return plain.phases.at(position, own, i % plain.n_steps(position, own));
  }
};

// What the plain collective says of a chunk holds for that chunk of each piece.
struct PromiseOfPieces {
  MadeOfPieces made;
  bool is_after = false;
  Content operator()(Actor rank, Buffer buffer, std::uint32_t chunk) const {
    const Cut& cut = made->cut;
    if (cut.chunks[static_cast<std::size_t>(buffer)] == 0) return {};
    const Cut::Chunk of = cut.at(buffer, chunk);
    const Collective& plain = made->plain.collective;
    Content content = (is_after ? plain.after : plain.before)(rank, buffer, of.plain);
    content.chunk = cut.parts ? content.chunk * cut.pieces + of.piece : of.piece * cut.contributed + content.chunk;
    return content;
  }
};

}  // namespace

Cast Cast::of(std::vector<Actor> ranks) {
  Cast cast{.rank = std::move(ranks), .position = {}};
  const auto n = static_cast<Actor>(cast.rank.size());
  cast.position.assign(cast.rank.size(), -1);
  for (Actor p = 0; p < n; ++p) {
    const Actor r = cast.rank[static_cast<std::size_t>(p)];
    if (r < 0 || r >= n || cast.position[static_cast<std::size_t>(r)] >= 0)
      throw InputError("", fmt::format("expected an order that names each of {} ranks once, found rank {}{}", n, r,
                                       r < 0 || r >= n ? "" : " twice"));
    cast.position[static_cast<std::size_t>(r)] = p;
  }
  return cast;
}

Schedule run_piecewise(Piecewise description) {
  const auto made = std::make_shared<const Piecewise>(std::move(description));
  Schedule s = made->plain;
  s.lanes = made->plain.lanes * made->channels;
  s.symmetry = {};
  s.n_steps = StepsOnPieces{made};
  s.step = StepOnPieces{made};
  s.place = {};
  s.phases.of = PhaseOfPieces{made};
  s.collective.before = PromiseOfPieces{made, false};
  s.collective.after = PromiseOfPieces{made, true};
  return s;
}

const Piecewise* piecewise(const Schedule& schedule) {
  const auto* n_steps = schedule.n_steps.target<StepsOnPieces>();
  const auto* step = schedule.step.target<StepOnPieces>();
  const auto* before = schedule.collective.before.target<PromiseOfPieces>();
  const auto* after = schedule.collective.after.target<PromiseOfPieces>();
  if (n_steps == nullptr || step == nullptr || before == nullptr || after == nullptr) return nullptr;
  const MadeOfPieces& made = step->made;
  const bool is_one = n_steps->made == made && before->made == made && after->made == made;
  return is_one && !before->is_after && after->is_after ? made.get() : nullptr;
}

}  // namespace ringsim
