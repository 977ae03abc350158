// Training programs carried out on real numbers: sums, weights, and what a mistake does to them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/predict/training.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/program/lower.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/naive/shuffled_exchange.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/written_schedule.hpp"
#include "validate/replay/contribution.hpp"
#include "validate/replay/program_data.hpp"
#include "validate/replay/replay.hpp"
#include "validate/replay/tcp/tcp_replay.hpp"

namespace program_replay_test {

using namespace ringsim;
using namespace ringsim::replay;
using namespace std::chrono_literals;
using ringsim::test::complaint;
using ringsim::test::has;
using ringsim::test::Outcome;
using ringsim::test::replay_shuffled;
using ringsim::test::Replayed;
using ringsim::test::run_command;
using ringsim::test::run_on_fake_gpu;
using ringsim::test::temporary_file;
using ringsim::test::Words;

namespace {

// Five tensors of 60 elements in all. Buckets close at 20 elements: {e, d}, {c}, {b, a} with 20, 20 and 20. 12 divides
// 60, so that up to 4 servers have whole elements.
constexpr int n_elements = 60, n_steps = 3;

/// A scenario's training, as a replay has it.
class Trained {
 public:
  Trained(int ranks, const std::string& regime)
      : scenario_(ScenarioFile::parse(fmt::format(R"({{
          "version": 1, "name": "small",
          "topology": {{"kind": "star", "ranks": {}, "link": {{"bandwidth": "1 GB/s", "latency": "0 us"}}}},
          "training": {{
            "workload": {{"layers": [
              {{"name": "a", "parameters": 7, "forward": "1 ms", "backward": "2 ms"}},
              {{"name": "b", "parameters": 13, "forward": "1 ms", "backward": "2 ms"}},
              {{"name": "c", "parameters": 20, "forward": "1 ms", "backward": "2 ms"}},
              {{"name": "d", "parameters": 9, "forward": "1 ms", "backward": "2 ms"}},
              {{"name": "e", "parameters": 11, "forward": "1 ms", "backward": "2 ms"}}], "batch": 1}},
            "regime": {}, "optimizer": {{"name": "sgd", "time": "1 ms"}}, "steps": {}, "warmup": 1}}}})",
                                                  ranks, regime, n_steps - 1),
                                      "small.json")
                      .point(0)),
        run_(std::make_unique<TrainingRun>(scenario_, collectives_of(scenario_, topology_of(scenario_)).front().front(),
                                           PredictOptions{.element = element_bytes})) {}

  const LoweredProgram& lowered() const { return run_->run().lowered(); }
  const Program& program() const { return lowered().program(); }
  const Schedule& schedule() const { return lowered().schedule().schedule(); }

 private:
  Scenario scenario_;
  std::unique_ptr<TrainingRun> run_;
};

Trained ddp(int ranks, const std::string& algorithm = R"("ring")") {
  return {ranks, fmt::format(R"({{"name": "ddp", "algorithm": {}, "buckets": {{"size": "80 B", "first": "80 B"}}}})",
                             algorithm)};
}
Trained server(int ranks, int servers) {
  return {ranks, servers == 0 ? R"({"name": "parameter_server", "master": 1})"
                              : fmt::format(R"({{"name": "parameter_server", "servers": {}}})", servers)};
}

ProgramVerdict together(const std::vector<ProgramVerdict>& verdicts) {
  ProgramVerdict all;
  for (const ProgramVerdict& verdict : verdicts) {
    all.checked += verdict.checked;
    all.wrong += verdict.wrong;
    if (all.first.empty()) all.first = verdict.first;
  }
  return all;
}

/// "right, 123 checked", or what is not. `schedule`: the program's, perhaps broken.
std::string outcome(const Trained& trained, const Schedule& schedule, std::uint64_t seed) {
  require_replayable(trained.program());
  const Replayed replayed = replay_shuffled(schedule, seed, &trained.lowered());
  if (!replayed.finished) return "stuck: " + replayed.open;
  const ProgramVerdict all = together(replayed.programs);
  return all.wrong == 0 ? fmt::format("right, {} checked", all.checked) : all.first;
}
std::string outcome(const Trained& trained, std::uint64_t seed) { return outcome(trained, trained.schedule(), seed); }

/// The steps of a task's lane, as a broken schedule has them: of the rank, stream and iteration, the one that begins
/// the task of that name.
Step& first_step(WrittenSchedule& written, const Trained& trained, Actor actor, const std::string& name,
                 int iteration) {
  for (Lane lane = 0; lane < written.like.lanes; ++lane) {
    auto& steps = written.steps[static_cast<std::size_t>(actor)][static_cast<std::size_t>(lane)];
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const StepPlace place = trained.lowered().place_of(actor, lane, static_cast<int>(i));
      if (place.first && place.iteration == iteration &&
          trained.program().name_of(trained.lowered().task_of(actor, place)) == name)
        return steps[i];
    }
  }
  throw InvariantError("no task of that name");
}

/// The first operation of that kind in a call of that name.
Op& operation(WrittenSchedule& written, const Trained& trained, Actor actor, const std::string& name, int iteration,
              Do what) {
  for (Lane lane = 0; lane < written.like.lanes; ++lane) {
    auto& steps = written.steps[static_cast<std::size_t>(actor)][static_cast<std::size_t>(lane)];
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const StepPlace place = trained.lowered().place_of(actor, lane, static_cast<int>(i));
      if (place.iteration != iteration || trained.program().name_of(trained.lowered().task_of(actor, place)) != name)
        continue;
      for (Op& op : steps[i].ops)
        if (op.what == what) return op;
    }
  }
  throw InvariantError("no operation of that kind");
}

Measured over_sockets(const Trained& trained, const Schedule& schedule) {
  const ReplayProgram program{.lowered = &trained.lowered(), .warmup = 1};
  return replay_here(
             {.jobs = {{"", &schedule, &program}}, .repeats = {.warmups = 0, .timed = 2}, .options = {}, .key = "test"})
      .jobs.at(0);
}

}  // namespace

TEST_CASE("DDP: every sum and all weights are right at 2, 3 and 4 ranks, by several algorithms, in random orders") {
  for (const int ranks : {2, 3, 4})
    for (const char* algorithm : {R"("ring")", R"("halving_doubling")", R"("double_binary_tree")",
                                  R"({"name": "parameter_server", "servers": 1})"}) {
      const Trained trained = ddp(ranks, algorithm);
      REQUIRE(trained.program().calls.size() == 3);
      for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
        CAPTURE(ranks);
        CAPTURE(algorithm);
        CAPTURE(seed);
        // Per rank: sums and weights in each iteration, and the weights in the end. A helper is promised nothing.
        CHECK(outcome(trained, seed) == fmt::format("right, {} checked", ranks * n_elements * (2 * n_steps + 1)));
      }
    }
}

TEST_CASE("parameter server: sums at the servers and weights at workers are right at 2, 3 and 4 workers") {
  for (const int ranks : {2, 3, 4})
    for (const int servers : {0, 1, 2, 4}) {
      const Trained trained = server(ranks, servers);
      for (const std::uint64_t seed : {0U, 1U, 2U, 3U}) {
        CAPTURE(ranks);
        CAPTURE(servers);
        CAPTURE(seed);
        // Sums: of all elements once per iteration, where the weights are kept. Each rank compares the weights as it
        // reads them and as they come in, in each iteration, and once in the end; the separate servers together have
        // them in each iteration and in the end.
        const int of_ranks = ranks * (2 * n_steps + 1), of_servers = servers > 0 ? n_steps + 1 : 0;
        CHECK(outcome(trained, seed) ==
              fmt::format("right, {} checked", n_elements * (n_steps + of_ranks + of_servers)));
      }
    }
}

TEST_CASE("a rank that overwrites where it should add makes sums wrong, from that iteration on") {
  const Trained trained = ddp(4);
  WrittenSchedule written(trained.schedule());
  operation(written, trained, 2, "bucket 1", 1, Do::receive_add).what = Do::receive;
  for (const std::uint64_t seed : {0U, 1U}) {
    const std::string found = outcome(trained, written.schedule(), seed);
    CAPTURE(found);
    CHECK(found.starts_with("rank 0: bucket 1 of iteration 1, element "));
  }
}

TEST_CASE("a wrong sum is named by rank, bucket, iteration, element, expected and found") {
  // The last message of bucket 0 in iteration 0 brings rank 1 of a ring of two one half of the bucket. It lands in the
  // other half.
  const Trained trained = ddp(2);
  WrittenSchedule written(trained.schedule());
  Op& last = operation(written, trained, 1, "bucket 0", 0, Do::receive);
  const bool first_is_kept = last.region.first == 0;  // the half that stays as rank 1 made it, else it gets the other's
  last.region.first ^= 1U;
  const int share = 2 * (2 * n_steps + 1), n_calls = 3, half = 10;
  const auto gradient = [&](Actor rank, int element) {
    return contribution(share, rank, 0, element) + contribution(share, rank, n_calls, 0);
  };
  const auto sum = [&](int element) { return gradient(0, element) + gradient(1, element); };
  CHECK(outcome(trained, written.schedule(), 0) ==
        fmt::format("rank 1: bucket 0 of iteration 0, element 0: expected {}, found {}", sum(0),
                    first_is_kept ? gradient(1, 0) : sum(half)));
}

TEST_CASE("a bucket that does not wait for its gradients sends poison") {
  const Trained trained = ddp(3);
  WrittenSchedule written(trained.schedule());
  first_step(written, trained, 1, "bucket 0", 0).waits.clear();
  int seen = 0;  // in some orders the gradients are there in time
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const std::string found = outcome(trained, written.schedule(), seed);
    if (found.starts_with("rank 0: bucket 0 of iteration 0, element 0: expected ") && found.ends_with(", found nan"))
      ++seen;
  }
  CHECK(seen > 0);
}

TEST_CASE("a bucket that goes out before its gradients are made again sends those of the iteration before") {
  const Trained trained = ddp(3);
  WrittenSchedule written(trained.schedule());
  first_step(written, trained, 1, "bucket 0", 1).waits.clear();
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    if (outcome(trained, written.schedule(), seed).starts_with("rank 0: bucket 0 of iteration 1, element 0: ")) ++seen;
  CHECK(seen > 0);
}

TEST_CASE("an update that does not wait for the sums leaves wrong weights") {
  const Trained trained = ddp(3);
  WrittenSchedule written(trained.schedule());
  first_step(written, trained, 2, "update", n_steps - 1).waits.clear();  // the last: sums stay right
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed)
    if (outcome(trained, written.schedule(), seed).starts_with("rank 2: weights of bucket ")) ++seen;
  CHECK(seen > 0);
}

TEST_CASE("a server that sends weights before it has updated them is found out by its workers") {
  const Trained trained = server(3, 1);
  WrittenSchedule written(trained.schedule());
  first_step(written, trained, 3, "pull", 1).waits.clear();
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed)
    if (outcome(trained, written.schedule(), seed)
            .starts_with("rank 0: weights of push after 2 iterations, element 0: "))
      ++seen;
  CHECK(seen > 0);
}

TEST_CASE("weights that a worker does not get are poison") {
  const Trained trained = server(3, 1);
  WrittenSchedule written(trained.schedule());
  // The server sends worker 1 of its scratch, which is 0; what comes in is not kept.
  Op& receive = operation(written, trained, 1, "pull", 2, Do::receive);
  receive.region = operation(written, trained, 1, "push", 2, Do::send).region;  // as large
  const std::string found = outcome(trained, written.schedule(), 0);
  CAPTURE(found);
  CHECK(found.starts_with("rank 1: weights of push after 3 iterations, element 0: expected "));
  CHECK(found.ends_with(", found nan"));
}

TEST_CASE("no sum of a program leaves what float32 holds exactly, and numbers are many") {
  for (const int n : {2, 8, 1000, 1 << 18}) {  // ranks times iterations; more is refused
    CAPTURE(n);
    const int share = 2 * (n + 1);
    float most = 0;
    for (std::int64_t element = 0; element < 20000; ++element)
      most = std::max(most, contribution(share, 1, 3, element));
    CHECK(most >= 31);                                             // 2^24 / 2^19, less one
    CHECK(static_cast<double>(most) * (2 * n + 1) <= 16777216.0);  // weights, and base and shift of each gradient
  }
}

TEST_CASE("a program whose data a replay does not check is refused, with the reason") {
  const auto refusal = [](const Program& program) { return complaint([&] { require_replayable(program); }); };
  CHECK(refusal(ddp(3).program()) == "");
  const std::string hint = "\n  hint: a replay can check those of ddp and of a parameter server";
  CHECK(refusal(Trained(3, R"("gossip")").program()) ==
        "expected gradients that are summed over all ranks and added to weights, found weights that are averaged in "
        "gossip of layers" +
            hint);
  CHECK(refusal(Trained(3, R"({"name": "local_sgd", "every": 2, "algorithm": "ring"})").program())
            .find("found weights that are averaged") != std::string::npos);
  Program parts = ddp(3).program();
  for (Program::Learns& learns : parts.learns) learns.how = Program::Learns::How::group_mean;
  CHECK(refusal(parts).find("found weights that not all ranks have") != std::string::npos);
  Program many = ddp(4).program();
  many.iterations = (1 << 16) + 1;  // times 4 ranks
  CHECK(refusal(many) ==
        "expected at most 262144 ranks times iterations, found 262148\n  hint: above that, float32 cannot represent "
        "the sums exactly: use fewer steps");
  Program divides = server(3, 1).program();
  divides.roles[1].streams[0][0].touches.push_back({Program::Touch::As::divide, 0, -1, 3});
  CHECK(refusal(divides).find("found a division in ") != std::string::npos);
  Program moved = server(3, 1).program();
  std::swap(moved.calls[1].variables.front(), moved.calls[1].variables.back());
  CHECK(refusal(moved).find("found push and weights that travel in other parts") != std::string::npos);
}

TEST_CASE("the time of a program is the mean of the iterations that count") {
  Program program{.name = "alone", .ranks = 1, .actors = 1};
  program.streams = {Program::StreamKind::compute};
  program.roles = {{.streams = {{{.name = "work", .time = Picoseconds(1us)}}}}};
  program.iterations = 4;
  const LoweredProgram lowered(check(program));
  /// Waits of 8, 1, 2 and 6 ms, then the same again.
  class Clock : public Exchange {
   public:
    void start_send(const Connection&, std::span<const float>, Ticket) override { FAIL("nobody to send to"); }
    void start_receive(const Connection&, std::span<float>, Ticket) override { FAIL("nobody to receive from"); }
    void start_compute(std::chrono::nanoseconds, Ticket ticket) override { ticket_ = ticket; }
    void wait_some(std::vector<Ticket>& done) override {
      const std::chrono::nanoseconds waits[] = {8ms, 1ms, 2ms, 6ms};
      now_ += waits[n_++ % 4];
      done.push_back(ticket_);
    }
    Moment barrier() override { return now_ += 1h; }
    Moment now() const override { return now_; }

   private:
    Ticket ticket_ = 0;
    Moment now_{};
    std::size_t n_ = 0;
  };
  const auto times = [&](int warmup) {
    Clock clock;
    const ReplayProgram of{.lowered = &lowered, .warmup = warmup};
    return replay_actor(lowered.schedule().schedule(), 0, clock, {.warmups = 1, .timed = 2}, &of).times;
  };
  CHECK(times(1) == std::vector<std::chrono::nanoseconds>{3ms, 3ms});  // (1 + 2 + 6) / 3
  CHECK(times(0) == std::vector<std::chrono::nanoseconds>{4250us, 4250us});
  CHECK(times(3) == std::vector<std::chrono::nanoseconds>{6ms, 6ms});
}

TEST_CASE("over sockets DDP comes out right at 2, 3 and 4 ranks, and no step is shorter than its compute") {
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
    const Trained trained = ddp(ranks);
    const Measured measured = over_sockets(trained, trained.schedule());
    CHECK(measured.wrong == 0);
    CHECK(measured.checked == 2 * ranks * n_elements * (2 * n_steps + 1));
    CHECK(measured.min >= Picoseconds(16ms));  // timers of 5 x 1, 5 x 2 and 1 ms, one after the other
    CHECK(measured.max < Picoseconds(16s));
  }
}

TEST_CASE("over sockets a server and its workers come out right") {
  for (const int ranks : {2, 3, 4})
    for (const int servers : {0, 1, 2}) {
      CAPTURE(ranks);
      CAPTURE(servers);
      const Trained trained = server(ranks, servers);
      const Measured measured = over_sockets(trained, trained.schedule());
      CHECK(measured.wrong == 0);
      CHECK(measured.checked.value_or(0) > 0);
      CHECK(measured.min >= Picoseconds(15ms));  // the update of several servers takes less than 1 ms
    }
}

TEST_CASE("over sockets a wrong number of a program is named as it is elsewhere") {
  const Trained trained = ddp(3);
  WrittenSchedule written(trained.schedule());
  operation(written, trained, 2, "bucket 2", 1, Do::receive_add).what = Do::receive;
  const Measured measured = over_sockets(trained, written.schedule());
  CHECK(measured.wrong > 0);
  CHECK(measured.first_wrong.starts_with("rank 0: bucket 2 of iteration 1, element "));
}

TEST_CASE("replay: the examples have predicted and measured steps next to each other, and count what they checked") {
  // 2^18 elements, 2 steps. DDP: sums and weights in each step at 4 ranks, weights in the end. Server: sums at the
  // server; weights at 3 workers, twice per step, at the server once, and at all of them in the end.
  const std::int64_t elements = 1 << 18, of_ddp = 4 * (2 * 2 + 1), of_server = 2 + 3 * (2 * 2 + 1) + (2 + 1);
  for (const bool has_server : {false, true}) {
    CAPTURE(has_server);
    const std::string path = ringsim::test::source_dir() + "/scenarios/examples/replay/" +
                             (has_server ? "replay-server.json" : "replay-ddp.json");
    const Outcome replayed =
        run_command({"replay", path, "--backend", "tcp", "--warmups", "1", "--repeats", "2", "--format", "json"});
    CAPTURE(replayed.err);
    REQUIRE(replayed.code == 0);
    const auto row = nlohmann::json::parse(replayed.out).at("results").at(0);
    const auto plain = nlohmann::json::parse(run_command({"run", path, "--format", "json"}).out).at("results").at(0);
    CHECK(row.at("time_us") == plain.at("time_us"));  // all chunks are whole elements
    CHECK(row.at("closed_form") == plain.at("closed_form"));
    CHECK(row.at("wrong") == 0);
    CHECK(row.at("checked") == 3 * elements * (has_server ? of_server : of_ddp));
    CHECK(row.at("measured_min_us") >= row.at("split_us").at("compute"));  // timers of that long, one after the other
  }
}

TEST_CASE("replay: chunks of whole elements are what is predicted next to a program, and the form says so") {
  // The last bucket, 65536 elements on 3 ranks, is exposed: its longest chunk has 21846 elements, by bytes 87382 of
  // 87384 bytes. 4 steps of it at 25 MB/s are 320 ns more; the bucket before it, 512 KiB, still travels when it is
  // ready: its chunks of 43691 elements, 174763 of 174764 bytes, add 160 ns.
  const std::string file = ringsim::test::source_dir() + "/scenarios/examples/replay/replay-ddp.json";
  const auto row_of = [&](Words words) {
    for (const char* word : {"--set", "topology.ranks=3", "--format", "json"}) words.emplace_back(word);
    const Outcome outcome = run_command(words);
    CAPTURE(outcome.err);
    REQUIRE(outcome.code == 0);
    return nlohmann::json::parse(outcome.out).at("results").at(0);
  };
  const auto plain = row_of({"run", file});
  const auto replayed = row_of({"replay", file, "--backend", "tcp", "--repeats", "1", "--warmups", "0"});
  CHECK(plain.at("time_us") == 113943.2);
  CHECK(plain.at("closed_form").at("holds") == true);
  CHECK(replayed.at("time_us") == 113943.68);
  CHECK(replayed.at("closed_form").at("because") ==
        nlohmann::json::array({"chunks lie on whole elements, not on single bytes"}));
}

TEST_CASE("replay: a training that it cannot carry out is refused, with the place and the reason") {
  const std::string ddp_file = ringsim::test::source_dir() + "/scenarios/examples/replay/replay-ddp.json",
                    server_file = ringsim::test::source_dir() + "/scenarios/examples/replay/replay-server.json";
  const auto refusal = [](const std::string& file, const std::string& set) {
    const Outcome outcome = run_command({"replay", file, "--backend", "tcp", "--set", set});
    CHECK(outcome.code == 3);
    CHECK(outcome.out == "");
    return outcome.err;
  };
  CHECK(has(refusal(server_file, R"(training.regime="gossip")"),
            "replay-server.json: /training/regime: expected ddp or parameter_server, found gossip\n  hint: a replay "
            "checks gradients, which must be summed over all ranks in each step\n"));
  CHECK(has(refusal(server_file, R"(training.regime.mode="async")"),
            "/training/regime/mode: expected sync, found async\n  hint: "));
  CHECK(has(refusal(server_file, "training.regime.servers=3"),  // 1 MiB / 3
            "/training/regime: expected servers with whole elements of 4 bytes, found one with 349525 B\n"));
  CHECK(has(refusal(server_file, R"(training.regime="single")"), "/training/regime: expected ddp"));
  CHECK(has(refusal(ddp_file, "topology.ranks=1"), "/training: expected several ranks or a server, found one rank\n"));
  CHECK(has(refusal(ddp_file, "training.slowdown=1.5"), "/training/slowdown: expected 1, found more\n"));
  const std::string odd = temporary_file("odd.json", R"({"version": 1, "name": "odd",
    "topology": {"kind": "star", "ranks": 3, "link": {"bandwidth": "1 GB/s", "latency": "0 us"}},
    "training": {"workload": {"layers": [{"name": "a", "parameters": 5, "forward": "0 us", "backward": "1 us"}], "batch": 1,
                              "bytes_per_parameter": 2},
                 "regime": {"name": "ddp", "algorithm": "ring"}, "optimizer": {"name": "sgd"}}})");
  CHECK(has(refusal(odd, "training.steps=2"),
            "/training/workload: expected buckets of whole elements of 4 bytes, found one of 10 B\n"));
  CHECK(has(refusal(odd, "training.workload.layers.0.parameters=0"),
            "/training/workload: expected layers with parameters, found none\n"));
  CHECK(has(refusal(ddp_file, R"(faults=[{"link": "gpu0 -> switch0", "bandwidth": "50%"}])"),
            "/faults: expected a run without disturbances, found faults\n"));
  CHECK(has(refusal(ddp_file, R"(disturbance={"late": [{"rank": 0, "by": "1 ms"}]})"), "/disturbance: expected a run"));
  CHECK(has(
      refusal(ddp_file,
              R"(jobs=[{"name": "other", "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "4 KiB"}}])"),
      "/jobs: expected only a training step, found other jobs\n"));
  CHECK(has(refusal(ddp_file, "training.steps=70000"),
            "/training: expected at most 262144 ranks times iterations, found 280000\n"));
  const Outcome on_gpu = run_on_fake_gpu({"replay", ddp_file, "--backend", "cuda"});
  CHECK(on_gpu.code == 3);
  CHECK(has(on_gpu.err,
            "/training: expected a collective, found a training step\n  hint: GPUs replay only collectives; --backend "
            "tcp and --backend mpi also replay training steps\n"));
}

}  // namespace program_replay_test
