// The names in --assert are known before the first point of a sweep.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/traces/chakra_messages.hpp"
#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/results.hpp"

namespace assert_names_test {

using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::temporary_file;

namespace {

namespace fs = std::filesystem;

const char* const eight = R"({"version": 1, "name": "eight",
  "topology": {"kind": "star", "ranks": [4, 8], "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": ["ring", "halving_doubling"], "bytes": ["1 KiB", "1 MiB"]}})";

/// The columns of all rows of a sweep, but for what varies.
std::set<std::string> columns_of(const std::string& scenario, const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"sweep", scenario};
  words.insert(words.end(), more.begin(), more.end());
  const Outcome outcome = run_command(words);
  std::set<std::string> columns;
  std::istringstream lines(outcome.out);
  for (std::string line; std::getline(lines, line);)
    for (const ringsim::Cell& cell : ringsim::ResultRow::parse(line, "rows").cells)
      if (!cell.column.starts_with("point.") && !cell.column.starts_with("error.")) columns.insert(cell.column);
  CHECK(!columns.empty());
  return columns;
}

}  // namespace

TEST_CASE("a name that no result can have ends a sweep before its first point, and no file is written") {
  const std::string file = temporary_file("eight.json", eight), out = temporary_file("out.jsonl", "");
  fs::remove(out);
  const auto refused = [&](const std::string& assertion) {
    const Outcome outcome = run_command({"sweep", file, "-o", out, "--assert", assertion});
    CHECK(outcome.code == 2);
    CHECK(outcome.out == "");
    CHECK(!fs::exists(out));
    return outcome.err;
  };
  const std::string usage = "usage: ringsim sweep SCENARIO [OPTIONS]; run `ringsim help sweep` for details\n";
  CHECK(refused("busbw > 4") ==
        "ringsim: error: --assert \"busbw > 4\": expected a column of the results or a path that varies, found "
        "\"busbw\"\n"
        "  hint: did you mean \"busbw_GBps\"?\n" +
            usage);
  CHECK(refused("time_us > 4 where topology.rank == 8")
            .find("found \"topology.rank\"\n  hint: did you mean \"topology.ranks\"?") != std::string::npos);
  // A key that has one value in the scenario.
  CHECK(refused("topology.link.latency > 4").find("topology.link.latency does not vary in these results") !=
        std::string::npos);
  // Whole words of a longer name are found as well.
  CHECK(refused("ratio < 2").find("did you mean \"closed_form.ratio\"?") != std::string::npos);
  CHECK(refused("has(inter_node.bandwidth)").find("found \"inter_node.bandwidth\"") != std::string::npos);
  CHECK(refused("xyzzy == 1")
            .find("hint: valid names are the columns of the results, such as time_us and busbw_GBps, and the varying "
                  "paths: collective.algorithm, collective.bytes, topology.ranks\n") != std::string::npos);
  // What does not vary is no name, but a column may tell it.
  const std::string fixed = temporary_file("fixed.json", ringsim::test::replaced(eight, "[4, 8]", "8"));
  const Outcome outcome = run_command({"sweep", fixed, "--dry-run", "--assert", "topology.ranks > 1"});
  CHECK(outcome.code == 2);
  CHECK(outcome.err.find("did you mean \"ranks\"?") != std::string::npos);
}

TEST_CASE("columns, parameters and paths that vary are names, with and without \"point.\"") {
  const std::string file = temporary_file("eight.json", eight);
  for (const char* assertion :
       {"busbw_GBps > 0 where bytes >= 1 KiB", "topology.ranks <= 8", "point.topology.ranks <= 8",
        "has(parameters.fold) or collective.algorithm == 'ring'", "closed_form.ratio < 2 where closed_form.holds",
        "has(inter_node.GBps) or ranks > 1", "bottleneck.busy <= 1"}) {
    CAPTURE(assertion);
    CHECK(run_command({"sweep", file, "--assert", assertion}).code == 0);
  }
}

TEST_CASE("every column that sweeps write is known, and some sweep writes each that is known") {
  const std::vector<std::string> known = ringsim::column_names();
  CHECK(std::set<std::string>(known.begin(), known.end()).size() == known.size());
  const std::string source = ringsim::test::source_dir() + "/scenarios/";
  const std::string delayed = temporary_file(
      "late.json", ringsim::test::replaced(eight, R"("collective")",
                                           R"("disturbance": {"late": [{"rank": 1, "by": "1 ms"}]}, "collective")"));
  const std::string calibrated = temporary_file(
      "calibrated.json",
      ringsim::test::replaced(eight, R"("collective")", R"("calibration": {"launch": "5 us"}, "collective")"));
  const std::string folded =
      temporary_file("folded.json", ringsim::test::replaced(ringsim::test::replaced(eight, "[4, 8]", "1024"),
                                                            R"(["ring", "halving_doubling"])", R"("ring")"));
  // Buckets of ResNet-50 have no equal chunks, so that ranks do not fold; 2 million messages in three steps.
  const std::string remembered = temporary_file("remembered.json", R"({
    "version": 1, "name": "buckets that repeat",
    "topology": {"kind": "star", "ranks": 256, "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}},
    "training": {"workload": {"model": "resnet50", "batch": 32, "compute": {"step": "100 ms"}},
                 "regime": {"name": "ddp", "algorithm": "ring"}, "steps": 2, "warmup": 1}})");
  const std::string planned = temporary_file("planned.json", R"({"version": 1, "name": "planned",
      "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
      "training": {"workload": {"transformer": {"layers": 2, "hidden": 64, "heads": 2, "ffn": 128, "vocabulary": 100,
                                                "experts": 4, "top_k": 2},
                                "sequence": 16, "micro_batch_size": 1, "global_batch_size": 4,
                                "compute": {"flops": "1 TFLOP/s", "efficiency": "50%"}},
                   "parallel": {"tensor": 2, "pipeline": 2, "context": 2, "cp_comm": "all_gather",
                                "sequence_parallel": true, "expert": 2}}})");
  // A build without libprotobuf has no traces.
  const bool has_traces = ringsim::traces::has_chakra();
  const std::string traced = temporary_file("traced.json", R"({"version": 1, "name": "traced",
      "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
      "trace": {"files": ")" + source + R"(examples/trace/ddp.{rank}.et", "sync": "adam"}})");
  std::set<std::string> seen;
  for (const std::string& file :
       {source + "star.json", source + "examples/training/buckets.json",
        source + "examples/training/data-parallel.json", source + "examples/training/llama3-8b.json",
        source + "examples/inference/llama3-70b-decode.json", source + "examples/inference/prefill.json",
        source + "examples/training/async-server.json", source + "examples/library/nccl-hgx-h100.json",
        source + "examples/machines/two-node-server.json", source + "examples/faults/link-fails.json",
        source + "questions/16-several-at-once.json", source + "examples/collectives/in-turn.json", delayed, calibrated,
        planned, folded, remembered, has_traces ? traced : planned}) {
    CAPTURE(file);
    for (const std::string& column : columns_of(file)) {
      CAPTURE(column);
      CHECK(std::find(known.begin(), known.end(), column) != known.end());
      seen.insert(column);
    }
  }
  for (const std::string& column : columns_of(temporary_file("eight.json", eight), {"--bound"})) seen.insert(column);
  for (const std::string& column : known) {
    CAPTURE(column);
    if (column.starts_with("parameters.")) continue;  // one for each setting of each algorithm
    if (column.starts_with("trace.") && !has_traces) continue;
    CHECK(seen.contains(column));
  }
}

}  // namespace assert_names_test
