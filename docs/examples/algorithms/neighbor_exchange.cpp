#include "algorithms/neighbor_exchange.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

/// The blocks that rank r has got last when step i is over, as the number of their pair: its own, then one further away
/// on either side in turn; odd ranks look the other way.
int pair_after(int n, Actor r, int i) {
  const int away = (i + 1) / 2;
  const bool below = (r % 2 == 0) == (i % 2 == 1);
  return wrap(r / 2 + (below ? -away : away), n / 2);
}

}  // namespace

Schedule neighbor_exchange_all_gather(int n, Bytes bytes) {
  if (n > 1 && n % 2 != 0)
    throw InputError("", fmt::format("neighbor_exchange: expected an even number of ranks, found {}", n),
                     "bruck and ring support any number");
  Schedule s{.algorithm = "neighbor_exchange", .collective = all_gather(n, bytes), .actors = n};
  s.layout[0] = Layout::near_equal(bytes, n);
  s.n_steps = [n](Actor, Lane) { return n / 2; };
  s.step = [n](Actor r, Lane, int i, Step& out) {
    const bool to_the_right = (r % 2 == 0) == (i % 2 == 0);
    const Actor peer = wrap(to_the_right ? r + 1 : r - 1, n);
    out.send(peer, i == 0 ? chunk(r) : chunks(2 * pair_after(n, r, i - 1), 2));
    out.receive(peer, i == 0 ? chunk(peer) : chunks(2 * pair_after(n, r, i), 2));
  };
  return s;
}

}  // namespace ringsim
