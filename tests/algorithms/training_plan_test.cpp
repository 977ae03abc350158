// Plans of tensor, pipeline and data parallelism: the orders of pipelines, closed forms to the picosecond, bytes,
// proof.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "algorithms/training/plan_program.hpp"
#include "tests/support/command.hpp"
#include "tests/support/small_training.hpp"
#include "tests/support/verdict.hpp"
#include "validate/closed_forms/closed_form_plans.hpp"
#include "validate/closed_forms/small_plan.hpp"

namespace training_plan_test {

using namespace ringsim;
using namespace ringsim::test;
using namespace ringsim::literals;
using namespace std::chrono_literals;

namespace {

constexpr auto gpipe = PipelineSchedule::gpipe, one_f_one_b = PipelineSchedule::one_f_one_b,
               interleaved = PipelineSchedule::interleaved, zero_bubble = PipelineSchedule::zero_bubble_h1,
               zero_bubble_h2 = PipelineSchedule::zero_bubble_h2;

std::string words(const std::vector<PipelinePass>& order) {
  std::string text;
  for (const PipelinePass& pass : order)
    text += (text.empty() ? "" : " ") +
            std::string(pass.weights    ? "W"
                        : pass.backward ? "B"
                                        : "F") +
            std::to_string(pass.micro_batch) + (pass.chunk > 0 ? "'" : "");
  return text;
}

/// Of one iteration on ports where what a stage hands on takes 2 us and 80 ps a byte.
Picoseconds simulated(const PlanSpec& spec) {
  return run_on_star(small_plan_program(spec).program).timeline.duration();
}

}  // namespace

// Megatron-LM's figure of 1f1b and of interleaved stages: p = 2, 4 micro-batches, 2 chunks.
TEST_CASE("a stage runs its passes in the order of its schedule") {
  CHECK(words(pipeline_order({gpipe, 2, 1, 3}, 0)) == "F0 F1 F2 B2 B1 B0");
  CHECK(words(pipeline_order({one_f_one_b, 3, 1, 4}, 0)) == "F0 F1 F2 B0 F3 B1 B2 B3");
  CHECK(words(pipeline_order({one_f_one_b, 3, 1, 4}, 2)) == "F0 B0 F1 B1 F2 B2 F3 B3");
  CHECK(words(pipeline_order({zero_bubble, 3, 1, 4}, 0)) == "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3");
  CHECK(words(pipeline_order({zero_bubble, 3, 1, 4}, 1)) == "F0 F1 B0 F2 B1 W0 F3 B2 W1 B3 W2 W3");
  CHECK(words(pipeline_order({zero_bubble, 3, 1, 4}, 2)) == "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3");
  // 4, 2 and 0 forward passes first, as many passes for weights after the last backward pass, and one.
  CHECK(words(pipeline_order({zero_bubble_h2, 3, 1, 6}, 0)) == "F0 F1 F2 F3 F4 B0 W0 F5 B1 W1 B2 W2 B3 W3 B4 W4 B5 W5");
  CHECK(words(pipeline_order({zero_bubble_h2, 3, 1, 6}, 1)) == "F0 F1 F2 B0 F3 B1 F4 B2 W0 F5 B3 W1 B4 W2 B5 W3 W4 W5");
  CHECK(words(pipeline_order({zero_bubble_h2, 3, 1, 6}, 2)) == "F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 W0 F5 B5 W1 W2 W3 W4 W5");
  CHECK(words(pipeline_order({interleaved, 2, 2, 4}, 0)) == "F0 F1 F0' F1' F2 B0' F3 B1' F2' B0 F3' B1 B2' B3' B2 B3");
  CHECK(words(pipeline_order({interleaved, 2, 2, 4}, 1)) == "F0 F1 F0' B0' F1' B1' F2 B0 F3 B1 F2' B2' F3' B3' B2 B3");
}

TEST_CASE("each micro-batch passes each chunk once there and once back, its backward pass later") {
  for (const int p : {1, 2, 3, 4, 8})
    for (const int v : {1, 2, 3})
      for (const int times : {1, 2, 3})
        for (const auto schedule : pipeline_schedules) {
          if (v > 1 && schedule != interleaved) continue;
          const PipelineShape shape{schedule, p, v, p * times};
          for (int stage = 0; stage < p; ++stage) {
            CAPTURE(stage);
            std::set<std::array<int, 4>> seen;
            int alive = 0, most = 0;
            for (const PipelinePass& pass : pipeline_order(shape, stage)) {
              CHECK(seen.insert({pass.backward, pass.weights, pass.chunk, pass.micro_batch}).second);
              if (pass.backward) CHECK(seen.count({0, 0, pass.chunk, pass.micro_batch}) == 1);
              if (pass.weights) CHECK(seen.count({1, 0, pass.chunk, pass.micro_batch}) == 1);
              if (!pass.backward && !pass.weights) ++alive;
              if (pass.is_last_of(shape)) --alive;
              most = std::max(most, alive);
            }
            CHECK(seen.size() == static_cast<std::size_t>((shape.splits_backward() ? 3 : 2) * v * p * times));
            CHECK(most == passes_in_flight(shape, stage));
          }
        }
}

// The forms hold where a hop is no longer than a pass. The terms with hops have no proof but these cases.
TEST_CASE("pipelines of equal stages take what the closed forms say") {
  int cases = 0;
  const auto expect_form = [&](const PipelineShape& shape) {
    for (const auto& [forward, backward] : {std::pair{3us, 5us}, {5us, 4us}, {4us, 4us}})
      for (const Picoseconds hop : {Picoseconds{0}, Picoseconds{1us}, Picoseconds{3us}}) {
        CAPTURE(shape.stages);
        CAPTURE(shape.chunks);
        CAPTURE(shape.micro_batches);
        const ClosedForm form = pipeline_form(shape, forward, backward, hop);
        CHECK(form.holds());
        CHECK(pipeline_time(shape, forward, backward, hop) == form.time);
        ++cases;
      }
  };
  for (int p = 1; p <= 12; ++p)
    for (int m = 1; m <= 26; ++m)
      for (const auto schedule : {gpipe, one_f_one_b}) expect_form({schedule, p, 1, m});
  for (int p = 1; p <= 9; ++p)
    for (int v = 2; v <= 5; ++v)
      for (int k = 1; k <= 7; ++k) expect_form({interleaved, p, v, k * p});
  CHECK(cases == 9 * (12 * 26 * 2 + 9 * 4 * 7));
  for (int p = 1; p <= 12; ++p)
    for (int m = p; m <= 36; ++m)
      for (const auto& [forward, backward, weights] :
           {std::array{3us, 5us, 3us}, {5us, 4us, 2us}, {4us, 4us, 4us}, {5us, 6us, 1us}})
        for (const Picoseconds hop : {Picoseconds{0}, Picoseconds{500ns}, Picoseconds{weights} / 2}) {
          CAPTURE(p);
          CAPTURE(m);
          const PipelineShape shape{zero_bubble, p, 1, m};
          const ClosedForm form = pipeline_form(shape, forward, backward, hop, weights);
          CHECK(form.holds());
          CHECK(pipeline_time(shape, forward, backward, p == 1 ? Picoseconds{0} : hop, weights) == form.time);
        }
}

// Of these times some have F+B-2W = 0, some F+B-2W+2c above F+c, some below, some exactly F+c.
TEST_CASE("zero_bubble_h2 takes what its two forms say, alone and in a row of steps") {
  int n = 0, without_bubble = 0;
  for (int p = 1; p <= 12; ++p)
    for (int m = 2 * p - 1; m <= 40; ++m)
      for (const auto& [forward, backward, weights] :
           {std::array{3us, 5us, 3us}, {5us, 4us, 2us}, {4us, 4us, 4us}, {5us, 6us, 1us}, {4us, 6us, 4us}})
        for (const Picoseconds hop : {Picoseconds{0}, Picoseconds{500ns}, Picoseconds{weights} / 2}) {
          CAPTURE(p);
          CAPTURE(m);
          const PipelineShape shape{zero_bubble_h2, p, 1, m};
          const ClosedForm alone = pipeline_form(shape, forward, backward, hop, weights),
                           in_row = pipeline_period_form(shape, forward, backward, hop, weights);
          CHECK(alone.holds());
          CHECK(in_row.holds());
          CHECK(pipeline_time(shape, forward, backward, hop, weights) == alone.time);
          CHECK(pipeline_period(shape, forward, backward, hop, weights) == in_row.time);
          without_bubble += in_row.time == m * Picoseconds{forward + backward + weights} + hop ? 1 : 0;
          ++n;
        }
  CHECK(n == 15 * (12 * 41 - 12 * 12));
  CHECK(without_bubble > n / 15);
}

// Unlike stages may take some steps until all steps take equally long: 12 of them are simulated, with a link for each
// pair of ranks, so that what comes from both neighbors does not meet.
TEST_CASE("steps in a row end one period after each other, with zero_bubble_h2 a shorter one than a step alone") {
  std::mt19937 draw(3);
  int shorter = 0;  // of zero_bubble_h2
  for (const auto schedule : {gpipe, one_f_one_b, zero_bubble, zero_bubble_h2})
    for (int i = 0; i < 10; ++i) {
      const int p = 2 + static_cast<int>(draw() % 3);
      const PipelineShape shape{schedule, p, 1, 2 * p - 1 + static_cast<int>(draw() % 4)};
      PlanSpec spec = small_plan(1, p, 1, shape);
      PassTimes times;
      for (auto& chunks : spec.layers) {
        PlanLayer& layer = chunks.front().front();
        const auto drawn = [&] { return Picoseconds{3'000'000 + draw() % 3'000'000}; };
        times.forward.push_back({layer.forward[0].time = drawn()});
        times.backward.push_back({layer.backward[0].time = drawn()});
        times.weights.push_back({Picoseconds{0}});
        if (shape.splits_backward()) times.weights.back() = {layer.weights[0].time = drawn()};
      }
      const auto after = [&](int steps) {
        spec.iterations = steps;
        const LoweredProgram lowered(check(small_plan_program(spec).program));
        return run(build(FullMesh{p, {.bandwidth = 100_Gbps, .latency = 2us, .source = "test"}}), lowered.schedule(),
                   {})
            .duration();
      };
      CAPTURE(to_string(schedule));
      const Picoseconds period = pipeline_period(shape, times, 2'080ns), alone = pipeline_time(shape, times, 2'080ns);
      CHECK(after(1) == alone);
      CHECK(after(12) - after(11) == period);
      shorter += schedule == zero_bubble_h2 && period < alone ? 1 : 0;
      if (schedule == gpipe || schedule == one_f_one_b) CHECK(period == alone);
    }
  CHECK(shorter > 5);  // of ten; in the others unlike stages wait for longer than a step takes to fill
}

// A star: 1,000 bytes take 80 ns and a path of 2 us. With the orders alone: a hop of 2.08 us.
TEST_CASE("the simulated pipeline takes what its recurrence says, to the picosecond") {
  for (const int p : {1, 2, 3, 4, 5, 8})
    for (const int m : {1, 2, 3, 7, 12})
      for (const auto schedule : {gpipe, one_f_one_b}) {
        CAPTURE(p);
        CAPTURE(m);
        const PipelineShape shape{schedule, p, 1, m};
        CHECK(simulated(small_plan(1, p, 1, shape)) == pipeline_time(shape, 3us, 5us, 2'080ns));
      }
  for (const int p : {1, 2, 3, 5})  // also fewer micro-batches than stages
    for (const int m : {1, 2, 4, 9}) {
      CAPTURE(p);
      CAPTURE(m);
      for (const auto schedule : {zero_bubble, zero_bubble_h2}) {
        const PipelineShape shape{schedule, p, 1, m};
        CHECK(simulated(small_plan(1, p, 1, shape)) == pipeline_time(shape, 3us, 3us, 2'080ns, 2us));
      }
    }
  for (const int p : {2, 3, 4, 5})
    for (const int v : {2, 3})
      for (const int k : {1, 2, 3}) {
        CAPTURE(p);
        CAPTURE(v);
        const PipelineShape shape{interleaved, p, v, k * p};
        CHECK(simulated(small_plan(1, p, 1, shape)) == pipeline_time(shape, 3us, 5us, 2'080ns));
      }
}

namespace {

/// The end of a pass by its definition: it begins when the pass before it on its stage and the one that it reads are
/// done.
class NaivePipeline {
 public:
  NaivePipeline(const PipelineShape& shape, const PassTimes& times, Picoseconds hop)
      : shape_(shape), times_(times), hop_(hop) {}

  Picoseconds end() {
    Picoseconds last{0};
    for (int stage = 0; stage < shape_.stages; ++stage)
      last = std::max(last, end(stage, pipeline_order(shape_, stage).back()));
    return last;
  }

 private:
  Picoseconds end(int stage, const PipelinePass& pass) {
    const std::array<int, 4> key{stage, pass.weights ? 2 : pass.backward ? 1 : 0, pass.chunk, pass.micro_batch};
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    const std::vector<PipelinePass> order = pipeline_order(shape_, stage);
    const auto at = std::find(order.begin(), order.end(), pass);
    Picoseconds begin = at == order.begin() ? Picoseconds{0} : end(stage, *std::prev(at));
    const int p = shape_.stages, place = pass.chunk * p + stage, last = shape_.chunks * p - 1;
    const auto read = [&](int from, bool backward, Picoseconds way) {
      begin = std::max(begin, end(from % p, {backward, from / p, pass.micro_batch}) + way);
    };
    if (pass.weights) return known_[key] = begin + times_.weights[static_cast<std::size_t>(stage)][0];
    if (!pass.backward && place > 0) read(place - 1, false, hop_);
    if (pass.backward && place == last) read(place, false, Picoseconds{0});
    if (pass.backward && place < last) read(place + 1, true, hop_);
    const auto& time = pass.backward ? times_.backward : times_.forward;
    return known_[key] = begin + time[static_cast<std::size_t>(stage)][static_cast<std::size_t>(pass.chunk)];
  }

  PipelineShape shape_;
  const PassTimes& times_;
  Picoseconds hop_;
  std::map<std::array<int, 4>, Picoseconds> known_;
};

}  // namespace

TEST_CASE("the time of a pipeline of unlike stages is that of its passes one by one") {
  std::mt19937 draw(7);
  for (int i = 0; i < 200; ++i) {
    const int p = 2 + static_cast<int>(draw() % 4), kind = static_cast<int>(draw() % 5);
    PipelineShape shape{pipeline_schedules[kind], p, 1, 1 + static_cast<int>(draw() % 7)};
    if (kind == 2) shape.chunks = 2 + static_cast<int>(draw() % 2);
    if (kind == 2) shape.micro_batches *= p;
    PassTimes times;
    for (int stage = 0; stage < p; ++stage)
      for (auto* each : {&times.forward, &times.backward, &times.weights}) {
        each->emplace_back();
        for (int chunk = 0; chunk < shape.chunks; ++chunk) each->back().emplace_back(draw() % 1000);
      }
    const Picoseconds hop{draw() % 500};
    CHECK(pipeline_time(shape, times, hop) == NaivePipeline(shape, times, hop).end());
  }
}

// A link for each pair of ranks, so that transfers to stages share none with those of the tensor group. By a ring, an
// all-reduce of 1,000 bytes takes 2 (40 + 2,000) ns, the gather of 2,000 bytes 80 + 2,000 ns, a hop as long.
TEST_CASE(
    "a pass that gathers what has come in parts takes as much longer, and the pipeline what its recurrence says") {
  int n = 0;
  for (const int p : {2, 3, 5})
    for (const PipelineShape shape : {PipelineShape{gpipe, p, 1, 4}, PipelineShape{one_f_one_b, p, 1, 7},
                                      PipelineShape{interleaved, p, 3, 2 * p}, PipelineShape{zero_bubble, p, 1, 6}}) {
      CAPTURE(p);
      CAPTURE(to_string(shape.schedule));
      PlanSpec spec = small_plan(2, p, 1, shape, 1, 1'000_B);
      spec.scatters = true;
      PassTimes times;
      for (int stage = 0; stage < p; ++stage) {
        for (auto* each : {&times.forward, &times.backward, &times.weights}) each->emplace_back();
        for (int chunk = 0; chunk < shape.chunks; ++chunk) {
          const bool is_first = stage == 0 && chunk == 0, is_last = stage + 1 == p && chunk + 1 == shape.chunks;
          const Picoseconds passes = shape.splits_backward() ? 3us : 5us;
          times.forward.back().push_back(3us + 4'080ns + (is_first ? 0ns : 2'080ns));
          times.backward.back().push_back(passes + 4'080ns + (is_last ? 0ns : 2'080ns));
          times.weights.back().push_back(2us);
        }
      }
      const LoweredProgram lowered(check(small_plan_program(spec).program));
      const Topology mesh = build(FullMesh{2 * p, {.bandwidth = 100_Gbps, .latency = 2us, .source = "test"}});
      CHECK(run(mesh, lowered.schedule(), {}).duration() == pipeline_time(shape, times, 2'080ns));
      ++n;
    }
  CHECK(n == 12);
}

// Ring: 2 (t - 1)/t of the bytes per rank; 2 all-reduces a layer and micro-batch; each cut once there and once back.
TEST_CASE("a plan sends its tensor, pipeline and data volumes, to the byte") {
  for (const int t : {1, 2, 4})
    for (const int p : {1, 2, 3})
      for (const int d : {1, 2})
        for (const bool shards : {false, true}) {
          CAPTURE(t);
          CAPTURE(p);
          CAPTURE(d);
          PlanSpec spec = small_plan(t, p, d, {one_f_one_b, p, 1, 4}, 3, 4'800_B);
          spec.shard = shards ? PlanShard::optimizer : PlanShard::none;
          const std::int64_t ranks = t * p * d, tensor = 4 * 3 * 2 * 2 * (t - 1) * 4'800 / t;
          const std::int64_t cuts = 2LL * (p - 1) * t * d * 4 * 1'000;
          const std::int64_t each_way = 3'000LL * (d - 1) / d;
          const std::int64_t data = shards ? each_way * (4 + 2) : 2 * each_way * 4;
          CHECK(run_on_star(small_plan_program(spec).program).timeline.bytes_sent.count ==
                ranks * (tensor + data) + cuts);
        }
}

TEST_CASE("ranks are numbered by the order, whose first word varies fastest") {
  const PlanGrid plain(2, 3, 4, "tp-cp-ep-dp-pp"), turned(2, 3, 4, "tp-cp-ep-pp-dp");
  CHECK(plain.rank({.tensor = 1, .stage = 2, .data = 3}) == 1 + 2 * 3 + 8 * 2);
  CHECK(turned.rank({.tensor = 1, .stage = 2, .data = 3}) == 1 + 2 * 2 + 6 * 3);
  for (const PlanGrid& grid : {plain, turned})
    for (Actor rank = 0; rank < grid.ranks(); ++rank) CHECK(grid.rank(grid.digits(rank)) == rank);
  CHECK(plain.data_groups(1).front() == std::vector<Actor>{8, 10, 12, 14});
  CHECK(plain.tensor_groups(1).front() == std::vector<Actor>{8, 9});
  CHECK(turned.pairs(0, 1).front() == std::vector<Actor>{0, 2});
  CHECK(PlanGrid::is_order("pp-dp-cp-ep-tp"));
  CHECK_FALSE(PlanGrid::is_order("tp-dp-pp"));
  CHECK_FALSE(PlanGrid::is_order("tp-cp-ep-dp-dp"));
}

TEST_CASE("plans of all schedules, shards, overlaps and ties are proved") {
  int n = 0;
  for (const int t : {1, 2})
    for (const int d : {1, 2, 3})
      for (const PipelineShape shape :
           {PipelineShape{gpipe, 1, 1, 2}, PipelineShape{gpipe, 3, 1, 4}, PipelineShape{one_f_one_b, 2, 1, 5},
            PipelineShape{interleaved, 2, 2, 4}, PipelineShape{interleaved, 3, 3, 6},
            PipelineShape{zero_bubble, 3, 1, 5}, PipelineShape{zero_bubble_h2, 3, 1, 6}})
        for (int options = 0; options < 32; ++options) {
          PlanSpec spec = small_plan(t, shape.stages, d, shape, 2);
          spec.iterations = 2;
          spec.shard = (options & 1) != 0 ? PlanShard::optimizer : PlanShard::none;
          spec.overlaps_reduce = (options & 2) != 0;
          spec.overlaps_gather = (options & 4) != 0;
          spec.tied = (options & 8) != 0 ? 500 : 0;
          spec.scatters = (options & 16) != 0 && t > 1 && shape.stages > 1;
          spec.bucket = 1'000;  // each layer
          CAPTURE(options);
          CHECK(verdict_of(small_plan_program(spec).program) == "accepted");
          ++n;
        }
  CHECK(n == 2 * 3 * 7 * 32);
}

// A layer's backward pass takes 1.25 ms, its bucket of 4 MB a ring of two: 2 (160 + 2) us. The last of four is exposed;
// apart all of them are, in one call: 2 (640 + 2) us.
TEST_CASE("buckets that are reduced during the backward pass are hidden, but for the last") {
  PlanSpec spec = small_plan(1, 1, 2, {one_f_one_b, 1, 1, 2}, 4);
  for (PlanLayer& layer : spec.layers[0][0]) {
    layer.parameters = 1'000'000;
    layer.forward[0].time = 750us;
    layer.backward[0].time = 1'250us;
  }
  spec.bucket = 1;
  CHECK(simulated(spec) == 16ms + 1'284us);
  spec.overlaps_reduce = true;
  CHECK(simulated(spec) == 16ms + 324us);
}

// Six programs that are almost right, each refused with what is wrong.
TEST_CASE("mutations of a plan are refused by name") {
  PlanSpec spec = small_plan(2, 3, 2, {one_f_one_b, 3, 1, 4}, 2);
  spec.shard = PlanShard::optimizer;
  const Program good = small_plan_program(spec).program;
  CHECK(verdict_of(good) == "accepted");

  SUBCASE("a warm-up one short at one stage") {
    // Stage 0 of 3 runs F0 F1 F2 B0 F3 B1 B2 B3, and here F0 F1 B0 F2 B1 F3 B2 B3.
    PlanSpec plain = small_plan(1, 3, 1, {one_f_one_b, 3, 1, 4}, 1);
    Program program = small_plan_program(plain).program;
    std::vector<Program::Task>& tasks = program.roles[0].streams[0];
    REQUIRE(program.name_of(tasks[2]) == "forward layers.0 of micro-batch 2");
    REQUIRE(program.name_of(tasks[3]) == "backward layers.0 of micro-batch 0");
    std::swap(tasks[2], tasks[3]);
    std::swap(tasks[4], tasks[5]);
    for (const std::size_t m : {2U, 3U}) ++program.roles[0].streams[1][m].after.begin()->tasks;  // what F2, F3 hand on
    CHECK(verdict_of(program) == "rank 0 keeps the activations of 2 passes at the same time, expected 3");
  }
  SUBCASE("two micro-batches swapped at one end of a cut") {
    Program program = good;
    std::vector<Program::Task>& in = program.roles[1].streams[2];
    REQUIRE(program.name_of(in[0]) == "send on micro-batch 0");
    std::swap(in[0].call, in[1].call);
    CHECK(verdict_of(program) ==
          "rank 4, stream 2, task 1 (send on micro-batch 0) comes after send on micro-batch 1; rank 0, stream 2, task "
          "1 (send on micro-batch 1) comes after send on micro-batch 0: a cycle of waits");
  }
  SUBCASE("a reduce before the last micro-batch") {
    Program program = good;
    const Stream data = static_cast<Stream>(program.streams.size()) - 1;
    Program::Task& reduce = program.roles[1].streams[static_cast<std::size_t>(data)][0];
    REQUIRE(program.name_of(reduce) == "reduce bucket 0");
    for (Program::After& after : reduce.after) after.tasks -= 6;
    CHECK(verdict_of(program).find("both touch the gradient of bucket 0 of chunk 0, one of them writes it") !=
          std::string::npos);
  }
  SUBCASE("an update without a gather") {
    Program program = good;
    for (Program::Role& role : program.roles)
      for (auto& tasks : role.streams)
        std::erase_if(tasks, [&](const Program::Task& task) { return program.name_of(task) == "gather bucket 0"; });
    for (Program::Role& role : program.roles)
      for (auto& tasks : role.streams)
        for (Program::Task& task : tasks)
          for (Program::After& after : task.after)
            after.tasks =
                std::min(after.tasks, static_cast<int>(role.streams[static_cast<std::size_t>(after.stream)].size()));
    // The calls are left out, too: numbers of the others do not change, because gathers of a stage are its last calls.
    for (Program::Call& call : program.calls)
      if (call.name == "gather bucket 0") call.name = "never made";
    CHECK(verdict_of(program) == "rank 0 never calls never made, although it is a member");
    std::vector<int> number(program.calls.size());
    std::vector<Program::Call> kept;
    for (std::size_t c = 0; c < program.calls.size(); ++c) {
      number[c] = static_cast<int>(kept.size());
      if (program.calls[c].name != "never made") kept.push_back(program.calls[c]);
    }
    program.calls = kept;
    for (Program::Role& role : program.roles)
      for (auto& tasks : role.streams)
        for (Program::Task& task : tasks)
          if (task.call >= 0) task.call = number[static_cast<std::size_t>(task.call)];
    CHECK(verdict_of(program) ==
          "rank 0: an iteration must leave the weights of bucket 0 of chunk 0 whole, found that the rank has only the "
          "part that it has updated");
  }
  SUBCASE("a wrong divisor") {
    Program program = good;
    for (Program::Call& call : program.calls)
      if (call.name == "reduce bucket 0") call.divisor = 1;
    CHECK(verdict_of(program) ==
          "rank 0: an iteration must add to the weights of bucket 0 of chunk 0 the sum of the gradient of bucket 0 of "
          "chunk 0 over 2 ranks, divided by 2, found the sum divided by 1");
  }
  SUBCASE("a tensor group that leaves out a sum") {
    Program program = good;
    for (Program::Task& task : program.roles[0].streams[0])
      for (Program::Touch& touch : task.touches)
        if (task.name == "backward layers.1 rest of micro-batch 0" && touch.as == Program::Touch::As::read_whole)
          task.after.clear();
    CHECK(verdict_of(program).find("both touch the partial sums of a layer, one of them writes it") !=
          std::string::npos);
  }
  SUBCASE("a micro-batch whose gradient is not added") {
    Program program = good;
    for (Program::Task& task : program.roles[0].streams[0])
      if (task.name == "backward layers.0 rest of micro-batch 2")
        task.touches.erase(std::find_if(task.touches.begin(), task.touches.end(), [](const Program::Touch& touch) {
          return touch.as == Program::Touch::As::add;
        }));
    CHECK(verdict_of(program) ==
          "rank 0: an iteration must add to the gradient of bucket 0 of chunk 0 4 times, once for each micro-batch, "
          "found 3");
  }
}

TEST_CASE("mutations of a plan that sends activations in parts are refused by name") {
  PlanSpec spec = small_plan(2, 2, 1, {one_f_one_b, 2, 1, 2}, 1);
  spec.scatters = true;
  Program program = small_plan_program(spec).program;
  REQUIRE(verdict_of(program) == "accepted");
  std::vector<Program::Task>& tensor = program.roles[1].streams[1];
  REQUIRE(program.name_of(tensor[0]) == "gather parts");
  Program::Task& first = program.roles[1].streams[0][0];
  REQUIRE(program.name_of(first) == "forward layers.1 of micro-batch 0");

  SUBCASE("a gather that does not wait for what comes") {
    for (Program::After& after : tensor[0].after)
      if (after.stream != 0) after = {0, 1, 1};
    CHECK(has(verdict_of(program), "both touch the activations of micro-batch 0 between stages, chunk 0"));
  }
  SUBCASE("a pass that does not wait for its gather") {
    for (Program::After& after : first.after)
      if (after.stream == 1) after = {0, 1, 1};
    CHECK(has(verdict_of(program), "both touch activations from the stage before, gathered, one of them writes it"));
  }
  SUBCASE("a pass that reads what the one before it has gathered") {
    const auto second = std::find_if(tensor.begin() + 1, tensor.end(), [&](const Program::Task& task) {
      return program.name_of(task) == "gather parts";
    });
    REQUIRE(second != tensor.end());
    Program::Call& call = program.calls[static_cast<std::size_t>(second->call)];
    REQUIRE(program.variables[0] == "the partial sums of a layer");
    call.into = {0};
    CHECK(has(verdict_of(program), "has freed and not gathered again"));
  }
  SUBCASE("a pass that reads its own part alone") {
    const int part = *program.calls[static_cast<std::size_t>(tensor[0].call)].variables.begin();
    for (Program::Touch& touch : first.touches)
      if (touch.as == Program::Touch::As::read_whole) touch.variable = part;
    CHECK(has(verdict_of(program), "has only what it has made itself"));
  }
}

// Stage 2 of 3 runs F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3.
TEST_CASE("mutations of passes for weights are refused by name") {
  PlanSpec spec = small_plan(1, 3, 2, {zero_bubble, 3, 1, 4}, 1);
  spec.overlaps_reduce = true;
  const Program good = small_plan_program(spec).program;
  REQUIRE(verdict_of(good) == "accepted");
  Program program = good;
  std::vector<Program::Task>& tasks = program.roles[2].streams[0];
  REQUIRE(program.name_of(tasks[6]) == "weights layers.2 of micro-batch 0");

  SUBCASE("weights before the backward pass of their micro-batch") {
    std::vector<Program::Task>& first = program.roles[0].streams[0];  // F0 F1 F2 B0 W0
    REQUIRE(program.name_of(first[4]) == "weights layers.0 of micro-batch 0");
    std::swap(first[3], first[4]);
    CHECK(verdict_of(program) ==
          "rank 0, stream 0, task 3 (weights layers.0 of micro-batch 0) reads what the backward pass of micro-batch 0 "
          "leaves to that for weights before it is made or has come in");
  }
  SUBCASE("a micro-batch without its pass for weights") {
    for (Program::Touch& touch : tasks[9].touches)
      if (touch.as == Program::Touch::As::add) touch = {Program::Touch::As::read, touch.variable, -1};
    CHECK(verdict_of(program) ==
          "rank 4: an iteration must add to the gradient of bucket 0 of chunk 0 4 times, once for each micro-batch, "
          "found 3");
  }
  SUBCASE("a reduction before the last pass for weights") {
    const Stream data = static_cast<Stream>(program.streams.size()) - 1;
    Program::Task& reduce = program.roles[2].streams[static_cast<std::size_t>(data)][0];
    REQUIRE(program.name_of(reduce) == "reduce bucket 0");
    for (Program::After& after : reduce.after) --after.tasks;
    CHECK(verdict_of(program) ==
          "rank 4, stream 5, task 0 (reduce bucket 0) and rank 4, stream 0, task 11 (weights layers.2 of micro-batch "
          "3): both touch the gradient of bucket 0 of chunk 0, one of them writes it, and nothing orders them");
  }
  SUBCASE("a pass for weights that comes later, so that more is kept") {
    std::rotate(tasks.begin() + 6, tasks.begin() + 7, tasks.begin() + 8);
    CHECK(verdict_of(program) == "rank 4 keeps the activations of 4 passes at the same time, expected 3");
  }
}

// Stage 1 of 3 runs F0 F1 F2 B0 F3 B1 F4 B2 W0 F5 B3 W1 B4 W2 B5 W3 W4 W5.
TEST_CASE("mutations of zero_bubble_h2 are refused by name") {
  Program program = small_plan_program(small_plan(1, 3, 1, {zero_bubble_h2, 3, 1, 6}, 1)).program;
  REQUIRE(verdict_of(program) == "accepted");
  std::vector<Program::Task>& tasks = program.roles[1].streams[0];
  REQUIRE(program.name_of(tasks[8]) == "weights layers.1 of micro-batch 0");
  SUBCASE("a pass for weights one forward pass later, so that more is kept") {
    std::swap(tasks[8], tasks[9]);
    CHECK(verdict_of(program) == "rank 1 keeps the activations of 6 passes at the same time, expected 5");
  }
  SUBCASE("a micro-batch's weights before its backward pass") {
    std::vector<Program::Task>& first = program.roles[0].streams[0];  // F0 F1 F2 F3 F4 B0 W0
    std::swap(first[5], first[6]);
    CHECK(verdict_of(program) ==
          "rank 0, stream 0, task 5 (weights layers.0 of micro-batch 0) reads what the backward pass of micro-batch 0 "
          "leaves to that for weights before it is made or has come in");
  }
}

}  // namespace training_plan_test
