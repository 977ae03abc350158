#include "algorithms/training/async_server.hpp"

#include <algorithm>
#include <climits>
#include <utility>

#include "algorithms/training/server.hpp"
#include "algorithms/training/step_writer.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// The step with gradients that travel as one. If no host launches its layers one by one they become one layer, because
/// a run has thousands of workers.
TrainingStep as_one(TrainingStep step) {
  if (step.host_launch.count() == 0) {
    LayerCost all{.name = "all layers", .tensors = {}};
    for (const LayerCost& layer : step.layers) {
      all.forward = add(all.forward, layer.forward);
      all.backward = add(all.backward, layer.backward);
    }
    step.layers = {std::move(all)};
  }
  for (LayerCost& layer : step.layers) layer.tensors.clear();
  return step;
}

/// Updates keep the GPU of the master busy, which trains with it as well.
bool serves_and_trains(const TrainingStep& step, const AsyncServer& given) {
  return given.master >= 0 && step.update.count() > 0;
}

class AsyncWriter : StepWriter {
 public:
  /// `step`: without tensors. `by_layer`: the same, layer by layer.
  AsyncWriter(const TrainingStep& step, const TrainingStep& by_layer, const AsyncServer& given, Picoseconds update,
              WatchedWork* work)
      : StepWriter(step, work),
        by_layer_(by_layer),
        given_(given),
        exchange_(async_exchange(given.model, given.servers, update)) {
    out_.ranks = given.workers;
    out_.actors = given.workers * (1 + given.servers);
    communication_ = add_stream(Program::StreamKind::communication);
    ends_.push_back(communication_);
    add_host();
    gradients_ = add_variable("the gradients");
  }

  Program write() {
    for (Actor worker = 0; worker < given_.workers; ++worker) {
      done(work_);
      Program::Call call{.name = "exchange", .schedule = exchange_, .members = {worker}, .variables = {gradients_}};
      for (int server = 0; server < given_.servers; ++server)
        call.members.push_back(async_lane_of(given_, worker, server));
      out_.calls.push_back(std::move(call));
      write_worker(worker);
      write_call(communication_, worker).time = Picoseconds{0};
      out_.roles.push_back(take_role());
    }
    for (Actor worker = 0; worker < given_.workers; ++worker) out_.role_of.push_back(2 * worker);
    for (Actor worker = 0; worker < given_.workers; ++worker)
      for (int server = 0; server < given_.servers; ++server) out_.role_of.push_back(2 * worker + 1);
    return std::move(out_);
  }

 private:
  void write_worker(Actor worker) {
    Task start{.name = "start", .time = Picoseconds{0}, .call = -1, .after = {}, .touches = {}};
    start.after.push_back(step_before(communication_));
    stream(0).push_back(std::move(start));
    const bool serves = worker == given_.master && serves_and_trains(step_, given_);
    for (int i = 0; i < given_.every; ++i) {
      next_step();
      write_passes(serves ? by_layer_ : step_);
      if (given_.every > 1) kernel("update", step_.update);
    }
    if (serves)
      for (std::size_t task = 1; task < stream(0).size(); ++task) stream(0)[task].unit = 0;  // the server's
    stream(0).back().touches.push_back({As::make, gradients_, -1});
    write_call(communication_, worker).after.push_back({0, n_tasks(0), 0});
    out_.roles.push_back(take_role());
  }

  void write_passes(const TrainingStep& step) {
    for (const LayerCost& layer : step.layers) kernel("forward " + layer.name, layer.forward);
    for (std::size_t l = step.layers.size(); l-- > 0;)
      kernel("backward " + step.layers[l].name, step.layers[l].backward);
  }

  const TrainingStep& by_layer_;
  const AsyncServer& given_;
  CheckedSchedule exchange_;
  Stream communication_ = -1;
  int gradients_ = 0;
};

/// The master's longest kernel, without jitter: the update of another worker may wait for it.
Picoseconds longest_kernel(const TrainingStep& step, const AsyncServer& given, const Stragglers& stragglers) {
  const Stragglers slow{.slow = stragglers.slow, .jitter = {}};
  Picoseconds longest = given.every > 1 ? step.update : Picoseconds{0};
  for (const LayerCost& layer : step.layers) longest = std::max({longest, layer.forward, layer.backward});
  return slow.time(longest, given.master, 0, false);
}

}  // namespace

CheckedSchedule async_exchange(Bytes model, int servers, Picoseconds update) {
  Schedule s;
  s.algorithm = "asynchronous exchange";
  s.actors = 1 + servers;
  // One rank, whose gradients are summed and come back: with itself alone.
  s.collective.op = CollectiveOp::all_reduce;
  s.collective.ranks = 1;
  s.collective.bytes = model;
  s.collective.before = [](Actor, Buffer buffer, std::uint32_t shard) {
    return buffer == Buffer::input ? Content{Content::Who::one, 0, shard} : Content{};
  };
  s.collective.after = [](Actor, Buffer buffer, std::uint32_t shard) {
    return buffer == Buffer::output ? Content{Content::Who::one, 0, shard} : Content{};
  };
  for (const Buffer buffer : {Buffer::input, Buffer::output, Buffer::data, Buffer::scratch})
    s.layout[static_cast<std::size_t>(buffer)] = Layout::near_equal(model, servers);
  s.n_steps = [](Actor actor, Lane) { return actor == 0 ? 1 : async_update_step + 2; };
  s.step = [servers, update](Actor actor, Lane, int i, Step& out) {
    const auto part = [](Buffer buffer, int shard) { return Region{buffer, static_cast<std::uint32_t>(shard), 1}; };
    if (actor == 0) {
      for (int shard = 0; shard < servers; ++shard) {
        out.send(1 + shard, part(Buffer::input, shard));
        out.receive(1 + shard, part(Buffer::output, shard));
      }
      return;
    }
    const int shard = actor - 1;
    if (i == 0) return out.receive(0, part(Buffer::scratch, shard));
    if (i == 1) return out.add(part(Buffer::scratch, shard), part(Buffer::data, shard));
    if (i == async_update_step) return out.compute(update, shard);
    out.send(0, part(Buffer::data, shard));
  };
  return check(std::move(s));
}

Program async_server_program(const TrainingStep& step, const AsyncServer& given, const Stragglers& stragglers,
                             WatchedWork* work) {
  ensure(step.buckets.empty() && given.workers >= 1 && given.servers >= 1, "workers push to servers, without buckets");
  ensure(given.offsets.size() == static_cast<std::size_t>(given.workers), "every worker starts");
  ensure(given.updates >= 1 && given.updates < INT_MAX, "a run has as many updates as a program iterations");
  ensure(given.master < given.workers && (given.master < 0 || given.servers == 1),
         "a master is a worker and the server");
  TrainingStep whole = as_one(step);
  whole.steps = static_cast<int>(given.updates);
  Program program = AsyncWriter(whole, step, given, server_update(step, given.servers), work).write();
  // Workers are alike in all but their call, but for a master.
  const Program::Role& other = program.role(given.master == 0 && given.workers > 1 ? 1 : 0);
  program.time = [stragglers, other, own = program.role(std::max(given.master, 0)), master = given.master,
                  offsets = given.offsets, every = given.every](Actor actor, Stream stream, int task, int iteration) {
    if (actor >= static_cast<Actor>(offsets.size())) return Picoseconds{0};
    if (stream == 0 && task == 0) return iteration == 0 ? offsets[static_cast<std::size_t>(actor)] : Picoseconds{0};
    const Program::Role& worker = actor == master ? own : other;
    const Picoseconds time = worker.streams[static_cast<std::size_t>(stream)][static_cast<std::size_t>(task)].time;
    if (stream != 0) return time;
    const int per_step = (static_cast<int>(worker.streams[0].size()) - 1) / every;  // task 0 is the start
    const std::int64_t number = static_cast<std::int64_t>(iteration) * every + (task - 1) / per_step;
    return stragglers.time(time, actor, number, (task - 1) % per_step == 0);
  };
  return program;
}

UpdateRates async_rates(const TrainingStep& step, const AsyncServer& given, const Stragglers& stragglers,
                        Picoseconds once, Picoseconds a) {
  const auto per_second = [](double picoseconds) { return static_cast<double>(picoseconds_per_second) / picoseconds; };
  const auto exact = [](Picoseconds time) { return static_cast<double>(time.count()); };
  const double x = exact(once), u = exact(server_update(step, given.servers)), workers = given.workers;
  UpdateRates rates;
  double of_master = 0;
  for (Actor worker = 0; worker < given.workers; ++worker) {
    const double own = exact(add(async_passes(step, given.every, stragglers, worker), step.launch));
    if (worker == given.master) {  // each of its kernels may wait for an update of each other worker
      const double kernels = static_cast<double>(given.every) * (2 * static_cast<double>(step.layers.size()) + 1);
      of_master = per_second(own + u);
      rates.apart += of_master;
      rates.low += per_second(own + workers * u + kernels * (workers - 1) * u);
      continue;
    }
    rates.apart += per_second(own + 2 * exact(a) + 2 * x + u);
    // All W share a server's port, or all S shards a worker's; and all others may be before it in the queue.
    const double others = (given.master < 0 ? workers : workers - 1) / given.servers;
    rates.low += per_second(own + 2 * exact(a) + 2 * std::max(others, 1.0) * x + workers * u +
                            (serves_and_trains(step, given) ? exact(longest_kernel(step, given, stragglers)) : 0));
  }
  rates.high = rates.apart;
  if (x > 0) rates.high = std::min(rates.high, of_master + given.servers * per_second(x));
  if (u > 0) rates.high = std::min(rates.high, per_second(u));
  return rates;
}

Picoseconds async_passes(const TrainingStep& step, int every, const Stragglers& stragglers, Actor worker) {
  const Stragglers slow{.slow = stragglers.slow, .jitter = {}};
  Picoseconds end{0};
  for (int i = 0; i < every; ++i) {
    end = passes_end(as_one(step), slow, worker, i, end);
    if (every > 1) end = add(end, slow.time(step.update, worker, i, false));
  }
  return end;
}

}  // namespace ringsim
