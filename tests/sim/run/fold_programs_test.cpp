// One rank for all ranks of a training step: a folded run and its account are those of the whole run, and if ranks
// might differ, the step is not folded.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/composed/channels.hpp"
#include "algorithms/parameter_server.hpp"
#include "algorithms/training/ddp.hpp"
#include "algorithms/training/local_sgd.hpp"
#include "algorithms/training/stragglers.hpp"
#include "sim/program/account.hpp"
#include "sim/program/beside_programs.hpp"
#include "sim/schedule/collective.hpp"
#include "tests/support/command.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/timeline_text.hpp"
#include "tests/support/tiny.hpp"

namespace fold_programs_test {

using namespace ringsim;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

const LinkSpec odd{.bandwidth = {24'999'999'937}, .latency = Picoseconds{333'331}};

/// Layers with a bucket each, of unlike sizes that `ranks` divides, and unlike times.
TrainingStep step_of(int layers, int ranks) {
  TrainingStep step{.name = "step", .layers = {}, .update = 7us};
  for (int l = 0; l < layers; ++l)
    step.layers.push_back({.name = fmt::format("l{}", l),
                           .tensors = {std::int64_t{ranks} * (301 + 97 * (l % 7))},
                           .forward = Picoseconds{3'000'001 + 500'003 * l},
                           .backward = Picoseconds{9'000'007 - 300'001 * (l % 5)}});
  step.buckets = pytorch_buckets(step.layers, 4, 1_B, 1_B);
  step.steps = 2;
  return step;
}

template <class Make>
Program ddp(TrainingStep step, Make make) {
  for (const Bucket& bucket : step.buckets) step.schedules.push_back(check(make(bucket.bytes)));
  return training_program(step);
}
Program ring_ddp(const TrainingStep& step, int ranks) {
  return ddp(step, [&](Bytes bytes) { return ring_all_reduce(ranks, bytes); });
}

/// Where the time of every rank goes, and what rank 0 sends and receives.
std::string account_of(const Accounts& accounts, Bytes sent, Bytes received) {
  std::string text = fmt::format("{} B out, {} B in", sent.count, received.count);
  for (const RankAccount& rank : accounts.ranks()) {
    const TimeSplit& split = rank.split;
    for (const Picoseconds part :
         {split.compute, split.waiting_for_others, split.exposed_communication, split.waiting_for_host, split.idle,
          split.overlapped, rank.shortest, rank.longest, rank.before_last, rank.last, rank.end.time_since_epoch(),
          rank.first_end.time_since_epoch()})
      text += fmt::format(" {}", part.count());
    text += '\n';
  }
  return text;
}

/// A run's report, and its account.
std::pair<Timeline, std::string> run_one(const Topology& net, const LoweredProgram& program, RunOptions options) {
  Accounts accounts(program, 0);
  Bytes sent, received;
  options.on_compute = [&](const ComputeEvent& event) { accounts.on_compute(event); };
  options.on_message = [&](const Span& message) {
    if (message.from == 0) sent += message.bytes;
    if (message.to == 0) received += message.bytes;
  };
  options.messages_may_fold = true;
  Timeline timeline = run(net, program.schedule(), options);
  std::string text = report_of(net, timeline) + '\n' + account_of(accounts, sent, received);
  return {std::move(timeline), std::move(text)};
}

/// Runs it both ways, and compares them. Returns why it was not folded; "" if it was.
std::string both_ways(const Topology& net, Program program, RunOptions options = {}) {
  const LoweredProgram lowered(check(std::move(program)));
  options.fold_from = 0;
  const auto [some, folded] = run_one(net, lowered, options);
  options.fold = false;
  const auto [all, whole] = run_one(net, lowered, options);
  CHECK(folded == whole);
  CHECK(some.folded.has_value() == some.not_folded.empty());
  CHECK(some.fingerprint.has_value() != some.folded.has_value());
  CHECK(all.fingerprint.has_value());
  return some.not_folded;
}

std::vector<int> rank_counts() {
  std::vector<int> counts(16);
  std::iota(counts.begin(), counts.end(), 2);
  counts.insert(counts.end(), {32, 64, 128, 256});
  return counts;
}

}  // namespace

TEST_CASE("a folded DDP step is the whole one to the picosecond, for up to 256 ranks") {
  for (const int ranks : rank_counts()) {
    const Topology net = star(ranks, odd);
    for (const int layers : {1, 3, 25}) {
      if (ranks > 64 && layers == 25) continue;  // 25 buckets of 256 ranks are 6.5 million messages
      for (const NetworkModel model : {NetworkModel::ideal, NetworkModel::fair}) {
        CAPTURE(ranks);
        CAPTURE(layers);
        const TrainingStep step = step_of(layers, ranks);
        CHECK(both_ways(net, ring_ddp(step, ranks), {.model = model}) == "");
        if ((ranks & (ranks - 1)) != 0) continue;
        const auto halves = [&](Bytes bytes) { return halving_doubling(ranks, bytes, Fold::naive); };
        CHECK(both_ways(net, ddp(step, halves), {.model = model}) == "");
      }
    }
  }
}

TEST_CASE("hosts, launches, hooks, cycles and steps without overlap fold as well") {
  constexpr int ranks = 8;
  const Topology net = star(ranks, odd);
  for (const int variant : {0, 1, 2, 3, 4}) {
    CAPTURE(variant);
    TrainingStep step = step_of(6, ranks);
    step.steps = 4;
    if (variant == 0) step.launch = 5us;
    if (variant == 1) step.hook = 2us;
    if (variant == 2) step.host_launch = 4us;
    if (variant == 3) step.overlap = false;
    if (variant == 4) {
      step.cycle = 11us;
      step.buckets = horovod_buckets(step.layers, 4, 64_KiB, step.cycle, std::nullopt);
    }
    CHECK(both_ways(net, ring_ddp(step, ranks)) == "");
  }
  TrainingStep rounds = step_of(3, ranks);
  rounds.buckets.clear();
  CHECK(both_ways(net, local_sgd_program(rounds, 4, check(ring_all_reduce(ranks, 64_KiB)))) == "");
}

TEST_CASE("a step whose collectives have several channels folds where the channels keep step") {
  for (const int ranks : {2, 5, 8})
    for (const int channels : {2, 3}) {
      CAPTURE(ranks);
      CAPTURE(channels);
      TrainingStep step = step_of(4, ranks * channels);
      step.launch = 5us;
      step.steps = 3;
      const auto over = [&](Bytes bytes) {
        return over_channels(ring_all_reduce(ranks, bytes), {.channels = channels});
      };
      CHECK(both_ways(star(ranks, odd), ddp(step, over)) == "");
      int n = 0;  // the second bucket has one channel: the others skip it
      const auto now_and_then = [&](Bytes bytes) { return ++n == 2 ? ring_all_reduce(ranks, bytes) : over(bytes); };
      const std::string why_not = both_ways(star(ranks, odd), ddp(step, now_and_then));
      CHECK(why_not.starts_with("lanes 1 and 2 of a rank do different things in step "));
    }
}

TEST_CASE("where ranks of a program might differ, it is simulated in full and says why") {
  constexpr int ranks = 4;
  const Topology net = star(ranks, odd);
  const TrainingStep step = step_of(3, ranks);
  const Program plain = ring_ddp(step, ranks);
  REQUIRE(both_ways(net, plain) == "");

  Program slow = plain;
  add_stragglers(slow, {.slow = {{.rank = 2, .millionths = 1'500'000}}, .jitter = {}}, 1);
  CHECK(both_ways(net, slow) == "tasks take a time of their own at each rank");

  TrainingStep uneven = step;
  uneven.layers[1].tensors = {ranks * 100 + 1};
  uneven.buckets = pytorch_buckets(uneven.layers, 1, 1_B, 1_B);
  CHECK(both_ways(net, ring_ddp(uneven, ranks)) == "bucket 1: 401 bytes in 4 chunks are not equal chunks");

  const auto server = [&](Bytes bytes) { return parameter_server(ranks, bytes, 0); };
  CHECK(both_ways(net, ddp(step, server)).starts_with("bucket 0: no symmetry of parameter_server"));

  int n = 0;
  const auto mixed = [&](Bytes bytes) {
    return ++n == 2 ? halving_doubling(ranks, bytes, Fold::naive) : ring_all_reduce(ranks, bytes);
  };
  CHECK(both_ways(net, ddp(step, mixed)) == "bucket 1 has another symmetry than the first call");

  Program among = plain;
  for (Program::Call& call : among.calls) call.members = {0, 1, 2, 3};
  CHECK(both_ways(net, among) == "bucket 0 is among some of the ranks");

  Program roles = plain;  // rank 3 has a longer update
  roles.roles.push_back(roles.roles.front());
  roles.roles.back().streams.front().back().time += 1us;
  roles.role_of = {0, 0, 0, 1};
  CHECK(both_ways(net, roles) == "not all take part in the same tasks");

  Program alone = plain;
  for (auto* streams = &alone.roles.front().streams; auto& stream : *streams)
    std::erase_if(stream, [](const Program::Task& task) { return task.call >= 0; });
  alone.roles.front().streams.front().back().after.clear();
  alone.calls.clear();
  alone.learns.clear();
  for (auto& task : alone.roles.front().streams.front()) task.touches.clear();
  CHECK(both_ways(net, alone) == "nothing is exchanged");

  CHECK(both_ways(net, plain, {.disturbance = {.late = {{3, at(1us)}}}}) ==
        "something disturbs the run, so ranks may do different things at the same time");
  CHECK(both_ways(net, plain, {.longer = [](const ComputeEvent&) { return Picoseconds{0}; }}) ==
        "computations take longer while messages are in flight");
  CHECK(both_ways(net, plain, {.enough = [] { return false; }}) == "the run ends by count");
  CHECK(both_ways(net, plain, {.jobs = {0, 0}}) == "several jobs share the run");
  CHECK(both_ways(net, plain, {.plans = {{.protocol = find_protocol("simple")}}}) ==
        "with protocol simple, ranks can run ahead of each other; the first ranks do not represent all ranks either: a "
        "program has several schedules");
  // Two ranks share each port's cable to the next switch.
  CHECK(both_ways(dumbbell(odd, odd), plain).find(" is not like that of ") != std::string::npos);
}

TEST_CASE("buckets on two streams at once are simulated in full") {
  constexpr int ranks = 4;
  Program program = ring_ddp(step_of(2, ranks), ranks);
  auto& streams = program.roles.front().streams;  // compute and communication
  program.streams.push_back(Program::StreamKind::communication);
  streams.push_back({streams[1].back()});
  streams[1].pop_back();
  for (Program::After& after : streams[0].back().after)
    if (after.stream == 1) after.tasks = 1;
  streams[0].back().after.push_back({2, 1, 0});
  CHECK(both_ways(star(ranks, odd), program) == "a lane of a rank waits for another in step 0");
}

TEST_CASE("programs that run next to each other are simulated in full") {
  const Topology net = star(4, odd);
  std::deque<LoweredProgram> programs;
  std::vector<ProgramsBeside::Part> parts;
  for (int i = 0; i < 2; ++i) {
    programs.emplace_back(check(ring_ddp(step_of(2, 4), 4)), ProgramsBeside::room_of(2));
    parts.push_back({.program = &programs.back(), .actors = {0, 1, 2, 3}});
  }
  const ProgramsBeside together(std::move(parts), 4);
  const std::vector<NodeId> placement(net.ranks().begin(), net.ranks().end());
  CHECK(run(net, together.schedule(), {.placement = placement, .fold_from = 0}).not_folded ==
        "programs run next to each other, or later than 0");
}

TEST_CASE("why a program folded is said in a sentence") {
  const LoweredProgram ring(check(ring_ddp(step_of(2, 8), 8)));
  CHECK(run(star(8, odd), ring.schedule(), {.fold_from = 0}).folded.value() ==
        "one rank represents all 8: they do the same tasks in the same time, the symmetry {8} of each collective was "
        "checked "
        "at every step of every rank, and its chunks are equal, and each has an equal port of its own on switch0");
}

// Each of the 25 buckets, of 4.096 MB, takes 2046 (2 us + 4000 B / 12.5 GB/s = 320 ns) = 4746.72 us, longer than the
// 800 us in which the backward pass makes the next: 10 ms of forward pass, the first bucket's 800 us, and 25 of them.
// 1024 ranks send 25 x 2046 x 1024 messages per step.
TEST_CASE("the command folds a step of 1024 ranks and 25 buckets; one of 256 is the same with --no-fold") {
  const std::string scenario = test::temporary_file("large-step.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": 1024, "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}},
    "training": {"steps": 1, "warmup": 1,
      "workload": {"batch": 32, "layers": [{"name": "l", "times": 25, "parameters": 1024000, "forward": "400 us",
                                            "backward": "800 us"}]},
      "regime": {"name": "ddp", "algorithm": "ring", "buckets": {"size": "4096 kB", "first": "4096 kB"}}}})");
  const auto large = test::run_command({"run", scenario, "--format", "json"});
  CHECK(large.err == "");
  CHECK(large.out.find(R"("time_us": 129468.0)") != std::string::npos);
  CHECK(large.out.find(R"("transfers": 104755200)") != std::string::npos);
  CHECK(large.out.find(R"("folded": "one rank represents all 1024: )") != std::string::npos);
  const auto lines_of = [&](bool folds) {
    std::vector<std::string> words{"run", scenario, "--format", "json", "--explain", "--set", "topology.ranks=256"};
    words.insert(words.end(), {"--set", "training.workload.layers.0.times=5"});
    if (!folds) words.push_back("--no-fold");
    const auto result = test::run_command(words);
    CHECK(result.code == 0);
    CHECK((result.out.find(R"("folded": "one rank represents all 256: )") != std::string::npos) == folds);
    std::vector<std::string> lines;  // which of all ranks' equal ports is the bottleneck may differ
    for (std::size_t at = 0; at < result.out.size(); at = result.out.find('\n', at) + 1) {
      const std::string line = result.out.substr(at, result.out.find('\n', at) - at);
      const auto has = [&](const char* key) { return line.find(key) != std::string::npos; };
      if (!has(R"("fingerprint")") && !has(R"("folded")") && !has(R"("link": "gpu)")) lines.push_back(line);
    }
    return lines;
  };
  CHECK(lines_of(true) == lines_of(false));
}

}  // namespace fold_programs_test
