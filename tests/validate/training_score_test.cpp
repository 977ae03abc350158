// Published figures of training: the reader's errors, what is mapped, inputs, the two simple models by hand.
#include "validate/score/training_score.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"

namespace training_score_test {

using namespace ringsim;
using ringsim::test::complaint;
using ringsim::test::run_command;

namespace {

const std::string head = "source,model,params,batch_per_gpu,precision,machine,regime,gpus,value,unit\n";
const std::string mapping = R"({
  "machines": [{"words": ["star"], "gpu": "X", "source": "made up",
                "topology": {"kind": "star", "link": {"bandwidth": "10 GB/s", "latency": "1 us"}}}],
  "regimes": [{"words": ["late"], "source": "made up",
               "one_node": {"name": "ddp", "algorithm": "ring", "overlap": false, "buckets": {"size": "1 GB", "first": "1 GB"}}},
              {"words": ["ddp"], "source": "made up", "bucket_in_text": true, "one_node": {"name": "ddp", "algorithm": "ring"}}]
})";

std::vector<TrainingFigure> rows_of(const std::string& rows) { return parse_training_rows(head + rows, "p.csv"); }

TrainingScore score_of(const std::string& rows, const std::vector<TrainingFigure>& more = {}) {
  return score_training({rows_of(rows), parse_training_map(mapping, "mapping.json")}, more,
                        [](const ScenarioFile& file) {
                          std::vector<Prediction> results;
                          for (std::size_t i = 0; i < file.size(); ++i) results.push_back(predict(file.point(i)));
                          return results;
                        });
}

std::string row(const std::string& regime, int gpus, const std::string& value, const std::string& unit) {
  return fmt::format("page,vgg16,138357544,32,fp32,a star of 2017,{},{},{},{}\n", regime, gpus, value, unit);
}

}  // namespace

TEST_CASE("a published row is read whole, comments and quotes too") {
  const auto rows =
      rows_of("# a comment\n\"a page, printed\",resnet50,,32,fp32,DGX-1 V100,ddp 25MB,8,0.104,s/step p50\n");
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].source == "a page, printed");
  CHECK_FALSE(rows[0].parameters.has_value());
  CHECK(rows[0].batch == 32);
  CHECK(rows[0].gpus == 8);
  CHECK(rows[0].value == 0.104);
  CHECK(rows[0].where == "p.csv:3");
}

// Columns count characters from 1; the row is line 2.
TEST_CASE("errors of the reader name line and column, what was expected and what was found") {
  const auto said = [](const std::string& text) { return complaint([&] { parse_training_rows(text, "p.csv"); }); };
  CHECK(said(head + "s,m,,x,fp32,a,b,1,2,u\n") ==
        "p.csv:2:6: batch_per_gpu: expected a whole number from 1 to 1000000000, found \"x\"");
  CHECK(said(head + "s,m,,1,fp32,a,b,0,2,u\n") ==
        "p.csv:2:17: gpus: expected a whole number from 1 to 16777216, found \"0\"");
  CHECK(said(head + "s,m,,1,fp32,a,b,1,-2,u\n") == "p.csv:2:19: value: expected a number above 0, found \"-2\"");
  CHECK(said(head + "s,m,,1,fp32,a,b,1,nan,u\n") == "p.csv:2:19: value: expected a number above 0, found \"nan\"");
  CHECK(said(head + "s,,,1,fp32,a,b,1,2,u\n") == "p.csv:2:3: model: expected a text, found none");
  CHECK(said(head + "s,m,1.5,1,fp32,a,b,1,2,u\n") ==
        "p.csv:2:5: params: expected a whole number from 1 to 1125899906842624, found \"1.5\"");
  CHECK(said(head + "s,m,,1\n") == "p.csv:2:6: expected 10 cells, found 4");
  CHECK(said(head + "s,\"m,1\n") == "p.csv:2:3: expected a closing quote on this line, found none");
  CHECK(said("source,model\n") == "p.csv:1:1: expected a column \"params\", found none");
  CHECK(
      said("source,gpu\n") ==
      "p.csv:1:8: expected a column of source, model, params, batch_per_gpu, precision, machine, regime, gpus, value, "
      "unit, found \"gpu\"");
  CHECK(said("source,source\n") == "p.csv:1:8: expected each column once, found \"source\" again");
  CHECK(said("# nothing\n") == "p.csv: expected a line with the names of the columns, found none");
  CHECK(said(head) == "p.csv: expected at least one row, found none");
}

TEST_CASE("errors of a mapping name their place") {
  const auto said = [](const std::string& text) { return complaint([&] { parse_training_map(text, "m.json"); }); };
  CHECK(said("[]") == "m.json: expected an object, found an empty list");
  CHECK(said(R"({"regimes": [{"words": ["x"], "source": "s"}]})") ==
        "m.json: /regimes/0: expected one_node or several_nodes with a regime as in a scenario, found neither");
  CHECK(said(R"({"machines": [{"words": ["x"], "source": "s", "topology": {"kind": "cluster", "node": "dgx-1v"}}]})") ==
        "m.json: /machines/0: expected gpus_per_node of a cluster, found none");
  CHECK(said(R"({"machines": [{"words": ["x"], "source": "s", "gpus_per_node": 2, "order": [0, 0],
                              "topology": {"kind": "cluster", "node": "dgx-1v"}}]})") ==
        "m.json: /machines/0/order: expected each GPU of a node, 0 to 1, once");
  CHECK(said(R"({"missing": [{"words": [], "text": "t"}]})") ==
        "m.json: /missing/0/words: expected at least one word, found none");
}

// VGG-16: p = 553,430,176 B. On 4 ports of 10 GB/s and 1 us a cable, so 2 us a path: 2(K-1)(a + p/(K b)) =
// 6 (2 us + 13,835.7544 us) = 83,026.5264 us. One GPU: 100 ms.
TEST_CASE("perfect scaling is one GPU's step; no overlap adds the textbook's ring") {
  const TrainingScore score = score_of(row("late", 1, "0.1", "s/step") + row("late", 4, "0.2", "s/step"));
  CHECK(score.inputs == std::vector<std::string>{"p.csv:2"});
  CHECK(score.unmapped.empty());
  REQUIRE(score.rows.size() == 1);
  const ScoredFigure& one = score.rows[0];
  CHECK(one.input == "p.csv:2");
  CHECK(one.compute == doctest::Approx(100'000));
  CHECK(one.published == doctest::Approx(200'000));
  CHECK(one.of(StepModel::perfect) == doctest::Approx(100'000));
  CHECK(one.of(StepModel::ring) == doctest::Approx(183'026.5264).epsilon(1e-9));
  // A bucket of everything after the backward pass, by a ring: the textbook's case, simulated.
  CHECK(one.of(StepModel::ringsim) == doctest::Approx(183'026.5264).epsilon(1e-9));
  CHECK(one.error(StepModel::ringsim) == doctest::Approx(-0.084867368));
  CHECK(one.efficiency() == doctest::Approx(0.5));
  CHECK(one.counts());
  CHECK(one.tells());
}

TEST_CASE("rates, milliseconds and efficiencies are steps") {
  // 32 images in 0.1 s: 320 a second; 4 GPUs at 640 need 0.2 s; an efficiency of 80 % is 0.125 s.
  const TrainingScore score = score_of(row("late", 1, "320", "img/s synthetic") +
                                       row("late", 4, "640", "img/s synthetic") + row("ddp 10MB", 1, "100", "ms/step") +
                                       row("ddp 10MB", 4, "111", "ms/step") + row("ddp", 4, "0.8", "efficiency"));
  REQUIRE(score.rows.size() == 3);
  CHECK(score.rows[0].published == doctest::Approx(200'000));
  CHECK(score.rows[1].published == doctest::Approx(111'000));
  CHECK(score.rows[2].published == doctest::Approx(125'000));
  CHECK(score.rows[2].input == "p.csv:2 (one GPU of a star of 2017)");  // it has no rate of its own
  CHECK(score.rows[1].scenario.find(R"("size":"10 MiB")") != std::string::npos);
  CHECK(score.rows[2].scenario.find("size") == std::string::npos);
  CHECK_FALSE(score.rows[1].efficiency() < 0.9);  // 100/111: shown, not counted
  CHECK(band_of(score, StepModel::perfect, "", true)->rows == 2);
  CHECK(band_of(score, StepModel::perfect, "", false)->rows == 3);
  // errors -0.5, -0.0990990, -0.2: the median is -0.2
  CHECK(band_of(score, StepModel::perfect, "", false)->median_signed == doctest::Approx(-0.2));
  CHECK(families_of(score).size() == 3);
  CHECK_FALSE(band_of(score, StepModel::ringsim, "another family", true).has_value());
}

TEST_CASE("the row with the fewest GPUs is the input, also from another table") {
  const auto more = rows_of(row("late", 1, "0.1", "s/step"));
  const TrainingScore with = score_of(row("late", 2, "0.15", "s/step") + row("late", 4, "0.2", "s/step"), more);
  CHECK(with.rows.size() == 2);
  CHECK(with.rows[0].compute == doctest::Approx(100'000));
  const TrainingScore without = score_of(row("late", 2, "0.15", "s/step") + row("late", 4, "0.2", "s/step"));
  REQUIRE(without.rows.size() == 1);
  CHECK(without.rows[0].compute == doctest::Approx(150'000));
  CHECK(without.inputs.size() == 1);
}

// A board of two: the row of two is compute (300 ms), that of one is not predicted; but efficiency is still relative to
// one GPU (200 ms of 400). Where no row has exactly a board, the row with the fewest GPUs stays the input: a row of
// several boards is there to be predicted.
TEST_CASE("GPUs that share a board compute as the row of one full board says") {
  const auto with_boards = [](const std::string& rows) {
    TrainingMap map = parse_training_map(mapping, "mapping.json");
    map.machines[0].gpus_per_board = 2;
    return score_training({rows_of(rows), map}, {},
                          [](const ScenarioFile& file) { return std::vector{predict(file.point(0))}; });
  };
  const TrainingScore score =
      with_boards(row("late", 1, "0.2", "s/step") + row("late", 2, "0.3", "s/step") + row("late", 4, "0.4", "s/step"));
  CHECK(score.inputs == std::vector<std::string>{"p.csv:3"});
  REQUIRE(score.rows.size() == 1);
  CHECK(score.rows[0].compute == doctest::Approx(300'000));
  CHECK(score.rows[0].of(StepModel::perfect) == doctest::Approx(300'000));
  CHECK(score.rows[0].efficiency() == doctest::Approx(0.5));
  REQUIRE(score.unmapped.size() == 1);
  CHECK(score.unmapped[0].reason == "some GPUs of a 2-GPU board are idle");
  const TrainingScore without = with_boards(row("late", 1, "0.2", "s/step") + row("late", 4, "0.4", "s/step"));
  REQUIRE(without.rows.size() == 1);
  CHECK(without.rows[0].compute == doctest::Approx(200'000));
}

TEST_CASE("a regime can take GPUs by number, whatever the machine's order") {
  const auto ranks_of = [](bool by_number) {
    TrainingMap map = parse_training_map(
        R"({"machines": [{"words": ["star"], "gpus_per_node": 8, "order": [0, 1, 2, 3, 7, 6, 5, 4], "source": "made up",
                          "topology": {"kind": "cluster", "node": "dgx-1p"}}],
            "regimes": [{"words": ["late"], "source": "made up", "by_number": )" +
            std::string(by_number ? "true" : "false") + R"(, "one_node": {"name": "ddp", "algorithm": "ring"}}]})",
        "mapping.json");
    return scenario_of(rows_of(row("late", 6, "0.1", "s/step"))[0], map, 1e5);
  };
  CHECK(test::has(ranks_of(false), R"("node0.gpu3","node0.gpu7","node0.gpu6"])"));
  CHECK(test::has(ranks_of(true), R"("node0.gpu3","node0.gpu4","node0.gpu5"])"));
}

TEST_CASE("what cannot be mapped is counted by its reason") {
  const TrainingScore score =
      score_of(row("late", 1, "0.1", "s/step") +
               "page,vgg16,,32,fp32,a torus,late,4,1,s/step\npage,vgg16,,32,fp32,a torus,late,8,1,s/step\n"
               "page,lenet,,32,fp32,star,late,1,1,s/step\npage,lenet,,32,fp32,star,late,4,1,s/step\n"
               "page,vgg16,25557032,1,fp32,star,late,4,1,s/step\npage,vgg16,,2,int8,star,late,4,1,s/step\n"
               "page,vgg16,,3,fp32,star,gossip,4,1,s/step\npage,vgg16,,4,fp32,star,late,4,1,miles\n"
               "page,vgg16,,5,fp32,star,late,4,0.5,efficiency\n");
  std::vector<std::string> reasons;
  for (const UnmappedFigures& each : score.unmapped)
    reasons.push_back(fmt::format("{}: {}", each.where.size(), each.reason));
  CHECK(reasons == std::vector<std::string>{
                       "2: no entry for the machine \"a torus\"", "2: no workload for the model \"lenet\"",
                       "1: vgg16 has 138357544 parameters here, 25557032 in the table",
                       "1: unknown gradient size for the precision \"int8\"", "1: no entry for the regime \"gossip\"",
                       "1: unknown unit \"miles\"",
                       "1: an efficiency without a rate, because no row with one X trains vgg16 with batch 5"});
  CHECK(score.rows.empty());
}

TEST_CASE("the bundled mapping knows every machine and regime of the bundled rows") {
  const TrainingFigures figures = bundled_training();
  CHECK(figures.rows.size() == 96);  // the table's lines less two comments and the heads
  int scenarios = 0;
  for (const TrainingFigure& each : figures.rows) {
    CAPTURE(each.where);
    // Each makes a scenario that decodes; those with a GPU alone are inputs.
    if (each.gpus > 1) {
      CHECK_NOTHROW(ScenarioFile::parse(scenario_of(each, figures.map, 1e5), "s.json").point(0));
      ++scenarios;
    }
  }
  CHECK(scenarios > 60);
  // Listed ranks do not say what a node is: 16 GPUs of two DGX-1.
  const auto two = std::find_if(figures.rows.begin(), figures.rows.end(),
                                [](const TrainingFigure& each) { return each.gpus == 16 && each.model == "resnet50"; });
  REQUIRE(two != figures.rows.end());
  CHECK(test::has(scenario_of(*two, figures.map, 1e5), R"("algorithm":{"name":"hierarchical","group":8})"));
}

TEST_CASE("the command scores a folder of the same columns, with a mapping of its own") {
  const std::string csv =
      test::temporary_file("published.csv", head + row("late", 1, "0.1", "s/step") + row("late", 4, "0.2", "s/step") +
                                                "page,vgg16,,32,fp32,an abacus,late,4,1,s/step\n");
  const std::filesystem::path folder = std::filesystem::path(csv).parent_path();
  std::ofstream(folder / "mapping.json") << mapping;
  const auto table = run_command({"scorecard", "--training", folder.string()});
  CHECK_MESSAGE(table.code == 0, table.err);
  CHECK(test::has(table.out,
                  "Of 3 rows, 1 are inputs and 1 are predicted. Of the predicted rows, 1 (those below 90 % efficiency) "
                  "are scored. 1 rows are not mapped."));
  CHECK(test::has(table.out, "no entry for the machine \"an abacus\""));
  const auto json = run_command({"scorecard", "--training", folder.string(), "--format", "json"});
  CHECK(test::has(json.out, "\"predicted_us\": 183026.5264"));
  const auto lines = run_command({"scorecard", "--training", folder.string(), "--format", "csv"});
  CHECK(lines.out.starts_with("where,machine,regime,model,batch,gpus,compute_us,compute_from,one_gpu_us,"));
  CHECK(run_command({"scorecard", "--training", (folder / "none").string()}).code == 3);
  CHECK(run_command({"scorecard", folder.string(), "--training", folder.string()}).code == 2);
  CHECK(run_command({"scorecard", "--format", "json"}).code == 2);
  const auto lost = run_command({"scorecard", "--training", folder.string(), "-o", csv});
  CHECK(lost.code != 0);
}

}  // namespace training_score_test
