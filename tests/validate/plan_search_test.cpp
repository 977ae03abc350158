// The search for plans: which plans there are, what each takes at the least, and that the fastest are found.
#include "validate/analysis/plan_search.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/sanitized.hpp"
#include "validate/analysis/plan_bound.hpp"

namespace plan_search_test {

using namespace ringsim;
using namespace ringsim::test;

namespace {

/// A small transformer on a star of 50 GB/s.
Json small(int ranks, int batch = 16) {
  return Json::parse(fmt::format(
      R"({{"version": 1, "name": "small",
      "topology": {{"kind": "star", "ranks": {}, "link": {{"bandwidth": "50 GB/s", "latency": "1 us"}}}},
      "training": {{"workload": {{"transformer": {{"layers": 4, "hidden": 512, "heads": 4, "ffn": 1536,
                                                   "vocabulary": 1000}},
                                  "sequence": 256, "global_batch_size": {},
                                  "compute": {{"gemm": "60%", "attention": "40%", "memory": "80%",
                                               "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}}}},
                    "parallel": {{}}, "optimizer": "adam", "steps": 1, "warmup": 1}}}})",
      ranks, batch));
}

Json on_two_nodes() {
  Json document = small(8);
  document["topology"] = {{"kind", "cluster"},
                          {"node", "dgx-a100"},
                          {"nodes", 2},
                          {"fabric", {{"kind", "star"}, {"link", {{"bandwidth", "200 Gb/s"}, {"latency", "1 us"}}}}}};
  document["library"] = "nccl";
  return document;
}

OpenPlans plans_of(const Json& document) { return {document.dump(), "s.json", {}}; }

PlanSearchOptions in_turn(std::size_t top = 10, double within = 0.05) {
  PlanSearchOptions options{.top = top, .within = within};
  options.for_each = [](std::size_t n, const std::function<bool(std::size_t)>& work) {
    for (std::size_t i = 0; i < n; ++i) work(i);
  };
  return options;
}

constexpr double all = 1e6;  // `within` of any plan

std::map<std::size_t, Picoseconds> times_of(const PlanSearch& found) {
  std::map<std::size_t, Picoseconds> times;
  for (const RankedPlan& plan : found.ranked)
    if (plan.result) times[plan.plan] = plan.result->prediction.time;
  return times;
}

std::size_t refused_of(const PlanSearch& found) {
  std::size_t all_refused = 0;
  for (const auto& [why, n] : found.refused) all_refused += n;
  return all_refused;
}

std::set<std::vector<std::string>> sets_of(const OpenPlans& plans) {
  std::set<std::vector<std::string>> sets;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    std::vector<std::string> set = plans.set_of(i);
    std::sort(set.begin(), set.end());
    sets.insert(set);
  }
  return sets;
}

/// Every plan of `document` by trying all values of all keys: those that a scenario may have.
std::set<std::vector<std::string>> by_force(const Json& document, int gpus, int batch) {
  std::set<std::vector<std::string>> sets;
  for (int t = 1; t <= gpus; ++t)
    for (int p = 1; p * t <= gpus; ++p)
      for (int v = 1; v <= 4; ++v)
        for (int b = 1; b <= batch; b *= 2)
          for (const std::string shard : {"none", "optimizer", "optimizer_gradients", "full"})
            for (const std::string recompute : {"none", "full"}) {
              if (gpus % (t * p) != 0) continue;
              const int data = gpus / (t * p);
              if (data == 1 && shard != "none") continue;  // without effect
              Json plan = document;
              Json& parallel = plan["training"]["parallel"];
              std::vector<std::string> set{fmt::format("training.workload.micro_batch_size={}", b)};
              const auto put = [&](const std::string& key, const Json& value, const std::string& text) {
                parallel[key] = value;
                set.push_back(fmt::format("training.parallel.{}={}", key, text));
              };
              plan["training"]["workload"]["micro_batch_size"] = b;
              if (t > 1) put("tensor", t, std::to_string(t));
              if (t > 1) put("sequence_parallel", true, "true");
              if (p > 1) put("pipeline", p, std::to_string(p));
              if (v > 1) put("virtual_pipeline", v, std::to_string(v));
              if (shard != "none") put("shard", shard, shard);
              if (recompute != "none") put("recompute", recompute, recompute);
              if (data > 1 && shard == "none") put("overlap", {"grad_reduce"}, R"(["grad_reduce"])");
              if (data > 1 && shard.starts_with("optimizer"))
                put("overlap", {"grad_reduce", "param_gather"}, R"(["grad_reduce","param_gather"])");
              const auto is_refused = [&] {
                return complaint([&] { ScenarioFile::parse(plan.dump(), "s.json").point(0); }) != "";
              };
              const auto layers = document["training"]["workload"]["transformer"]["layers"].get<int>();
              if (layers % p != 0) {  // stages that divide the layers only with embedding and loss
                put("account_for_embedding", true, "true");
                put("account_for_loss", true, "true");
              }
              if (is_refused()) continue;
              std::sort(set.begin(), set.end());
              sets.insert(set);
            }
  return sets;
}

}  // namespace

// 3 ranks divide neither heads nor MLP, 6 the layers in no way: few plans; 8 many.
TEST_CASE("the plans of a scenario that states nothing are all that it may have") {
  for (const auto& each : {std::pair{1, 2}, {2, 4}, {3, 6}, {6, 12}, {8, 16}}) {
    const int gpus = each.first, batch = each.second;
    CAPTURE(gpus);
    const Json document = small(gpus, batch);
    CHECK(sets_of(plans_of(document)) == by_force(document, gpus, batch));
  }
  // Six layers on four stages, or on eight: with embedding and loss, eight.
  Json six = small(8, 16);
  six["training"]["workload"]["transformer"]["layers"] = 6;
  const std::set<std::vector<std::string>> all_of_six = sets_of(plans_of(six));
  CHECK(all_of_six == by_force(six, 8, 16));
  CHECK(std::any_of(all_of_six.begin(), all_of_six.end(), [](const std::vector<std::string>& set) {
    return std::find(set.begin(), set.end(), "training.parallel.account_for_loss=true") != set.end();
  }));
  Json document = small(8);  // two heads of keys and values: tensor 4 cannot be
  document["training"]["workload"]["transformer"]["kv_heads"] = 2;
  CHECK(sets_of(plans_of(document)) == by_force(document, 8, 16));
}

TEST_CASE("what a scenario states holds, and a list gives each of its values") {
  Json document = small(8);
  document["training"]["parallel"] = {
      {"tensor", 2}, {"pipeline", {1, 2}}, {"recompute", "none"}, {"shard", "optimizer"}};
  document["training"]["workload"]["micro_batch_size"] = 1;
  const OpenPlans plans = plans_of(document);
  // One plan without a pipeline; with two stages, whose chunks have two layers or one, two.
  CHECK(plans.size() == 3);
  for (std::size_t i = 0; i < plans.size(); ++i) CHECK(plans.whole(i).training->plan->program.grid.tensor() == 2);

  document["training"]["parallel"].erase("pipeline");
  document["sweep"] = {{"training.parallel.pipeline", {1, 2}}};
  CHECK(plans_of(document).size() == 3);
  document["where"] = {"training.parallel.pipeline == 2"};
  const OpenPlans some = plans_of(document);
  REQUIRE(some.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    const PlanSpec program = some.whole(i).training->plan->program;
    CHECK(program.grid.pipeline() == 2);
    const auto values = some.values_of(i);
    CHECK(std::find(values.begin(), values.end(),
                    std::pair<std::string, std::string>("training.parallel.virtual_pipeline",
                                                        std::to_string(program.chunks))) != values.end());
  }
}

TEST_CASE("the options that name a plan make the scenario that plan") {
  Json document = small(8);
  document["training"]["parallel"] = {{"recompute", {"none", "full"}}, {"overlap", {"grad_reduce"}}};
  const OpenPlans plans = plans_of(document);
  for (std::size_t i = 0; i < plans.size(); i += 7) {
    if (complaint([&] { plans.whole(i); }) != "") continue;
    const ScenarioFile file = ScenarioFile::parse(document.dump(), "s.json", plans.set_of(i));
    REQUIRE(file.size() == 1);
    const PlanTraining one = *file.point(0).training->plan, other = *plans.whole(i).training->plan;
    CHECK(one.memory == other.memory);
    CHECK(plan_exchanges(one.program) == plan_exchanges(other.program));
    CHECK(one.program.micro_batches == other.program.micro_batches);
    CHECK(one.program.overlaps_gather == other.program.overlaps_gather);
  }
}

TEST_CASE("a free search forgets the plan that the scenario states") {
  Json document = small(8);
  const auto open = sets_of(plans_of(document));
  document["training"]["parallel"] = {{"tensor", 2},
                                      {"shard", "full"},
                                      {"prefetch", 2},
                                      {"pipeline", {1, 2}},
                                      {"hybrid", 2},
                                      {"overlap", {"grad_reduce"}},
                                      {"sequence_parallel", false}};
  document["training"]["workload"]["micro_batch_size"] = 1;
  document["where"] = {"training.parallel.pipeline == 2"};
  const OpenPlans plans(document.dump(), "s.json", {}, true);
  CHECK(plans.size() == open.size());
  for (std::size_t i = 0; i < plans.size(); i += 11) {
    const ScenarioFile file = ScenarioFile::parse(document.dump(), "s.json", plans.set_of(i));
    REQUIRE(file.size() == 1);
    CHECK(file.point(0).training->plan->memory == plans.whole(i).training->plan->memory);
  }
}

TEST_CASE("a search is refused with its place") {
  const auto refusal = [](const Json& document) { return complaint([&] { plans_of(document); }); };
  Json document = small(8);
  document["training"].erase("parallel");
  CHECK(refusal(document).starts_with("s.json: /training: expected a training with the key \"parallel\", found none"));
  document = small(8);
  document["training"]["parallel"]["tensr"] = 2;
  CHECK(refusal(document).starts_with("s.json: /training/parallel/tensr: expected a known key of parallel"));
  document = small(8);
  document["training"]["workload"]["compute"]["measured"] = {{"step", "1 s"}, {"parallel", Json::object()}};
  CHECK(refusal(document).starts_with("s.json: /training/workload/compute/measured: expected shares of the peak"));
  document = small(8);
  document["training"]["workload"].erase("global_batch_size");
  CHECK(refusal(document).starts_with(
      "s.json: /training/workload/global_batch_size: expected the samples per step over all GPUs"));
  document = small(8);
  document["sweep"] = {{"topology.ranks", {8, 16}}};
  CHECK(refusal(document).starts_with("s.json: /sweep: expected sweeps only over keys of training.parallel"));
  document = small(8);
  document["jobs"] = Json::array();
  CHECK(refusal(document).starts_with("s.json: /jobs: expected a training step without other jobs"));
}

TEST_CASE("what varies besides plans is refused, and so are values that no list has") {
  const auto refusal = [](const std::string& path, const Json& value) {
    Json document = small(4);
    document[Json::json_pointer(path)] = value;
    return complaint([&] { plans_of(document); });
  };
  const std::string one =
      "s.json: /: expected no lists or ranges except in training.parallel and micro_batch_size, found 2 points";
  CHECK(refusal("/training/workload/sequence", {256, 512}).starts_with(one));
  CHECK(refusal("/training/workload/compute/gemm", {"60%", "70%"}).starts_with(one));
  CHECK(refusal("/topology/ranks", {4, 8}).starts_with(one));
  CHECK(refusal("/training/parallel/tensor", {{"from", 1}, {"to", 4}})
            .starts_with("s.json: /training/parallel/tensor: expected a value or a list of values, found a range"));
  CHECK(
      refusal("/training/workload/micro_batch_size", Json::array())
          .starts_with("s.json: /training/workload/micro_batch_size: expected a value or a list of values, found an"));
  CHECK(refusal("/sweep", {{"training.parallel.tensor", 2}}).starts_with("s.json: /sweep: expected a list of values"));
  CHECK(refusal("/training/parallel/algorithm", {"ring", "direct"})
            .starts_with("s.json: /training/parallel/algorithm: expected one algorithm, found a list"));
  CHECK(has(refusal("/training/ranks", {"r0"}), "/training/ranks/0: expected the name of a GPU"));
  for (const char* path : {"/training/workload/micro_batch_size", "/training/parallel/tensor"}) {
    Json document = small(4);  // products of such sizes pass 64 bits
    document[Json::json_pointer(path)] = std::int64_t{1} << 62;
    CHECK(has(complaint([&] { search_plans(plans_of(document), in_turn()); }), path));
  }
}

TEST_CASE("a value that a list has twice is one plan, and a sequence that tensor does not divide is searched") {
  Json document = small(4);
  document["training"]["parallel"] = {{"tensor", {2, 2}}};
  const std::size_t twice = plans_of(document).size();
  document["training"]["parallel"] = {{"tensor", 2}};
  CHECK(twice == plans_of(document).size());
  document["training"]["workload"]["sequence"] = 255;  // without sequence_parallel, which would divide it
  const PlanSearch found = search_plans(plans_of(document), in_turn());
  CHECK(refused_of(found) == 0);
  CHECK(found.simulated > 0);
}

// Plans of one rank per sample, of two that gather and of two that are a ring.
TEST_CASE("the ways of context ranks are searched only with context ranks") {
  Json document = small(4);
  document["training"]["parallel"] = {
      {"tensor", 1}, {"pipeline", 1}, {"shard", "none"}, {"recompute", "none"}, {"context", {1, 2}}};
  document["training"]["parallel"]["cp_comm"] = {"all_gather", "p2p"};
  document["training"]["workload"]["micro_batch_size"] = 1;
  const auto plans_with = [&](const char* key, const Json& value) {
    document["training"]["parallel"][key] = value;
    return plans_of(document);
  };
  const auto warnings_of = [](const OpenPlans& plans, std::size_t i) { return plans.whole(i).warnings.size(); };
  const OpenPlans both = plans_of(document);
  REQUIRE(both.size() == 3);
  CHECK(sets_of(both).size() == 3);
  std::multiset<std::string> comms;
  for (std::size_t i = 0; i < both.size(); ++i) {
    const PlanSpec plan = both.whole(i).training->plan->program;
    std::string comm = "none";
    for (const auto& [path, value] : both.values_of(i))
      if (path == "training.parallel.cp_comm") comm = value;
    comms.insert(fmt::format("{} {}", plan.grid.context(), comm));
    CHECK(warnings_of(both, i) == 0);
  }
  CHECK(comms == std::multiset<std::string>{"1 none", R"(2 "all_gather")", R"(2 "p2p")"});
  CHECK(plans_with("cp_comm", "p2p").size() == 2);  // one value: no warning of the plan without context ranks
  CHECK(warnings_of(plans_of(document), 0) == 0);
  CHECK(plans_with("context", 1).size() == 1);  // never used: the plan warns
  CHECK(warnings_of(plans_of(document), 0) == 1);
  const OpenPlans unused = plans_with("cp_comm", {"all_gather", "p2p"});
  CHECK(unused.size() == 1);
  CHECK(warnings_of(unused, 0) == 1);
  document["training"]["parallel"].erase("context");
  CHECK(plans_of(document).size() == 1);
}

// Eight GPUs: tensor 2, four stages, one data rank; two ranks of a stage have whole experts, the same ones.
TEST_CASE("shards are searched where only experts have replicas, and have an effect there") {
  Json document = small(8);
  document["training"]["workload"]["transformer"].update(Json{{"layers", 8}, {"experts", 8}, {"top_k", 2}});
  document["training"]["workload"]["micro_batch_size"] = 1;
  document["training"]["parallel"] = {{"tensor", 2},        {"pipeline", 4}, {"virtual_pipeline", 1},
                                      {"expert_tensor", 1}, {"expert", 1},   {"recompute", "none"}};
  const OpenPlans plans = plans_of(document);
  const PlanSearch found = search_plans(plans, in_turn(10, all));
  REQUIRE(found.simulated == 2);  // none and optimizer
  CHECK(found.ranked[0].least() < found.ranked[1].least());
  for (std::size_t i = 0; i < 2; ++i)
    for (const std::string& warning : plans.whole(i).warnings) CHECK(!has(warning, "has no effect"));
}

TEST_CASE("plans that cannot be are counted with the reason; if none can, the reason is the error") {
  Json document = small(8);
  document["training"]["parallel"] = {{"overlap", {"param_gather"}}, {"tensor", 1}, {"pipeline", 1}};
  const PlanSearch found = search_plans(plans_of(document), in_turn());
  REQUIRE(found.refused.size() == 1);
  CHECK(found.refused[0].first == "expected param_gather only with a shard such as optimizer, found none");
  CHECK(found.refused[0].second == 4);  // shard none: two micro-batch sizes, two kinds of recomputation
  // NCCL refuses groups that lie unlike: each plan is refused only when it is simulated, or its collectives are.
  Json unlike = on_two_nodes();
  unlike["training"]["parallel"] = {{"tensor", 1}, {"pipeline", 2}};
  unlike["training"]["ranks"] = {"node0.gpu0", "node0.gpu1", "node0.gpu2", "node0.gpu3", "node1.gpu0", "node1.gpu1"};
  unlike["training"]["workload"]["global_batch_size"] = 12;
  CHECK(has(complaint([&] { search_plans(plans_of(unlike), in_turn()); }), "expected the same GPUs on every node"));
  document["training"]["parallel"] = {{"tensor", 3}};
  CHECK(complaint([&] {
          search_plans(plans_of(document), in_turn());
        }).starts_with("s.json: /training/parallel: expected tensor times pipeline to divide the 8 GPUs"));
}

TEST_CASE("a search that is stopped returns what it has: the simulated plans, and bounds of the others") {
  const Json document = small(8);
  const PlanSearch whole = search_plans(plans_of(document), in_turn(1000, all));
  std::atomic<bool> stop = false;
  PlanSearchOptions options = in_turn(1000, all);
  options.run.stop = &stop;
  options.progress = [&](const std::string& stage, double done) {
    stop = stop || (stage == "simulations" && done > 0);
  };
  const PlanSearch found = search_plans(plans_of(document), options);
  CHECK(found.interrupted == "the search for plans was stopped");
  CHECK(found.simulated == 1);  // after the first, in_turn() starts none
  CHECK(found.ranked.size() == whole.ranked.size());
  CHECK(found.ranked.front().result.has_value());
  for (std::size_t i = 1; i < found.ranked.size(); ++i) CHECK(!found.ranked[i].result);
  CHECK(whole.interrupted.empty());
  // Before all plans have bounds there is nothing to return.
  stop = true;
  CHECK_THROWS_AS(search_plans(plans_of(document), options), Interrupted);
}

TEST_CASE("plans that GPUs have no room for are not ranked") {
  Json document = small(8);
  document["training"]["gpu_memory"] = "150 MB";
  const OpenPlans plans = plans_of(document);
  const PlanSearch found = search_plans(plans, in_turn(1000, all));
  CHECK(found.too_large > 0);
  CHECK(found.least > found.room);
  CHECK(found.room == Bytes{150'000'000});
  CHECK(found.too_large + found.ranked.size() == found.plans);
  for (const RankedPlan& plan : found.ranked) {
    CHECK(plan.memory <= Bytes{150'000'000});
    Bytes most;
    const Scenario scenario = plans.whole(plan.plan);
    for (const PlanMemory& stage : scenario.training->plan->memory) most = std::max(most, stage.total());
    CHECK(plan.memory == most);
  }
  document["training"]["memory"] = "ignore";
  CHECK(search_plans(plans_of(document), in_turn(1000, all)).too_large == 0);
}

// On the star every collective has its links for itself or shares them with one that runs at the same time; on the
// nodes rings and trees of NCCL share NVLink and NICs.
TEST_CASE("no plan takes less than its bound") {
  Json slow = small(8);
  slow["topology"]["link"] = {{"bandwidth", "5 GB/s"}, {"latency", "1 us"}};
  Json nodes = on_two_nodes();
  nodes["training"]["parallel"] = {{"recompute", "none"}};
  nodes["training"]["workload"]["micro_batch_size"] = {1, 2};
  // Experts in later chunks alone, more than half of the parameters; a rank that is late once, not in each collective.
  Json experts = slow;
  experts["training"]["workload"]["transformer"].update(
      Json{{"layers", 8}, {"experts", 8}, {"top_k", 2}, {"dense_layers", 4}});
  experts["training"]["parallel"] = {{"recompute", "none"}, {"tensor", 1}};
  Json late = small(4);
  late["disturbance"] = {{"late", {{{"rank", 3}, {"by", "1 ms"}}}}};
  Json weight_passes = slow;  // without chunks, full recomputation and full sharding
  weight_passes["training"]["parallel"] = {{"schedule", "zero_bubble_h1"}, {"pipeline", {2, 4}}};
  for (const auto& [why, n] : search_plans(plans_of(weight_passes), in_turn(1)).refused)
    CHECK(!has(why, "virtual_pipeline"));
  // Hops that steps of attention hide, and hops that are longer.
  Json rings = slow;
  rings["training"]["parallel"] = {{"context", {2, 4}},
                                   {"cp_comm", "p2p"},
                                   {"recompute", {"none", "full"}},
                                   {"tensor", {1, 2}},
                                   {"pipeline", {1, 2}}};
  std::vector<Json> documents{nodes, experts, late, weight_passes, rings};
  // These run no other code than those above, so sanitizers need not see them.
  if (!ringsim::test::sanitized) documents.insert(documents.end(), {small(8), slow, small(6, 12)});
  for (const Json& document : documents) {
    const PlanSearch found = search_plans(plans_of(document), in_turn(100'000, all));
    CHECK(found.simulated + refused_of(found) == found.plans);
    CHECK(!found.others);
    double nearest = 0;
    for (const RankedPlan& plan : found.ranked) {
      CAPTURE(plan.plan);
      CHECK(plan.bound <= plan.result->prediction.time);
      nearest = std::max(
          nearest, static_cast<double>(plan.bound.count()) / static_cast<double>(plan.result->prediction.time.count()));
    }
    CHECK(nearest > 0.95);  // a bound of next to nothing would hold as well
  }
}

// Kernels, tensor collectives and a reduction in turn: nothing overlaps, so the bound is the step. With a
// pipeline a transfer may wait for the one before it, which the recurrence does not count.
TEST_CASE("the bound of a plan in which nothing overlaps is its step") {
  for (const auto& each : {std::pair{1, 1}, {2, 1}, {4, 1}, {1, 4}, {2, 2}, {8, 1}}) {
    const int t = each.first, p = each.second;
    CAPTURE(t);
    CAPTURE(p);
    Json document = small(8);
    document["training"]["workload"]["transformer"]["heads"] = 8;
    document["training"]["workload"]["micro_batch_size"] = 1;
    document["training"]["parallel"] = {{"tensor", t},
                                        {"pipeline", p},
                                        {"virtual_pipeline", 1},
                                        {"shard", "none"},
                                        {"recompute", "none"},
                                        {"overlap", Json::array()},
                                        {"sequence_parallel", false}};
    const PlanSearch found = search_plans(plans_of(document), in_turn());
    REQUIRE(found.ranked.size() == 1);
    const Picoseconds step = found.ranked[0].result->prediction.time;
    CHECK(found.ranked[0].bound <= step);
    const double share = static_cast<double>(found.ranked[0].bound.count()) / static_cast<double>(step.count());
    CHECK(share >= (p == 1 ? 0.999'999 : 0.97));  // p == 1: buckets round up one by one
  }
}

TEST_CASE("the bound of a plan whose context ranks are a ring counts what its steps hide") {
  for (const char* bandwidth : {"1 GB/s", "20 GB/s", "500 GB/s"})
    for (const int context : {2, 4, 8}) {
      CAPTURE(bandwidth);
      CAPTURE(context);
      Json document = small(8);
      document["topology"]["link"] = {{"bandwidth", bandwidth}, {"latency", "1 us"}};
      document["training"]["workload"]["micro_batch_size"] = 1;
      document["training"]["parallel"] = {
          {"context", context},  {"cp_comm", "p2p"},         {"tensor", 1},
          {"pipeline", 1},       {"virtual_pipeline", 1},    {"shard", "none"},
          {"recompute", "none"}, {"overlap", Json::array()}, {"sequence_parallel", false}};
      const PlanSearch found = search_plans(plans_of(document), in_turn());
      REQUIRE(found.ranked.size() == 1);
      const Picoseconds step = found.ranked[0].result->prediction.time;
      CHECK(found.ranked[0].bound <= step);
      CHECK(static_cast<double>(found.ranked[0].bound.count()) >= 0.999'999 * static_cast<double>(step.count()));
    }
}

TEST_CASE("the fastest plans are found with few simulations") {
  for (const Json& document : {small(8), small(6, 12), on_two_nodes()}) {
    const OpenPlans plans = plans_of(document);
    const std::map<std::size_t, Picoseconds> everything = document.contains("library")
                                                              ? std::map<std::size_t, Picoseconds>{}
                                                              : times_of(search_plans(plans, in_turn(100'000, all)));
    for (const double within : {0.0, 0.05, 0.2}) {
      const PlanSearch found = search_plans(plans, in_turn(100, within));
      const std::map<std::size_t, Picoseconds> times = times_of(found);
      REQUIRE(!times.empty());
      CHECK(found.simulated < found.plans);
      CHECK(found.simulated + found.not_simulated + refused_of(found) == found.plans);
      CHECK(std::is_sorted(found.ranked.begin(), found.ranked.begin() + static_cast<std::ptrdiff_t>(found.simulated),
                           [](const RankedPlan& a, const RankedPlan& b) { return a.least() < b.least(); }));
      const auto limit = static_cast<double>(found.ranked[0].least().count()) * (1 + within);
      CHECK(static_cast<double>(found.others->count()) > limit);
      for (const auto& [plan, time] : everything) {
        const bool is_near = static_cast<double>(time.count()) <= limit;
        if (is_near) CHECK(times.count(plan) == 1);
        if (times.count(plan) == 0) CHECK(time >= *found.others);
      }
    }
  }
}

TEST_CASE("of many equally fast plans no more are simulated than asked for, and a few") {
  const OpenPlans plans = plans_of(small(8));
  const PlanSearch found = search_plans(plans, in_turn(3, all));
  CHECK(found.simulated >= 3);
  CHECK(found.simulated < plans.size() / 2);
  const PlanSearch more = search_plans(plans, in_turn(100'000, all));
  for (std::size_t i = 0; i < 3; ++i) CHECK(found.ranked[i].least() == more.ranked[i].least());
}

TEST_CASE("plans that would move more messages than allowed keep their bounds, and do not end the search") {
  const OpenPlans plans = plans_of(small(8));
  const auto found_with = [&](PlanSearchOptions options, std::int64_t most) {
    options.run.most_messages = most;
    return search_plans(plans, options);
  };
  const PlanSearch whole = search_plans(plans, in_turn(100'000, all)), none = found_with(in_turn(100'000, all), 0);
  std::map<std::size_t, Picoseconds> times;
  for (const RankedPlan& plan : whole.ranked) times[plan.plan] = plan.least();
  std::map<std::size_t, std::int64_t> messages;
  std::vector<std::int64_t> sorted;
  for (const RankedPlan& plan : none.ranked) {
    CHECK(!plan.result);
    messages[plan.plan] = plan.messages;
    sorted.push_back(plan.messages);
  }
  REQUIRE(sorted.size() == whole.ranked.size());
  CHECK(none.too_long == whole.simulated);
  CHECK(none.simulated == 0);
  std::sort(sorted.begin(), sorted.end());
  for (const std::int64_t most : {sorted.front(), sorted[sorted.size() / 2]}) {
    REQUIRE(most < sorted.back());
    const PlanSearch some = found_with(in_turn(100'000, all), most);
    Picoseconds fastest = Picoseconds::max();
    for (const RankedPlan& plan : some.ranked) {
      CHECK(plan.result.has_value() == (messages.at(plan.plan) <= most));
      CHECK(plan.messages == (plan.result ? 0 : messages.at(plan.plan)));
      if (plan.result) CHECK(plan.least() == times.at(plan.plan));
      if (!plan.result) CHECK(plan.bound <= times.at(plan.plan));
      if (plan.result) fastest = std::min(fastest, plan.least());
    }
    CHECK(some.simulated + some.too_long == whole.simulated);
    CHECK(some.not_simulated == 0);
    // Asked for the fastest alone, it goes on until one is simulated, whatever bounds lie below.
    const PlanSearch one = found_with(in_turn(1, 0), most);
    REQUIRE(one.simulated > 0);
    const auto first = std::find_if(one.ranked.begin(), one.ranked.end(),
                                    [](const RankedPlan& plan) { return plan.result.has_value(); });
    CHECK(first->least() == fastest);
  }
}

TEST_CASE("without simulations plans are ranked by their bounds") {
  const OpenPlans plans = plans_of(small(8));
  PlanSearchOptions options = in_turn(7);
  options.simulate = false;
  const PlanSearch found = search_plans(plans, options);
  CHECK(found.simulated == 0);
  REQUIRE(found.ranked.size() == 7);
  CHECK(found.ranked[0].bound == *found.others);
  for (const RankedPlan& plan : found.ranked) CHECK(!plan.result);
  const PlanSearch simulated = search_plans(plans, in_turn(1));
  CHECK(found.ranked[0].bound <= simulated.ranked[0].least());
}

}  // namespace plan_search_test
