// ringsim synthesize as a user meets it.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/sanitized.hpp"

namespace synthesize_command_test {

using ringsim::test::has;
using ringsim::test::Outcome;
using ringsim::test::run_command;
using ringsim::test::temporary_file;

namespace {

// Four ports of 10 GB/s: three blocks of 10 MB enter each, 3000 us.
std::string four_ports() {
  return temporary_file("four.json", R"({
    "version": 1, "name": "four",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_gather", "algorithm": "ring", "bytes": "40 MB"}})");
}

std::string box_of_eight() {
  return temporary_file("box.json", R"({
    "version": 1, "name": "box",
    "topology": {"kind": "cluster", "node": "dgx-1v", "nodes": 1,
                 "fabric": {"kind": "star", "link": {"bandwidth": "100 Gb/s", "latency": "1 us"}}},
    "collective": {"op": "all_gather", "algorithm": "ring", "bytes": "64 B"}})");
}

std::string next_to(const std::string& scenario, const std::string& name) {
  return (std::filesystem::path(scenario).parent_path() / name).string();
}

}  // namespace

TEST_CASE("the trees of a star are written, and run in the time that is printed, by the command that is printed") {
  const std::string scenario = four_ports(), file = next_to(scenario, "trees.json");
  const Outcome made = run_command({"synthesize", scenario, "-o", file});
  REQUIRE(made.code == 0);
  CHECK(has(made.out, "four: all_gather of 40 MB over 4 ranks\n"));
  CHECK(has(made.out, "optimum: 3000.0 us (3 of the 4 blocks must enter gpu0 over switch0 -> gpu0 (10 GB/s))"));
  CHECK(has(made.out, "broadcast trees: 1 per root, 4 in total, depth 1; 100.00 % of the optimal rate"));
  CHECK(has(made.out, "3002.0"));                             // and the latency of a path
  CHECK(has(made.out, "Rings reach 99.8 % of the optimum"));  // 3 (1000 + 2) us
  CHECK(has(made.err, "wrote trees, 1 slice to " + file));
  CHECK(has(made.err, "ringsim run " + scenario + " --set 'collective.algorithm={\"file\": \"trees.json\"}'\n"));
  const Outcome run =
      run_command({"run", scenario, "--set", R"(collective.algorithm={"file": "trees.json"})", "--format", "json"});
  REQUIRE(run.code == 0);
  CHECK(nlohmann::json::parse(run.out).at("results").at(0).at("time_us") == 3002.0);
}

TEST_CASE("a scenario whose schedule is to be made needs no algorithm, and may name one or a library by --set") {
  const std::string open = temporary_file("open.json", R"({
    "version": 1, "name": "four",
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_gather", "bytes": "20 MB"}})");
  const Outcome made = run_command({"synthesize", open, "--set", "collective.bytes=40 MB"});
  CHECK(made.code == 0);
  CHECK(made.out == run_command({"synthesize", four_ports()}).out);
  CHECK(run_command({"synthesize", open, "--set", "collective.bytes=40 MB", "--set", "collective.algorithm=direct"})
            .code == 0);
  // Only what lacks an algorithm gets one: errors name what the user wrote.
  const std::string box = temporary_file("open-box.json", R"({"version": 1,
    "topology": {"kind": "cluster", "node": "dgx-1v", "nodes": 1}, "collective": {"op": "all_reduce", "bytes": "1 MiB"}})");
  CHECK(has(run_command({"synthesize", box, "--set", "library=nccl"}).err, "cannot be combined with synthesis"));
  const std::string step = ringsim::test::source_dir() + "/scenarios/examples/training/two-jobs.json";
  CHECK_FALSE(has(run_command({"synthesize", step}).err, "collective.algorithm=ring"));
  const std::string swept = temporary_file("swept.json", R"({"version": 1,
    "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_gather", "bytes": "40 MB"}, "sweep": {"collective.algorithm": ["rng"]}})");
  CHECK(has(run_command({"synthesize", swept}).err, "did you mean \"ring\"?"));
}

TEST_CASE("for a machine by name the printed command names the file as it is typed, and leaves out the library") {
  const std::string file = next_to(four_ports(), "ring.json");
  const Outcome made =
      run_command({"synthesize", "dgx-1v", "--set", "collective.bytes=64 MiB", "--set", "collective.algorithm=ring",
                   "--trees-only", "--trees", "1", "--slices", "4", "-o", file});
  REQUIRE(made.code == 0);
  CHECK(has(made.err,
            "ringsim run dgx-1v --set library=null --set 'collective.bytes=64 MiB' "
            "--set 'collective.algorithm={\"file\": \"" +
                file + "\"}'\n"));
  CHECK(run_command({"run", "dgx-1v", "--set", "library=null", "--set", "collective.bytes=64 MiB", "--set",
                     "collective.algorithm={\"file\": \"" + file + "\"}"})
            .code == 0);
}

TEST_CASE("what is faster is written, unless the trees are asked for") {
  const std::string scenario = box_of_eight();
  const Outcome direct = run_command({"synthesize", scenario, "-o", next_to(scenario, "best.json")});
  REQUIRE(direct.code == 0);
  CHECK(has(direct.out, "direct from the catalog is faster at this size"));
  CHECK_FALSE(has(direct.out, "Rings reach"));  // 7 latencies
  CHECK(has(direct.err, "wrote direct to "));
  const Outcome trees = run_command({"synthesize", scenario, "--trees-only", "-o", next_to(scenario, "trees.json")});
  REQUIRE(trees.code == 0);
  CHECK(trees.out == direct.out);
  CHECK_FALSE(has(trees.out, "Left out"));
  CHECK(has(trees.err, " to " + next_to(scenario, "trees.json")));
  CHECK_FALSE(has(trees.err, "wrote direct"));
  for (const char* name : {"best.json", "trees.json"})
    CHECK(run_command({"schedule", "check", next_to(scenario, name)}).code == 0);
}

TEST_CASE("MSCCL XML is written of trees that it can hold, and it is said that others were left out") {
  const std::string scenario = four_ports(), file = next_to(scenario, "trees.xml");
  REQUIRE(run_command({"synthesize", scenario, "--slices", "4", "-o", file}).code == 0);
  const Outcome proved = run_command({"schedule", "check", file});
  CHECK(proved.code == 0);
  CHECK(has(proved.out, "packed_trees all_gather, 4 ranks: proved"));
  // 128 slices are too many steps for a thread block: fewer are written, and that is said.
  const std::string box = box_of_eight();
  const auto made = [&](const std::string& name) {
    return run_command({"synthesize", box, "--set", "collective.bytes=64 MB", "--slices", "128", "--trees-only", "-o",
                        next_to(box, name)});
  };
  const Outcome fewer = made("fewer.xml");
  CHECK(fewer.code == 0);
  CHECK(has(fewer.out, "Left out because the file format cannot represent"));
  CHECK(run_command({"schedule", "check", next_to(box, "fewer.xml")}).code == 0);
  if (!ringsim::test::sanitized) CHECK_FALSE(has(made("all.json").out, "Left out"));  // with sanitizers 40 s
}

TEST_CASE("a file of another kind is refused before anything is made") {
  const Outcome refused = run_command({"synthesize", four_ports(), "-o", "trees.txt"});
  CHECK(refused.code == 2);
  CHECK(has(refused.err, "--output (-o): expected a name that ends in .json or .xml, found \"trees.txt\""));
  CHECK(refused.out == "");
}

}  // namespace synthesize_command_test
