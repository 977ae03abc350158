#include "algorithms/training/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/training/step_writer.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

class ServerWriter : StepWriter {
 public:
  ServerWriter(const TrainingStep& step, int ranks, const ServerExchange& exchange, WatchedWork* work)
      : StepWriter(step, work, std::max(1, exchange.servers)), exchange_(exchange) {
    out_.ranks = ranks;
    out_.actors = ranks + exchange.servers;
    for (std::size_t shard = 0; shard < exchange.push.size(); ++shard)
      ends_.push_back(add_stream(Program::StreamKind::communication));
    for (std::size_t shard = 0; shard < exchange.samples.size(); ++shard)
      samples_.push_back(add_variable(name_of("samples", static_cast<int>(shard))));
    add_host();
  }

  Program write() {
    write_calls();
    out_.role_of.assign(static_cast<std::size_t>(out_.actors), 0);
    write_worker(false);
    if (exchange_.servers == 0) {
      write_worker(true);
      out_.role_of[static_cast<std::size_t>(exchange_.master)] = 1;
    }
    for (int server = 0; server < exchange_.servers; ++server) {
      write_server(server);
      const Actor actor = out_.ranks + server;
      out_.role_of[static_cast<std::size_t>(actor)] = 1 + server;
    }
    return std::move(out_);
  }

 private:
  // Shard s has stream 1 + s: all shards travel at once.
  int n_shards() const { return static_cast<int>(exchange_.push.size()); }
  static Stream stream_of(int shard) { return 1 + shard; }
  std::string name_of(const char* what, int shard) const {
    return n_shards() == 1 ? what : fmt::format("{} shard {}", what, shard);
  }

  void write_calls() {
    for (int shard = 0; shard < n_shards(); ++shard) {
      Program::Members members;
      for (Actor rank = 0; rank < out_.ranks; ++rank) members.push_back(rank);
      if (exchange_.servers > 0) members.push_back(out_.ranks + shard);
      const auto add_call = [&](const char* what, const CheckedSchedule& schedule, int divisor) {
        out_.calls.push_back({.name = name_of(what, shard), .schedule = schedule, .members = members, .variables = {}});
        out_.calls.back().divisor = divisor;
      };
      const auto at = static_cast<std::size_t>(shard);
      add_call("push", exchange_.push[at], out_.ranks);
      add_call("pull", exchange_.pull[at], 1);
      if (!hands_out()) continue;
      add_call("scatter samples", exchange_.samples[at], 1);
      out_.calls.back().variables.push_back(samples_[at]);
    }
    each_piece([&](const Piece& piece) {
      out_.calls[static_cast<std::size_t>(call_of(piece.shard, push))].variables.push_back(piece.gradient);
      out_.calls[static_cast<std::size_t>(call_of(piece.shard, pull))].variables.push_back(piece.weights);
    });
  }
  // The calls of a shard, one after the other.
  static constexpr int push = 0, pull = 1, samples = 2;
  int call_of(int shard, int which) const { return (hands_out() ? 3 : 2) * shard + which; }
  Task& write_shard(int shard, int which) { return write_call(stream_of(shard), call_of(shard, which)); }

  bool hands_out() const { return !exchange_.samples.empty(); }
  // In the iteration: how many calls of a shard come before the update.
  int before_update() const { return hands_out() ? 2 : 1; }
  // Writes the calls that hand out the samples of shards `first` to `end` - 1, after the model is pulled. `is_server`:
  // this actor hands them out.
  void write_samples(int first, int end, bool is_server) {
    if (!hands_out()) return;
    for (int shard = first; shard < end; ++shard) {
      Task& scatter = write_shard(shard, samples);
      if (is_server) scatter.touches.push_back({As::make, samples_[static_cast<std::size_t>(shard)], -1});
    }
  }

  void write_worker(bool is_master) {
    write_samples(0, n_shards(), is_master);
    Task& first = write_forward_pass();
    for (int shard = 0; shard < n_shards(); ++shard) {
      if (!hands_out()) {
        first.after.push_back(step_before(stream_of(shard)));
        continue;
      }
      first.after.push_back({stream_of(shard), 1, 0});
      first.touches.push_back({As::read, samples_[static_cast<std::size_t>(shard)], -1});
    }
    write_backward_pass();
    for (int shard = 0; shard < n_shards(); ++shard) write_shard(shard, push).after.push_back({0, n_tasks(0), 0});
    if (is_master) write_update().after.push_back({stream_of(0), before_update(), 0});
    for (int shard = 0; shard < n_shards(); ++shard) {
      Task& weights = write_shard(shard, pull);
      if (is_master) weights.after.push_back({0, n_tasks(0), 0});
    }
    out_.roles.push_back(take_role());
  }

  void write_server(int shard) {
    write_samples(shard, shard + 1, true);
    Task& gradients = write_shard(shard, push);
    Task update{.name = "update",
                .time = server_update(step_, exchange_.servers),
                .call = -1,
                .after = {{stream_of(shard), before_update(), 0}},
                .touches = {}};
    each_piece([&](const Piece& piece) {
      if (piece.shard != shard) return;
      gradients.touches.push_back({As::clear, piece.gradient, -1});
      update.touches.push_back({As::apply, piece.gradient, piece.weights});
    });
    stream(0).push_back(std::move(update));
    write_shard(shard, pull).after.push_back({0, 1, 0});
    out_.roles.push_back(take_role());
  }

  const ServerExchange& exchange_;
  std::vector<int> samples_;  // [shard] a variable
};

}  // namespace

Picoseconds server_update(const TrainingStep& step, int servers) {
  const std::int64_t n = std::max(1, servers);
  return Picoseconds{step.update.count() / n + (step.update.count() % n > 0 ? 1 : 0)};
}

Program parameter_server_program(const TrainingStep& step, int ranks, const std::optional<ServerExchange>& exchange,
                                 WatchedWork* work) {
  ensure(step.buckets.empty(), "a parameter server has no buckets");
  if (!exchange) {
    ensure(ranks == 1, "several ranks exchange gradients");
    return training_program(step, work);
  }
  return ServerWriter(step, ranks, *exchange, work).write();
}

Picoseconds server_step_time(const TrainingStep& step, int servers, Picoseconds push, Picoseconds pull,
                             Picoseconds samples) {
  GpuClock clock{step};
  clock.gpu = samples;
  clock.forward();
  clock.backward();
  clock.gpu = add(clock.gpu, push);
  if (servers == 0)
    clock.run(step.update);
  else
    clock.gpu = add(clock.gpu, server_update(step, servers));
  return add(clock.gpu, pull);
}

}  // namespace ringsim
