#include "sim/schedule/piecewise.hpp"

#include <utility>
#include <vector>

namespace ringsim {

namespace {

using MadeOfPieces = std::shared_ptr<const Piecewise>;

Region moved(Region plain, const Cut& cut, std::uint32_t piece) {
  plain.first = cut.chunk(plain.buffer, {plain.first, piece});
  return plain;
}

// Operation k of those that replace an operation on several chunks that are not adjacent in the whole.
Op single(const Op& op, std::uint32_t k, const Cut& cut, std::uint32_t piece) {
  Op one = op;
  one.region = moved({op.region.buffer, op.region.first + k, 1}, cut, piece);
  if (op.operand.count > 0) one.operand = moved({op.operand.buffer, op.operand.first + k, 1}, cut, piece);
  return one;
}

// Backwards and in place: this needs no memory except for the operations themselves.
void take_apart(std::vector<Op>& ops, const Cut& cut, std::uint32_t piece) {
  std::size_t n = 0;
  for (const Op& op : ops) n += op.region.count;
  std::size_t from = ops.size(), to = n;
  ops.resize(n);
  while (from > 0) {
    const Op op = ops[--from];
    for (std::uint32_t k = op.region.count; k > 0; --k) ops[--to] = single(op, k - 1, cut, piece);
  }
}

void move_to_piece(std::vector<Op>& ops, const Cut& cut, std::uint32_t piece) {
  if (cut.parts) return take_apart(ops, cut, piece);
  for (Op& op : ops) {
    op.region = moved(op.region, cut, piece);
    if (op.operand.count > 0) op.operand = moved(op.operand, cut, piece);
  }
}

// The functions of the schedule are types with a name, so that piecewise() can recognize them.

struct StepsOnPieces {
  MadeOfPieces made;
  int operator()(Actor actor, Lane lane) const {
    return made->plain.n_steps(actor, lane % made->plain.lanes) * made->rounds;
  }
};

struct StepOnPieces {
  MadeOfPieces made;
  void operator()(Actor actor, Lane lane, int i, Step& out) const {
    const Schedule& plain = made->plain;
    const int channel = lane / plain.lanes, own = lane % plain.lanes;
    const int n = plain.n_steps(actor, own), round = i / n;
    plain.step(actor, own, i % n, out);
    move_to_piece(out.ops, made->cut, static_cast<std::uint32_t>(channel * made->rounds + round));
    for (Op& op : out.ops) op.channel = static_cast<std::uint16_t>(op.channel + channel * made->numbers);
    for (Wait& wait : out.waits) {
      wait.steps += round * plain.n_steps(actor, wait.lane);
      wait.lane += channel * plain.lanes;
    }
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

Schedule run_piecewise(Piecewise description) {
  const auto made = std::make_shared<const Piecewise>(std::move(description));
  Schedule s = made->plain;
  s.lanes = made->plain.lanes * made->channels;
  s.symmetry = {};
  s.n_steps = StepsOnPieces{made};
  s.step = StepOnPieces{made};
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
