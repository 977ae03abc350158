#include "algorithms/promise.hpp"

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

using Who = Content::Who;

Content one(Actor rank, std::uint32_t chunk) { return {Who::one, rank, chunk}; }
Content all(std::uint32_t chunk) { return {Who::all, -1, chunk}; }

/// Does each rank bring, or get, one block of the message only?
bool is_block(const PromiseSpec& spec, Buffer buffer) {
  if (spec.placement == Placement::input_kept) return false;
  return (spec.op == CollectiveOp::all_gather && buffer == Buffer::input) ||
         (spec.op == CollectiveOp::reduce_scatter && buffer == Buffer::output);
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
  const int chunks = spec.chunks[static_cast<std::size_t>(whole_buffer(spec.op, spec.placement))];
  if (chunks == 0 || chunks % spec.ranks != 0) return std::nullopt;
  return Blocks{spec.ranks, static_cast<std::uint32_t>(chunks / spec.ranks)};
}

/// Does a barrier bring a token of each rank to all, instead of adding them up? See barrier_of_tokens().
bool has_tokens(const PromiseSpec& spec) {
  return spec.ranks > 1 && spec.chunks[static_cast<std::size_t>(Buffer::data)] == spec.ranks;
}

/// What the rank has of the message before: chunk c of what it contributes.
bool brings(const PromiseSpec& spec, const Blocks& blocks, Actor rank, std::uint32_t c) {
  switch (spec.op) {
    case CollectiveOp::broadcast:
    case CollectiveOp::scatter:
      return rank == spec.root;
    case CollectiveOp::all_gather:
      return blocks.of(c) == static_cast<std::uint32_t>(rank);
    case CollectiveOp::gather:
      return blocks.of(c) == static_cast<std::uint32_t>(wrap(rank - spec.root, blocks.n));
    case CollectiveOp::barrier:
      return !has_tokens(spec) || c == 0;
    default:
      return true;
  }
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
    case CollectiveOp::reduce:
      return rank == spec.root ? all(c) : Content{};
    case CollectiveOp::scatter:
      return blocks.of(c) == static_cast<std::uint32_t>(wrap(rank - spec.root, blocks.n)) ? one(spec.root, c)
                                                                                          : Content{};
    case CollectiveOp::gather:
      if (rank != spec.root) return {};
      return one(wrap(spec.root + static_cast<Actor>(blocks.of(c)), blocks.n), c);
    case CollectiveOp::send_recv:
      return one(wrap(rank - 1, spec.ranks), c);
    case CollectiveOp::barrier:
      return has_tokens(spec) ? one(wrap(rank - static_cast<Actor>(c), spec.ranks), 0) : all(c);
    case CollectiveOp::all_to_all:
      if (spec.placement == Placement::relative || spec.placement == Placement::relative_in_place)
        return one(wrap(rank - static_cast<Actor>(blocks.of(c)), blocks.n), c);
      return one(static_cast<Actor>(blocks.of(c)), blocks.first(rank) + c % blocks.m);
    case CollectiveOp::pairs: {
      const Actor half = spec.ranks / 2;
      if (rank >= half) return one(rank - half, c);
      return spec.both_ways ? one(rank + half, c) : Content{};
    }
  }
  fail_invariant("a collective has one of eleven names");
}

bool has_form(const PromiseSpec& spec) {
  using enum Placement;
  switch (spec.op) {
    case CollectiveOp::all_reduce:
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_gather:
    case CollectiveOp::reduce:
      return spec.placement == in_place || spec.placement == separate || spec.placement == input_kept;
    case CollectiveOp::scatter:
    case CollectiveOp::gather:
      return spec.placement == in_place || spec.placement == input_kept;
    case CollectiveOp::barrier:
      return spec.placement == in_place;
    case CollectiveOp::all_to_all:
      return spec.placement != input_kept;
    case CollectiveOp::pairs:
    case CollectiveOp::send_recv:
      return spec.placement == separate || spec.placement == in_place;
  }
  fail_invariant("a collective has one of eleven names");
}

bool has_blocks(CollectiveOp op) {
  using enum CollectiveOp;
  return op == reduce_scatter || op == all_gather || op == all_to_all || op == scatter || op == gather;
}

/// `ranks` 1: the sum of all is what the one rank brings.
bool same(const Content& a, const Content& b, int ranks) {
  if (ranks == 1 && a.who != Who::nothing && b.who != Who::nothing) return a.chunk == b.chunk;
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
    case Placement::input_kept:
      return "input_kept";
    case Placement::relative_in_place:
      return "relative_in_place";
  }
  fail_invariant("a placement has one of five names");
}

bool in_one_buffer(Placement placement) {
  return placement == Placement::in_place || placement == Placement::relative_in_place;
}

Buffer whole_buffer(CollectiveOp op, Placement placement) {
  if (in_one_buffer(placement)) return Buffer::data;
  return op == CollectiveOp::reduce_scatter ? Buffer::input : Buffer::output;
}

std::optional<int> promised_chunks(const PromiseSpec& spec, Buffer buffer, int chunks) {
  if (buffer == Buffer::scratch || (buffer == Buffer::data) != in_one_buffer(spec.placement)) return std::nullopt;
  return is_block(spec, buffer) ? chunks / spec.ranks : chunks;
}

std::optional<Collective> promise(const PromiseSpec& spec, Bytes bytes) {
  if (!has_form(spec)) return std::nullopt;
  Blocks blocks;
  if (has_blocks(spec.op)) {
    const auto found = blocks_of(spec);
    if (!found) return std::nullopt;
    blocks = *found;
  }
  const bool in_one = in_one_buffer(spec.placement);
  const Buffer from = in_one ? Buffer::data : Buffer::input, to = in_one ? Buffer::data : Buffer::output;
  Collective c{.op = spec.op, .ranks = spec.ranks, .bytes = bytes, .root = spec.root};
  c.before = [spec, blocks, from](Actor rank, Buffer buffer, std::uint32_t chunk) {
    if (buffer != from) return Content{};
    if (is_block(spec, buffer)) chunk += blocks.first(rank);
    return brings(spec, blocks, rank, chunk) ? one(rank, chunk) : Content{};
  };
  c.after = [spec, blocks, from, to](Actor rank, Buffer buffer, std::uint32_t chunk) {
    if (buffer == from && spec.placement == Placement::input_kept)
      return brings(spec, blocks, rank, chunk) ? one(rank, chunk) : Content{};
    if (buffer != to) return Content{};
    if (is_block(spec, buffer)) chunk += blocks.first(rank);
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
          if (!same(collective.before(rank, buffer, c), other.before(rank, buffer, c), spec.ranks) ||
              !same(collective.after(rank, buffer, c), other.after(rank, buffer, c), spec.ranks))
            return false;
        }
    return true;
  };
  for (const Placement placement : placements) {
    spec.placement = placement;
    // A placement whose buffers do not exist would agree with a promise about nothing.
    const Buffer result = in_one_buffer(placement) ? Buffer::data : Buffer::output;
    if (spec.chunks[static_cast<std::size_t>(result)] == 0) continue;
    if (const auto other = promise(spec, collective.bytes); other && agrees(*other)) return placement;
  }
  return std::nullopt;
}

}  // namespace ringsim
