#include "algorithms/parameter_server.hpp"

#include "sim/schedule/collective.hpp"

namespace ringsim {

Schedule parameter_server(int n, Bytes bytes, Actor root) {
  Schedule s{.algorithm = "parameter_server", .collective = all_reduce(n, bytes), .actors = n};
  s.layout[0] = Layout::near_equal(bytes, 1);
  s.n_steps = [n](Actor, Lane) { return n > 1 ? 2 : 0; };
  s.phases = phases_in_turn({{"push", 1}, {"pull", 1}});
  s.step = [n, root](Actor r, Lane, int i, Step& out) {
    if (r != root) {
      if (i == 0)
        out.send(root, chunk(0));
      else
        out.receive(root, chunk(0));
      return;
    }
    // All in one step, so that none waits for another.
    for (Actor worker = 0; worker < n; ++worker) {
      if (worker == root) continue;
      if (i == 0)
        out.receive_add(worker, chunk(0));
      else
        out.send(worker, chunk(0));
    }
  };
  return s;
}

Schedule sharded_parameter_server(int n, Bytes bytes, int servers) {
  Schedule s{.algorithm = "parameter_server", .collective = all_reduce(n, bytes), .actors = n + servers};
  s.layout[0] = Layout::near_equal(bytes, servers);
  s.n_steps = [n](Actor, Lane) { return n > 1 ? 2 : 0; };
  s.phases = phases_in_turn({{"push", 1}, {"pull", 1}});
  s.step = [n, servers](Actor a, Lane, int i, Step& out) {
    if (a < n) {
      for (int server = 0; server < servers; ++server) {
        if (i == 0)
          out.send(n + server, chunk(server));
        else
          out.receive(n + server, chunk(server));
      }
      return;
    }
    for (Actor worker = 0; worker < n; ++worker) {
      if (i == 0)
        out.receive_add(worker, chunk(a - n));
      else
        out.send(worker, chunk(a - n));
    }
  };
  return s;
}

}  // namespace ringsim
