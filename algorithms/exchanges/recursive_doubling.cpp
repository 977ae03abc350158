#include "algorithms/exchanges/recursive_doubling.hpp"

#include "algorithms/exchanges/halving_doubling.hpp"
#include "algorithms/exchanges/powers.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

constexpr Region in_scratch{Buffer::scratch, 0, 1};

// Step i of 2m: an exchange, then the addition of what came.
void exchange(Actor r, int i, Step& out) {
  if (i % 2 == 1) return out.add(in_scratch, chunk(0));
  const Actor peer = r ^ (1 << (i / 2));
  out.send(peer, chunk(0));
  out.receive(peer, in_scratch);
}

}  // namespace

Schedule recursive_doubling_all_reduce(int n, Bytes bytes) {
  const int m = floor_log2(n), core = 1 << m;
  Schedule s{.algorithm = "recursive_doubling", .collective = all_reduce(n, bytes), .actors = n};
  s.layout[static_cast<std::size_t>(Buffer::data)] = Layout::near_equal(bytes, 1);
  s.layout[static_cast<std::size_t>(Buffer::scratch)] = Layout::near_equal(bytes, 1);
  s.n_steps = [n, m, core](Actor r, Lane) {
    if (r >= core) return 2;
    return r + core < n ? 2 * m + 2 : 2 * m;
  };
  s.phases = {{"fold", "exchange", "unfold"}, [n, m, core](Actor r, Lane, int i) {
                if (r >= core) return i == 0 ? PhaseStep{0, 0} : PhaseStep{2, 0};
                const int k = r + core < n ? i - 1 : i;
                if (k < 0) return PhaseStep{0, 0};
                return k < 2 * m ? PhaseStep{1, k / 2} : PhaseStep{2, 0};
              }};
  s.step = [n, m, core](Actor r, Lane, int i, Step& out) {
    if (r >= core) return i == 0 ? out.send(r - core, chunk(0)) : out.receive(r - core, chunk(0));
    if (r + core >= n) return exchange(r, i, out);
    if (i == 0) return out.receive_add(r + core, chunk(0));
    if (i == 2 * m + 1) return out.send(r + core, chunk(0));
    exchange(r, i - 1, out);
  };
  return s;
}

Schedule recursive_doubling_all_gather(int n, Bytes bytes) {
  require_power_of_two("recursive_doubling all_gather", n, "bruck and ring support any number");
  Schedule s = doubling_all_gather(n, bytes);
  s.algorithm = "recursive_doubling";
  return s;
}

}  // namespace ringsim
