// compare --explain: rows folded into ranges, and changes that are run again until one comes near what was measured.
#include "validate/score/mismatch.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/wrap.hpp"
#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace mismatch_test {

using namespace ringsim;
using namespace ringsim::literals;
using nlohmann::json;
using namespace ringsim::test;

namespace {

const std::string one_dgx_a100 = R"({"version": 1, "name": "one", "library": "nccl",
  "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
  "collective": {"op": "all_reduce", "bytes": "1 MiB"}})";
const std::string two_dgx_a100 = R"({"version": 1, "name": "two", "library": "nccl",
  "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
               "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "150 ns"}}},
  "collective": {"op": "all_reduce", "bytes": "1 MiB"}})";
const std::string one_h100 =
    R"({"version": 1, "name": "ring", "library": {"name": "nccl", "env": {"NCCL_ALGO": "Ring"}},
  "topology": {"kind": "cluster", "node": "hgx-h100", "nodes": 1},
  "collective": {"op": "all_reduce", "bytes": "1 MiB"}})";

/// Microseconds that the scenario with those changes takes at each size.
std::vector<double> times(const std::string& scenario, const std::vector<Bytes>& sizes, const Words& set = {}) {
  std::vector<double> out;
  for (const Bytes size : sizes) {
    Words all = set;
    all.push_back(fmt::format("collective.bytes={} B", size.count));
    out.push_back(microseconds(predict(ScenarioFile::parse(scenario, "s.json", all).point(0)).time));
  }
  return out;
}

std::string table_of(const std::vector<Bytes>& sizes, const std::vector<double>& us, int ranks) {
  std::string text = fmt::format("# collective: all_reduce\n# ranks: {}\nbytes,time_us\n", ranks);
  for (std::size_t i = 0; i < sizes.size(); ++i) text += fmt::format("{},{:.6f}\n", sizes[i].count, us[i]);
  return text;
}

json explained(const std::string& scenario, const std::vector<Bytes>& sizes, const std::vector<double>& us, int ranks) {
  const Outcome outcome = run_command({"compare", "--explain", "--format", "json", temporary_file("s.json", scenario),
                                       temporary_file("m.csv", table_of(sizes, us, ranks))});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  return json::parse(outcome.out);
}

const json& trial_named(const json& range, const std::string& label) {
  for (const json& trial : range["trials"])
    if (trial["label"] == label) return trial;
  FAIL("no trial ", label, " in ", range.dump());
  return range;
}

const std::vector<Bytes> small{1_KiB, 2_KiB, 4_KiB, 8_KiB, 16_KiB};
const std::vector<Bytes> large{64_MiB, 128_MiB, 256_MiB};

ComparedRow row(Bytes bytes, double predicted_us, double measured_us, const std::string& algorithm = "Ring") {
  ComparedRow out{.scenario = {}, .result = {}, .algorithm = algorithm, .protocol = "LL"};
  out.result.prediction.request.bytes = bytes;
  out.result.prediction.time = Picoseconds{static_cast<std::int64_t>(predicted_us * 1e6)};
  out.result.measured_us = measured_us;
  return out;
}

Trial trial(const std::string& label, double us, double error, bool is_fitted = false) {
  Trial out;
  out.what = {.label = label, .set = {}, .is_fitted = is_fitted};
  out.rows = {{.us = us, .algorithm = "Ring", .protocol = "LL"}};
  out.error = {.name = "", .rows = 1, .median_abs = error, .p90_abs = error, .median_signed = error};
  return out;
}

}  // namespace

TEST_CASE("rows that follow each other, are off to one side and have one plan are one range") {
  // Errors: -20 %, -20 %, +20 %, +5 % (agrees), -20 % by a ring, -20 % by a tree.
  const std::vector<ComparedRow> rows{row(1_KiB, 8, 10),  row(2_KiB, 16, 20), row(4_KiB, 12, 10),
                                      row(8_KiB, 21, 20), row(16_KiB, 8, 10), row(32_KiB, 8, 10, "Tree")};
  const std::vector<MismatchRange> ranges = mismatches_of(rows);
  REQUIRE(ranges.size() == 4);
  const std::pair<std::size_t, std::size_t> expected[] = {{0, 1}, {2, 2}, {4, 4}, {5, 5}};
  for (std::size_t i = 0; i < 4; ++i) {
    CAPTURE(i);
    CHECK(ranges[i].first == expected[i].first);
    CHECK(ranges[i].last == expected[i].second);
    CHECK(ranges[i].is_slower() == (i != 1));
  }
  CHECK(ranges[0].error.median_signed == doctest::Approx(-0.2));
  CHECK(ranges[0].least_us == doctest::Approx(2));  // 10 - 8
  CHECK(ranges[0].most_us == doctest::Approx(4));   // 20 - 16
}

TEST_CASE("the same difference at all sizes is said to be a launch, a growing one is not") {
  const std::vector<ComparedRow> same{row(1_KiB, 10, 15), row(2_KiB, 11, 16.2), row(4_KiB, 12, 16.9)};
  const std::vector<ComparedRow> growing{row(1_KiB, 10, 15), row(2_KiB, 20, 30), row(4_KiB, 40, 60)};
  REQUIRE(mismatches_of(same).front().facts.size() == 1);
  CHECK(has(mismatches_of(same).front().facts.front(), "about the same at all sizes, 5.0 us"));  // 4.9 to 5.2
  CHECK(mismatches_of(growing).front().facts.empty());
}

TEST_CASE("changes are ranked by their median; what changes nothing or repeats another is left out") {
  MismatchRange range;
  Trial idle = trial("idle", 8, 0.2), refused = trial("refused", 0, 0);
  idle.is_idle = true;
  refused.refused = "no";
  rank_trials(range, {trial("far", 3, 0.7), idle, trial("near", 9.7, 0.03), trial("near, too", 9.7, 0.03), refused,
                      trial("exact", 10, 0, /*is_fitted=*/true)});
  REQUIRE(range.trials.size() == 3);
  CHECK(range.trials[0].what.label == "near");
  CHECK(range.trials[1].what.label == "far");
  CHECK(range.trials[2].what.label == "exact");
  REQUIRE(range.refused.size() == 1);
  // One without a fitted number is likelier, though one with a fitted number is nearer.
  CHECK(likely_of(range)->what.label == "near");
  // So is what NCCL may choose than what only variables can set.
  range.trials[0].by_formula = 3;
  CHECK(likely_of(range)->what.label == "near");
  range.trials.push_back(trial("chosen", 9.6, 0.04));
  CHECK(likely_of(range)->what.label == "chosen");
  range.trials.pop_back();
  range.trials[0].error.median_abs = 0.06;  // beyond 5 %
  CHECK(likely_of(range)->what.label == "exact");
  range.trials[2].agreed = 10;
  range.trials[2].lost = 1;  // a tenth of the rows that agreed
  CHECK(likely_of(range)->what.label == "exact");
  range.trials[2].lost = 2;
  CHECK(likely_of(range) == nullptr);
}

TEST_CASE("what another protocol takes is explained by that protocol, by its exact time") {
  const std::vector<double> us = times(one_dgx_a100, small, {"library.env.NCCL_PROTO=Simple"});
  const json document = explained(one_dgx_a100, small, us, 8);
  REQUIRE(document["rows"].size() == small.size());
  CHECK(document["rows"][0]["plan"]["protocol"] == "LL");
  CHECK(document["rows"][0]["measured_busbw_GBps"] ==
        doctest::Approx(1024 / us[0] / 1e3 * 2 * 7 / 8));  // all-reduce: 2(n-1)/n
  REQUIRE(!document["ranges"].empty());
  for (const json& range : document["ranges"]) {
    CHECK(range["likely"] == "NCCL_PROTO=Simple");
    const json& found = trial_named(range, "NCCL_PROTO=Simple");
    CHECK(found["median_abs_error"] < 1e-6);
    for (const json& each : found["rows"]) CHECK(each["protocol"] == "Simple");
    CHECK(has(range["verdict"], "Likely: NCCL_PROTO=Simple gives "));
    CHECK(has(range["verdict"], "so variables must set it, at all sizes"));  // and none spoils any row
  }
}

TEST_CASE("a plan that NCCL's formula is far from choosing is no explanation of some sizes") {
  // Measured as LL takes, which doubles the bytes, at two sizes of seven.
  const std::vector<Bytes> sizes{1_KiB, 16_KiB, 512_KiB, 32_MiB, 64_MiB, 512_MiB, 1_GiB};
  std::vector<double> us = times(two_dgx_a100, sizes);
  const std::vector<double> by_ll = times(two_dgx_a100, sizes, {"library.env.NCCL_PROTO=LL"});
  us[5] = by_ll[5];
  us[6] = by_ll[6];
  const json document = explained(two_dgx_a100, sizes, us, 16);
  REQUIRE(document["ranges"].size() == 1);
  const json& range = document["ranges"][0];
  const json& found = trial_named(range, "NCCL_PROTO=LL");
  CHECK(found["median_abs_error"] < 1e-6);
  CHECK(found["by_formula"] > 2);
  CHECK(found["spoils"]["of"] == 5);
  CHECK(found["explains"] == false);
  CHECK(range["likely"] != "NCCL_PROTO=LL");
}

TEST_CASE("copies through host memory are found where GPUDirect was off") {
  const std::vector<double> us = times(two_dgx_a100, large, {"transport.gdr_level=LOC"});
  const json document = explained(two_dgx_a100, large, us, 16);
  REQUIRE(document["ranges"].size() == 2);  // LL128, then Simple
  for (const json& range : document["ranges"]) {
    CHECK(range["likely"] == "without GPUDirect: NCCL_NET_GDR_LEVEL=LOC");
    CHECK(trial_named(range, "without GPUDirect: NCCL_NET_GDR_LEVEL=LOC")["median_abs_error"] < 1e-6);
    CHECK(trial_named(range, "4 of 8 NICs, or all at 1/2 of the rate")["explains"] == false);
  }
}

TEST_CASE("a file that denies GPUDirect to devices that were measured with it is found") {
  const std::string two = two_nodes_of(temporary_file("pairs.xml", pairs_without_gpudirect()));
  const json document = explained(two, large, times(two, large, {"transport.gpudirect=true"}), 4);
  REQUIRE(!document["ranges"].empty());
  for (const json& range : document["ranges"]) {
    CHECK(range["likely"] == "GPUDirect, though the file says gdr=0");
    for (const json& trial : range["trials"])
      CHECK(trial["label"] != "without GPUDirect: NCCL_NET_GDR_LEVEL=LOC");  // it is off already
  }
  // Measured slower than without it: switching it off changes nothing, so it is not tried.
  std::vector<double> slower = times(two, large);
  for (double& each : slower) each *= 2;
  for (const json& range : explained(two, large, slower, 4)["ranges"])
    for (const json& trial : range["trials"]) CHECK(trial["label"] != "without GPUDirect: NCCL_NET_GDR_LEVEL=LOC");
}

TEST_CASE("half of the NICs is found, and so is what takes exactly as long") {
  const std::vector<double> us = times(two_dgx_a100, large, {"calibration.scale_nic=0.5"});
  const json document = explained(two_dgx_a100, large, us, 16);
  REQUIRE(!document["ranges"].empty());
  for (const json& range : document["ranges"]) {
    // A channel has a NIC of its own, so that half of the channels use half of the NICs.
    const json& nics = trial_named(range, "4 of 8 NICs, or all at 1/2 of the rate");
    CHECK(nics["median_abs_error"] < 1e-6);
    CHECK(nics["explains"] == true);
    CHECK(has(range["verdict"], "4 of 8 NICs, or all at 1/2 of the rate"));
    CHECK(trial_named(range, "without GPUDirect: NCCL_NET_GDR_LEVEL=LOC")["explains"] == false);
  }
}

TEST_CASE("a longer launch is found and quantified; one thread that calls all GPUs is something else") {
  // Every row is off, so that no row is spoiled. The launch of an A100's kernel is fitted: only the difference is
  // known.
  std::vector<double> us = times(one_dgx_a100, small);
  for (double& each : us) each += 7;
  const json document = explained(one_dgx_a100, small, us, 8);
  REQUIRE(document["ranges"].size() == 1);
  const std::string likely = document["ranges"][0]["likely"];
  double now = 0, before = 0;
  REQUIRE(std::sscanf(likely.c_str(), "launch %lf us instead of %lf", &now, &before) == 2);
  CHECK(now - before == doctest::Approx(7));
  CHECK(trial_named(document["ranges"][0], likely)["median_abs_error"] < 1e-6);
  CHECK(trial_named(document["ranges"][0], likely)["fitted"] == true);
  CHECK(has(document["ranges"][0]["facts"][0], "7.0 us: launch"));

  const json in_turn = explained(one_dgx_a100, small, times(one_dgx_a100, small, {"harness.gpus_per_thread=8"}), 8);
  CHECK(in_turn["ranges"][0]["likely"] == "one thread calls 8 GPUs (-g 8)");
}

TEST_CASE("a launch that only some rows show is refused, because it would spoil the others") {
  const std::vector<Bytes> sizes{1_KiB, 2_KiB, 4_KiB, 8_KiB, 16_KiB, 32_KiB};
  std::vector<double> us = times(one_dgx_a100, sizes);
  for (std::size_t i = 0; i < 3; ++i) us[i] += 12;  // 17 would be what LL128 takes
  const json range = explained(one_dgx_a100, sizes, us, 8)["ranges"][0];
  CHECK(range["rows"] == 3);
  CHECK(range["likely"].is_null());
  const json* launch = nullptr;
  for (const json& each : range["trials"])
    if (each["fitted"] == true && has(each["label"], "launch ")) launch = &each;
  REQUIRE(launch != nullptr);
  CHECK((*launch)["median_abs_error"] < 0.01);
  CHECK((*launch)["spoils"]["rows"] == 3);
  CHECK((*launch)["spoils"]["of"] == 3);
  CHECK((*launch)["explains"] == false);
  CHECK(has(range["verdict"], "but 3 of the 3 rows that agree now would not"));
}

TEST_CASE("a bandwidth that a ring cannot have is called so, and sums in switches are found") {
  const std::vector<double> us = times(one_h100, large, {"library.env.NCCL_ALGO=NVLS"});
  const json document = explained(one_h100, large, us, 8);
  REQUIRE(document["ranges"].size() == 1);
  const json& range = document["ranges"][0];
  CHECK(range["likely"] == "NCCL_ALGO=NVLS");
  REQUIRE(!range["facts"].empty());
  CHECK(has(range["facts"][0], "256 MiB"));
  CHECK((has(range["facts"][0], "switches add up (NVLS, SHARP)") || has(range["facts"][0], "another plan ran")));
}

TEST_CASE("where nothing explains the rows, that is said") {
  std::vector<double> us = times(one_dgx_a100, small);
  const double factors[] = {1.3, 4, 1.2, 5, 1.25};
  for (std::size_t i = 0; i < us.size(); ++i) us[i] *= factors[i];
  const json range = explained(one_dgx_a100, small, us, 8)["ranges"][0];
  CHECK(range["likely"].is_null());
  CHECK(has(range["verdict"], "None of "));
}

TEST_CASE("rows that agree are in no range, and the table fits a terminal") {
  const std::vector<double> us = times(one_dgx_a100, small);
  CHECK(explained(one_dgx_a100, small, us, 8)["ranges"].empty());
  const std::string folder = ringsim::test::source_dir();
  const Outcome outcome =
      run_command({"compare", "--explain", folder + "/validate/measured/tables/aic-h100-1n8g-all_reduce.json",
                   folder + "/validate/measured/tables/aic-h100-1n8g-all_reduce.csv"});
  REQUIRE(outcome.code == 0);
  CHECK(has(outcome.out, "\n16 KiB, Ring LL: predicted 10."));
  CHECK(has(outcome.out, "NVLS       Simple"));
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);) CHECK_MESSAGE(characters(line) <= 100, line);
}

TEST_CASE("several predictions of a size, other formats and a threshold are refused") {
  const std::string measured = temporary_file("m.csv", table_of(small, times(one_dgx_a100, small), 8));
  const std::string scenario = temporary_file("s.json", one_dgx_a100);
  const Outcome several =
      run_command({"compare", "--explain", scenario, measured, "--set", R"(library.env.NCCL_PROTO=["LL", "Simple"])"});
  CHECK(several.code == 2);
  CHECK(has(several.err,
            "expected one prediction for each size, found several for 1 KiB: library.env.NCCL_PROTO varies"));
  CHECK(run_command({"compare", "--explain", scenario, measured, "--format", "csv"}).code == 2);
  CHECK(run_command({"compare", "--explain", scenario, measured, "--max-error", "10%"}).code == 2);
  CHECK(run_command({"compare", "--explain", scenario, measured, "--bound"}).code == 2);
}

TEST_CASE("what the table says was forced, and the scenario leaves open, is warned of") {
  const std::string table = "# library: NCCL 2.27.3\n# protocol: Simple\n" +
                            table_of(small, times(one_dgx_a100, small, {"library.env.NCCL_PROTO=Simple"}), 8);
  const std::string measured = temporary_file("m.csv", table), scenario = temporary_file("s.json", one_dgx_a100);
  CHECK(
      has(run_command({"compare", "--explain", scenario, measured}).err,
          "it says protocol Simple, the scenario leads to LL at 1 KiB; --set library.env.NCCL_PROTO=Simple forces it"));
  CHECK(run_command({"compare", "--explain", scenario, measured, "--set", "library.env.NCCL_PROTO=Simple"}).err == "");
}

TEST_CASE("of a scenario with an algorithm other protocols are tried, and what NCCL decides") {
  const std::string ring = R"({"version": 1, "name": "ring",
    "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})";
  const json range = explained(ring, small, times(one_dgx_a100, small), 8)["ranges"][0];
  CHECK(range["algorithm"] == "ring");
  CHECK(range["likely"] == "what NCCL decides: library nccl");
  CHECK(trial_named(range, "protocol ll")["explains"] == false);
}

}  // namespace mismatch_test
