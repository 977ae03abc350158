// The launch that measured rows give: how it is solved, compare --launch-from, and scorecard --launch-given.
#include "validate/score/given_launch.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "validate/score/scorecard.hpp"

namespace given_launch_test {

using namespace ringsim;
using namespace ringsim::literals;
using ringsim::test::has;
using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::temporary_file;
namespace fs = std::filesystem;

namespace {

// Two L40S over PCIe with NCCL 2.27.3: at 512 B a launch of 4.7 us and a step of LL.
const std::string pair = R"({"version": 1, "name": "pair",
  "topology": {"kind": "cluster", "node": "l40s-pcie", "nodes": 1},
  "library": {"name": "nccl", "version": "2.27.3"},
  "collective": {"op": "all_gather", "bytes": "1 MiB", "ranks": ["node0.gpu0", "node0.gpu1"]}})";
const std::string head = "# collective: all_gather\n# ranks: 2\n# library: NCCL 2.27.3\nbytes,time_us\n";

/// Predicted times in us at those sizes, with options.
std::vector<double> predicted(const std::vector<std::string>& sizes, std::vector<std::string> options = {}) {
  std::string list;
  for (const std::string& size : sizes) list += (list.empty() ? "\"" : ", \"") + size + '"';
  std::vector<std::string> words{
      "run", temporary_file("pair.json", pair), "--set", "collective.bytes=[" + list + "]", "--format", "json"};
  for (std::string& each : options) words.insert(words.end(), {"--set", std::move(each)});
  const Outcome outcome = run_command(words);
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  std::vector<double> times;
  const auto document = nlohmann::json::parse(outcome.out);
  for (const auto& each : document.at("results")) times.push_back(each.at("time_us"));
  return times;
}

/// The file of measured times that are the predicted ones and as much more.
std::string measured(const std::vector<std::string>& bytes, const std::vector<double>& more) {
  std::string text = head;
  const std::vector<double> times = predicted(bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::string count = bytes[i].substr(0, bytes[i].find(' '));
    text += fmt::format("{},{}\n", count, times[i] + more[i]);
  }
  return temporary_file("measured.csv", text);
}

Outcome compare(const std::string& file, const std::string& launch_from, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"compare", temporary_file("pair.json", pair), file, "--launch-from", launch_from};
  words.insert(words.end(), more.begin(), more.end());
  return run_command(words);
}

}  // namespace

TEST_CASE("rows that give a launch are the three smallest up to 64 KiB, whatever their order") {
  using Places = std::vector<std::size_t>;
  CHECK(rows_that_give_launch(std::vector{1_MiB, 64_B, 8_B, 64_KiB, 16_B, 32_B}) == Places{2, 4, 5});
  CHECK(rows_that_give_launch(std::vector{64_KiB, 64_KiB + 1_B}) == Places{0});
  CHECK(rows_that_give_launch(std::vector{64_KiB + 1_B, 1_GiB}).empty());
  CHECK(rows_that_give_launch({}).empty());
}

TEST_CASE("the launch is the model's and the median of what is missing, to the picosecond") {
  const auto solved = [](std::vector<LaunchRow> rows) { return solve_launch(std::move(rows), Picoseconds{4'700'000}); };
  // 8 B is an outlier, as the first row of a benchmark may be.
  const GivenLaunch three = solved({{8_B, 68.5, 6.5}, {16_B, 7.75, 6.5}, {32_B, 7.625, 6.625}});
  CHECK(three.launch() == Picoseconds{5'950'000});
  CHECK(three.shift() == Picoseconds{1'250'000});
  CHECK(doubts_of(three).empty());
  CHECK(solved({{8_B, 7, 6}, {16_B, 9, 6}}).launch() == Picoseconds{6'700'000});  // the mean of 1 and 3 us
  const GivenLaunch negative = solved({{8_B, 2, 8}});
  CHECK(negative.solved == Picoseconds{-1'300'000});
  CHECK(negative.launch() == Picoseconds{0});
  CHECK(negative.shift() == Picoseconds{-4'700'000});
  CHECK(doubts_of(negative) ==
        std::vector<std::string>{"8 B would need a launch of -1.30 us, so 0 us is used. The prediction is too slow "
                                 "there even without a launch, so something else differs"});
  CHECK_FALSE(solved({{8_B, 106, 6}}).is_implausible());
  const GivenLaunch other = solved({{8_B, 106.5, 6}});
  CHECK(other.is_implausible());
  CHECK(implausible_text(other) ==
        "8 B would need a launch of 105.20 us instead of 4.70, but no launch exceeds that of the model by more than "
        "100 us");
  // A quarter of 18.8 us is 4.7.
  CHECK(doubts_of(solved({{8_B, 20, 18.8}})).empty());
  CHECK(doubts_of(solved({{8_B, 20, 18.9}})) ==
        std::vector<std::string>{
            "the launch is only 4.70 of the 18.90 us predicted for 8 B. The difference from the measured 20.00 us may "
            "therefore come from the steps, whose number depends on the number of ranks"});
}

TEST_CASE("compare takes the launch from another table, and predicts as with devices.gpu.launch") {
  const std::string from = measured({"512 B", "1024 B", "2048 B"}, {3, 3, 3});
  const std::vector<std::string> sizes{"512 B", "1048576 B"};
  const Outcome outcome = compare(measured(sizes, {0.5, 0.5}), from, {"--format", "json"});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  std::string flat = outcome.err;  // lines break where the file's name says
  for (std::size_t at = flat.find("\n  "); at != std::string::npos; at = flat.find("\n  ")) flat.replace(at, 3, " ");
  CHECK(flat == fmt::format("ringsim: note: The launch is 7.70 us instead of 4.70 (devices.gpu.launch), the median of "
                            "the fits to 512 B, 1 KiB and 2 KiB of {}.\n",
                            from));
  const auto results = nlohmann::json::parse(outcome.out).at("results");
  const std::vector<double> stated = predicted(sizes, {"devices.gpu.launch=7.7 us"});
  REQUIRE(results.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) CHECK(results.at(i).at("time_us") == stated[i]);
}

TEST_CASE("rows of the compared table that give the launch are not compared with themselves") {
  const std::string file = measured({"512 B", "1024 B", "2048 B", "4096 B", "1048576 B"}, {9, 3, 3, 3, 3});
  const Outcome outcome = compare(file, file);
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  CHECK(outcome.err ==
        fmt::format("ringsim: warning: {}: 512 B, 1 KiB and 2 KiB determine the launch and are not compared\n", file));
  CHECK(has(outcome.out, "differ by 0.0 % (median of 2 rows)."));  // 3 us of launch explain them all
  CHECK(has(outcome.out, "The launch is 7.70 us instead of 4.70"));
  const Outcome explained = compare(file, file, {"--explain"});
  REQUIRE_MESSAGE(explained.code == 0, explained.err);
  CHECK(has(explained.out, "Measured and predicted times agree within 10 % in all rows"));
  CHECK_FALSE(has(explained.out, "512 B  "));
  CHECK(has(explained.out, "The launch is 7.70 us instead of 4.70"));
}

TEST_CASE("compare says how much of the smallest prediction is launch") {
  const std::string scenario = temporary_file("pair.json", pair);
  const Outcome outcome = run_command({"compare", scenario, measured({"512 B", "1048576 B"}, {0, 0})});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  CHECK(has(outcome.out, fmt::format("The launch takes 4.70 of {:.2f} us at 512 B. It depends on the GPU, the driver "
                                     "and the harness;\n  --launch-from derives it from a measured table.\n",
                                     predicted({"512 B"}).front())));
  // A launch is nothing of a large message's time.
  const Outcome large = run_command({"compare", scenario, measured({"16777216 B"}, {0})});
  CHECK_FALSE(has(large.out, "The launch"));
}

TEST_CASE("a table that cannot give the launch is refused by name, with what to do") {
  const std::string file = measured({"512 B", "1048576 B"}, {0, 0});
  const auto err = [&](const std::string& from) {
    const Outcome outcome = compare(file, from);
    std::string said = fmt::format("{} {}", outcome.code, outcome.err);
    for (std::size_t at = said.find(from); at != std::string::npos; at = said.find(from))
      said.replace(at, from.size(), "FILE");
    return said;
  };
  CHECK(has(err("no/such.csv"), "3 ringsim: error: FILE: "));
  CHECK(err(temporary_file("large.csv", head + "1048576,60\n131072,30\n")) ==
        "3 ringsim: error: FILE: expected a row of 64 KiB or less for fitting the launch, found 128 KiB as the "
        "smallest\n  hint: the launch is too small a part of larger messages; start the benchmark at 8 B\n");
  CHECK(has(err(temporary_file("op.csv", "# collective: all_reduce\n# ranks: 2\nbytes,time_us\n512,6\n")),
            "3 ringsim: error: FILE: expected rows of all_gather as in the scenario, found 1 all_reduce\n"));
  CHECK(has(err(temporary_file("ranks.csv", "# collective: all_gather\n# ranks: 4\nbytes,time_us\n512,6\n")),
            "3 ringsim: error: FILE: expected as many ranks as "));
  CHECK(
      has(err(temporary_file("slow.csv", head + "512,300\n")), "3 ringsim: error: FILE: 512 B would need a launch of"));
  CHECK(has(err(temporary_file("fast.csv", head + "512,0.1\n")),
            "ringsim: warning: FILE: 512 B would need a launch of -"));
  CHECK(has(err(file), "0 ringsim: warning: FILE: 512 B determines the launch and is not compared\n"));
  const std::string one = temporary_file("one.csv", head + "512,6\n");
  const Outcome none_left = compare(one, one);
  CHECK(none_left.code == 3);
  CHECK(has(none_left.err, "expected more rows than those used to fit the launch, found none"));
  // Two algorithms have two predictions of a size.
  const std::string star = temporary_file("star.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": ["ring", "direct"], "bytes": "1 MiB"}})");
  const std::string four =
      temporary_file("four.csv", "# collective: all_reduce\n# ranks: 4\nbytes,time_us\n8,20\n16,21\n");
  const Outcome two = run_command({"compare", star, four, "--launch-from", four});
  CHECK(two.code == 3);
  CHECK(has(two.err, "expected one prediction of 8 B for fitting the launch to"));
  CHECK(has(two.err, "found 2\n"));
}

TEST_CASE("without a library the launch is the protocol's") {
  const std::string star = temporary_file("star.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "transport": {"launch": "2 us"},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})");
  // 6 steps of 2 us and 2 us of launch; a message of 10 kB takes 1 us over each cable.
  const std::string four =
      temporary_file("four.csv", "# collective: all_reduce\n# ranks: 4\nbytes,time_us\n40,19\n40000000,6017\n");
  const Outcome outcome = run_command({"compare", star, four, "--launch-from", four});
  REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
  CHECK(has(outcome.out, "(transport.launch), fitted to 40 B of"));
  CHECK(has(outcome.out, "differ by 0.0 % (median of 1 row)."));
}

TEST_CASE("scorecard --launch-given scores the other rows with the launch that the table's smallest give") {
  const std::vector<std::string> sizes{"512 B", "1024 B", "2048 B", "4096 B", "1048576 B"};
  const std::string csv = measured(sizes, {3, 3, 12, 6, 3});
  const fs::path folder = fs::path(temporary_file("pair.json", pair)).parent_path();
  fs::copy_file(csv, folder / "pair.csv");
  const auto rows = [&](const std::vector<std::string>& options) {
    std::vector<std::string> words{"scorecard", folder.string(), "--format", "csv"};
    words.insert(words.end(), options.begin(), options.end());
    const Outcome outcome = run_command(words);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    return outcome.out;
  };
  const std::vector<double> own = predicted(sizes), stated = predicted(sizes, {"devices.gpu.launch=7.7 us"});
  CHECK(has(rows({}), fmt::format(",512,{},true,{}", own[0] + 3, own[0])));
  const std::string given = rows({"--launch-given"});
  for (std::size_t i = 0; i < 3; ++i) CHECK(has(given, fmt::format(",{},launch,", own[i] + (i == 2 ? 12 : 3))));
  CHECK(has(given, fmt::format(",4096,{},true,{:.4f}", own[3] + 6, stated[3]).substr(0, 20)));
  const Outcome page = run_command({"scorecard", folder.string(), "--launch-given"});
  CHECK(has(page.out, "1 tables with 5 rows, of which 2 are scored."));
  CHECK(has(page.out, "pair   512 B, 1 KiB and 2 KiB     4.70   7.70"));
  CHECK_FALSE(has(page.out, "Shown, but not scored"));
  // Without the option both are next to each other, on the same rows: 6 us and 3 us are missing, then 3 us and none.
  const Outcome both = run_command({"scorecard", folder.string()});
  CHECK(has(both.out, "1 tables with 5 rows, of which 5 are scored."));
  CHECK(has(both.out, "With the launch given"));
  const ScoredTable table = score({"pair", "pair.csv",
                                   [&] {
                                     std::ifstream in(csv);
                                     return std::string(std::istreambuf_iterator<char>(in), {});
                                   }(),
                                   "pair.json", pair},
                                  [](const ScenarioFile& file) {
                                    std::vector<Prediction> all;
                                    for (std::size_t i = 0; i < file.size(); ++i) all.push_back(predict(file.point(i)));
                                    return all;
                                  });
  const LaunchErrors errors = launch_errors_of(std::vector{table});
  REQUIRE(errors.with.size() == 2);
  CHECK(errors.without[0].error == doctest::Approx(-6 / (own[3] + 6)));
  CHECK(errors.with[0].error == doctest::Approx(-3 / (own[3] + 6)));
  CHECK(errors.without[1].error == doctest::Approx(-3 / (own[4] + 3)));
  CHECK(errors.with[1].error == doctest::Approx(0));
  const Outcome limits = run_command({"scorecard", folder.string(), "--launch-given", "--format", "limits"});
  CHECK(limits.code == 2);
  CHECK(has(limits.err, "--launch-given cannot be combined with --limits and --format limits"));
  CHECK(run_command({"scorecard", "--training", folder.string(), "--launch-given"}).code == 2);
}

TEST_CASE("scorecard --launch-given leaves a table as it is that has no small row, or needs an impossible launch") {
  const fs::path folder = fs::path(temporary_file("pair.json", pair)).parent_path();
  const auto page = [&](const std::string& rows, const std::string& score = "") {
    std::ofstream(folder / "pair.csv") << score + head + rows;
    const Outcome outcome = run_command({"scorecard", folder.string(), "--launch-given"});
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    return outcome.out;
  };
  const std::string large = page("131072,30\n1048576,60\n");
  CHECK(has(large, "of which 2 are scored"));
  CHECK(has(large, "no scored row of 64 KiB or less"));
  // Small rows that do not count give no launch either.
  CHECK(has(page("512,8\n1048576,60\n", "# score: from 1 MiB; so says the test\n"), "no scored row of 64 KiB or less"));
  const std::string slow = page("512,300\n1048576,360\n");
  CHECK(has(slow, "of which 2 are scored"));
  CHECK(has(slow, "no launch exceeds that of the\n  model by more than 100 us"));
}

}  // namespace given_launch_test
