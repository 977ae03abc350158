// To whom rank 0 of a schedule sends: all that folding looks at.
#pragma once

#include <set>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Which ranks rank 0 sends to, and whether in at most one message per step.
struct Peers {
  std::set<Actor> to;
  bool one_a_step = true;
};
inline Peers peers_of(const Schedule& schedule) {
  Peers peers;
  for (int i = 0; i < schedule.n_steps(0, 0); ++i) {
    Step step;
    schedule.step(0, 0, i, step);
    int sends = 0;
    for (const Op& op : step.ops) {
      if (op.what != Do::send) continue;
      peers.to.insert(op.peer);
      ++sends;
    }
    peers.one_a_step = peers.one_a_step && sends < 2;
  }
  return peers;
}

}  // namespace ringsim
