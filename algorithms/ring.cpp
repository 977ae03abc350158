#include "algorithms/ring.hpp"

#include <fmt/format.h>

#include <numeric>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

// What the three collectives round a ring share: n chunks, n-1 or 2(n-1) steps, and that all ranks do the same.
Schedule around(Collective collective, int rounds) {
  const int n = collective.ranks;
  Schedule s{.algorithm = "ring", .collective = std::move(collective), .actors = n};
  s.layout[0] = Layout::near_equal(s.collective.bytes, n);
  s.symmetry = Symmetry({n});
  s.n_steps = [n, rounds](Actor, Lane) { return rounds * (n - 1); };
  return s;
}

// 1, -1, 2, -2, ... modulo n, as far as they share no factor with it: the ways to go round all n ranks.
std::vector<int> strides(int n, int wanted) {
  std::vector<int> found;
  for (int d = 1; d <= n / 2 && static_cast<int>(found.size()) < wanted; ++d) {
    if (std::gcd(d, n) != 1) continue;
    found.push_back(d);
    if (n - d != d) found.push_back(n - d);
  }
  if (static_cast<int>(found.size()) < wanted)
    throw InputError("",
                     fmt::format("ring: {} ranks make {} different ring{}, found rings {}", n, found.size(),
                                 found.size() == 1 ? "" : "s", wanted),
                     "each ring needs its own stride, which must not have a common factor with the number of ranks");
  return found;
}

/// A ring with stride d: the rank at position q is q d modulo n.
struct Stride {
  int n = 1, d = 1, inverse = 1;
  Actor rank(int position) const { return static_cast<Actor>(std::int64_t{position} * d % n); }
  int position(Actor r) const { return static_cast<int>(std::int64_t{r} * inverse % n); }
};

Stride stride(int n, int d) {
  int inverse = 1;
  while (std::int64_t{d} * inverse % n != 1) ++inverse;
  return {n, d, inverse};
}

}  // namespace

Schedule ring_all_reduce(int n, Bytes bytes) {
  Schedule s = around(all_reduce(n, bytes), 2);
  s.phases = phases_in_turn({{"reduce_scatter", n - 1}, {"all_gather", n - 1}});
  s.step = [n](Actor r, Lane, int i, Step& out) {
    out.send(wrap(r + 1, n), chunk(wrap(r - i, n)));
    if (i < n - 1)
      out.receive_add(wrap(r - 1, n), chunk(wrap(r - i - 1, n)));
    else
      out.receive(wrap(r - 1, n), chunk(wrap(r - i - 1, n)));  // finished chunks go round
  };
  return s;
}

Schedule ring_reduce_scatter(int n, Bytes bytes) {
  Schedule s = around(reduce_scatter(n, bytes), 1);
  s.step = [n](Actor r, Lane, int i, Step& out) {
    // One chunk further back than in the all-reduce, so that the last one to come in is chunk r.
    out.send(wrap(r + 1, n), chunk(wrap(r - i - 1, n)));
    out.receive_add(wrap(r - 1, n), chunk(wrap(r - i - 2, n)));
  };
  return s;
}

Schedule ring_all_gather(int n, Bytes bytes) {
  Schedule s = around(all_gather(n, bytes), 1);
  s.step = [n](Actor r, Lane, int i, Step& out) {
    out.send(wrap(r + 1, n), chunk(wrap(r - i, n)));
    out.receive(wrap(r - 1, n), chunk(wrap(r - i - 1, n)));
  };
  return s;
}

Schedule in_pieces(Schedule ring, RingPieces pieces) {
  const int n = ring.collective.ranks, each = pieces.rings * pieces.slices;
  if (each == 1 || n == 1) return ring;
  if (constexpr int most = 1 << 27; each > most / n)
    throw InputError("", fmt::format("ring: {} ranks, {} rings and {} slices make more than 2^27 chunks", n,
                                     pieces.rings, pieces.slices));
  std::vector<Stride> ways;
  for (const int d : strides(n, pieces.rings)) ways.push_back(stride(n, d));

  Schedule s = ring;
  s.algorithm += fmt::format(" rings={} slices={}", pieces.rings, pieces.slices);
  s.lanes = pieces.rings;
  s.layout[0] = Layout::near_equal(ring.collective.bytes, n * each);
  s.symmetry = {};  // is claimed for one chunk a rank only
  if (ring.collective.op == CollectiveOp::reduce_scatter)
    s.collective = reduce_scatter_in_pieces(n, ring.collective.bytes, each);
  if (ring.collective.op == CollectiveOp::all_gather)
    s.collective = all_gather_in_pieces(n, ring.collective.bytes, each);
  s.n_steps = [plain = ring.n_steps, slices = pieces.slices](Actor r, Lane) { return plain(r, 0) * slices; };
  s.phases.of = [plain = ring.phases, slices = pieces.slices](Actor r, Lane, int i) {
    return plain.at(r, 0, i / slices);  // the same for all ranks
  };
  s.step = [plain = std::move(ring.step), ways, pieces, each](Actor r, Lane lane, int i, Step& out) {
    // What the plain ring does at our position, with the ranks and blocks of this ring, and one slice of each.
    const Stride& way = ways[static_cast<std::size_t>(lane)];
    plain(way.position(r), 0, i / pieces.slices, out);
    for (Op& op : out.ops) {
      op.peer = way.rank(op.peer);
      op.channel = static_cast<std::uint16_t>(lane);
      op.region = chunk(way.rank(static_cast<int>(op.region.first)) * each + lane * pieces.slices + i % pieces.slices);
    }
  };
  return s;
}

Schedule ring_broadcast(int n, Bytes bytes, Actor root, int segments) {
  Schedule s{.algorithm = "ring", .collective = broadcast(n, bytes, root), .actors = n};
  s.layout[0] = Layout::near_equal(bytes, segments);
  s.n_steps = [n, root, segments](Actor r, Lane) {
    if (n == 1) return 0;
    const int distance = wrap(r - root, n);
    return distance == 0 || distance == n - 1 ? segments : segments + 1;
  };
  s.step = [n, root, segments](Actor r, Lane, int i, Step& out) {
    const int distance = wrap(r - root, n);
    if (distance == 0) return out.send(wrap(r + 1, n), chunk(i));
    // Receive i and send i-1 in one step: as two steps the pipeline would stand still every other time.
    if (i < segments) out.receive(wrap(r - 1, n), chunk(i));
    if (i > 0 && distance < n - 1) out.send(wrap(r + 1, n), chunk(i - 1));
  };
  return s;
}

}  // namespace ringsim
