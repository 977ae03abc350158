// An asynchronous parameter server: no worker waits for another.
#pragma once

#include <cstdint>
#include <vector>

#include "algorithms/training/ddp.hpp"
#include "algorithms/training/stragglers.hpp"

namespace ringsim {

/// Workers, servers, and how long they train.
struct AsyncServer {
  int workers = 1;
  int servers = 1;                   ///< each has a shard of the model, and a unit that updates it
  std::int64_t updates = 1;          ///< of the whole model, by all workers together: no worker makes more
  Bytes model;                       ///< gradients, and weights
  std::vector<Picoseconds> offsets;  ///< [worker] before its first step
  int every = 1;                     ///< steps between two exchanges; of several each updates the worker's own weights
  Actor master = -1;  ///< the worker that is also the server; -1: servers are separate. With a master `servers` is 1
};

/// The actors of the program: the workers, then for each worker and server the server's lane for that worker. All
/// lanes of a server sit on its node.
inline Actor async_lane_of(const AsyncServer& given, Actor worker, int server) {
  return given.workers + worker * given.servers + server;
}

/// The exchange of one worker: it sends the gradients of all shards at once. A server adds those that have come in,
/// updates its shard (one update at a time on the server's unit, first come first served), and sends the new weights of
/// the shard back. Actors: the worker, then a lane of each server. `update`: of a shard.
///
/// What is proved: what the worker gets back has its own gradient in it, each shard once.
CheckedSchedule async_exchange(Bytes model, int servers, Picoseconds update);
/// The step of a server's lane in that schedule that updates the shard. When it ends, the weights begin to leave.
inline constexpr int async_update_step = 2;

/// Each worker: wait for its offset (once), both passes, exchange; again, without end: the run is ended when enough
/// updates are there (RunOptions::enough). No worker waits for another, but updates wait for each other at a server's
/// unit, and messages share its port. A worker computes with the weights that it got, to which others have added by the
/// time its gradients arrive: they are stale.
///
/// With `every` H > 1 a worker trains H steps by itself, each with an update of its own weights (step.update), and then
/// exchanges weights: it sends what they have changed by, as many bytes as gradients, the server averages it in (in the
/// time of an update), and sends its weights back. Weights averaged at a master without waiting for all: Dean et al.
/// (n_push = n_fetch = H); with an elastic force Zhang, Choromanska and LeCun, NIPS 2015 (EASGD). An update is then an
/// exchange.
///
/// With a master among the workers, its GPU does both: it runs one kernel at a time, those of its passes and the
/// updates, first come first served. So an update waits until the layer is done that the master computes, and the
/// master for updates. If updates take no time, neither waits.
///
/// Lanes must not choose (the proof relies on it), so each worker has its own lane on each server; the run decides
/// which update comes first.
///
/// Sent per update: the gradients to the servers, the weights back.
/// Closed form if workers never meet, S = 1: C + 2(p/b + a) + u per step of a worker, so X = sum_w 1/(C_w + 2(p/b +
/// a) + u) updates per time. Always X <= that sum, X <= b/p, X <= 1/u (up to W updates), X >= sum_w 1/(C_w + 2 W p/b +
/// W u + 2a). Of a master: C + u, because it sends itself nothing over a link. Source: Dean et al., Large Scale
/// Distributed Deep Networks, NIPS 2012 (Downpour SGD).
Program async_server_program(const TrainingStep& step, const AsyncServer& given, const Stragglers& stragglers,
                             WatchedWork* work = nullptr);

/// Between which the updates per second lie, whatever the offsets, the jitter apart; of W updates in the window one
/// more or less. `once`: p/b; `a`: latency of a path.
struct UpdateRates {
  double low = 0;
  double high = 0;   ///< least of: `apart`, S b/p, S/u
  double apart = 0;  ///< if no worker ever meets another
};
UpdateRates async_rates(const TrainingStep& step, const AsyncServer& given, const Stragglers& stragglers,
                        Picoseconds once, Picoseconds a);

/// C_w: what worker w computes between two exchanges, without jitter, as a rank that is `slow` for good does: both
/// passes; of several steps each with its update.
Picoseconds async_passes(const TrainingStep& step, int every, const Stragglers& stragglers, Actor worker);

}  // namespace ringsim
