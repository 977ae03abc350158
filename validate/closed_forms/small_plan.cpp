#include "validate/closed_forms/small_plan.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/check/check.hpp"
#include "sim/check/in_groups.hpp"

namespace ringsim {

using namespace std::chrono_literals;

PlanCall small_plan_call(const PlanSpec& spec, const PlanExchange& exchange) {
  const Program::Groups groups = plan_groups(spec, exchange.use, exchange.stage);
  const bool is_send = exchange.op == CollectiveOp::send_recv, is_pair = is_send && !is_ring(exchange.use);
  CollectiveRequest request{.op = is_pair ? CollectiveOp::broadcast : exchange.op,
                            .ranks = static_cast<int>(groups.front().size())};
  request.bytes = exchange.bytes;
  const bool is_direct = is_send || exchange.op == CollectiveOp::all_to_all;
  const CheckedSchedule one = check(make_schedule(*find_algorithm(is_direct ? "direct" : "ring"), request, {}));
  return {.schedule = in_groups(std::vector<CheckedSchedule>(groups.size(), one))};
}

PlanProgram small_plan_program(const PlanSpec& spec) {
  return plan_program(spec, [&](const PlanExchange& exchange) { return small_plan_call(spec, exchange); });
}

PlanSpec small_plan(int tensor, int pipeline, int data, const PipelineShape& shape, int layers, Bytes bytes) {
  PlanSpec spec{.name = "small", .grid = PlanGrid(tensor, pipeline, data, "tp-cp-ep-dp-pp")};
  spec.schedule = shape.schedule;
  spec.chunks = shape.chunks;
  spec.micro_batches = shape.micro_batches;
  spec.activations = Bytes{1'000};
  for (int stage = 0; stage < pipeline; ++stage) {
    spec.layers.emplace_back();
    spec.update.push_back(0us);
    for (int chunk = 0; chunk < shape.chunks; ++chunk) {
      spec.layers.back().emplace_back();
      for (int l = 0; l < layers; ++l) {
        PlanLayer layer{.name = fmt::format("layers.{}", (chunk * pipeline + stage) * layers + l), .parameters = 1'000};
        const auto pass = [&](Picoseconds time, std::vector<PlanKernel>& into) {
          into = {{.name = "", .time = time / layers}};
          if (tensor == 1) return;
          into.push_back({.op = CollectiveOp::all_reduce, .bytes = bytes});
          into.push_back({.name = "rest", .time = Picoseconds{0}});
        };
        pass(3us, layer.forward);
        const bool splits = shape.splits_backward();
        pass(splits ? 3us : 5us, layer.backward);
        if (splits) layer.weights = {{.name = "", .time = Picoseconds{2us} / layers}};
        spec.layers.back().back().push_back(std::move(layer));
      }
    }
  }
  return spec;
}

void add_small_ring(PlanLayer& layer, int ranks, Bytes block, Picoseconds forward, Picoseconds backward,
                    Picoseconds sum) {
  const auto hop = [](std::vector<PlanKernel>& pass, PlanUse use, Bytes bytes) {
    pass.push_back({.op = CollectiveOp::send_recv, .bytes = bytes, .use = use});
  };
  const auto kernel = [](std::vector<PlanKernel>& pass, PlanUse use, std::string name, Picoseconds time) {
    pass.push_back({.name = std::move(name), .time = time, .use = use});
  };
  for (int step = 0; step < ranks; ++step) {
    if (step + 1 < ranks) hop(layer.forward, PlanUse::ring, block);
    kernel(layer.forward, PlanUse::ring, fmt::format("core {}", step), forward);
  }
  for (int step = ranks - 1; step >= 0; --step) {
    hop(layer.backward, PlanUse::ring_back, step == 0 || step == ranks - 1 ? block : 2 * block);
    kernel(layer.backward, PlanUse::ring_back, fmt::format("core {}", step), backward);
    kernel(layer.backward, PlanUse::ring_back, fmt::format("sum {}", step), sum);
  }
  for (std::vector<PlanKernel>* pass : {&layer.forward, &layer.backward})
    pass->push_back({.name = "rest", .time = Picoseconds{0}});
}

Picoseconds small_plan_passes(const PlanSpec& spec) {
  Picoseconds time{0};
  for (const std::vector<PlanLayer>& chunk : spec.layers.front())
    for (const PlanLayer& layer : chunk)
      for (const std::vector<PlanKernel>* pass : {&layer.forward, &layer.backward, &layer.weights})
        for (const PlanKernel& kernel : *pass)
          if (!kernel.is_of_ring()) time = add(time, kernel.time);
  return time;
}

}  // namespace ringsim
