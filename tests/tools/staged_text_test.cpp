// What is said of data that rests in host memory between nodes, and of which predictions.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace staged_text_test {

using namespace ringsim;
using namespace ringsim::test;
using Json = nlohmann::json;

namespace {

const std::string& accuracy() {
  static const std::string page = read_file(source_dir() + "/docs/results/accuracy.md");
  return page;
}

/// The median |error| of the library's model in a scored table's row, in percent.
int median_error(const std::string& table) {
  std::smatch found;
  REQUIRE(std::regex_search(accuracy(), found,
                            std::regex("\\n\\| " + table + " \\| [^|]*\\| [0-9]+ \\| ([0-9]+) / [0-9]+ \\|")));
  return std::stoi(found[1]);
}

/// Measured over predicted time at a size of a table that is not scored.
double times_as_long(const std::string& table, const std::string& size) {
  std::smatch found;
  REQUIRE(std::regex_search(accuracy(), found,
                            std::regex("\\n\\| " + table + " \\|[^\\n]*[| ]" + size + ": ([0-9.]+), ([0-9.]+),")));
  return std::stod(found[1]) / std::stod(found[2]);
}

bool is_staged(const std::string& node, int nodes, const Json& transport = Json::object(),
               const Json& library = "nccl") {
  Json scenario{{"version", 1},
                {"topology",
                 {{"kind", "cluster"},
                  {"node", node},
                  {"nodes", nodes},
                  {"fabric", {{"kind", "star"}, {"link", {{"bandwidth", "24 GB/s"}, {"latency", "1 us"}}}}}}},
                {"library", library},
                {"collective", {{"op", "all_reduce"}, {"bytes", "64 MiB"}}}};
  if (nodes == 1) scenario["topology"].erase("fabric");
  if (!transport.empty()) scenario["transport"] = transport;
  return predict(ScenarioFile::parse(scenario.dump(), "s.json").point(0)).staged;
}

}  // namespace

TEST_CASE("data between nodes is staged without GPUDirect and where GPUs are too far from NICs for it") {
  const Json off{{"gpudirect", false}};
  CHECK(!is_staged("dgx-h100", 2));
  CHECK(is_staged("dgx-h100", 2, off));
  CHECK(is_staged("azure-ncv4", 2));  // GPUs and NICs below different host bridges
  CHECK(!is_staged("dgx-h100", 1, off));
  CHECK(!is_staged("rtxpro6000-pcie", 1));  // host memory, but within the node
  CHECK(!is_staged("rtxpro6000-pcie", 2, Json::object(),
                   {{"name", "nccl"}, {"env", {{"NCCL_NET_GDR_LEVEL", "SYS"}}}}));  // likewise; GPUDirect between nodes
}

TEST_CASE("predict, run, explain and compare --explain say how near predictions of staged data are") {
  const std::string said = "Data between nodes passes through host memory";
  const std::string off = "transport.gpudirect=false";
  const Words predict{"predict", "all_reduce", "--node", "dgx-h100", "--nodes", "2", "--bytes", "1MiB"};
  const auto with = [](Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return run_command(words).out;
  };
  CHECK(!has(with(predict, {}), said));
  const std::string text = with(predict, {"--set", off});
  const std::string line = std::regex_replace(text, std::regex("\\s+"), " ");
  CHECK(has(line, said));
  // Its figures are those of the page.
  CHECK(
      has(line, fmt::format("differ from the prediction by {}, {} and {} % (median)",
                            median_error("gh200-2n1g-all_reduce-gdroff"), median_error("polaris-2n4g-all_reduce-set4"),
                            median_error("polaris-2n4g-all_gather-set4"))));
  CHECK(has(line,
            fmt::format("took {:.1f} and {:.1f} times as long", times_as_long("aws-p3dn-2n8g-all_reduce-ring", "8 MiB"),
                        times_as_long("moc-h100-2n1g-all_reduce-nogdr", "1 GiB"))));
  const std::string pair = source_dir() + "/scenarios/examples/machines/gpudirect-pair.json";
  for (const char* command : {"run", "explain"}) {
    const Words words{
        command, pair, "--set", "sweep=null", "--set", "topology.node=dgx-1v", "--set", "collective.bytes=64 KiB"};
    CAPTURE(command);
    CHECK(!has(with(words, {"--set", "transport.gpudirect=true"}), said));
    CHECK(has(with(words, {"--set", off}), said));
  }
  const std::string scenario = source_dir() + "/validate/measured/tables/moc-h100-2n1g-all_reduce-nogdr.json";
  const std::string row = temporary_file("row.csv", "# collective: all_reduce\nbytes,time_us\n1073741824,71024.0\n");
  CHECK(has(with({"compare", scenario, row, "--set", "library=nccl", "--set", "transport.protocol=null", "--set",
                  "collective.algorithm=null"},
                 {"--explain"}),
            said));
}

}  // namespace staged_text_test
