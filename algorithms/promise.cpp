#include "algorithms/promise.hpp"

#include "sim/error.hpp"

namespace ringsim {

namespace {

using Who = Content::Who;

Content one(Actor rank, std::uint32_t chunk) { return {Who::one, rank, chunk}; }
Content all(std::uint32_t chunk) { return {Who::all, -1, chunk}; }

/// Does each rank bring, or get, one block of the message only?
bool is_block(CollectiveOp op, Buffer buffer) {
  return (op == CollectiveOp::all_gather && buffer == Buffer::input) ||
         (op == CollectiveOp::reduce_scatter && buffer == Buffer::output);
}

/// Ranks, and chunks a block.
struct Blocks {
  int n = 1;
  std::uint32_t m = 1;
  std::uint32_t of(std::uint32_t chunk) const { return chunk / m; }
  std::uint32_t first(Actor rank) const { return static_cast<std::uint32_t>(rank) * m; }
};

/// Does every rank's block have a whole number of chunks?
std::optional<Blocks> blocks_of(const PromiseSpec& spec) {
  const Buffer whole = spec.placement == Placement::in_place     ? Buffer::data
                       : spec.op == CollectiveOp::reduce_scatter ? Buffer::input
                                                                 : Buffer::output;
  const int chunks = spec.chunks[static_cast<std::size_t>(whole)];
  if (chunks == 0 || chunks % spec.ranks != 0) return std::nullopt;
  return Blocks{spec.ranks, static_cast<std::uint32_t>(chunks / spec.ranks)};
}

/// What the rank has of the message before: chunk c of what it contributes.
bool brings(const PromiseSpec& spec, const Blocks& blocks, Actor rank, std::uint32_t c) {
  if (spec.op == CollectiveOp::broadcast) return rank == spec.root;
  if (spec.op == CollectiveOp::all_gather) return blocks.of(c) == static_cast<std::uint32_t>(rank);
  return true;
}

/// What the rank wants as chunk c of its result.
Content wants(const PromiseSpec& spec, const Blocks& blocks, Actor rank, std::uint32_t c) {
  const auto self = static_cast<std::uint32_t>(rank);
  switch (spec.op) {
    case CollectiveOp::all_reduce:
      return all(c);
    case CollectiveOp::reduce_scatter:
      return blocks.of(c) == self ? all(c) : Content{};
    case CollectiveOp::all_gather:
      return one(static_cast<Actor>(blocks.of(c)), c);
    case CollectiveOp::broadcast:
      return one(spec.root, c);
    case CollectiveOp::all_to_all:
      if (spec.placement == Placement::relative) return one(wrap(rank - static_cast<Actor>(blocks.of(c)), blocks.n), c);
      return one(static_cast<Actor>(blocks.of(c)), blocks.first(rank) + c % blocks.m);
    case CollectiveOp::pairs: {
      const Actor half = spec.ranks / 2;
      if (rank >= half) return one(rank - half, c);
      return spec.both_ways ? one(rank + half, c) : Content{};
    }
    default:
      fail_invariant("promise() has refused what has no form");
  }
}

bool has_form(const PromiseSpec& spec) {
  switch (spec.op) {
    case CollectiveOp::all_reduce:
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_gather:
      return spec.placement != Placement::relative;
    case CollectiveOp::all_to_all:
      return true;
    case CollectiveOp::pairs:
      return spec.placement == Placement::separate;
    default:
      return false;
  }
}

bool has_blocks(CollectiveOp op) {
  return op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all;
}

bool same(const Content& a, const Content& b) {
  if (a.who != b.who) return false;
  return a.who == Who::nothing || (a.chunk == b.chunk && (a.who == Who::all || a.rank == b.rank));
}

}  // namespace

std::string_view to_string(Placement placement) {
  switch (placement) {
    case Placement::in_place:
      return "in_place";
    case Placement::separate:
      return "separate";
    case Placement::relative:
      return "relative";
  }
  fail_invariant("a placement has one of three names");
}

std::optional<int> promised_chunks(const PromiseSpec& spec, Buffer buffer, int chunks) {
  const bool in_place = spec.placement == Placement::in_place;
  if (buffer == Buffer::scratch || (buffer == Buffer::data) != in_place) return std::nullopt;
  return is_block(spec.op, buffer) ? chunks / spec.ranks : chunks;
}

std::optional<Collective> promise(const PromiseSpec& spec, Bytes bytes) {
  if (!has_form(spec)) return std::nullopt;
  Blocks blocks;
  if (has_blocks(spec.op)) {
    const auto found = blocks_of(spec);
    if (!found) return std::nullopt;
    blocks = *found;
  }
  const bool in_place = spec.placement == Placement::in_place;
  const Buffer from = in_place ? Buffer::data : Buffer::input, to = in_place ? Buffer::data : Buffer::output;
  Collective c{.op = spec.op, .ranks = spec.ranks, .bytes = bytes, .root = spec.root};
  c.before = [spec, blocks, from](Actor rank, Buffer buffer, std::uint32_t chunk) {
    if (buffer != from) return Content{};
    if (is_block(spec.op, buffer)) chunk += blocks.first(rank);
    return brings(spec, blocks, rank, chunk) ? one(rank, chunk) : Content{};
  };
  c.after = [spec, blocks, to](Actor rank, Buffer buffer, std::uint32_t chunk) {
    if (buffer != to) return Content{};
    if (is_block(spec.op, buffer)) chunk += blocks.first(rank);
    return wants(spec, blocks, rank, chunk);
  };
  return c;
}

std::optional<Placement> placement_of(const Schedule& schedule, bool both_ways) {
  const Collective& collective = schedule.collective;
  PromiseSpec spec{.op = collective.op, .ranks = collective.ranks, .root = collective.root, .both_ways = both_ways};
  for (std::size_t b = 0; b < n_buffers; ++b) spec.chunks[b] = schedule.layout[b].n_chunks();
  const auto agrees = [&](const Collective& other) {
    for (Actor rank = 0; rank < collective.ranks; ++rank)
      for (std::size_t b = 0; b < n_buffers; ++b)
        for (std::uint32_t c = 0; c < static_cast<std::uint32_t>(spec.chunks[b]); ++c) {
          const auto buffer = static_cast<Buffer>(b);
          if (!same(collective.before(rank, buffer, c), other.before(rank, buffer, c)) ||
              !same(collective.after(rank, buffer, c), other.after(rank, buffer, c)))
            return false;
        }
    return true;
  };
  for (const Placement placement : {Placement::in_place, Placement::separate, Placement::relative}) {
    spec.placement = placement;
    // A placement whose buffers do not exist would agree with a promise about nothing.
    const Buffer result = placement == Placement::in_place ? Buffer::data : Buffer::output;
    if (spec.chunks[static_cast<std::size_t>(result)] == 0) continue;
    if (const auto other = promise(spec, collective.bytes); other && agrees(*other)) return placement;
  }
  return std::nullopt;
}

}  // namespace ringsim
