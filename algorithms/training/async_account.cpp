#include "algorithms/training/async_account.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace ringsim {

double AsyncResult::mean_staleness() const {
  std::int64_t sum = 0, n = 0;
  for (const auto& [staleness, count] : histogram) {
    sum += staleness * count;
    n += count;
  }
  return n == 0 ? 0 : static_cast<double>(sum) / static_cast<double>(n);
}

AsyncAccount::AsyncAccount(const LoweredProgram& lowered, const AsyncServer& given, std::int64_t warmup)
    : lowered_(lowered),
      given_(given),
      warmup_(warmup),
      counts_(warmup == 0),
      workers_(static_cast<std::size_t>(given.workers)),
      shards_(static_cast<std::size_t>(given.servers)),
      began_(static_cast<std::size_t>(given.workers) * static_cast<std::size_t>(given.servers)) {
  ensure(warmup >= 0 && warmup < given.updates, "some updates come after the warm-up");
  for (Shard& shard : shards_) shard.read.resize(workers_.size());
  result_.workers.resize(workers_.size());
  result_.busy.resize(shards_.size());
}

double AsyncAccount::progress() const { return static_cast<double>(updates_) / static_cast<double>(given_.updates); }

// What the worker has been doing since its last event.
void AsyncAccount::pass(Actor actor, SimTime now) {
  Worker& it = workers_[static_cast<std::size_t>(actor)];
  TimeSplit& split = result_.workers[static_cast<std::size_t>(actor)].split;
  const Picoseconds time = now - it.since;
  it.since = now;
  if (it.computing)
    split.compute += time;
  else if (it.exchanging)
    (it.on_wire > 0 ? split.exposed_communication : split.waiting_for_others) += time;
  else if (it.serving)
    split.waiting_for_others += time;
  else
    (it.hosting > 0 ? split.waiting_for_host : split.idle) += time;
}

void AsyncAccount::on_compute(const ComputeEvent& event) {
  if (is_over_) return;
  const StepPlace place = lowered_.place_of(event.actor, event.lane, event.step);
  if (event.actor < given_.workers) return worker_event(event, place);
  const auto lane = static_cast<std::size_t>(event.actor - given_.workers);
  if (place.step != async_update_step) return;
  if (given_.master >= 0) {
    pass(given_.master, event.when);
    workers_[static_cast<std::size_t>(given_.master)].serving = event.begins;
  }
  if (event.begins)
    began_[lane] = event.when;
  else
    shard_updated(static_cast<Actor>(lane / shards_.size()), static_cast<int>(lane % shards_.size()), event.when);
}

void AsyncAccount::worker_event(const ComputeEvent& event, const StepPlace& place) {
  Worker& it = workers_[static_cast<std::size_t>(event.actor)];
  pass(event.actor, event.when);
  if (place.stream == 1) {
    if (place.first && event.begins) {
      it.exchanging = true;
      it.on_wire = given_.servers;
    }
    if (place.last && !event.begins) it.exchanging = false;
  } else if (place.stream == 0) {
    it.computing = event.begins && place.task > 0;  // the first task is the wait for its start
  } else {
    it.hosting += event.begins ? 1 : -1;
  }
}

void AsyncAccount::on_message(const Span& message) {
  if (is_over_) return;
  const Actor worker = std::min(message.from, message.to);  // the other end is a server's lane
  pass(worker, message.finish);
  --workers_[static_cast<std::size_t>(worker)].on_wire;
}

void AsyncAccount::shard_updated(Actor actor, int server, SimTime now) {
  Worker& it = workers_[static_cast<std::size_t>(actor)];
  AsyncWorker& worker = result_.workers[static_cast<std::size_t>(actor)];
  Shard& shard = shards_[static_cast<std::size_t>(server)];
  const std::int64_t staleness = shard.version - shard.read[static_cast<std::size_t>(actor)];
  shard.read[static_cast<std::size_t>(actor)] = ++shard.version;
  pass(actor, now);
  ++it.on_wire;
  if (counts_) {
    ++result_.histogram[staleness];
    ++worker.shard_updates;
    worker.staleness += staleness;
    worker.stalest = std::max(worker.stalest, staleness);
    const auto lane = static_cast<std::size_t>(actor) * shards_.size() + static_cast<std::size_t>(server);
    result_.busy[static_cast<std::size_t>(server)] += now - std::max(began_[lane], begin_);
  }
  if (++it.shards == given_.servers) updated(actor, now);
}

void AsyncAccount::updated(Actor actor, SimTime now) {
  Worker& it = workers_[static_cast<std::size_t>(actor)];
  AsyncWorker& worker = result_.workers[static_cast<std::size_t>(actor)];
  it.shards = 0;
  const Picoseconds step = now - it.stepped;
  it.stepped = now;
  if (counts_) {
    ++worker.updates;
    if (it.done > 0) {
      worker.shortest = worker.longest == Picoseconds{0} ? step : std::min(worker.shortest, step);
      worker.longest = std::max(worker.longest, step);
    }
  }
  ++it.done;
  ++updates_;
  if (updates_ == warmup_) begin_window(now);
  if (updates_ < given_.updates) return;
  for (Actor other = 0; other < given_.workers; ++other) pass(other, now);
  result_.window = now - begin_;
  result_.updates = updates_ - warmup_;
  is_over_ = true;
}

void AsyncAccount::begin_window(SimTime now) {
  begin_ = now;
  counts_ = true;
  for (Actor actor = 0; actor < given_.workers; ++actor) {
    pass(actor, now);
    result_.workers[static_cast<std::size_t>(actor)].split = {};
  }
}

}  // namespace ringsim
