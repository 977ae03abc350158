#include "algorithms/direct.hpp"

#include "sim/schedule/collective.hpp"

namespace ringsim {

namespace {

/// A schedule of `steps` steps for each rank over `data` of that many chunks; one rank has nothing to do.
Schedule direct(Collective collective, int chunks, int steps) {
  const int n = collective.ranks;
  Schedule s{.algorithm = "direct", .collective = std::move(collective), .actors = n};
  s.layout[0] = Layout::near_equal(s.collective.bytes, chunks);
  s.n_steps = [n, steps](Actor, Lane) { return n > 1 ? steps : 0; };
  return s;
}

// Rank r sends everybody its block, ...
void scatter_step(int n, Actor r, Step& out) {
  for (int j = 1; j < n; ++j) {
    out.send(wrap(r + j, n), chunk(wrap(r + j, n)));
    out.receive_add(wrap(r - j, n), chunk(r));
  }
}
// ... or its own block to everybody.
void gather_step(int n, Actor r, Step& out) {
  for (int j = 1; j < n; ++j) {
    out.send(wrap(r + j, n), chunk(r));
    out.receive(wrap(r - j, n), chunk(wrap(r - j, n)));
  }
}

constexpr Region input{Buffer::input, 0, 1}, output{Buffer::output, 0, 1}, copied{Buffer::scratch, 0, 1};

}  // namespace

Schedule direct_pairs(int n, Bytes bytes, bool both_ways) {
  Schedule s{.algorithm = "direct", .collective = pairs(n, bytes, both_ways), .actors = n};
  s.layout[static_cast<std::size_t>(Buffer::input)] = Layout::near_equal(bytes, 1);
  s.layout[static_cast<std::size_t>(Buffer::output)] = Layout::near_equal(bytes, 1);
  s.n_steps = [n](Actor, Lane) { return n > 1 ? 1 : 0; };
  s.step = [half = n / 2, both_ways](Actor r, Lane, int, Step& out) {
    const Actor peer = r < half ? r + half : r - half;
    if (r < half || both_ways) out.send(peer, input);
    if (r >= half || both_ways) out.receive(peer, output);
  };
  return s;
}

Schedule direct_broadcast(int n, Bytes bytes, Actor root) {
  Schedule s = direct(broadcast(n, bytes, root), 1, 1);
  s.step = [n, root](Actor r, Lane, int, Step& out) {
    if (r != root) return out.receive(root, chunk(0));
    for (int j = 1; j < n; ++j) out.send(wrap(root + j, n), chunk(0));
  };
  return s;
}

Schedule direct_reduce(int n, Bytes bytes, Actor root) {
  Schedule s = direct(reduce(n, bytes, root), 1, 1);
  s.step = [n, root](Actor r, Lane, int, Step& out) {
    if (r != root) return out.send(root, chunk(0));
    for (int j = 1; j < n; ++j) out.receive_add(wrap(root + j, n), chunk(0));
  };
  return s;
}

Schedule direct_scatter(int n, Bytes bytes, Actor root) {
  Schedule s = direct(scatter(n, bytes, root), n, 1);
  s.step = [n, root](Actor r, Lane, int, Step& out) {  // blocks are numbered from the root
    if (r != root) return out.receive(root, chunk(wrap(r - root, n)));
    for (int j = 1; j < n; ++j) out.send(wrap(root + j, n), chunk(j));
  };
  return s;
}

Schedule direct_gather(int n, Bytes bytes, Actor root) {
  Schedule s = direct(gather(n, bytes, root), n, 1);
  s.step = [n, root](Actor r, Lane, int, Step& out) {
    if (r != root) return out.send(root, chunk(wrap(r - root, n)));
    for (int j = 1; j < n; ++j) out.receive(wrap(root + j, n), chunk(j));
  };
  return s;
}

Schedule direct_all_gather(int n, Bytes bytes) {
  Schedule s = direct(all_gather(n, bytes), n, 1);
  s.step = [n](Actor r, Lane, int, Step& out) { gather_step(n, r, out); };
  return s;
}

Schedule direct_reduce_scatter(int n, Bytes bytes) {
  Schedule s = direct(reduce_scatter(n, bytes), n, 1);
  s.step = [n](Actor r, Lane, int, Step& out) { scatter_step(n, r, out); };
  return s;
}

Schedule one_shot_all_reduce(int n, Bytes bytes) {
  Schedule s = direct(all_reduce(n, bytes), 1, 2);
  s.phases = phases_in_turn({{"copy", 1}, {"exchange", 1}});
  s.layout[static_cast<std::size_t>(Buffer::scratch)] = Layout::near_equal(bytes, 1);
  s.step = [n](Actor r, Lane, int i, Step& out) {
    if (i == 0) return out.copy(chunk(0), copied);  // what is sent must not change while others are added to it
    for (int j = 1; j < n; ++j) {
      out.send(wrap(r + j, n), copied);
      out.receive_add(wrap(r - j, n), chunk(0));
    }
  };
  return s;
}

Schedule two_shot_all_reduce(int n, Bytes bytes) {
  Schedule s = direct(all_reduce(n, bytes), n, 2);
  s.phases = phases_in_turn({{"reduce_scatter", 1}, {"all_gather", 1}});
  s.step = [n](Actor r, Lane, int i, Step& out) { i == 0 ? scatter_step(n, r, out) : gather_step(n, r, out); };
  return s;
}

Schedule direct_send_recv(int n, Bytes bytes) {
  Schedule s{.algorithm = "direct", .collective = send_recv(n, bytes), .actors = n};
  s.layout[static_cast<std::size_t>(Buffer::input)] = Layout::near_equal(bytes, 1);
  s.layout[static_cast<std::size_t>(Buffer::output)] = Layout::near_equal(bytes, 1);
  s.n_steps = [](Actor, Lane) { return 1; };
  s.step = [n](Actor r, Lane, int, Step& out) {
    if (n == 1) return out.copy(input, output);
    out.send(wrap(r + 1, n), input);
    out.receive(wrap(r - 1, n), output);
  };
  return s;
}

}  // namespace ringsim
