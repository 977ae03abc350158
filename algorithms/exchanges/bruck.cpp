#include "algorithms/exchanges/bruck.hpp"

#include <algorithm>
#include <vector>

#include "algorithms/exchanges/powers.hpp"
#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

// Calls visit(region) for the run of `count` chunks from `first` on, in two if it goes over the end.
template <class Visit>
void round_the_end(int first, int count, int n, Visit visit) {
  const int straight = std::min(count, n - first);
  visit(chunks(first, straight));
  if (straight < count) visit(chunks(0, count - straight));
}

// Calls visit(first, count) for each run of numbers below n that have bit k set.
template <class Visit>
void runs_with_bit(int k, int n, Visit visit) {
  const int run = 1 << k;
  for (int first = run; first < n; first += 2 * run) visit(first, std::min(run, n - first));
}

Region run_of(Buffer buffer, int first, int count) {
  return {buffer, static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)};
}

}  // namespace

Schedule bruck_all_gather(int n, Bytes bytes) {
  Schedule s{.algorithm = "bruck", .collective = all_gather(n, bytes), .actors = n};
  s.layout[static_cast<std::size_t>(Buffer::data)] = Layout::near_equal(bytes, n);
  s.n_steps = [steps = ceil_log2(n)](Actor, Lane) { return steps; };
  s.step = [n](Actor r, Lane, int k, Step& out) {
    const int distance = 1 << k, count = std::min(distance, n - distance);
    const Actor to = wrap(r - distance, n), from = wrap(r + distance, n);
    round_the_end(r, count, n, [&](Region run) { out.send(to, run); });
    round_the_end(from, count, n, [&](Region run) { out.receive(from, run); });
  };
  return s;
}

Schedule bruck_all_to_all(int n, Bytes bytes) {
  Schedule s{.algorithm = "bruck", .collective = all_to_all(n, bytes), .actors = n};
  const Layout blocks = Layout::near_equal(bytes, n);
  s.layout[static_cast<std::size_t>(Buffer::input)] = s.layout[static_cast<std::size_t>(Buffer::output)] = blocks;
  // Scratch: block j rests in chunk j, and comes in in chunk n + j.
  std::vector<Bytes> sizes;
  for (int j = 0; j < 2 * n; ++j) sizes.push_back(blocks.size(static_cast<std::uint32_t>(j % n), 1));
  s.layout[static_cast<std::size_t>(Buffer::scratch)] = Layout::of_sizes(sizes);
  const int rounds = ceil_log2(n);
  s.n_steps = [n, rounds](Actor, Lane) { return n == 1 ? 1 : 2 * rounds + 2; };
  s.phases = {{"copy in", "exchange", "copy out"}, [rounds](Actor, Lane, int i) {
                if (i == 0) return PhaseStep{0, 0};
                return i > 2 * rounds ? PhaseStep{2, 0} : PhaseStep{1, (i - 1) / 2};
              }};
  s.step = [n, rounds](Actor r, Lane, int i, Step& out) {
    if (i == 0) {
      out.copy(run_of(Buffer::input, 0, 1), run_of(Buffer::output, 0, 1));
      if (n > 1) out.copy(run_of(Buffer::input, 1, n - 1), run_of(Buffer::scratch, 1, n - 1));
      return;
    }
    if (i == 2 * rounds + 1) return out.copy(run_of(Buffer::scratch, 1, n - 1), run_of(Buffer::output, 1, n - 1));
    const int k = (i - 1) / 2;
    runs_with_bit(k, n, [&](int first, int count) {
      const Region resting = run_of(Buffer::scratch, first, count), coming = run_of(Buffer::scratch, n + first, count);
      if (i % 2 == 0) return out.copy(coming, resting);
      out.send(wrap(r + (1 << k), n), resting);
      out.receive(wrap(r - (1 << k), n), coming);
    });
  };
  return s;
}

}  // namespace ringsim
