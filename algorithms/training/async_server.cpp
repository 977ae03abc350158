#include "algorithms/training/async_server.hpp"

#include <algorithm>
#include <climits>
#include <utility>

#include "algorithms/training/server.hpp"
#include "algorithms/training/step_writer.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

/// The same step, whose gradients travel as one. Without a host that launches its layers one by one they are one layer:
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

class AsyncWriter : StepWriter {
 public:
  /// `step`: without tensors.
  AsyncWriter(const TrainingStep& step, const AsyncServer& given, Picoseconds update)
      : StepWriter(step), given_(given), exchange_(async_exchange(given.model, given.servers, update)) {
    out_.ranks = given.workers;
    out_.actors = given.workers * (1 + given.servers);
    communication_ = add_stream(Program::StreamKind::communication);
    ends_.push_back(communication_);
    add_host();
    gradients_ = add_variable("the gradients");
  }

  Program write() {
    for (Actor worker = 0; worker < given_.workers; ++worker) {
      Program::Call call{.name = "exchange", .schedule = exchange_, .members = {worker}, .variables = {gradients_}};
      for (int server = 0; server < given_.servers; ++server)
        call.members.push_back(async_lane_of(given_, worker, server));
      out_.calls.push_back(std::move(call));
      write_worker(worker);
      write_call(communication_, "exchange", worker).time = Picoseconds{0};
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
    for (int i = 0; i < given_.every; ++i) {
      write_forward_pass();
      write_backward_pass();
      if (given_.every > 1) kernel("update", step_.update);
    }
    stream(0).back().touches.push_back({As::make, gradients_, -1});
    write_call(communication_, "exchange", worker).after.push_back({0, n_tasks(0), 0});
    out_.roles.push_back(take_role());
  }

  const AsyncServer& given_;
  CheckedSchedule exchange_;
  Stream communication_ = -1;
  int gradients_ = 0;
};

}  // namespace

CheckedSchedule async_exchange(Bytes model, int servers, Picoseconds update) {
  Schedule s{.algorithm = "asynchronous exchange", .collective = {.ranks = 1, .bytes = model}, .actors = 1 + servers};
  // One rank, whose gradients are summed and come back: with itself alone.
  s.collective.op = CollectiveOp::all_reduce;
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

Program async_server_program(const TrainingStep& step, const AsyncServer& given, const Stragglers& stragglers) {
  ensure(step.buckets.empty() && given.workers >= 1 && given.servers >= 1, "workers push to servers, without buckets");
  ensure(given.offsets.size() == static_cast<std::size_t>(given.workers), "every worker starts");
  ensure(given.updates >= 1 && given.updates < INT_MAX, "a run has as many updates as a program iterations");
  TrainingStep whole = as_one(step);
  whole.steps = static_cast<int>(given.updates);
  Program program = AsyncWriter(whole, given, server_update(step, given.servers)).write();
  // Workers are alike in all but their call.
  program.time = [stragglers, worker = program.roles.front(), offsets = given.offsets, every = given.every](
                     Actor actor, Stream stream, int task, int iteration) {
    if (actor >= static_cast<Actor>(offsets.size())) return Picoseconds{0};
    if (stream == 0 && task == 0) return iteration == 0 ? offsets[static_cast<std::size_t>(actor)] : Picoseconds{0};
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
  for (Actor worker = 0; worker < given.workers; ++worker) {
    const double own = exact(add(async_passes(step, given.every, stragglers, worker), step.launch)) + 2 * exact(a);
    rates.apart += per_second(own + 2 * x + u);
    // All W share a server's port, or all S shards a worker's; and all others may be before it in the queue.
    rates.low += per_second(own + 2 * std::max(workers / given.servers, 1.0) * x + workers * u);
  }
  rates.high = rates.apart;
  if (x > 0) rates.high = std::min(rates.high, given.servers * per_second(x));
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
