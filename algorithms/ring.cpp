#include "algorithms/ring.hpp"

#include "sim/collective.hpp"

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

}  // namespace

Schedule ring_all_reduce(int n, Bytes bytes) {
  Schedule s = around(all_reduce(n, bytes), 2);
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
