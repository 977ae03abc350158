#include "algorithms/training/server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "algorithms/training/step_writer.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

class ServerWriter : StepWriter {
 public:
  ServerWriter(const TrainingStep& step, int ranks, const ServerExchange& exchange)
      : StepWriter(step, std::max(1, exchange.servers)), exchange_(exchange) {
    out_.ranks = ranks;
    out_.actors = ranks + exchange.servers;
    for (std::size_t shard = 0; shard < exchange.push.size(); ++shard)
      ends_.push_back(add_stream(Program::StreamKind::communication));
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
      std::vector<Actor> members(static_cast<std::size_t>(out_.ranks));
      std::iota(members.begin(), members.end(), 0);
      if (exchange_.servers > 0) members.push_back(out_.ranks + shard);
      const auto add_call = [&](const char* what, const CheckedSchedule& schedule, int divisor) {
        out_.calls.push_back({.name = name_of(what, shard), .schedule = schedule, .members = members, .variables = {}});
        out_.calls.back().divisor = divisor;
      };
      add_call("push", exchange_.push[static_cast<std::size_t>(shard)], out_.ranks);
      add_call("pull", exchange_.pull[static_cast<std::size_t>(shard)], 1);
    }
    each_piece([&](const Piece& piece) {
      const auto push = 2 * static_cast<std::size_t>(piece.shard);
      out_.calls[push].variables.push_back(piece.gradient);
      out_.calls[push + 1].variables.push_back(piece.weights);
    });
  }
  Task& write_push(int shard) {
    const int call = 2 * shard;
    return write_call(stream_of(shard), out_.calls[static_cast<std::size_t>(call)].name, call);
  }
  Task& write_pull(int shard) {
    const int call = 2 * shard + 1;
    return write_call(stream_of(shard), out_.calls[static_cast<std::size_t>(call)].name, call);
  }

  void write_worker(bool is_master) {
    Task& first = write_forward_pass();
    for (int shard = 0; shard < n_shards(); ++shard) first.after.push_back(step_before(stream_of(shard)));
    write_backward_pass();
    for (int shard = 0; shard < n_shards(); ++shard) write_push(shard).after.push_back({0, n_tasks(0), 0});
    if (is_master) write_update().after.push_back({stream_of(0), 1, 0});
    for (int shard = 0; shard < n_shards(); ++shard) {
      Task& pull = write_pull(shard);
      if (is_master) pull.after.push_back({0, n_tasks(0), 0});
    }
    out_.roles.push_back(take_role());
  }

  void write_server(int shard) {
    Task& push = write_push(shard);
    Task update{.name = "update",
                .time = server_update(step_, exchange_.servers),
                .call = -1,
                .after = {{stream_of(shard), 1, 0}},
                .touches = {}};
    each_piece([&](const Piece& piece) {
      if (piece.shard != shard) return;
      push.touches.push_back({As::clear, piece.gradient, -1});
      update.touches.push_back({As::apply, piece.gradient, piece.weights});
    });
    stream(0).push_back(std::move(update));
    write_pull(shard).after.push_back({0, 1, 0});
    out_.roles.push_back(take_role());
  }

  const ServerExchange& exchange_;
};

}  // namespace

Picoseconds server_update(const TrainingStep& step, int servers) {
  const std::int64_t n = std::max(1, servers);
  return Picoseconds{step.update.count() / n + (step.update.count() % n > 0 ? 1 : 0)};
}

Program parameter_server_program(const TrainingStep& step, int ranks, const std::optional<ServerExchange>& exchange) {
  ensure(step.buckets.empty(), "a parameter server has no buckets");
  if (!exchange) {
    ensure(ranks == 1, "several ranks exchange gradients");
    return training_program(step);
  }
  return ServerWriter(step, ranks, *exchange).write();
}

Picoseconds server_step_time(const TrainingStep& step, int servers, Picoseconds push, Picoseconds pull) {
  GpuClock clock{step};
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
