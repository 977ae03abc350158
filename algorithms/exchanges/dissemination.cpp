#include "algorithms/exchanges/dissemination.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "sim/base/error.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

Schedule dissemination_barrier(int n) {
  if (constexpr int most = 16384; n > most)  // 8 bytes a token at each rank: 2 GiB
    throw InputError(
        "", fmt::format("dissemination: expected at most {} ranks, found {}", most, n),
        "its proof follows a token from every rank to every rank; binomial_tree needs only one token in total");
  Schedule s{.algorithm = "dissemination", .collective = barrier_of_tokens(n), .actors = n};
  s.layout[0] = Layout::near_equal(Bytes{0}, n);
  s.n_steps = [n](Actor, Lane) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n - 1))); };
  s.step = [n](Actor r, Lane, int k, Step& out) {
    const int distance = 1 << k;
    const int tokens = std::min(distance, n - distance);
    // Chunk j is the token of r - j: known are those below `distance`, and the sender's are as many ranks further on.
    out.send(wrap(r + distance, n), chunks(0, tokens));
    out.receive(wrap(r - distance, n), chunks(distance, tokens));
  };
  return s;
}

}  // namespace ringsim
