// Regimes with a server or a master, and local SGD: their closed forms to the picosecond, who does what, their proofs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "algorithms/training/data_parallel.hpp"
#include "algorithms/training/local_sgd.hpp"
#include "algorithms/training/regimes.hpp"
#include "algorithms/training/server.hpp"
#include "tests/support/small_training.hpp"
#include "tests/support/verdict.hpp"

namespace training_regimes_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

constexpr Bytes gradients{28'000'000};

ServerExchange one_server(int ranks, Actor master) {
  return {.push = {direct(CollectiveOp::reduce, ranks, gradients, master)},
          .pull = {direct(CollectiveOp::broadcast, ranks, gradients, master)},
          .servers = 0,
          .master = master};
}

ServerExchange separate_servers(int workers, int servers) {
  ServerExchange exchange{.push = {}, .pull = {}, .servers = servers};
  const Layout shards = Layout::near_equal(gradients, servers);
  for (std::uint32_t shard = 0; shard < static_cast<std::uint32_t>(servers); ++shard) {
    exchange.push.push_back(direct(CollectiveOp::reduce, workers + 1, shards.size(shard, 1), workers));
    exchange.pull.push_back(direct(CollectiveOp::broadcast, workers + 1, shards.size(shard, 1), workers));
  }
  return exchange;
}

MasterExchange master_of(int ranks, Actor master, Bytes batch, Bytes outputs) {
  return {.batch = direct(CollectiveOp::scatter, ranks, batch, master),
          .model = direct(CollectiveOp::broadcast, ranks, gradients, master),
          .outputs = direct(CollectiveOp::gather, ranks, outputs, master),
          .loss = direct(CollectiveOp::scatter, ranks, outputs, master),
          .gradients = direct(CollectiveOp::reduce, ranks, gradients, master),
          .master = master};
}

}  // namespace

// p = 28 MB at 12.5 GB/s: 2.24 ms a copy; a = 2 us a path; both passes 12 ms, the update 0.7 ms.
TEST_CASE("a step with the master among the ranks takes f + B + u + 2(K-1) p/b + 2a") {
  const TrainingStep step = three_layers();
  for (const int ranks : {1, 2, 3, 4, 8, 13, 64}) {
    CAPTURE(ranks);
    for (const Actor master : {0, ranks / 2}) {
      const auto exchange = ranks == 1 ? std::nullopt : std::optional(one_server(ranks, master));
      const Ran ran = run_on_star(parameter_server_program(step, ranks, exchange));
      const Picoseconds travel = (ranks - 1) * 2240us + (ranks > 1 ? 2us : 0us);
      const Picoseconds time = 12ms + 700us + 2 * travel;
      CHECK(ran.timeline.duration() == 3 * time);
      CHECK(server_step_time(step, 0, travel, travel) == time);
      // Two copies of the gradients a rank and step, of all ranks but the master.
      CHECK(ran.timeline.bytes_sent.count == 3LL * 2 * (ranks - 1) * gradients.count);
      for (Actor rank = 0; rank < ranks; ++rank) {
        const RankAccount& account = ran.ranks[static_cast<std::size_t>(rank)];
        CHECK(account.last == time);
        // Workers wait for the server to launch the pull while it updates.
        CHECK(account.split.compute == (rank == master ? 12'700us : 12ms));
        CHECK(account.split.waiting_for_others == (rank == master ? 0us : 700us));
        CHECK(account.split.exposed_communication == 2 * travel);
      }
    }
  }
}

// W workers push p to S shards: the servers' ports bind with W p/S, the workers' with p. Update: u/S.
TEST_CASE("a step with separate servers takes f + B + u/S + 2 max(W p/S, p)/b + 2a") {
  const TrainingStep step = three_layers();
  for (const int workers : {1, 2, 3, 8, 13})
    for (const int servers : {1, 2, 4, 7, 8, 16}) {  // all divide 28,000,000 and 700 us
      CAPTURE(workers);
      CAPTURE(servers);
      const Ran ran = run_on_star(parameter_server_program(step, workers, separate_servers(workers, servers)));
      const Picoseconds travel =
          transfer_time({std::max(gradients.count * workers / servers, gradients.count)}, port.bandwidth) + 2us;
      const Picoseconds time = 12ms + Picoseconds{700us} / servers + 2 * travel;
      CHECK(ran.timeline.duration() == 3 * time);
      CHECK(server_step_time(step, servers, travel, travel) == time);
      for (const RankAccount& account : ran.ranks) CHECK(account.split.compute == 12ms);
      for (const RankAccount& account : ran.servers) CHECK(account.split.compute == Picoseconds{700us} / servers);
    }
}

// 1.2 MB for each worker at 12.5 GB/s: 96 us a worker. A scatter to the root itself moves nothing.
TEST_CASE("a server that hands out the samples adds a scatter: (K-1) x/b + a, or max(W x/S, x)/b + a") {
  const TrainingStep step = three_layers();
  const Bytes each{1'200'000};
  for (const int workers : {2, 3, 8, 13}) {
    CAPTURE(workers);
    const Actor master = workers / 2;
    ServerExchange exchange = one_server(workers, master);
    exchange.samples.push_back(direct(CollectiveOp::scatter, workers, each * workers, master));
    const Ran ran = run_on_star(parameter_server_program(step, workers, exchange));
    const Picoseconds travel = (workers - 1) * 2240us + 2us, samples = (workers - 1) * 96us + 2us;
    CHECK(ran.timeline.duration() == 3 * (12ms + 700us + 2 * travel + samples));
    CHECK(server_step_time(step, 0, travel, travel, samples) == ran.ranks[0].last);
    CHECK(ran.timeline.bytes_sent.count == 3 * (workers - 1) * (2 * gradients.count + each.count));
    for (const RankAccount& account : ran.ranks) CHECK(account.split.exposed_communication == 2 * travel + samples);
    for (const int servers : {1, 2, 4, 8, 16}) {  // all divide 28,000,000, 1,200,000 and 700 us
      CAPTURE(servers);
      ServerExchange apart = separate_servers(workers, servers);
      for (int shard = 0; shard < servers; ++shard)
        apart.samples.push_back(
            direct(CollectiveOp::scatter, workers + 1, Bytes{each.count / servers * (workers + 1)}, workers));
      const Ran shared = run_on_star(parameter_server_program(step, workers, apart));
      const auto port_time = [&](Bytes bytes) {
        return transfer_time({std::max(bytes.count * workers / servers, bytes.count)}, port.bandwidth) + 2us;
      };
      const Picoseconds time = 12ms + Picoseconds{700us} / servers + 2 * port_time(gradients) + port_time(each);
      CHECK(shared.timeline.duration() == 3 * time);
      CHECK(server_step_time(step, servers, port_time(gradients), port_time(gradients), port_time(each)) == time);
    }
  }
}

TEST_CASE("samples that a server did not hand out are found missing") {
  ServerExchange exchange = one_server(4, 0);
  exchange.samples.push_back(direct(CollectiveOp::scatter, 4, 4'800_B, 0));
  Program wrong = parameter_server_program(three_layers(), 4, exchange);
  CHECK_NOTHROW(check(wrong));
  task_named(wrong, 1, "scatter samples").touches.clear();
  CHECK_THROWS_AS(check(wrong), ScheduleError);
}

TEST_CASE("launches count once per push and pull, and a host's launches hold up the passes and the master's update") {
  TrainingStep step = three_layers();
  step.launch = 10us;
  step.host_launch = 1500us;  // seven kernels of 1, 2, 1, 2, 4, 2 ms and 0.7 ms
  const Ran ran = run_on_star(parameter_server_program(step, 4, one_server(4, 0)));
  const Picoseconds travel = 3 * 2240us + 2us + 10us;
  // Launched at 1.5, 3, ...: 1.5 to 2.5, 3 to 5, 5 to 6, 6 to 8, 8 to 12, 12 to 14; the update long before it begins.
  CHECK(ran.ranks[0].last == 14ms + 700us + 2 * travel);
  CHECK(server_step_time(step, 0, travel, travel) == ran.ranks[0].last);
}

// DataParallel on ports of 12.5 GB/s and 2 us a path: x = 38,535,168 B of 256 images, outputs o = 1,024,000 B,
// p = 28 MB; 6 ms of one GPU's part.
TEST_CASE(
    "DataParallel takes (K-1)(2p + (x + 2o)/K)/b + 5a + f + B + loss + u, and only the master computes the loss") {
  TrainingStep step = three_layers();
  for (const int ranks : {1, 2, 4, 8, 16, 64})
    for (const Actor master : {0, ranks - 1}) {
      CAPTURE(ranks);
      const Bytes batch{38'535'168}, outputs{1'024'000};
      const auto exchange = ranks == 1 ? std::nullopt : std::optional(master_of(ranks, master, batch, outputs));
      const Ran ran = run_on_star(data_parallel_program(step, ranks, 1ms, exchange));
      const Bytes moved{(ranks - 1) * (2 * gradients.count + (batch.count + 2 * outputs.count) / ranks)};
      Picoseconds calls = ranks > 1 ? 10us : 0us;
      for (const std::int64_t bytes :
           {batch.count / ranks, outputs.count / ranks, outputs.count / ranks, gradients.count, gradients.count})
        calls += transfer_time({bytes * (ranks - 1)}, port.bandwidth);
      const Picoseconds time = 12ms + 1ms + 700us + calls;
      CHECK(ran.timeline.duration() == 3 * time);
      CHECK(data_parallel_step_time(step, 1ms, calls) == time);
      CHECK(ran.timeline.bytes_sent == 3 * moved);
      for (Actor rank = 0; rank < ranks; ++rank)
        CHECK(ran.ranks[static_cast<std::size_t>(rank)].split.compute == (rank == master ? 13'700us : 12ms));
    }
}

// TRAINING.md, section 14: p = 100 MB, x = 38,535,168 B, o = 1,024,000 B, f = 80 ms and B = 160 ms of the whole batch,
// loss and update 1 ms each. Computed by hand from the form: best is K = 4.
TEST_CASE("DataParallel gains up to four GPUs and loses beyond") {
  struct Row {
    int ranks;
    Picoseconds time;
  };
  for (const Row& row : {Row{1, 242'000'000ns}, Row{2, 139'633'327ns}, Row{4, 112'444'990ns}, Row{8, 146'850'822ns},
                         Row{16, 260'053'738ns}}) {
    CAPTURE(row.ranks);
    TrainingStep step{.name = "one", .layers = {}, .update = 1ms};
    step.layers = {{.name = "l",
                    .tensors = {25'000'000},
                    .forward = Picoseconds{80ms} / row.ranks,
                    .backward = Picoseconds{160ms} / row.ranks}};
    std::optional<MasterExchange> exchange;
    if (row.ranks > 1)
      exchange = MasterExchange{.batch = direct(CollectiveOp::scatter, row.ranks, 38'535'168_B),
                                .model = direct(CollectiveOp::broadcast, row.ranks, 100'000'000_B),
                                .outputs = direct(CollectiveOp::gather, row.ranks, 1'024'000_B),
                                .loss = direct(CollectiveOp::scatter, row.ranks, 1'024'000_B),
                                .gradients = direct(CollectiveOp::reduce, row.ranks, 100'000'000_B)};
    const Picoseconds time = run_on_star(data_parallel_program(step, row.ranks, 1ms, exchange)).timeline.duration();
    CHECK((time + 500_ps) / 1000 == row.time / 1000);  // the figures are rounded to a nanosecond
  }
}

// Two GPUs, one layer of 5 us forward and 7 us backward, launches of 10 us; ports of 12.5 GB/s, 2 us a path. 125 kB of
// weights take 10 us, halves of batch and outputs (12.5 kB) 1 us. Scatter and broadcast end at 3 + 12 = 15 us.
// Launched: forward at 10 and 20, loss at 30, backward at 40 and 50, update at 60 us. So the forward passes end at 20
// and 25, the outputs are there at 28, the loss runs from 30 to 31, its gradients are there at 34, the backward passes
// end at 47 and 57, the gradients are there at 69, and the update ends at 71 us.
TEST_CASE("one thread that launches on all GPUs holds them up, each by its own launches and those before") {
  TrainingStep step{.name = "two", .layers = {}, .update = 2us};
  step.layers = {{.name = "l", .tensors = {31'250}, .forward = 5us, .backward = 7us}};
  step.host_launch = 10us;
  step.steps = 3;
  const MasterExchange exchange{.batch = direct(CollectiveOp::scatter, 2, 25'000_B),
                                .model = direct(CollectiveOp::broadcast, 2, 125'000_B),
                                .outputs = direct(CollectiveOp::gather, 2, 25'000_B),
                                .loss = direct(CollectiveOp::scatter, 2, 25'000_B),
                                .gradients = direct(CollectiveOp::reduce, 2, 125'000_B)};
  const Ran ran = run_on_star(data_parallel_program(step, 2, 1us, exchange));
  CHECK(ran.timeline.duration() == 3 * 71us);
  CHECK(ran.ranks[0].last == 71us);
  // The master waits for launches from 28 to 30 and from 34 to 40; the other GPU from 15 to 20 and from 34 to 50,
  // though the thread is the master's.
  CHECK(ran.ranks[0].split.waiting_for_host == 8us);
  CHECK(ran.ranks[1].split.waiting_for_host == 21us);
  CHECK(ran.ranks[0].split.compute == 15us);
  CHECK(ran.ranks[1].split.compute == 12us);
}

// From launches that cost nothing next to the kernels to launches that take all of the time; kernels of 1 to 4 ms. A
// share of the master's port is rounded whenever a message begins or ends: four picoseconds a GPU and step.
TEST_CASE("DataParallel with one thread takes what the form of its launches says") {
  TrainingStep step = three_layers();
  for (const int ranks : {1, 2, 3, 8})
    for (const Actor master : {0, ranks - 1})
      for (const Picoseconds launch : {Picoseconds{5us}, Picoseconds{300us}, Picoseconds{2ms}})
        for (const LaunchOrder order : {LaunchOrder::by_gpu, LaunchOrder::by_layer}) {
          CAPTURE(ranks);
          CAPTURE(master);
          CAPTURE(launch.count());
          step.host_launch = launch;
          const Bytes batch{12'000'000}, outputs{2'400'000};
          const auto exchange = ranks == 1 ? std::nullopt : std::optional(master_of(ranks, master, batch, outputs));
          const Ran ran = run_on_star(data_parallel_program(step, ranks, 1ms, exchange, order));
          const auto to_all = [&](Bytes bytes) {
            return transfer_time({bytes.count * (ranks - 1)}, port.bandwidth) + (ranks > 1 ? 2us : 0us);
          };
          const Bytes one{outputs.count / ranks};
          const Picoseconds time = launched_step_time(step, ranks, master, 1ms, order,
                                                      {.before = to_all({batch.count / ranks}) + to_all(gradients),
                                                       .loss = to_all(one),
                                                       .outputs = transfer_time(one, port.bandwidth),
                                                       .gradients = transfer_time(gradients, port.bandwidth),
                                                       .a = 2us});
          const Picoseconds off = ran.timeline.duration() - 3 * time;
          CHECK(std::abs(off.count()) <= 3 * 4 * ranks);
          // All launches of a step take their time one after the other.
          CHECK(time >= (2 * 3 * ranks + 2) * launch);
        }
}

TEST_CASE("a round of local SGD takes H steps and one all-reduce") {
  for (const char* algorithm : {"ring", "halving_doubling"})
    for (const int ranks : {1, 2, 4, 8, 16})
      for (const int every : {1, 3, 16}) {
        CAPTURE(ranks);
        CAPTURE(every);
        const TrainingStep step = three_layers();
        CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = ranks};
        request.bytes = gradients;
        const auto average =
            ranks == 1 ? std::nullopt : std::optional(check(make_schedule(*find_algorithm(algorithm), request, {})));
        const Picoseconds call = average ? run(star(ranks, port), *average).duration() : Picoseconds{0};
        const Ran ran = run_on_star(local_sgd_program(step, every, average));
        CHECK(ran.timeline.duration() == 3 * (every * 12'700us + call));
        CHECK(local_sgd_round_time(step, every, call) == every * 12'700us + call);
        for (const RankAccount& account : ran.ranks) CHECK(account.split.exposed_communication == call);
      }
}

// Kernels of 1, 2, 1, 2, 4, 2 and 0.7 ms, launched every 1.5 ms from the end of the step before: 1.5 to 2.5, 3 to 5, 5
// to 6, 6 to 8, 8 to 12, 12 to 14, 14 to 14.7 ms. Every step of a round takes that, not its first alone.
TEST_CASE("a host that waits launches each step of a round of local SGD when the one before is done") {
  TrainingStep step = three_layers();
  step.host_launch = 1500us;
  CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = 4};
  request.bytes = gradients;
  const CheckedSchedule average = check(make_schedule(*find_algorithm("ring"), request, {}));
  const Picoseconds call = run(star(4, port), average).duration();
  for (const int every : {1, 2, 3, 16}) {
    CAPTURE(every);
    const Ran ran = run_on_star(local_sgd_program(step, every, average));
    CHECK(ran.timeline.duration() == 3 * (every * 14'700us + call));
    CHECK(local_sgd_round_time(step, every, call) == every * 14'700us + call);
    CHECK(ran.ranks[0].split.waiting_for_host == every * 2ms);
  }
}

TEST_CASE("mutations of a parameter server are refused, and by name") {
  const Program good = parameter_server_program(three_layers(), 4, one_server(4, 0));
  CHECK(verdict_of(good) == "accepted");
  Program no_wait = good;  // role 1 is the master's
  task_named(no_wait, 1, "update").after.clear();
  CHECK(verdict_of(no_wait).find("(update): both touch the gradient of a[0], one of them writes it, and nothing orders "
                                 "them") != std::string::npos);
  Program early_pull = good;
  task_named(early_pull, 1, "pull").after.clear();
  CHECK(verdict_of(early_pull).find("both touch the weights of a[0]") != std::string::npos);
  Program no_pull = good;  // nobody but the master has the new weights
  no_pull.calls[1].variables.clear();
  CHECK(verdict_of(no_pull) ==
        "rank 1: an iteration must add to the weights of a[0] the mean of the gradient of a[0] over 4 ranks, found 0 "
        "times it");
  Program divisor = good;
  divisor.calls[0].divisor = 2;
  CHECK(verdict_of(divisor).find("found the sum divided by 2") != std::string::npos);
  Program missing = good;
  missing.calls[0].variables.erase(missing.calls[0].variables.begin() + 2);
  CHECK(verdict_of(missing) == "the gradient of b is in no call: the ranks never sum it");
}

// 28 MB in 4 shards of 1,750,000 elements: a and its bias end at 1,000,017, b at 5,000,017.
TEST_CASE(
    "a tensor that lies in several shards is proved shard by shard, and a server that keeps old sums is refused") {
  const Program good = parameter_server_program(three_layers(), 3, separate_servers(3, 4));
  CHECK(verdict_of(good) == "accepted");
  CHECK(std::count_if(good.variables.begin(), good.variables.end(), [](const std::string& name) {
          return name.starts_with("the gradient of b in shard ");
        }) == 3);  // 0 to 2
  Program keeps = good;
  task_named(keeps, 1, "push shard 0").touches.clear();
  CHECK(verdict_of(keeps) == "helper 0: push shard 0 sums the gradient of a[0] before it is made in this iteration");
  Program other = good;  // server 0 does not update its part of b
  task_named(other, 1, "update").touches.pop_back();
  CHECK(verdict_of(other) ==
        "rank 0: an iteration must add to the weights of b in shard 0 the mean of the gradient of b in shard 0 over 3 "
        "ranks, found 0 times it");
}

TEST_CASE("mutations of DataParallel are refused, and by name") {
  const Program good = data_parallel_program(three_layers(), 4, 1ms, master_of(4, 1, 4000_B, 400_B));
  CHECK(verdict_of(good) == "accepted");
  Program stale = good;  // replicas keep the weights of long ago
  stale.calls[1].variables.clear();
  CHECK(verdict_of(stale).find("reads the weights of a[0], which at rank 0 are not those that rank 1 had at the end of "
                               "the step before") != std::string::npos);
  Program no_batch = good;
  no_batch.calls[0].variables.clear();
  CHECK(verdict_of(no_batch).find("(forward a) reads the batch before it is made or has come in") != std::string::npos);
  Program no_loss = good;
  no_loss.calls[3].variables.clear();
  CHECK(verdict_of(no_loss).find("reads the gradient of the loss before it is made or has come in") !=
        std::string::npos);
  TrainingStep launched = three_layers();
  launched.host_launch = 1us;
  Program apart = data_parallel_program(launched, 4, 1ms, master_of(4, 1, 4000_B, 400_B));
  CHECK(verdict_of(apart) == "accepted");
  apart.process_of = {0, 0, 0, 1};  // rank 3 is another process, and no thread of the master launches there
  CHECK(verdict_of(apart) ==
        "rank 3, stream 0, task 0 (forward a): it waits for actor 1, which belongs to another process");
  Program early = good;  // role 0 is the master's
  task_named(early, 0, "loss").after.clear();
  CHECK(verdict_of(early).find("(loss) and rank 1, stream 1, task 2 (gather the outputs): both touch the outputs") !=
        std::string::npos);
}

TEST_CASE("mutations of local SGD are refused, and by name") {
  CollectiveRequest request{.op = CollectiveOp::all_reduce, .ranks = 4};
  request.bytes = gradients;
  const Program good = local_sgd_program(three_layers(), 3, check(make_schedule(*find_algorithm("ring"), request, {})));
  CHECK(verdict_of(good) == "accepted");
  Program once = good;  // one of three updates lacks
  task_named(once, 0, "update").touches.clear();
  CHECK(verdict_of(once).find("an iteration must add to the weights of a[0] the mean") != std::string::npos);
  Program divisor = good;
  divisor.calls[0].divisor = 3;
  CHECK(verdict_of(divisor).find("an iteration must add to the weights of a[0] the mean") != std::string::npos);
  Program never = good;
  never.calls[0].variables.clear();
  CHECK(verdict_of(never) == "the weights of a[0] is in no call: the ranks never sum it");
  Program early = good;
  task_named(early, 0, "average").after.clear();
  CHECK(verdict_of(early).find("both touch the weights of a[0]") != std::string::npos);
}

TEST_CASE("every regime says what travels and where computation happens") {
  for (const Regime& regime : regimes()) {
    CAPTURE(regime.name);
    CHECK(find_regime(regime.name) == &regime);
    for (const std::string* text : {&regime.summary, &regime.travels, &regime.computes, &regime.source})
      CHECK(!text->empty());
  }
  CHECK(find_regime("asynchronous") == nullptr);
}

}  // namespace training_regimes_test
