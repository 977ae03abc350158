#include "algorithms/composed/buffers.hpp"

#include <utility>
#include <vector>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

constexpr std::size_t index(Buffer buffer) { return static_cast<std::size_t>(buffer); }

void refuse_barrier(const Schedule& schedule) {
  if (schedule.collective.op == CollectiveOp::barrier)
    throw InputError("", "expected a collective that moves data, found a barrier", "a barrier has no buffers");
}

bool has(const Schedule& schedule, Buffer buffer) { return schedule.layout[index(buffer)].n_chunks() > 0; }

/// The run of `data` that the rank brings; count 0: nothing.
Region brought(const Collective& collective, int n_chunks, Actor rank) {
  const int block = n_chunks / collective.ranks;
  switch (collective.op) {
    case CollectiveOp::broadcast:
    case CollectiveOp::scatter:
      return chunks(0, rank == collective.root ? n_chunks : 0);
    case CollectiveOp::all_gather:
      return chunks(rank * block, block);
    case CollectiveOp::gather:
      return chunks(wrap(rank - collective.root, collective.ranks) * block, block);
    default:
      return chunks(0, n_chunks);
  }
}

/// Puts a step before all others of the ranks (helpers have none): the first of lane 0, for which the other lanes wait.
/// `first(rank, out)` appends to it; `rename(region)` puts the plain regions where they are now.
template <class First, class Rename>
void begin_with(Schedule& s, First first, Rename rename) {
  const int ranks = s.collective.ranks;
  s.symmetry = {};
  s.n_steps = [steps = s.n_steps, ranks](Actor a, Lane lane) {
    return steps(a, lane) + (a < ranks && lane == 0 ? 1 : 0);
  };
  s.step = [plain = s.step, ranks, first, rename](Actor a, Lane lane, int i, Step& out) {
    const bool is_rank = a < ranks;
    if (is_rank && lane == 0 && i == 0) return first(a, out);
    plain(a, lane, is_rank && lane == 0 ? i - 1 : i, out);
    for (Op& op : out.ops) {
      op.region = rename(op.region);
      op.operand = rename(op.operand);
    }
    if (!is_rank) return;
    for (Wait& wait : out.waits)
      if (wait.lane == 0) ++wait.steps;
    if (lane > 0 && i == 0) out.wait(0, 1);
  };
}

}  // namespace

Schedule out_of_place(Schedule s) {
  refuse_barrier(s);
  if (!has(s, Buffer::data)) return s;
  const Layout layout = std::exchange(s.layout[index(Buffer::data)], {});
  s.layout[index(Buffer::input)] = s.layout[index(Buffer::output)] = layout;

  const Collective plain = s.collective;
  s.collective.before = [plain](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::input ? plain.before(rank, Buffer::data, chunk) : Content{};
  };
  s.collective.after = [plain](Actor rank, Buffer buffer, std::uint32_t chunk) {
    if (buffer == Buffer::input) return plain.before(rank, Buffer::data, chunk);  // as it was
    return buffer == Buffer::output ? plain.after(rank, Buffer::data, chunk) : Content{};
  };
  const auto copy = [plain, n = layout.n_chunks()](Actor rank, Step& out) {
    Region from = brought(plain, n, rank), to = from;
    from.buffer = Buffer::input;
    to.buffer = Buffer::output;
    if (from.count > 0) out.copy(from, to);
  };
  begin_with(s, copy, [](Region region) {
    if (region.buffer == Buffer::data) region.buffer = Buffer::output;
    return region;
  });
  s.algorithm += " out_of_place";
  return s;
}

Schedule in_place(Schedule s) {
  refuse_barrier(s);
  if (!has(s, Buffer::input)) return s;
  const Layout layout = std::exchange(s.layout[index(Buffer::input)], {});
  s.layout[index(Buffer::data)] = std::exchange(s.layout[index(Buffer::output)], {});
  // Scratch: its own chunks first, then those of `input`.
  const auto n = static_cast<std::uint32_t>(layout.n_chunks());
  Layout& scratch = s.layout[index(Buffer::scratch)];
  const auto base = static_cast<std::uint32_t>(scratch.n_chunks());
  std::vector<Bytes> sizes;
  for (std::uint32_t c = 0; c < base; ++c) sizes.push_back(scratch.size(c, 1));
  for (std::uint32_t c = 0; c < n; ++c) sizes.push_back(layout.size(c, 1));
  scratch = Layout::of_sizes(sizes);

  const Collective plain = s.collective;
  s.collective.before = [plain](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data ? plain.before(rank, Buffer::input, chunk) : Content{};
  };
  s.collective.after = [plain](Actor rank, Buffer buffer, std::uint32_t chunk) {
    return buffer == Buffer::data ? plain.after(rank, Buffer::output, chunk) : Content{};
  };
  const auto copy = [base, n](Actor, Step& out) { out.copy({Buffer::data, 0, n}, {Buffer::scratch, base, n}); };
  begin_with(s, copy, [base](Region region) {
    if (region.buffer == Buffer::output) return Region{Buffer::data, region.first, region.count};
    if (region.buffer == Buffer::input) return Region{Buffer::scratch, base + region.first, region.count};
    return region;
  });
  s.algorithm += " in_place";
  return s;
}

}  // namespace ringsim
