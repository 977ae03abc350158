#include "algorithms/training/gossip.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "algorithms/training/step_writer.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

class GossipWriter : StepWriter {
 public:
  GossipWriter(const TrainingStep& step, const Gossip& gossip, const std::optional<CheckedSchedule>& exchange,
               WatchedWork* work)
      : StepWriter(step, work), gossip_(gossip) {
    out_.ranks = out_.actors = exchange ? exchange->schedule().collective.ranks : 1;
    if (exchange) {
      add_exchange(*exchange, "right");
      if (out_.ranks > 2) add_exchange(*exchange, "left");
      ends_.push_back(exchanges_.front());
    }
    add_host();
    for (Program::Learns& learns : out_.learns)
      learns.how = gossip_.overlap ? Program::Learns::How::neighbors_first : Program::Learns::How::neighbors_averaged;
  }

  Program write() {
    for (int i = 0; i < gossip_.every; ++i) {
      next_step();
      Task& first = write_forward_pass();
      if (i == 0 && !exchanges_.empty() && !gossip_.overlap) first.after.push_back(step_before(exchanges_.front()));
      write_backward_pass();
      if (i == 0 && gossip_.overlap) write_average(n_tasks(0));
      Task& update = write_update();
      if (i == 0 && gossip_.overlap && !exchanges_.empty())
        update.after.push_back({exchanges_.front(), n_tasks(exchanges_.front()), 0});
    }
    if (!gossip_.overlap) write_average(n_tasks(0));
    out_.roles.push_back(take_role());
    return std::move(out_);
  }

 private:
  /// To the next rank; to the left with the ranks reversed.
  void add_exchange(const CheckedSchedule& schedule, const char* to) {
    exchanges_.push_back(add_stream(Program::StreamKind::communication));
    Program::Call call{.name = fmt::format("send {}", to), .schedule = schedule, .members = {}, .variables = {}};
    if (exchanges_.size() == 2)
      for (Actor rank = out_.ranks; rank-- > 0;) call.members.push_back(rank);
    each_piece([&](const Piece& piece) {
      const auto weights = static_cast<std::size_t>(piece.weights);
      call.variables.push_back(piece.weights);
      call.into.push_back(add_variable(
          fmt::format("{} of the rank to the {}", out_.variables[weights], exchanges_.size() == 2 ? "right" : "left")));
    });
    out_.calls.push_back(std::move(call));
  }

  /// The exchanges, and then the mean of what has come in. `passes`: how many tasks of the GPU come before the mean.
  void write_average(int passes) {
    if (exchanges_.empty()) return;
    for (std::size_t e = 0; e < exchanges_.size(); ++e) {
      Task& call = write_call(exchanges_[e], static_cast<int>(e));
      call.after.push_back(gossip_.overlap ? step_before(0) : Program::After{0, passes, 0});
    }
    Task average{.name = "average", .time = Picoseconds{0}, .call = -1, .after = {{0, passes, 0}}, .touches = {}};
    if (exchanges_.size() == 2) average.after.push_back({exchanges_.back(), 1, 0});
    for (const Program::Call& call : out_.calls)
      for (std::size_t v = 0; v < call.into.size(); ++v)
        average.touches.push_back({As::apply, call.into[v], call.variables[v]});
    for (const int weights : out_.calls.front().variables)
      average.touches.push_back({As::divide, weights, -1, static_cast<int>(exchanges_.size()) + 1});
    stream(exchanges_.front()).push_back(std::move(average));
  }

  const Gossip& gossip_;
  std::vector<Stream> exchanges_;  // [call]; the mean comes last on the first of them
};

/// Times of one round: of both passes of its first step, and of the rest.
struct RoundTimes {
  Picoseconds passes{0}, rest{0};
};

RoundTimes round_times(const TrainingStep& step, const Gossip& gossip, const Stragglers& stragglers, Actor rank,
                       int round) {
  const std::int64_t first = static_cast<std::int64_t>(round) * gossip.every;
  RoundTimes times{.passes = passes_end(step, stragglers, rank, first, Picoseconds{0})};
  for (std::int64_t number = first; number < first + gossip.every; ++number) {
    if (number > first) times.rest = passes_end(step, stragglers, rank, number, times.rest);
    times.rest = add(times.rest, stragglers.time(step.update, rank, number, false));
  }
  return times;
}

}  // namespace

Program gossip_program(const TrainingStep& step, const Gossip& gossip, const std::optional<CheckedSchedule>& exchange,
                       WatchedWork* work) {
  ensure(step.buckets.empty() && gossip.every >= 1, "gossip has steps and no buckets");
  return GossipWriter(step, gossip, exchange, work).write();
}

Picoseconds gossip_round_time(const TrainingStep& step, const Gossip& gossip, Picoseconds exchange) {
  GpuClock clock{step};
  for (int i = 0; i < gossip.every; ++i) {
    clock.begin_step();
    clock.forward();
    clock.backward();
    if (i == 0 && gossip.overlap) clock.gpu = std::max(clock.gpu, exchange);
    clock.run(step.update);
  }
  return gossip.overlap ? clock.gpu : add(clock.gpu, exchange);
}

StepLimits gossip_step_limits(const TrainingStep& step, const Gossip& gossip, const Stragglers& stragglers, int ranks,
                              Picoseconds once, int copies, Picoseconds a, int warmup) {
  const auto n = static_cast<std::size_t>(ranks);
  const Picoseconds all = add(times(copies, once), a);
  std::vector<Picoseconds> low(n, Picoseconds{0}), high = low;
  Picoseconds low_before{0}, high_before{0};  // when the last rank ends the warm-up; of `low_before` the first rank
  for (int round = 0; round < step.steps; ++round) {
    if (round == warmup) {
      low_before = *std::min_element(low.begin(), low.end());
      high_before = *std::max_element(high.begin(), high.end());
    }
    std::vector<RoundTimes> computes;
    for (Actor rank = 0; rank < ranks; ++rank) computes.push_back(round_times(step, gossip, stragglers, rank, round));
    for (std::vector<Picoseconds>* ends : {&low, &high}) {
      std::vector<Picoseconds> ready = *ends;  // [rank] when it launches its exchange
      for (std::size_t r = 0; r < n; ++r) {
        if (!gossip.overlap) ready[r] = add(ready[r], add(computes[r].passes, computes[r].rest));
        ready[r] = add(ready[r], step.launch);
      }
      for (std::size_t r = 0; r < n; ++r) {
        Picoseconds end = add(ready[r], all);
        for (const std::size_t other : {(r + 1) % n, (r + n - 1) % n})
          end = std::max(end, add(ready[other], ends == &low ? add(once, a) : all));
        if (gossip.overlap) end = add(std::max(end, add((*ends)[r], computes[r].passes)), computes[r].rest);
        (*ends)[r] = end;
      }
    }
  }
  const std::int64_t steps = static_cast<std::int64_t>(step.steps - warmup) * gossip.every;
  return {.low = (*std::max_element(low.begin(), low.end()) - high_before) / steps,
          .high = (*std::max_element(high.begin(), high.end()) - low_before) / steps};
}

}  // namespace ringsim
