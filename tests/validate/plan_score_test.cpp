// Measured plans of large models: what is read, what can be expressed, the share that a step gives, ranks of plans.
#include "validate/score/plan_score.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/predict/measured_share.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "topologies/machines/machine_gpus.hpp"

namespace plan_score_test {

using namespace ringsim;
using ringsim::test::complaint;
using ringsim::test::has;
using ringsim::test::run_command;

namespace {

const std::string cards =
    R"({"note": "made up", "tiny": {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000},
  "experts": {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000, "experts": 8, "topk": 2, "expert_ffn": 64},
  "latent": {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000, "flash": true, "mla": [1, 2, 3, 4, 5]}})";
const std::string head =
    "id,model,gpu,gpus,node,seq,mbs,gbs,tp,pp,vp,cp,ep,dp,shard,recompute,sp,precision,overlap,step_s\n";

PlanFigures figures_of(const std::string& text) {
  return parse_plan_rows(text, "folder/t.csv", parse_plan_models(cards, "models.json")).value();
}
PlanFigure row_of(const std::string& cells) { return figures_of(head + cells + "\n").rows.at(0); }

/// A plan on one node of 8 A100, some cells of which are changed.
PlanFigure usual() { return row_of("a,tiny,A100-80,8,8,256,1,16,2,2,,,,2,none,none,0,fp16,none,0.01"); }

PlanScoreOptions in_turn(PlanInput input) {
  PlanScoreOptions options{.input = input};
  options.for_each = [](const std::string&, std::size_t n, const std::function<void(std::size_t)>& work) {
    for (std::size_t i = 0; i < n; ++i) work(i);
  };
  return options;
}

double simulated(const PlanFigure& row, double gemm) {
  PlanShares shares = stated_shares(row);
  shares.gemm = gemm;
  const Prediction found = predict(ScenarioFile::parse(plan_scenario(row, shares), "s.json").point(0));
  return static_cast<double>(found.time.count()) / 1e12;
}

}  // namespace

// Two tables of peaks: of GPUs, and the most of those that have one compute capability, for warnings.
TEST_CASE("the most that GPUs of a compute capability do is that of the fastest GPU which plans know") {
  std::map<double, double> fastest;  // of plan_gpus(), by what most_flops_of() says of their machine
  for (const PlanGpu& gpu : plan_gpus()) {
    const std::optional<double> most = most_flops_of(node_preset(gpu.machine));
    REQUIRE(most.has_value());
    fastest[*most] = std::max({fastest[*most], 1e12 * gpu.peak16, 1e12 * gpu.peak8, 1e12 * gpu.peak4});
  }
  CHECK(fastest.size() == 5);  // V100, A100, H100 and two Blackwells
  for (const auto& [most, found] : fastest) CHECK(found == doctest::Approx(most));
}

TEST_CASE("matrices of fp32 are multiplied at half of the 16-bit rate where GPUs have TF32") {
  for (const PlanGpu& gpu : plan_gpus()) {
    CAPTURE(gpu.name);
    const std::optional<double> most = most_fp32_flops_of(node_preset(gpu.machine));
    REQUIRE(most.has_value());
    if (std::string(gpu.family) == "V100")
      CHECK(*most == 15.7e12);                        // no TF32: its CUDA cores
    else if (std::string(gpu.family) != "Blackwell")  // the table of plans knows several, with other rates
      CHECK(*most == doctest::Approx(0.5e12 * gpu.peak16).epsilon(0.002));  // 494.7 or 494.5, by rounding
  }
}

TEST_CASE("a row of a plan is read by the names of columns; empty cells and ? are not stated") {
  const PlanFigures read = figures_of(
      "# a comment\nstep_s,gbs,mbs,seq,pp,tp,gpus,gpu,model,color,recompute,overlap,sp\n"
      "1.5,32,2,2048,4.0,2,16,A100-80,Tiny,red,?,\"dp,tp\",1\n");
  REQUIRE(read.rows.size() == 1);
  const PlanFigure& row = read.rows[0];
  CHECK(row.where == "folder/t.csv:3");
  CHECK(row.id == "t.csv:3");
  CHECK(row.flaw.empty());
  CHECK(row.step == 1.5);
  CHECK(row.pipeline == 4);
  CHECK(row.chunks == 1);
  CHECK(row.node == 0);
  CHECK(row.recompute == "none");
  CHECK(row.shard == "none");
  CHECK(row.sequence_parallel);
  CHECK(row.overlap == std::vector<std::string>{"dp", "tp"});
  CHECK(row.card->card.hidden == 512);
  CHECK(row.card->card.biases);
  REQUIRE(read.notes.size() == 1);
  CHECK(read.notes[0] == "t.csv: ignored columns: \"color\"");
}

// 16 sequences of 256 tokens on 8 GPUs at 1024 tokens/s each take half a second.
TEST_CASE("a row without a step has it from its rate") {
  const PlanFigures read =
      figures_of("model,gpu,gpus,seq,mbs,gbs,tp,pp,tokens_per_s_per_gpu\ntiny,A100,8,256,1,16,1,1,1024\n");
  CHECK(read.rows.at(0).step == 0.5);
}

TEST_CASE("cells without a meaning make the row flawed, and say why") {
  const auto flaw = [](const std::string& cells) { return row_of(cells).flaw; };
  CHECK(flaw("a,tiny,A100,8,8,256,1,16,two,2,,,,2,none,none,0,fp16,none,1") ==
        "tp: expected a whole number above 0, found \"two\"");
  CHECK(flaw("a,tiny,A100,8,8,256,1,16,1.5,2,,,,2,none,none,0,fp16,none,1") ==
        "tp: expected a whole number above 0, found \"1.5\"");
  CHECK(flaw("a,tiny,A100,8,8,,1,16,1,2,,,,2,none,none,0,fp16,none,1") ==
        "seq: expected a whole number above 0, found none");
  CHECK(flaw("a,tiny,A100,8,8,256,1,16,1,2,,,,2,some,none,0,fp16,none,1") ==
        "shard: expected none, zero1, zero2, zero3 or fsdp, found \"some\"");
  CHECK(flaw("a,other,A100,8,8,256,1,16,1,2,,,,2,none,none,0,fp16,none,1") ==
        "model: expected a name in models.json or a card in scenarios/workloads, found \"other\"");
  CHECK(flaw("a,tiny,A100,8,8,256,1,16,1,2,,,,2,none,none,0,fp16,none,") ==
        "step_s: expected a step time or tokens_per_s_per_gpu, found none");
}

TEST_CASE("a table with most of the columns is refused by the missing one; others are no tables of plans") {
  CHECK(has(complaint([] { figures_of("model,gpu,gpus,seq,mbs,tp,pp,step_s\n"); }),
            "expected the columns of a table of plans, found none named gbs"));
  CHECK(!parse_plan_rows("model,system,plan,release\na,b,c,d\n", "r.csv", {}));
  CHECK(has(complaint([] { figures_of(head + "a,b\n"); }), "expected 20 cells, found 2"));
}

TEST_CASE("vTrain's form is read: every plan recomputes, its nodes have four NICs of 200 Gb/s") {
  const PlanFigures read = figures_of(
      "# source: a page\nParameters (billion),# GPUs,global batch,micro batch,hidden size,attention heads,# layers,"
      "sequence length,tensor parallelism,data parallelism,pipeline parallelism,iteration time (ms)\n"
      "3.6,64,512,8,3072,32,30,2048,1,64,1,3566.5\n");
  const PlanFigure& row = read.rows.at(0);
  CHECK(row.source == "a page");
  CHECK(row.model == "gpt-3.6b");
  CHECK(row.step == doctest::Approx(3.5665));
  CHECK(row.recompute == "full");
  CHECK(row.data == 64);
  CHECK(row.card->card.ffn == 12'288);
  CHECK(has(plan_scenario(row, stated_shares(row)), R"("bandwidth":"200 Gb/s")"));
  CHECK(has(plan_scenario(row, stated_shares(row)), R"("node":"abci-a")"));
}

TEST_CASE("each plan that ringsim has no words for is named by them") {
  const auto reason = [](const std::string& cells) { return inexpressible(row_of(cells)); };
  CHECK(inexpressible(usual()).empty());
  CHECK(reason("a,experts,A100,8,8,256,1,16,1,1,,,8,,zero1,none,0,bf16,,1").empty());
  CHECK(reason("a,latent,A100,8,8,256,1,16,1,1,,,,,zero1,none,0,bf16,,1") == "latent attention (mla)");
  CHECK(reason("a,tiny,A100,8,8,256,1,16,1,1,,,,,none,blocks,0,bf16,,1") == "recomputation \"blocks\"");
  CHECK(reason("a,tiny,TPUv4,8,8,256,1,16,1,1,,,,,none,none,0,bf16,,1") == "no machine for the GPU \"TPUv4\"");
  CHECK(reason("a,tiny,H100,32,16,256,1,16,1,1,,,,,none,none,0,bf16,,1") == "nodes of 16 GPUs: hgx-h100 has 8");
  CHECK(reason("a,tiny,A100,8,8,256,1,16,1,1,,,,,none,none,0,fp8,,1") == "precision fp8: not supported by A100");
}

// A rack of GB200 has 72 GPUs; four nodes of 8 H100 are used whole, of 12 GPUs the second node in half.
TEST_CASE("a row's machine is its GPU's preset, with as many GPUs of a node as the row says") {
  const auto scenario = [](const std::string& cells) {
    const PlanFigure row = row_of(cells);
    return Json::parse(plan_scenario(row, {.gemm = 0.5, .attention = 0.5, .memory = 0.8}));
  };
  const Json rack = scenario("a,tiny,GB200,64,64,256,1,64,1,1,,,,64,zero1,none,0,mxfp8,dp,1");
  CHECK(rack["topology"]["node"] == "gb200-nvl72");
  CHECK(!rack["topology"].contains("fabric"));
  CHECK(rack["training"]["ranks"].size() == 64);
  CHECK(rack["training"]["workload"]["compute"]["peak"] == "5000 TFLOP/s");
  // The core computes in 16 bits: half of 2500 is a quarter of 5000.
  CHECK(rack["training"]["workload"]["compute"]["attention"] == "25.0000%");
  CHECK(rack["training"]["parallel"]["overlap"] == Json({"grad_reduce", "param_gather"}));
  CHECK(rack["training"]["warmup"] == 1);
  const Json nodes = scenario("a,tiny,H100,32,8,256,1,64,2,1,,,,16,none,selective,1,bf16,,1");
  CHECK(nodes["topology"]["nodes"] == 4);
  CHECK(nodes["topology"]["fabric"]["link"]["bandwidth"] == "400 Gb/s");
  CHECK(!nodes["training"].contains("ranks"));
  CHECK(nodes["training"]["parallel"] ==
        Json({{"tensor", 2}, {"pipeline", 1}, {"data", 16}, {"sequence_parallel", true}, {"recompute", "selective"}}));
  CHECK(scenario("a,tiny,H100,12,8,256,1,12,1,1,,,,12,none,none,0,bf16,,1")["training"]["ranks"].size() == 12);
}

// 2 of 8 experts of 64: products of 4 h^2 + 2 x 3 x 64 h where the MLP is gated, here two matrices. With tensor ranks
// experts are whole, as Megatron-Bridge's recipes have them.
TEST_CASE("a row of a model with experts has them in its scenario, and counts those that a token meets") {
  const PlanFigure row = row_of("a,experts,A100-80,16,8,256,1,16,2,1,,,8,,zero1,none,0,bf16,dp,1");
  const Json scenario = Json::parse(plan_scenario(row, {.gemm = 0.5, .attention = 0.5, .memory = 0.8}));
  const Json& parallel = scenario["training"]["parallel"];
  CHECK(parallel["expert"] == 8);
  CHECK(parallel["expert_tensor"] == 1);
  CHECK(parallel["sequence_parallel"] == true);
  CHECK(scenario["training"]["workload"]["transformer"]["expert_ffn"] == 64);
  CHECK(simulated(row, 0.5) > 0);
  const double token = 3 * 4 * (2 * (4 * 512.0 * 512 + 2 * 2 * 512.0 * 64) + 4 * 256 * 512.0) + 6 * 512 * 1000.0;
  CHECK(plan_operations(row) == doctest::Approx(token * 16 * 256));
  const std::vector<PlanModel> more = parse_plan_models(
      R"({"m": {"layers": 4, "hidden": 512, "heads": 8, "ffn": 2048, "vocab": 1000, "experts": 8, "topk": 2,
                "expert_ffn": 64, "shared_ffn": 128, "dense_layers": 1}})",
      "models.json");
  CHECK(more[0].special.empty());
  CHECK(more[0].card.shared_ffn == 128);
  CHECK(more[0].card.has_experts(1));
  CHECK(!more[0].card.has_experts(0));
}

// 4 layers: products of 12 h^2 and attention in full, 4 s h; three passes; the head. 312 TFLOP/s on 8 GPUs; 8
// micro-batches and one bubble of two stages.
TEST_CASE("models 0 and 1 are FLOPs over the peak, and the bubble of an even pipeline") {
  const PlanFigure row = usual();
  const double token = 3 * 4 * (2 * 12 * 512.0 * 512 + 4 * 256 * 512.0) + 6 * 512 * 1000.0;
  CHECK(plan_operations(row) == doctest::Approx(token * 16 * 256));
  PlanFigure full = row;
  full.recompute = "full";
  CHECK(plan_operations(full) - plan_operations(row) ==
        doctest::Approx(4 * (2 * 12 * 512.0 * 512 + 4 * 256 * 512.0) * 16 * 256));
  PlanFigures both{.rows = {row, row}};
  both.rows[1].tensor = 1;  // 4 data ranks, 4 micro-batches instead of 8
  both.rows[1].data = 4;
  both.rows[1].step = 1;
  both.rows[0].step = simulated(both.rows[0], 0.5);
  const PlanScore score = score_plans(both, in_turn(PlanInput::first));
  CHECK(score.rows[0].status == ScoredPlan::Status::input);
  REQUIRE(score.rows[1].status == ScoredPlan::Status::scored);
  CHECK(score.rows[1].of(PlanModelKind::flops) == doctest::Approx(both.rows[0].step));
  CHECK(score.rows[1].of(PlanModelKind::bubble) == doctest::Approx(both.rows[0].step * 1.25 / 1.125));
}

TEST_CASE("the share that a simulated step was made with is found again, for other plans to take") {
  PlanFigures both{.rows = {usual(), usual()}};
  both.rows[1].tensor = 1;
  both.rows[1].data = 4;
  both.rows[1].id = "b";
  both.rows[0].step = simulated(both.rows[0], 0.62);
  both.rows[1].step = simulated(both.rows[1], 0.62);
  const PlanScore score = score_plans(both, in_turn(PlanInput::first));
  CHECK(score.rows[0].shares.gemm == doctest::Approx(0.62).epsilon(0.01));
  CHECK(score.rows[1].compute_from == "a (t.csv:2)");
  CHECK(std::abs(score.rows[1].error(PlanModelKind::ringsim)) < 0.003);
  double parts = 0;
  for (const auto& [name, time] : score.rows[1].parts) parts += time;
  CHECK(parts == doctest::Approx(score.rows[1].of(PlanModelKind::ringsim)));
}

TEST_CASE("the input of a group is its row with the most FLOP/s, or its first; a row alone is left out") {
  PlanFigures three{.rows = {usual(), usual(), usual()}};
  three.rows[0].step = 3 * simulated(usual(), 0.5);
  three.rows[1].step = simulated(usual(), 0.5);
  three.rows[2].precision = "bf16";
  const PlanScore best = score_plans(three, in_turn(PlanInput::group));
  CHECK(best.rows[0].status == ScoredPlan::Status::scored);
  CHECK(best.rows[1].status == ScoredPlan::Status::input);
  CHECK(best.rows[2].reason == "the only row with its model, GPU and precision; use --input none to score it");
  const PlanScore first = score_plans(three, in_turn(PlanInput::first));
  CHECK(first.rows[0].status == ScoredPlan::Status::input);
}

TEST_CASE("an input that products at the peak do not explain leaves its group out, with the arithmetic") {
  PlanFigures both{.rows = {usual(), usual()}};
  both.rows[0].step = both.rows[1].step = 1e-4;
  const PlanScore score = score_plans(both, in_turn(PlanInput::first));
  CHECK(score.rows[1].status == ScoredPlan::Status::left_out);
  CHECK(has(score.rows[1].reason,
            "the input a does not determine a share: expected a step time that is possible with matrix products at or "
            "below the peak, found 0.0001 s: with products at 100 % of the peak, the step takes "));
}

TEST_CASE("a plan that ringsim refuses is left out with the refusal, and the next row is the input") {
  PlanFigures three{.rows = {usual(), usual(), usual()}};
  three.rows[0].pipeline = 8;  // 4 layers
  three.rows[0].tensor = 1;
  three.rows[0].data = 1;
  three.rows[1].step = three.rows[2].step = simulated(usual(), 0.5);
  const PlanScore score = score_plans(three, in_turn(PlanInput::first));
  CHECK(has(score.rows[0].reason, "expected a number that divides the number of layers, 4, found 8"));
  CHECK(score.rows[1].status == ScoredPlan::Status::input);
  CHECK(score.rows[2].status == ScoredPlan::Status::scored);
}

// Ranks 1 2 3 4 against 2 1 3 4: 1 - 6 * 2 / (4 * 15) = 0.8. The best predicted plan is the second, 2 s of 1 s.
TEST_CASE("plans of one model on the same GPUs are ranked") {
  PlanScore score;
  for (const auto& [measured, predicted] : std::vector<std::pair<double, double>>{{1, 20}, {2, 10}, {3, 30}, {4, 40}}) {
    ScoredPlan& row = score.rows.emplace_back();
    row.row = usual();
    row.row.step = measured;
    row.status = ScoredPlan::Status::scored;
    row.steps[0] = predicted;
    row.steps[1] = 1;
  }
  const std::vector<PlanSet> sets = plan_sets(score);
  REQUIRE(sets.size() == 1);
  CHECK(sets[0].name == "tiny on 8 A100-80, 16 sequences of 256");
  CHECK(rank_correlation(sets[0], PlanModelKind::ringsim) == doctest::Approx(0.8));
  CHECK(regret(sets[0], PlanModelKind::ringsim) == doctest::Approx(1));
  CHECK(rank_correlation(sets[0], PlanModelKind::flops) == 0);
  score.rows[3].row.gpus = 16;
  CHECK(plan_sets(score).empty());  // three are no set
}

TEST_CASE("model cards say what they do not know, and what does not fit") {
  CHECK(has(complaint([] { parse_plan_models(R"({"a": {"layers": 4}})", "models.json"); }),
            "models.json: /a: expected the key \"hidden\", found none"));
  CHECK(has(complaint([] {
              parse_plan_models(R"({"a": {"layers": 4, "hidden": 10, "heads": 3, "ffn": 8, "vocab": 9}})", "m");
            }),
            "expected a number that divides hidden, 10, found 3"));
  CHECK(has(complaint([] {
              parse_plan_models(R"({"a": {"layers": 4, "hidden": 8, "heads": 2, "ffn": 8, "vocab": 9, "depth": 1}})",
                                "m");
            }),
            "depth"));
}

TEST_CASE("the command scores tables of plans; every row is in csv and json, scored or not") {
  const auto steps = [](const char* id, double share) {
    PlanFigure row = usual();
    if (std::string(id) == "b") row.tensor = 1, row.data = 4;
    return simulated(row, share);
  };
  const std::string text =
      head + fmt::format("a,tiny,A100-80,8,8,256,1,16,2,2,,,,2,none,none,0,fp16,none,{}\n", steps("a", 0.5)) +
      fmt::format("b,tiny,A100-80,8,8,256,1,16,1,2,,,,4,none,none,0,fp16,none,{}\n", 4 * steps("b", 0.5)) +
      "c,latent,A100-80,8,8,256,1,16,1,1,,,8,,zero1,none,0,bf16,,1\n";
  const std::string csv = test::temporary_file("steps.csv", text);
  const std::filesystem::path folder = std::filesystem::path(csv).parent_path();
  std::ofstream(folder / "models.json") << cards;
  std::ofstream(folder / "other.csv") << "release,rate\n1,2\n";
  const auto table = run_command({"scorecard", "--training", folder.string()});
  CHECK_MESSAGE(table.code == 0, table.err);
  CHECK(has(table.out, "3 measured plans: 1 scored, 1 inputs, 1 left out."));
  CHECK(has(table.out, "note: other.csv: ignored because its columns are not those of a table of plans"));
  CHECK(has(table.out, "latent attention (mla)"));
  const auto json = run_command({"scorecard", "--training", csv, "--format", "json"});
  const Json all = Json::parse(json.out);
  REQUIRE(all["rows"].size() == 3);
  CHECK(all["rows"][0]["status"] == "input");
  CHECK(all["rows"][1]["status"] == "scored");
  CHECK(all["rows"][1]["error"].get<double>() == doctest::Approx(-0.75).epsilon(0.01));
  CHECK(all["rows"][2]["because"] == "latent attention (mla)");
  const auto lines = run_command({"scorecard", "--training", folder.string(), "--format", "csv"});
  CHECK(lines.out.starts_with("id,table,source,system,model,gpu,gpus,precision,plan,status,because,measured_s,"));
  CHECK(std::count(lines.out.begin(), lines.out.end(), '\n') == 4);
  CHECK(has(lines.err, "other.csv: ignored because its columns are not those of a table of plans"));
  CHECK(run_command({"scorecard", "--training", folder.string(), "-o", csv}).code != 0);
}

}  // namespace plan_score_test
