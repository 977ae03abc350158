#include "algorithms/composed/channels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

constexpr std::int64_t most = 1 << 27;  // chunks: beyond it a proof takes hours

bool belong_to_ranks(CollectiveOp op) {
  using enum CollectiveOp;
  return op == reduce_scatter || op == all_gather || op == all_to_all || op == scatter || op == gather;
}

/// Where a piece's chunks stand among those of the whole.
struct Cut {
  bool parts = false;  ///< a piece is a part of every chunk; else a stretch of the buffer
  std::uint32_t pieces = 1;
  std::array<std::uint32_t, n_buffers> chunks{};  ///< [buffer] of the plain schedule
  std::uint32_t contributed = 0;                  ///< chunks of what a rank brings

  std::uint32_t chunk(Buffer buffer, std::uint32_t plain, std::uint32_t piece) const {
    return parts ? plain * pieces + piece : piece * chunks[static_cast<std::size_t>(buffer)] + plain;
  }
  Region region(Region plain, std::uint32_t piece) const {
    plain.first = chunk(plain.buffer, plain.first, piece);
    return plain;
  }
  /// What the plain collective says of a chunk, said of a piece's.
  template <class Promise>
  Content content(const Promise& plain, Actor rank, Buffer buffer, std::uint32_t c) const {
    const std::uint32_t n = chunks[static_cast<std::size_t>(buffer)];
    if (n == 0) return {};  // of buffers that are not there nothing is said
    const std::uint32_t piece = parts ? c % pieces : c / n;
    Content content = plain(rank, buffer, parts ? c / pieces : c % n);
    content.chunk = parts ? content.chunk * pieces + piece : piece * contributed + content.chunk;
    return content;
  }
};

// Operation k of those that an operation on several chunks becomes where they are apart.
Op single(const Op& op, std::uint32_t k, const Cut& cut, std::uint32_t piece) {
  Op one = op;
  one.region = cut.region({op.region.buffer, op.region.first + k, 1}, piece);
  if (op.operand.count > 0) one.operand = cut.region({op.operand.buffer, op.operand.first + k, 1}, piece);
  return one;
}

// From behind, in place: no room is needed but for the operations themselves.
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

void move(std::vector<Op>& ops, const Cut& cut, std::uint32_t piece) {
  if (cut.parts) return take_apart(ops, cut, piece);
  for (Op& op : ops) {
    op.region = cut.region(op.region, piece);
    if (op.operand.count > 0) op.operand = cut.region(op.operand, piece);
  }
}

Cut cut_of(const Schedule& plain, const Pieces& pieces) {
  Cut cut{.parts = belong_to_ranks(plain.collective.op), .pieces = static_cast<std::uint32_t>(pieces.count())};
  std::int64_t chunks = 0;
  for (std::size_t b = 0; b < n_buffers; ++b) {
    cut.chunks[b] = static_cast<std::uint32_t>(plain.layout[b].n_chunks());
    if (static_cast<Buffer>(b) != Buffer::scratch) cut.contributed = std::max(cut.contributed, cut.chunks[b]);
    chunks = std::max(chunks, std::int64_t{cut.chunks[b]});
  }
  if (chunks * pieces.count() > most)
    throw InputError("", fmt::format("expected at most 2^27 chunks, found {} pieces of {}", pieces.count(), chunks),
                     "let pieces be larger, or fewer channels");
  return cut;
}

}  // namespace

Pieces pieces_of(Bytes size, int channels, std::optional<Bytes> chunk) {
  ensure(channels > 0 && (!chunk || chunk->count > 0), "there is a channel, and a piece has a byte");
  const auto divided = [](std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); };
  const std::int64_t rounds =
      chunk ? std::max<std::int64_t>(1, divided(divided(size.count, channels), chunk->count)) : 1;
  if (rounds > most / channels)
    throw InputError("", fmt::format("expected at most 2^27 pieces, found {} for each channel", rounds),
                     "let pieces be larger");
  return {.channels = channels, .rounds = static_cast<int>(rounds)};
}

Schedule over_channels(Schedule plain, const Pieces& pieces) {
  if (pieces.count() == 1) return plain;
  if (plain.collective.op == CollectiveOp::barrier)
    throw InputError("", "expected a collective that moves data, found a barrier", "a barrier has nothing to be cut");
  if (!plain.names_regions) throw InputError("", "expected a schedule that names its regions, found one of sizes only");
  const Cut cut = cut_of(plain, pieces);

  Schedule s = plain;
  s.algorithm += fmt::format(" channels={} rounds={}", pieces.channels, pieces.rounds);
  s.lanes = plain.lanes * pieces.channels;
  s.symmetry = {};
  for (Layout& layout : s.layout) {
    if (layout.n_chunks() == 0) continue;
    const int n = layout.n_chunks();
    ensure(cut.parts || layout.total() == s.collective.bytes, "a stretch of the buffer is one of each of its copies");
    layout = cut.parts ? layout.cut(pieces.count()) : Layout::two_level(s.collective.bytes, pieces.count(), n);
  }
  for (auto* promise : {&s.collective.before, &s.collective.after})
    *promise = [cut, said = *promise](Actor rank, Buffer buffer, std::uint32_t chunk) {
      return cut.content(said, rank, buffer, chunk);
    };
  s.n_steps = [steps = plain.n_steps, lanes = plain.lanes, rounds = pieces.rounds](Actor a, Lane lane) {
    return steps(a, lane % lanes) * rounds;
  };
  s.step = [plain = std::move(plain), cut, rounds = pieces.rounds](Actor a, Lane lane, int i, Step& out) {
    const int channel = lane / plain.lanes, n = plain.n_steps(a, lane % plain.lanes), round = i / n;
    plain.step(a, lane % plain.lanes, i % n, out);
    move(out.ops, cut, static_cast<std::uint32_t>(channel * rounds + round));
    for (Op& op : out.ops) op.channel = static_cast<std::uint16_t>(op.channel + channel * plain.lanes);
    for (Wait& wait : out.waits) {
      wait.steps += round * plain.n_steps(a, wait.lane);
      wait.lane += channel * plain.lanes;
    }
  };
  return s;
}

}  // namespace ringsim
