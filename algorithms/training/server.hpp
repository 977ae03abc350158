// A synchronous parameter server: workers push gradients, the server updates the model, workers pull it.
#pragma once

#include <optional>
#include <vector>

#include "algorithms/training/ddp.hpp"

namespace ringsim {

/// How gradients reach the server and weights come back, once a step; each a reduce and a broadcast.
struct ServerExchange {
  /// [shard] its root is the server. Without separate servers one shard, of all ranks; with them those of the workers
  /// and, as the last rank, the shard's server, whose own contribution is zero.
  std::vector<CheckedSchedule> push, pull;
  /// [shard] a scatter: its server hands out this part of the samples before the forward pass. Empty: workers have
  /// them.
  std::vector<CheckedSchedule> samples = {};
  int servers = 0;   ///< separate ones, each with a shard of the model; 0: the master, which is a rank
  Actor master = 0;  ///< of no separate ones
};

/// Every worker has the whole model and a batch of its own. It runs both passes, pushes all gradients, and waits. When
/// the gradients of all workers are there, the server updates the model; then workers pull it. A server updates its
/// shard in its share of the time of the update. The master among the ranks trains too. With `samples` a step begins
/// when the server hands them out, which it does once all have pulled the model.
///
/// Sent per step: the gradients by each worker (but the master), the weights and the samples by the server to each of
/// them.
/// Without an exchange: one GPU.
/// Closed form: C + push + u + pull, with C of both passes, push = pull = (K-1) p/b + a with the master among K ranks
/// on a star, max(W ceil(p/S), p)/b + a with W workers and S servers, whose update takes u/S; samples take as long as a
/// pull of as many bytes as a worker's samples have. Source: Li et al.,
/// Scaling Distributed Machine Learning with the Parameter Server, OSDI 2014 (its sequential consistency model,
/// section 3.5).
Program parameter_server_program(const TrainingStep& step, int ranks, const std::optional<ServerExchange>& exchange,
                                 WatchedWork* work = nullptr);

/// How long a server's update takes: its share, rounded up. `servers` as in ServerExchange.
Picoseconds server_update(const TrainingStep& step, int servers);

/// That form with the host's launches; `push`, `pull`, `samples`: with the launch of each; {}: one GPU, no samples.
Picoseconds server_step_time(const TrainingStep& step, int servers, Picoseconds push, Picoseconds pull,
                             Picoseconds samples = {});

}  // namespace ringsim
