#include "algorithms/composed/buffers.hpp"

#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/schedule/relocated.hpp"

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

}  // namespace

Schedule out_of_place(Schedule plain) {
  refuse_barrier(plain);
  if (!has(plain, Buffer::data)) return plain;
  const Layout layout = plain.layout[index(Buffer::data)];
  Relocated made{.place = {{{Buffer::output, 0}, {Buffer::input, 0}, {Buffer::output, 0}, {Buffer::scratch, 0}}},
                 .input = Buffer::data,
                 .source = Buffer::input};
  made.contributed = [collective = plain.collective, n = layout.n_chunks()](Actor rank) {
    return brought(collective, n, rank);
  };
  made.plain = std::move(plain);
  Schedule s = run_relocated(std::move(made));
  s.layout[index(Buffer::data)] = {};
  s.layout[index(Buffer::input)] = s.layout[index(Buffer::output)] = layout;
  s.algorithm += " out_of_place";
  return s;
}

Schedule in_place(Schedule plain) {
  refuse_barrier(plain);
  if (!has(plain, Buffer::input)) return plain;
  const Layout input = plain.layout[index(Buffer::input)], output = plain.layout[index(Buffer::output)];
  const Layout& scratch = plain.layout[index(Buffer::scratch)];
  // Scratch: its own chunks first, then those of `input`.
  const auto n = static_cast<std::uint32_t>(input.n_chunks()), base = static_cast<std::uint32_t>(scratch.n_chunks());
  std::vector<Bytes> sizes;
  for (std::uint32_t c = 0; c < base; ++c) sizes.push_back(scratch.size(c, 1));
  for (std::uint32_t c = 0; c < n; ++c) sizes.push_back(input.size(c, 1));

  Relocated made{.place = {{{Buffer::data, 0}, {Buffer::scratch, base}, {Buffer::data, 0}, {Buffer::scratch, 0}}},
                 .input = Buffer::input,
                 .source = Buffer::data};
  made.contributed = [n](Actor) { return chunks(0, static_cast<int>(n)); };
  made.plain = std::move(plain);
  Schedule s = run_relocated(std::move(made));
  s.layout[index(Buffer::scratch)] = Layout::of_sizes(sizes);
  s.layout[index(Buffer::data)] = output;
  s.layout[index(Buffer::input)] = s.layout[index(Buffer::output)] = {};
  s.algorithm += " in_place";
  return s;
}

}  // namespace ringsim
