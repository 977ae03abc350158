// ASTRA-sim's inputs as scenarios: times against its own, and what is refused.
#include "scenarios/decoder/astra_import.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tests/support/command.hpp"
#include "tests/support/complaint.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/message_page.hpp"

namespace astra_import_test {

using namespace ringsim;
using namespace ringsim::scenarios;
using test::has;
using test::run_command;

namespace {

/// examples/network/analytical/Ring_8npus.yml of ASTRA-sim has these values.
constexpr const char* ring_of_8 =
    "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]  # GB/s\nlatency: [ 500.0 ]  # ns\n";

std::string network(const std::string& kind, int ranks) {
  return "topology: [ " + kind + " ]\nnpus_count: [ " + std::to_string(ranks) +
         " ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n";
}

std::string system_of(const std::string& algorithm, const std::string& more = "") {
  return R"({"scheduling-policy": "LIFO", "endpoint-delay": 0, "preferred-dataset-splits": 1, "all-reduce-implementation": [")" +
         algorithm + "\"]" + more + "}";
}

/// The time in ns of the scenario that the command makes out of these files.
double time_of(const std::string& network_text, const std::string& system_text, const std::string& bytes,
               const std::vector<std::string>& more = {}) {
  std::vector<std::string> words{"topology", "import", test::temporary_file("network.yml", network_text), "--bytes",
                                 bytes};
  if (!system_text.empty()) {
    words.emplace_back("--system");
    words.push_back(test::temporary_file("system.json", system_text));
  }
  words.insert(words.end(), more.begin(), more.end());
  const test::Outcome imported = run_command(words);
  CAPTURE(imported.err);
  REQUIRE(imported.code == 0);
  const std::string scenario = test::temporary_file("scenario.json", imported.out);
  const test::Outcome run = run_command({"run", scenario, "--format", "csv"});
  CAPTURE(run.err);
  REQUIRE(run.code == 0);
  CHECK(run.err.empty());  // no key of the scenario is without effect
  std::istringstream lines(run.out);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = test::csv_fields(line);
  std::getline(lines, line);
  const auto column = std::find(names.begin(), names.end(), "time_us") - names.begin();
  return std::stod(test::csv_fields(line).at(static_cast<std::size_t>(column))) * 1000;
}

/// 30 ns for each message.
std::string test_delay() {
  return R"({"endpoint-delay": 30, "preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]})";
}

std::string import_text(const std::string& network_text, const std::string& system_text = "",
                        const AstraOptions& options = {.op = "all_reduce", .bytes = {1 << 20}, .ignore = {}}) {
  std::optional<AstraFile> system;
  if (!system_text.empty()) system = AstraFile{system_text, "system.json"};
  return import_astra({network_text, "network.yml"}, system, options).text;
}

}  // namespace

TEST_CASE("a ring of 8, 64 MiB: ASTRA-sim takes 2,304,732 ns, and the imported scenario 8 ns more") {
  // 14 messages of 8 MiB at 50 * 2^30 B/s, 500 ns each; 7 additions of a write and two reads at 1600 GB/s.
  const double message = 8388608.0 / (50.0 * 1073741824.0) * 1e9 + 500;
  const double access = 8388608.0 / 1600e9 * 1e9;
  CHECK(message == doctest::Approx(156'750));
  const std::string system =
      R"({"scheduling-policy": "LIFO", "endpoint-delay": 10, "active-chunks-per-dimension": 1, "preferred-dataset-splits": 1,
      "all-reduce-implementation": ["ring"], "all-gather-implementation": ["ring"], "collective-optimization": "localBWAware",
      "local-mem-bw": 1600, "boost-mode": 0, "roofline-enabled": 0, "peak-perf": 900})";
  // ASTRA-sim cuts each access to whole ns, and waits the endpoint delay once more at the end.
  CHECK(14 * message + 7 * 3 * std::floor(access) + 15 * 10 == 2'304'732);
  const double imported = time_of(ring_of_8, system, "64 MiB");
  CHECK(imported == doctest::Approx(14 * (message + 10) + 7 * 3 * access).epsilon(1e-8));
  CHECK(std::round(imported - 2'304'732) == 8);
  // Each part by itself.
  CHECK(time_of(ring_of_8, "", "64 MiB") == doctest::Approx(14 * message).epsilon(1e-8));
  CHECK(time_of(ring_of_8, system, "64 MiB", {"--ignore", "local-mem-bw"}) ==
        doctest::Approx(14 * (message + 10)).epsilon(1e-8));
  CHECK(time_of(ring_of_8, system, "64 MiB", {"--ignore", "endpoint-delay", "--ignore", "local-mem-bw"}) ==
        doctest::Approx(14 * message).epsilon(1e-8));
  CHECK(time_of(ring_of_8, system, "64 MiB", {"--op", "all_gather"}) ==
        doctest::Approx(7 * (message + 10)).epsilon(1e-8));
}

TEST_CASE("what ASTRA-sim prints for one collective of 64 MiB is the imported scenario's time and one endpoint delay") {
  // Printed by ASTRA-sim 518bd51 with network-analytical 599a047, AstraSim_Analytical_Congestion_Unaware: eight npus,
  // no local-mem-bw, comm_size as a rank's input.
  struct Printed {
    std::string topology, algorithm, op;
    double ns;
  };
  const std::vector<Printed> all{{"Ring", "ring", "all_reduce", 2'194'650},
                                 {"Ring", "ring", "all_gather", 1'097'330},
                                 {"Ring", "ring", "reduce_scatter", 1'097'330},
                                 {"Switch", "ring", "all_reduce", 2'201'650},
                                 {"Switch", "ring", "all_gather", 1'100'830},
                                 {"Switch", "halvingDoubling", "all_reduce", 2'193'570},
                                 {"Switch", "halvingDoubling", "reduce_scatter", 1'096'790},
                                 {"FullyConnected", "ring", "all_reduce", 2'194'650},
                                 {"FullyConnected", "direct", "all_reduce", 313'530},
                                 {"FullyConnected", "direct", "all_gather", 156'770},
                                 {"FullyConnected", "direct", "reduce_scatter", 156'770},
                                 {"FullyConnected", "direct", "all_to_all", 156'770},
                                 {"FullyConnected", "halvingDoubling", "all_reduce", 2'190'570},
                                 {"FullyConnected", "halvingDoubling", "all_gather", 1'095'290}};
  constexpr double endpoint_delay = 10;
  for (const Printed& each : all) {
    CAPTURE(each.topology);
    CAPTURE(each.algorithm);
    CAPTURE(each.op);
    std::string key = each.op + "-implementation";
    std::replace(key.begin(), key.end(), '_', '-');
    const std::string system =
        R"({"endpoint-delay": 10, "preferred-dataset-splits": 1, ")" + key + R"(": [")" + each.algorithm + "\"]}";
    const double ns = time_of(network(each.topology, 8), system, "64 MiB", {"--op", each.op});
    CHECK(ns + endpoint_delay == doctest::Approx(each.ns).epsilon(1e-9));
  }
}

TEST_CASE("each topology and algorithm takes hops * latency + size / bandwidth a message") {
  const auto sent = [](double bytes) { return bytes / (50.0 * 1073741824.0) * 1e9; };
  const double size = 1 << 20;
  // Switch: two hops a message.
  CHECK(time_of(network("Switch", 4), system_of("ring"), "1 MiB") ==
        doctest::Approx(6 * (1000 + sent(size / 4))).epsilon(1e-6));
  CHECK(time_of(network("FullyConnected", 4), system_of("ring"), "1 MiB") ==
        doctest::Approx(6 * (500 + sent(size / 4))).epsilon(1e-6));
  // Everybody to everybody, each on a link of its own, then the sums back.
  CHECK(time_of(network("FullyConnected", 4), system_of("direct"), "1 MiB") ==
        doctest::Approx(2 * (500 + sent(size / 4))).epsilon(1e-6));
  // Halves, quarters, eighths, and back.
  CHECK(time_of(network("Switch", 8), system_of("halvingDoubling"), "1 MiB") ==
        doctest::Approx(6 * 1000 + 2 * sent(size * 7 / 8)).epsilon(1e-6));
  // The delay of an endpoint is that of a message, not of a hop.
  CHECK(time_of(network("Switch", 4), test_delay(), "1 MiB") ==
        doctest::Approx(6 * (1000 + 30 + sent(size / 4))).epsilon(1e-6));
  // A file without it: 10 ns.
  CHECK(time_of(ring_of_8, R"({"preferred-dataset-splits": 1, "all-reduce-implementation": ["ring"]})", "1 MiB") ==
        doctest::Approx(14 * (500 + 10 + sent(size / 8))).epsilon(1e-6));
}

TEST_CASE("lists of YAML may have several lines, comments and dashes") {
  const std::string plain = import_text(ring_of_8);
  CHECK(has(plain, R"("bandwidth": "50 GiB/s")"));
  CHECK(import_text("# a ring\n---\nlatency:\n  - 500.0 # ns\n\nnpus_count: [\n 8\n]\r\nbandwidth: [50.0]\n"
                    "topology:\n- Ring\n") == plain);
}

TEST_CASE("what differs is said") {
  const auto warnings = [](const std::string& network_text, const std::string& system_text) {
    std::string all;
    for (const std::string& each : import_astra({network_text, "network.yml"}, AstraFile{system_text, "system.json"},
                                                {.op = "all_reduce", .bytes = {1 << 20}, .ignore = {}})
                                       .warnings)
      all += each + '\n';
    return all;
  };
  CHECK(warnings(network("FullyConnected", 4), system_of("direct")) ==
        "system.json: keys without effect on one collective in one dimension: scheduling-policy\n");
  CHECK(
      has(warnings(network("Switch", 4), system_of("direct")),
          "network.yml: in ringsim, messages of direct share the ports of the switch; ASTRA-sim's congestion-unaware"));
  CHECK(has(warnings(ring_of_8, system_of("direct")),
            "network.yml: in ringsim, messages of direct share links; ASTRA-sim's congestion-unaware"));
  CHECK(has(warnings(network("Switch", 4), test_delay()),
            "ASTRA-sim also waits after the last message, which takes 30 ns longer"));
}

TEST_CASE("what does not map is refused by key, with a way out") {
  test::MessagePage page("astra_import");
  const auto refuse = [&](const std::string& what, const std::string& network_text, const std::string& system_text = "",
                          const AstraOptions& options = {.op = "all_reduce", .bytes = {1 << 20}, .ignore = {}}) {
    page.add(what, test::complaint([&] { import_text(network_text, system_text, options); }));
  };
  refuse("no such topology", network("Mesh", 4));
  refuse("two dimensions",
         "topology: [ Ring, Switch ]\nnpus_count: [ 2, 8 ]\nbandwidth: [ 1, 1 ]\nlatency: [ 1, 1 ]\n");
  refuse("a key that is not there", "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\n");
  refuse("another key", std::string(ring_of_8) + "loss: [ 0.1 ]\n");
  refuse("a key twice", std::string(ring_of_8) + "latency: [ 1 ]\n");
  refuse("one rank", network("Ring", 1));
  refuse("a bandwidth of 0", "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ 0 ]\nlatency: [ 1 ]\n");
  refuse("a fraction of a rank", "topology: [ Ring ]\nnpus_count: [ 8.5 ]\nbandwidth: [ 1 ]\nlatency: [ 1 ]\n");
  refuse("a word as a number", "topology: [ Ring ]\nnpus_count: [ 8 ]\nbandwidth: [ fast ]\nlatency: [ 1 ]\n");
  refuse("no list", "topology: Ring\n");
  refuse("a list without an end", "topology: [ Ring\n");
  refuse("more after a list", "topology: [ Ring ] x\n");
  refuse("nothing between commas", "topology: [ Ring, , Ring ]\n");
  refuse("a value that is a list", "topology: [ [ Ring ] ]\n");
  refuse("a text alone", "hello\n");
  refuse("a dash alone", "- Ring\n");
  refuse("an algorithm that differs", ring_of_8, system_of("doubleBinaryTree"));
  refuse("a window of messages", ring_of_8, system_of("direct4"));
  refuse("algorithms of two dimensions", ring_of_8,
         R"({"preferred-dataset-splits": 1, "all-reduce-implementation": ["ring", "ring"]})");
  refuse("no algorithm of the operation", ring_of_8, system_of("ring"),
         {.op = "all_to_all", .bytes = {1 << 20}, .ignore = {}});
  refuse("a ring for an all-to-all", ring_of_8, system_of("ring", R"(, "all-to-all-implementation": ["ring"])"),
         {.op = "all_to_all", .bytes = {1 << 20}, .ignore = {}});
  refuse("no power of two", network("Switch", 6), system_of("halvingDoubling"));
  refuse("several chunks", ring_of_8, R"({"all-reduce-implementation": ["ring"], "preferred-dataset-splits": 4})");
  refuse("no splits", ring_of_8, R"({"all-reduce-implementation": ["ring"]})");
  refuse("a custom collective", ring_of_8, system_of("ring", R"(, "all-reduce-implementation-custom": ["a.et"])"));
  refuse("a shared bus", ring_of_8, system_of("ring", R"(, "model-shared-bus": 1)"));
  refuse("text as a delay", ring_of_8, R"({"endpoint-delay": "10"})");
  refuse("memory with direct", network("FullyConnected", 4), system_of("direct", R"(, "local-mem-bw": 1600)"));
  refuse("a delay over several hops", ring_of_8,
         R"({"endpoint-delay": 10, "preferred-dataset-splits": 1, "all-reduce-implementation": ["direct"]})");
  refuse("halving and doubling on a ring", ring_of_8, system_of("halvingDoubling"));
  refuse("to ignore what is not there", ring_of_8, "", {.op = "all_reduce", .bytes = {1 << 20}, .ignore = {"loss"}});
  page.check();
  // The way out.
  const AstraOptions out{.op = "all_reduce", .bytes = {1 << 20}, .ignore = {"loss", "preferred-dataset-splits"}};
  CHECK(import_text(std::string(ring_of_8) + "loss: [ 0.1 ]\n",
                    R"({"endpoint-delay": 0, "all-reduce-implementation": ["ring"], "preferred-dataset-splits": 4})",
                    out) == import_text(ring_of_8));
}

TEST_CASE("mistakes on the command line of an import of ASTRA-sim's files") {
  const std::string file = test::temporary_file("network.yml", ring_of_8);
  const auto err = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"topology", "import", file};
    words.insert(words.end(), more.begin(), more.end());
    const test::Outcome outcome = run_command(words);
    CHECK(outcome.code != 0);
    return outcome.err;
  };
  CHECK(has(err({}), "--bytes: expected a size, which ASTRA-sim files do not contain"));
  CHECK(has(err({"--bytes", "1 MiB", "--like", "dgx-a100"}),
            "--like: expected this option only without an ASTRA-sim network"));
  const test::Outcome other = run_command(
      {"topology", "import", test::temporary_file("topo.xml", "<system version=\"1\"/>"), "--bytes", "1 MiB"});
  CHECK(has(other.err, "--bytes: expected this option only with an ASTRA-sim network (network.yml)"));
}

}  // namespace astra_import_test
