#include "algorithms/composed/channels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/schedule/piecewise.hpp"

namespace ringsim {

namespace {

constexpr std::int64_t most = 1 << 27;  // chunks: beyond it a proof takes hours

bool belong_to_ranks(CollectiveOp op) {
  using enum CollectiveOp;
  return op == reduce_scatter || op == all_gather || op == all_to_all || op == scatter || op == gather;
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

  const int numbers = plain.lanes;  // schedules number their channels as their lanes
  Schedule s = run_piecewise({.plain = std::move(plain),
                              .channels = pieces.channels,
                              .rounds = pieces.rounds,
                              .numbers = numbers,
                              .cut = cut});
  s.algorithm += fmt::format(" channels={} rounds={}", pieces.channels, pieces.rounds);
  for (Layout& layout : s.layout) {
    if (layout.n_chunks() == 0) continue;
    const int n = layout.n_chunks();
    ensure(cut.parts || layout.total() == s.collective.bytes, "a stretch of the buffer is one of each of its copies");
    layout = cut.parts ? layout.cut(pieces.count()) : Layout::two_level(s.collective.bytes, pieces.count(), n);
  }
  return s;
}

}  // namespace ringsim
