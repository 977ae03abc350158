#include "algorithms/all_to_all.hpp"

#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

Region block(Buffer buffer, int j) { return {buffer, static_cast<std::uint32_t>(j), 1}; }

/// What rank r does with its blocks number j: sends its own, receives the other's.
void exchange(int n, Actor r, int j, Step& out) {
  out.send(wrap(r + j, n), block(Buffer::input, j));
  out.receive(wrap(r - j, n), block(Buffer::output, j));
}

Schedule without_steps(const char* algorithm, int n, Bytes bytes) {
  Schedule s{.algorithm = algorithm, .collective = all_to_all(n, bytes), .actors = n};
  s.layout[static_cast<std::size_t>(Buffer::input)] = Layout::near_equal(bytes, n);
  s.layout[static_cast<std::size_t>(Buffer::output)] = Layout::near_equal(bytes, n);
  return s;
}

}  // namespace

Schedule pairwise_all_to_all(int n, Bytes bytes) {
  Schedule s = without_steps("pairwise", n, bytes);
  s.n_steps = [n](Actor, Lane) { return n; };
  s.step = [n](Actor r, Lane, int i, Step& out) {
    if (i == 0)
      out.copy(block(Buffer::input, 0), block(Buffer::output, 0));
    else
      exchange(n, r, i, out);
  };
  return s;
}

Schedule direct_all_to_all(int n, Bytes bytes) {
  Schedule s = without_steps("direct", n, bytes);
  s.n_steps = [](Actor, Lane) { return 1; };
  s.step = [n](Actor r, Lane, int, Step& out) {
    out.copy(block(Buffer::input, 0), block(Buffer::output, 0));
    for (int j = 1; j < n; ++j) exchange(n, r, j, out);
  };
  return s;
}

}  // namespace ringsim
