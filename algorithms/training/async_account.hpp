// What the run of an asynchronous server says: updates per time, how stale weights were, where workers spent their
// time.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "algorithms/training/async_server.hpp"
#include "sim/program/account.hpp"

namespace ringsim {

/// What one worker did between the first and the last update that count.
struct AsyncWorker {
  std::int64_t updates = 0;                 ///< of the whole model
  std::int64_t shard_updates = 0;           ///< of shards
  std::int64_t staleness = 0, stalest = 0;  ///< sum over those; the largest
  TimeSplit split;                          ///< adds up to the window
  Picoseconds shortest{0}, longest{0};      ///< of its steps that end in the window, the first step of a run apart
};

struct AsyncResult {
  Picoseconds window{0};                           ///< from the last update of the warm-up to the last of all
  std::int64_t updates = 0;                        ///< in the window, of the whole model
  std::vector<AsyncWorker> workers;                ///< [worker]
  std::vector<Picoseconds> busy;                   ///< [server] its unit, for updates that end in the window
  std::map<std::int64_t, std::int64_t> histogram;  ///< by staleness, how many updates of a shard

  double mean_staleness() const;
};

/// Listens to the run of an async_server_program() until enough updates are there.
///
/// An update of the model is done when its last shard is. Staleness of an update of a shard: how many updates by others
/// the shard has seen since the version with which the gradient was computed. A version is read when the send of the
/// weights to the worker starts, which is when the worker's own update ends: its lane does that next.
///
/// The law of staleness: each update by another falls into exactly one interval between two updates of a worker. So the
/// sum of all stalenesses is (K-1) times the updates but for the ends of the window: the mean is K - 1, and is off by
/// at most 2 sum_w (the longest such interval of w, in updates) / updates. Of worker w it is (X - X_w)/X_w.
class AsyncAccount {
 public:
  /// Both must outlive it. `warmup`: how many updates come before the window; less than `given.updates`.
  AsyncAccount(const LoweredProgram& lowered, const AsyncServer& given, std::int64_t warmup);

  /// Give them to RunOptions.
  void on_compute(const ComputeEvent& event);
  void on_message(const Span& message);
  bool enough() const { return is_over_; }

  /// The share of updates that are there, 0 to 1.
  double progress() const;
  /// When the run is over. Requires enough().
  const AsyncResult& result() const { return result_; }

 private:
  struct Shard {
    std::int64_t version = 0;
    std::vector<std::int64_t> read;  // [worker] the version that it has
  };
  struct Worker {
    SimTime since{}, stepped{};    // the split leads to `since`; its last update was done then
    bool computing = false;        // a kernel runs
    int hosting = 0, on_wire = 0;  // launches of the host; shards that are on their way, or about to leave
    bool exchanging = false;
    bool serving = false;  // its GPU updates the model for another worker
    int shards = 0;        // done in its current update
    std::int64_t done = 0;
  };

  void pass(Actor actor, SimTime now);
  void worker_event(const ComputeEvent& event, const StepPlace& place);
  void shard_updated(Actor worker, int server, SimTime now);
  void updated(Actor worker, SimTime now);
  void begin_window(SimTime now);

  const LoweredProgram& lowered_;
  const AsyncServer& given_;
  std::int64_t warmup_, updates_ = 0;
  SimTime begin_{};
  bool counts_, is_over_ = false;
  std::vector<Worker> workers_;
  std::vector<Shard> shards_;
  std::vector<SimTime> began_;  // [lane of a server] its update
  AsyncResult result_;
};

}  // namespace ringsim
