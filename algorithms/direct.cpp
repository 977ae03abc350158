#include "algorithms/direct.hpp"

#include "sim/collective.hpp"

namespace ringsim {

Schedule direct_pairs(int n, Bytes bytes, bool both_ways) {
  Schedule s{.algorithm = "direct", .collective = pairs(n, bytes, both_ways), .actors = n};
  s.layout[static_cast<std::size_t>(Buffer::input)] = Layout::near_equal(bytes, 1);
  s.layout[static_cast<std::size_t>(Buffer::output)] = Layout::near_equal(bytes, 1);
  s.n_steps = [n](Actor, Lane) { return n > 1 ? 1 : 0; };
  s.step = [half = n / 2, both_ways](Actor r, Lane, int, Step& out) {
    const Actor peer = r < half ? r + half : r - half;
    if (r < half || both_ways) out.send(peer, {Buffer::input, 0, 1});
    if (r >= half || both_ways) out.receive(peer, {Buffer::output, 0, 1});
  };
  return s;
}

}  // namespace ringsim
