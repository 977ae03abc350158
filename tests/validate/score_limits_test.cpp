// The ratchet on the scorecard: no band of the library's column may get worse than a reviewed file allows.
#include "validate/score/score_limits.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace score_limits_test {

using namespace ringsim;
using namespace ringsim::literals;
using ringsim::test::has;
using ringsim::test::run_command;
namespace fs = std::filesystem;

namespace {

/// Measured 100 us in every row; predicted by the library so much more, in percent.
ScoredTable table_off_by(const std::vector<double>& percents, Bytes size, Family family) {
  ScoredTable table{.id = "t", .family = family, .rows = {}};
  for (const double each : percents) {
    table.rows.push_back({.bytes = size, .measured_us = 100});
    table.rows.back().times[static_cast<std::size_t>(Model::library)] = ModelTime{100 + each, ""};
  }
  return table;
}

/// A folder with one table, of rows that lie 10 % below what the library takes, and its scenario.
fs::path folder_of_one() {
  const fs::path folder = fs::path(test::temporary_file("one.json", R"({"version": 1, "library": "nccl",
    "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
    "collective": {"op": "all_reduce", "bytes": "1 MiB"}})"))
                              .parent_path();
  std::ofstream(folder / "one.csv") << "# collective: all_reduce\n# ranks: 8\n# library: NCCL 2.27.3\n"
                                       "bytes,time_us\n1024,20\n2048,20\n67108864,600\n";
  return folder;
}

}  // namespace

TEST_CASE("limits are the errors of the library, by sizes, of all tables and of each family") {
  // Of 10, 20 and 30 % the median is 20, nine tenths of the way from 0.8 on 28.
  const std::vector<ScoredTable> tables{table_off_by({10, 20, 30}, 1_KiB, Family::nvlink),
                                        table_off_by({40}, 512_MiB, Family::nodes)};
  const std::vector<ScoreLimit> limits = score_limits_of(tables);
  REQUIRE(limits.size() == 9);  // all: 4 bands with "all sizes" (none in the middle); NVLink: 2; nodes: 3
  CHECK(limits[0].tables == "all");
  CHECK(limits[0].sizes == "up to 64 KiB");
  CHECK(limits[0].rows == 3);
  CHECK(limits[0].median == doctest::Approx(20));
  CHECK(limits[0].p90 == doctest::Approx(28));
  CHECK(limits.back().tables == "several nodes");
  CHECK(limits.back().sizes == "all sizes");
  CHECK(limits.back().median == doctest::Approx(40));
}

TEST_CASE("a file of limits reads back, and others are refused by name") {
  const std::vector<ScoreLimit> limits{{"all", "up to 64 KiB", 3, 20, 28.4}, {"several nodes", "all sizes", 1, 4.5, 5}};
  const std::vector<ScoreLimit> back = read_score_limits(to_json(limits), "l.json");
  REQUIRE(back.size() == 2);
  CHECK(back[0].p90 == 28.4);
  CHECK(back[1].tables == "several nodes");
  CHECK(back[1].rows == 1);
  CHECK(to_json(back) == to_json(limits));
  const auto refused = [](const std::string& text) {
    return test::complaint([&] { read_score_limits(text, "l.json"); });
  };
  CHECK(has(refused("{}"), "l.json: expected a list of bands, found an object"));
  CHECK(has(refused("[]"), "expected a list of bands"));
  CHECK(has(refused(R"([{"tables": "all", "sizes": "all sizes", "rows": 3, "median": 2}])"),
            "expected a list of objects with tables, sizes, rows, median and p90"));
  CHECK(has(refused(R"([{"tables": 1, "sizes": "all sizes", "rows": 3, "median": 2, "p90": 3}])"), "expected a list"));
}

TEST_CASE("half a percentage point is let pass, more is worse or better, and bands must be the same") {
  const std::vector<ScoreLimit> limits{{"all", "all sizes", 3, 5.0, 20.0}};
  const auto with = [](double median, double p90) {
    return std::vector<ScoreLimit>{{"all", "all sizes", 3, median, p90}};
  };
  CHECK(check_limits(with(5.5, 19.5), limits).worse.empty());
  CHECK(check_limits(with(5.5, 19.5), limits).better.empty());
  REQUIRE(check_limits(with(5.6, 20), limits).worse.size() == 1);
  CHECK(check_limits(with(5.6, 20), limits).worse[0] ==
        "all, all sizes: median 5.6 %, but at most 5.0 % is allowed (3 rows)");
  CHECK(check_limits(with(5, 20.6), limits).worse.size() == 1);
  CHECK(check_limits(with(5.6, 20.6), limits).worse.size() == 2);
  REQUIRE(check_limits(with(4.4, 20), limits).better.size() == 1);
  CHECK(check_limits(with(4.4, 20), limits).worse.empty());
  const std::vector<ScoreLimit> more{{"all", "all sizes", 4, 5.6, 20}, {"all", "up to 64 KiB", 1, 1, 1}};
  REQUIRE(check_limits(more, limits).worse.size() == 2);
  CHECK(has(check_limits(more, limits).worse[0], "(4 rows, then 3)"));
  CHECK(has(check_limits(more, limits).worse[1], "all, up to 64 KiB: there is no limit"));
  CHECK(has(check_limits(limits, more).worse[0], "it has a limit, but no scored row"));
}

TEST_CASE("the command writes limits, holds the tables to them, and says how to tighten the file") {
  const fs::path folder = folder_of_one();
  const auto written = run_command({"scorecard", folder.string(), "--format", "limits"});
  REQUIRE(written.code == 0);
  const std::string good = test::temporary_file("limits.json", written.out);
  const auto held = run_command({"scorecard", folder.string(), "--limits", good});
  CHECK(held.code == 0);
  CHECK(held.err == "");

  std::vector<ScoreLimit> limits = read_score_limits(written.out, "limits.json");
  limits.front().median -= 0.6;
  const auto worse =
      run_command({"scorecard", folder.string(), "--limits", test::temporary_file("tight.json", to_json(limits))});
  CHECK(worse.code == 1);
  CHECK(has(worse.err, "worse than "));
  CHECK(has(worse.err, "all, up to 64 KiB: median "));
  CHECK(has(worse.out, "By size"));  // the scorecard itself is there all the same
  limits.front().median += 1.2;
  const auto better =
      run_command({"scorecard", folder.string(), "--limits", test::temporary_file("loose.json", to_json(limits))});
  CHECK(better.code == 0);
  CHECK(has(better.err, "tighten the limits, run: ringsim scorecard --format limits -o "));
  CHECK(run_command({"scorecard", folder.string(), "--limits", "no/such.json"}).code == 3);
}

TEST_CASE("--set changes what the library does, and --only-library leaves out the other runs") {
  const fs::path folder = folder_of_one();
  const auto column = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"scorecard", folder.string(), "--format", "csv"};
    words.insert(words.end(), more.begin(), more.end());
    const auto outcome = run_command(words);
    REQUIRE_MESSAGE(outcome.code == 0, outcome.err);
    return outcome.out;
  };
  const std::string before = column({});
  CHECK(has(before, ",ring ll,"));
  CHECK(column({"--only-library"}) == before);  // the scenario names the library, and nothing else
  const std::string simple = column({"--set", "library.env.NCCL_PROTO=Simple", "--set", "library.env.NCCL_ALGO=Ring"});
  CHECK(has(simple, ",ring simple,"));
  CHECK_FALSE(has(simple, ",ring ll,"));

  // A scenario of algorithms: the library comes from the table, and keys below `library` do not touch the rest.
  std::ofstream(folder / "one.json")
      << R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
    "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})";
  const std::string both = column({"--set", "library.env.NCCL_PROTO=Simple"});
  CHECK(has(both, ",ring simple,ring,,"));  // library_by, plain_by
  const std::string only = column({"--only-library"});
  CHECK(has(only, ",ring ll,,,"));
}

TEST_CASE("the limits of the repository are for every band of the published tables") {
  const std::string text = test::read_file(fs::path(test::source_dir()) / "tests/data/scorecard-limits.json");
  const std::vector<ScoreLimit> limits = read_score_limits(text, "scorecard-limits.json");
  CHECK(limits.size() == 25);  // all tables of NCCL and four families, four bands and all sizes
  for (const ScoreLimit& each : limits) {
    CAPTURE(each.tables);
    CAPTURE(each.sizes);
    CHECK(each.rows > 0);
    CHECK(each.median <= each.p90);
  }
}

}  // namespace score_limits_test
