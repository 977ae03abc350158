// The comparison of all algorithms: docs/results/algorithms.md is what it says, it leaves none out, and its bytes are
// counted.
#include "validate/analysis/algorithms_on_machines.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/catalog.hpp"
#include "sim/check/check.hpp"
#include "sim/run/run.hpp"
#include "tests/support/command.hpp"
#include "tests/support/every_algorithm.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/tiny.hpp"

namespace algorithms_on_machines_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

std::string page() {
  std::ifstream file(test::source_dir() + "/docs/results/algorithms.md", std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// What an algorithm is there for: the first of these that it has.
CollectiveOp main_op(const Algorithm& algorithm) {
  using enum CollectiveOp;
  for (const CollectiveOp op : {all_reduce, all_gather, broadcast, all_to_all})
    if (algorithm.supports(op)) return op;
  return algorithm.ops.front();
}

const std::vector<ComparisonRow>& rows() {
  static const std::vector<ComparisonRow> all = algorithms_on_machines();
  return all;
}

}  // namespace

TEST_CASE("docs/results/algorithms.md ends in the tables that the simulation gives") {
  const std::string text = page(), mark = "<!-- below this line: tests/scripts/update_goldens.py -->\n\n";
  REQUIRE(text.find(mark) != std::string::npos);
  CHECK_MESSAGE(text.substr(text.find(mark) + mark.size()) == to_markdown(rows()),
                "run tests/scripts/update_goldens.py, and read what changed");
  CHECK(test::run_command({"list", "comparison"}).out == to_markdown(rows()));
}

TEST_CASE("every algorithm of the catalog has its row on each of the five machines of eight ranks") {
  std::map<std::string, std::vector<std::string>> sections;  // [machine] its lines of the page
  std::istringstream lines(page());
  for (std::string line, machine; std::getline(lines, line);) {
    if (line.starts_with("### ")) machine = line.substr(4);
    if (!machine.empty() && line.starts_with("| ")) sections[machine].push_back(line);
  }
  for (const char* machine : {"star", "ring", "torus 2x4", "dgx-1v", "hgx-h100"}) {
    for (const Algorithm& algorithm : algorithms()) {
      const std::string start = fmt::format("| {:<14} | {} ", to_string(main_op(algorithm)), algorithm.name);
      CAPTURE(machine);
      CAPTURE(start);
      const auto& section = sections[machine];
      CHECK(
          std::any_of(section.begin(), section.end(), [&](const std::string& row) { return row.starts_with(start); }));
    }
  }
}

TEST_CASE("every collective has a row") {
  for (const CollectiveOp op : collective_ops()) {
    CAPTURE(to_string(op));
    CHECK(std::any_of(rows().begin(), rows().end(),
                      [&](const ComparisonRow& row) { return row.op == op && row.refused.empty(); }));
  }
}

// 64 MB, 8 ranks, as the doc comments of the algorithms count. MB:
TEST_CASE("a rank sends what its algorithm's header says, on whatever machine") {
  const std::map<std::string, int> megabytes{
      {"ring", 2 * 7 * 64 / 8},  // 2(n-1)/n size
      {"ring rings=2", 2 * 7 * 64 / 8},
      {"ring order=best_ring", 2 * 7 * 64 / 8},
      {"halving_doubling", 2 * 7 * 64 / 8},
      {"swing", 2 * 7 * 64 / 8},
      {"recursive_doubling", 3 * 64},                 // log2(n) size
      {"direct", 2 * 7 * 64 / 8},                     // two shots
      {"direct shots=1", 7 * 64},                     // (n-1) size
      {"parameter_server", 7 * 64},                   // the root's
      {"parameter_server servers=2", 64},             // the servers' bytes are not a rank's
      {"hierarchical group=4", 2 * 3 * 64 / 4 + 16},  // 2(g-1)/g size, and 2(2-1)/2 of a fourth of it
      {"in_switch", 64},                              // size
  };
  int compared = 0;
  for (const ComparisonRow& row : rows()) {
    const auto name = row.algorithm + (row.settings.empty() ? "" : " ") + row.settings;
    const auto found = megabytes.find(name);
    if (row.op != CollectiveOp::all_reduce || row.machine == "star of 13" || !row.refused.empty() ||
        found == megabytes.end())
      continue;
    CAPTURE(row.machine);
    CAPTURE(name);
    CHECK(row.sent == Bytes{found->second * 1'000'000L});
    ++compared;
  }
  // 9 rows on each of five machines, best_ring on one, two servers on the star, in_switch on star and HGX.
  CHECK(compared == 9 * 5 + 1 + 1 + 2);
}

TEST_CASE("13 ranks: a folded rank's partner sends what the header says, and the ring 24/13 of the buffer") {
  std::map<std::string, Bytes> sent;
  for (const ComparisonRow& row : rows())
    if (row.machine == "star of 13") sent[row.algorithm + " " + row.settings] = row.sent;
  CHECK(sent["halving_doubling fold=naive"] == Bytes{(2 * 7 * 8 + 64) * 1'000'000L});         // size more
  CHECK(sent["halving_doubling fold=rabenseifner"] == Bytes{(2 * 7 * 8 + 96) * 1'000'000L});  // 3/2 size more
  CHECK(sent["recursive_doubling "] == Bytes{(3 * 64 + 64) * 1'000'000L});
  // 64 MB are not 13 equal chunks: 24 chunks of floor(64 MB / 13) or one more each.
  CHECK(sent["ring "] >= Bytes{24 * 4'923'076L});
  CHECK(sent["ring "] <= Bytes{24 * 4'923'077L});
}

TEST_CASE("no link carries more than it can in the time, and what is refused says why") {
  for (const ComparisonRow& row : rows()) {
    CAPTURE(row.machine);
    CAPTURE(row.algorithm);
    if (!row.refused.empty()) {
      CHECK(row.time.count() == 0);
      CHECK(row.refused.find("found") != std::string::npos);
      continue;
    }
    CHECK(row.time.count() > 0);
    CHECK(row.busy <= 1);
    CHECK((row.busy > 0) == (row.op != CollectiveOp::barrier));
  }
}

TEST_CASE("the most that a rank sends is what the messages of its run add up to") {
  const Bytes bytes = 1000003_B;
  for (const int n : {5, 8}) {
    const Topology machine = star(n, {.bandwidth = 1_GBps, .latency = 1'000'000_ps}, 3);
    for (const Schedule& schedule : every_algorithm(n, bytes)) {
      if (schedule.actors > n + 3) continue;
      CAPTURE(n);
      CAPTURE(schedule.algorithm);
      std::vector<Bytes> sent(static_cast<std::size_t>(n));
      for (const Span& span : run(machine, check(schedule), {.record_spans = true}).spans)
        if (span.from < n) sent[static_cast<std::size_t>(span.from)] += span.bytes;
      CHECK(most_sent(schedule) == *std::max_element(sent.begin(), sent.end()));
    }
  }
}

}  // namespace algorithms_on_machines_test
