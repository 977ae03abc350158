// Calibration: factors that are known are found again, and those that the measurements do not determine are named.
#include "validate/score/calibrate.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "sim/base/version.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"

namespace calibrate_test {

using namespace ringsim;
using namespace ringsim::literals;
using ringsim::test::run_command;
using ringsim::test::temporary_file;

namespace {

/// All-reduce of 1 KiB to 64 MiB. `algorithm`: JSON. `calibration`: as a member of the scenario, or nothing.
ScenarioFile scenario(const std::string& topology, const std::string& algorithm, const std::string& calibration = "",
                      const std::string& ranks = "") {
  return ScenarioFile::parse(
      fmt::format(R"({{"version": 1, "topology": {}, "collective": {{"op": "all_reduce", "algorithm": {}, {}
                      "bytes": {{"from": "1 KiB", "to": "64 MiB", "factor": 4}}}}{}}})",
                  topology, algorithm, ranks, calibration.empty() ? "" : ", \"calibration\": " + calibration),
      "s.json");
}

/// What the simulator itself says of it, as though it had been measured: of each size the fastest.
MeasuredTable measured(const ScenarioFile& file) {
  std::map<Bytes, double> fastest;
  for (std::size_t i = 0; i < file.size(); ++i) {
    const Prediction p = predict(file.point(i));
    const double us = microseconds(p.time);
    const auto [row, is_new] = fastest.emplace(p.request.bytes, us);
    if (!is_new) row->second = std::min(row->second, us);
  }
  std::string text = "# collective: all_reduce\nbytes,time_us\n";
  for (const auto& [bytes, us] : fastest) text += fmt::format("{},{}\n", bytes.count, us);
  return parse_measured(text, "m.csv");
}

const FittedFactor& factor_of(const CalibrationFit& fit, Factor factor) {
  return fit.factors.at(static_cast<std::size_t>(factor));
}

const std::string one_v100 = R"({"kind": "cluster", "node": "abci-v", "nodes": 1})";
const std::string star = R"({"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0.5 us"}})";
const std::string no_row = "no row depends on it";
const std::string no_difference = "the rows do not distinguish it from other factors and from noise";

}  // namespace

TEST_CASE("factors of data that the simulator made are found again, and another is named as not determined") {
  const std::string known = R"({"latency_scale": 3, "efficiency_inside": 0.7})";
  const CalibrationFit fit =
      calibrate(scenario(one_v100, R"("ring")"), measured(scenario(one_v100, R"("ring")", known)));
  CHECK(factor_of(fit, Factor::latency).value == doctest::Approx(3).epsilon(0.01));
  CHECK(factor_of(fit, Factor::inside).value == doctest::Approx(0.7).epsilon(0.01));
  CHECK(factor_of(fit, Factor::inside).standard_error < 0.05);
  // One node: nothing leaves it.
  CHECK(factor_of(fit, Factor::between).left_out == no_row);
  CHECK(factor_of(fit, Factor::between).value == 1);
  // A ring has as many steps at every size: its latencies are a launch.
  CHECK(factor_of(fit, Factor::launch).left_out == no_difference);
  CHECK(fit.loss_before > 2);
  CHECK(fit.loss_after < 1e-3);
  CHECK(fit.after.value().median_abs < 0.005);
  CHECK_FALSE(fit.others_after.has_value());
  CHECK(to_string(fit.calibration()).starts_with("latency_scale "));
}

TEST_CASE("a launch is distinguished from latencies if the number of steps changes with the size") {
  const std::string algorithms = R"(["ring", "recursive_doubling", "parameter_server"])";
  const std::string eight = R"({"kind": "star", "ranks": 16, "link": {"bandwidth": "10 GB/s", "latency": "0.5 us"}})";
  const std::string known = R"({"launch": "7 us", "latency_scale": 2, "efficiency_between": 0.8})";
  const CalibrationFit fit = calibrate(scenario(eight, algorithms), measured(scenario(eight, algorithms, known)));
  CHECK(factor_of(fit, Factor::launch).value == doctest::Approx(7).epsilon(0.02));
  CHECK(factor_of(fit, Factor::latency).value == doctest::Approx(2).epsilon(0.02));
  CHECK(factor_of(fit, Factor::between).value == doctest::Approx(0.8).epsilon(0.02));
  CHECK(factor_of(fit, Factor::inside).left_out == no_row);  // a star has no nodes
}

TEST_CASE("cables between nodes are distinguished from links inside if they are the bottleneck") {
  const std::string two = R"({"kind": "cluster", "node": "hgx-h100", "nodes": 2,
                              "fabric": {"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}}})";
  const std::string ranks = R"("ranks": ["node0.gpu0", "node1.gpu0"],)";
  const CalibrationFit fit = calibrate(scenario(two, R"("ring")", "", ranks),
                                       measured(scenario(two, R"("ring")", R"({"efficiency_between": 0.6})", ranks)));
  CHECK(factor_of(fit, Factor::between).value == doctest::Approx(0.6).epsilon(0.01));
  CHECK(factor_of(fit, Factor::inside).left_out == no_row);  // PCIe has four times the rate
}

TEST_CASE("a factor that would leave its range is set to its bound, and says so") {
  const CalibrationFit fit = calibrate(scenario(one_v100, R"("ring")"),
                                       measured(scenario(one_v100, R"("ring")", R"({"efficiency_inside": 1.4})")));
  CHECK(factor_of(fit, Factor::inside).value == doctest::Approx(1.2));
  CHECK(factor_of(fit, Factor::inside).at_bound);
  CHECK_FALSE(factor_of(fit, Factor::latency).at_bound);
}

TEST_CASE("every second row is fitted, the others are predicted, and rows that do not count are neither") {
  // 9 sizes, of which the table leaves out the last: 4 and 4.
  MeasuredTable table = measured(scenario(star, R"("ring")", R"({"efficiency_between": 0.5})"));
  table.about["score"] = "to 16 MiB; the test wants it so";
  CHECK_THROWS_WITH_AS(calibrate(scenario(star, R"("ring")"), table, Rows::even),
                       "m.csv: expected at least 5 rows to fit, one more than the number of factors, found 4",
                       InputError);
  table.about.clear();
  const CalibrationFit fit = calibrate(scenario(star, R"("ring")"), table, Rows::odd);
  CHECK(fit.after.value().rows == 5);
  CHECK(fit.others_after.value().rows == 4);
  CHECK(fit.others_before.value().median_abs > 0.1);
  CHECK(fit.others_after.value().p90_abs < 0.01);
}

TEST_CASE("a row with another cause does not pull the rest") {
  MeasuredTable table = measured(scenario(star, R"("ring")", R"({"efficiency_between": 0.5})"));
  table.rows[7].time_us *= 4;
  const CalibrationFit fit = calibrate(scenario(star, R"("ring")"), table);
  CHECK(factor_of(fit, Factor::between).value == doctest::Approx(0.5).epsilon(0.05));
  CHECK(loss_of(10, 10) == 0);
  CHECK(loss_of(11, 10) == doctest::Approx(loss_of(10, 11)));
  CHECK(loss_of(std::exp(0.1), 1) == doctest::Approx(std::sqrt(2.0) - 1));
  CHECK(loss_of(std::exp(2.0), 1) / loss_of(std::exp(1.0), 1) == doctest::Approx(2).epsilon(0.06));  // not four times
}

TEST_CASE("a scenario that is calibrated already is not calibrated on top") {
  const ScenarioFile file = scenario(star, R"("ring")", R"({"launch": "1 us"})");
  CHECK(ringsim::test::complaint([&] {
          calibrate(file, measured(scenario(star, R"("ring")")));
        }).starts_with("s.json: /calibration: expected a scenario without calibration, found a calibrated one"));
}

TEST_CASE("the command writes factors with their provenance, run takes them, and its results say so") {
  const std::string path = temporary_file("s.json", R"({"version": 1, "name": "four on a star", "topology": )" + star +
                                                        R"(, "collective": {"op": "all_reduce", "algorithm": "ring",
                                                              "bytes": "1 MiB"}})");
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const std::string csv = (folder / "m.csv").string(), out = (folder / "c.json").string();
  std::ofstream measurements(csv);
  measurements << "# collective: all_reduce\n# ranks: 4\n# source: somebody's notebook\nbytes,time_us\n";
  // A ring of 4 takes 6 us + 1.5 p/b: here with b = 5 instead of 10 GB/s.
  for (int kB = 4; kB <= 40'000; kB *= 10)
    for (const int times : {1, 3}) measurements << kB * times * 1000 << ',' << 6 + 1.5 * kB * times / 5.0 << '\n';
  measurements.close();
  const auto outcome = run_command({"calibrate", path, csv, "-o", out});
  REQUIRE(outcome.code == 0);
  CHECK(outcome.err == "");
  CHECK(outcome.out.find("kept at 1.000: " + no_row) != std::string::npos);
  CHECK(outcome.out.find("fitted, after   ") != std::string::npos);
  std::ifstream written(out);
  const auto document = nlohmann::json::parse(written);
  CHECK(document.at("factors").at("efficiency_between").get<double>() == doctest::Approx(0.5).epsilon(0.01));
  CHECK(document.at("left_out").at("efficiency_inside") == no_row);
  CHECK(document.at("fitted").at("efficiency_between").at("to") == 1.2);
  CHECK(document.at("measured").at("file") == "m.csv");
  CHECK(document.at("measured").at("source") == "somebody's notebook");
  CHECK(document.at("measured").at("xxh3_128").get<std::string>().size() == 32);
  CHECK(document.at("scenario").at("name") == "four on a star");
  CHECK(document.at("rows") == "all");
  CHECK(document.at("errors").at("fitted").at("rows") == 10);
  CHECK(document.at("errors").at("fitted").at("median_after") < 0.01);
  CHECK_FALSE(document.at("errors").contains("others"));
  CHECK(document.at("loss").at("after") < document.at("loss").at("before"));
  CHECK(document.at("model_version") == model_version);

  const auto run = run_command({"run", path, "--set", R"(calibration={"file": "c.json"})", "--format", "json"});
  REQUIRE(run.code == 0);
  CHECK(run.err == "");
  const auto row = nlohmann::json::parse(run.out).at("results").at(0);
  CHECK(row.at("calibration").get<std::string>().find("efficiency_between 0.") != std::string::npos);
  CHECK(row.at("time_us").get<double>() == doctest::Approx(6 + 1.5 * 1048.576 / 5).epsilon(0.01));
  const auto as_csv = run_command({"run", path, "--set", R"(calibration={"file": "c.json"})", "--format", "csv"});
  CHECK(as_csv.out.find(",calibration") != std::string::npos);
  CHECK(run_command({"run", path, "--format", "csv"}).out.find("calibration") == std::string::npos);
  CHECK(run_command({"calibrate", path, csv, "-o", path}).code == 3);
  CHECK(run_command({"calibrate", path, csv}).code == 2);  // -o is missing
}

TEST_CASE("what is written of a fit has six decimals of a factor and whole nanoseconds of a launch") {
  CalibrationFit fit;
  for (const Factor factor : {Factor::launch, Factor::latency, Factor::inside, Factor::between})
    fit.factors.push_back({.factor = factor, .value = factor == Factor::launch ? 7.1238 : 1.23456789});
  const Calibration found = fit.calibration();
  CHECK(found.launch == Picoseconds{7'124'000});
  CHECK(found.links.latency == 1.234568);
  CHECK(found.links.inside == 1.234568);
  CHECK(found.links.between == 1.234568);
}

}  // namespace calibrate_test
