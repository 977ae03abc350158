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
    throw InputError("",
                     fmt::format("expected at most 2^27 chunks, found {} pieces of {} chunks", pieces.count(), chunks),
                     "use larger pieces or fewer channels");
  return cut;
}

std::vector<Cast> casts_of(const Schedule& plain, int channels, const std::vector<std::vector<Actor>>& orders) {
  std::vector<Cast> casts;
  if (orders.empty()) return casts;
  using enum CollectiveOp;
  const CollectiveOp op = plain.collective.op;
  if (plain.actors != plain.collective.ranks)
    throw InputError(
        "", fmt::format("expected an algorithm without helpers for another order of ranks, found {} with {} helpers",
                        plain.algorithm, plain.actors - plain.collective.ranks));
  if (op != all_reduce && op != reduce_scatter && op != all_gather && op != broadcast && op != reduce)
    throw InputError(
        "", fmt::format("expected an operation of rings or trees for another order of ranks, found {}", to_string(op)),
        "all_reduce, reduce_scatter, all_gather, broadcast, reduce");
  for (int k = 0; k < channels; ++k) {
    std::vector<Actor> order = orders[static_cast<std::size_t>(k) % orders.size()];
    if (order.size() != static_cast<std::size_t>(plain.collective.ranks))
      throw InputError(
          "", fmt::format("expected an order of {} ranks, found one of {}", plain.collective.ranks, order.size()));
    if (has_root(op)) {
      const Actor root = plain.collective.root;
      const auto at = std::find(order.begin(), order.end(), root);
      const auto n = static_cast<std::ptrdiff_t>(order.size());
      if (at != order.end())
        std::rotate(order.begin(), order.begin() + (at - order.begin() - root + n) % n, order.end());
    }
    casts.push_back(Cast::of(std::move(order)));
  }
  return casts;
}

}  // namespace

Pieces pieces_of(Bytes size, int channels, std::optional<Bytes> chunk) {
  ensure(channels > 0 && (!chunk || chunk->count > 0), "there is a channel, and a piece has a byte");
  const auto divided = [](std::int64_t a, std::int64_t b) { return a / b + (a % b > 0 ? 1 : 0); };
  const std::int64_t rounds =
      chunk ? std::max<std::int64_t>(1, divided(divided(size.count, channels), chunk->count)) : 1;
  if (rounds > most / channels)
    throw InputError("", fmt::format("expected at most 2^27 pieces, found {} for each channel", rounds),
                     "use larger pieces");
  return {.channels = channels, .rounds = static_cast<int>(rounds)};
}

Schedule over_channels(Schedule plain, const Pieces& pieces, const std::vector<std::vector<Actor>>& orders) {
  if (pieces.count() == 1 && orders.empty()) return plain;
  if (plain.collective.op == CollectiveOp::barrier)
    throw InputError("", "expected a collective that moves data, found a barrier", "a barrier has no data to cut");
  if (!plain.names_regions) throw InputError("", "expected a schedule with regions, found one with sizes only");
  const Cut cut = cut_of(plain, pieces);
  std::vector<Cast> casts = casts_of(plain, pieces.channels, orders);

  Schedule s = run_piecewise({.plain = std::move(plain),
                              .channels = pieces.channels,
                              .rounds = pieces.rounds,
                              .stride = pieces.channels,
                              .cut = cut,
                              .casts = std::move(casts)});
  s.algorithm += fmt::format(" channels={} rounds={}", pieces.channels, pieces.rounds);
  if (!orders.empty()) s.algorithm += fmt::format(" orders={}", orders.size());
  for (Layout& layout : s.layout) {
    if (layout.n_chunks() == 0) continue;
    const int n = layout.n_chunks();
    ensure(cut.parts || layout.total() == s.collective.bytes, "a stretch of the buffer is one of each of its copies");
    layout = cut.parts ? layout.cut(pieces.count()) : Layout::two_level(s.collective.bytes, pieces.count(), n);
  }
  return s;
}

}  // namespace ringsim
