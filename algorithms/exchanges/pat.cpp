#include "algorithms/exchanges/pat.hpp"

#include "algorithms/exchanges/powers.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

Schedule trees(Collective collective) {
  const int n = collective.ranks;
  Schedule s{.algorithm = "pat", .collective = std::move(collective), .actors = n};
  s.layout[static_cast<std::size_t>(Buffer::data)] = Layout::near_equal(s.collective.bytes, n);
  s.symmetry = Symmetry({n});
  s.n_steps = [steps = ceil_log2(n)](Actor, Lane) { return steps; };
  return s;
}

// In the step of `distance`, rank c + x is joined with rank c + x + distance in the tree of chunk c, for x = 0,
// 2 distance, 4 distance... as long as there is such a rank.
template <class Visit>
void joined(int distance, int n, Visit visit) {
  for (int x = 0; x + distance < n; x += 2 * distance) visit(x);
}

}  // namespace

Schedule pat_all_gather(int n, Bytes bytes) {
  Schedule s = trees(all_gather(n, bytes));
  s.step = [n, steps = ceil_log2(n)](Actor r, Lane, int i, Step& out) {
    const int distance = 1 << (steps - 1 - i);
    joined(distance, n, [&](int x) {
      out.send(wrap(r + distance, n), chunk(wrap(r - x, n)));
      out.receive(wrap(r - distance, n), chunk(wrap(r - distance - x, n)));
    });
  };
  return s;
}

Schedule pat_reduce_scatter(int n, Bytes bytes) {
  Schedule s = trees(reduce_scatter(n, bytes));
  s.step = [n](Actor r, Lane, int i, Step& out) {
    const int distance = 1 << i;
    joined(distance, n, [&](int x) {
      out.send(wrap(r - distance, n), chunk(wrap(r - distance - x, n)));
      out.receive_add(wrap(r + distance, n), chunk(wrap(r - x, n)));
    });
  };
  return s;
}

}  // namespace ringsim
