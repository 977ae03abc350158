// The command's answers to mistakes: tests/data/messages/command_line.txt and predict.txt.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/paths.hpp"

namespace messages_test {

namespace {

/// Runs each command line in the top folder: it prints nothing but the errors of that page.
void expect_answers(const std::string& name, const std::vector<std::vector<std::string>>& mistakes) {
  ringsim::test::MessagePage page(name);
  for (const std::vector<std::string>& words : mistakes) {
    const ringsim::test::Outcome outcome = ringsim::test::run_with_input(words, "", ringsim::test::source_dir());
    CHECK(outcome.out == "");
    page.add(fmt::format("{}: exit code {}", fmt::join(words, " "), outcome.code), outcome.err);
  }
  page.check();
}

}  // namespace

TEST_CASE("mistakes on the command line are named, with what to do, and change nothing") {
  using Words = std::vector<std::string>;
  const std::string star = "scenarios/star.json";
  const std::vector<Words> mistakes{
      {},
      {"rnu", star},
      {"explian", star},
      {"show", star},
      {star},
      {"--explain", star},
      {"help", "rnu"},
      {"topology", "shwo", star},
      {"topology"},
      {"run"},
      {"run", star, star},
      {"run", star, "--explian"},
      {"run", star, "--formt", "json"},
      {"run", star, "--format", "jsn"},
      {"run", star, "--format"},
      {"run", star, "--no-fold=yes"},
      {"run", star, "-j", "0"},
      {"run", star, "-j", "many"},
      {"run", star, "-o", "/nonexistent/folder/x.json"},
      {"run", "scenarios/stra.json"},
      {"run", star, "--format", "matrix", "--rows", "bytes"},
      {"run", star, "--format", "matrix", "--rows", "byts", "--columns", "collective.algorithm"},
      {"run", star, "--format", "matrix", "--rows", "network.model", "--columns", "collective.algorithm"},
      {"run", star, "--format", "csv", "--rows", "bytes"},
      {"run", star, "--set", "collective.algorithm=rnig"},
      {"run", star, "--set", "topology.rank=4"},
      {"run", star, "--set", "topology.ranks"},
      {"run", star, "--set", "topology.ranks=null"},
      {"compare", star, "README.md", "--max-error", "15"},
      {"sweep", star, "--assert", "busbw > 4"},
      {"sweep", star, "--assert", "busbw_GBps >"},
      {"sweep", star, "--shard", "9/4"},
      {"sweep", star, "--resume"},
      {"merge", "a.jsonl", "-o", "x.foo"},
      {"schedule", "export", star, "--format", "msccl"},
      {"schedule", "export", star},
      {"topology", "export", star, "--to", "machine", "--bound"},
      {"bound", star, "--format", "csv"},
      {"explain", star},
      {"explain", "scenarios/examples/explain/server-incast.json", "--whatif", "topology.rank=4"},
      {"explain", "scenarios/examples/explain/server-incast.json", "--whatif", "topology.ranks=[4, 8]"},
      {"diff", star, star},
      {"diff", "-", "-"},
      {"completion", "tcsh"},
  };
  expect_answers("command_line", mistakes);
}

TEST_CASE("mistakes of a prediction by name are named by the option that has them") {
  using Words = std::vector<std::string>;
  std::vector<Words> mistakes{
      {},
      {"all_redcue", "--node", "dgx-h100"},
      {"all_reduce"},
      {"all_reduce", "--node", "dgx-b100"},
      {"all_reduce", "--node", "README.md"},
      {"all_reduce", "--node", "scenarios/star.json"},
      {"all_reduce", "--node", "dgx-h100", "--nodes", "two"},
      {"all_reduce", "--node", "dgx-h100", "-n", "4"},
      {"all_reduce", "--node", "dgx-h100", "--nodes", "4", "--fabric", "leafspin:2"},
      {"all_reduce", "--node", "dgx-h100", "--nodes", "4", "--fabric", "clos"},
      {"all_reduce", "--node", "dgx-h100", "--nodes", "4", "--fabric", "leaf_spine:two"},
      {"all_reduce", "--node", "dgx-h100", "--nodes", "4", "--fabric", "leaf_spine:2x2"},
      {"all_reduce", "--node", "dgx-h100", "--nodes", "4", "--fabric", "leaf_spine:5"},
      {"all_reduce", "--node", "dgx-h100", "--nodes", "4", "--fabric", "star:2"},
      {"all_reduce", "--node", "dgx-h100", "--nodes", "4", "--fabric", "torus:1x3"},
      {"all_reduce", "--node", "dgx-h100", "--nodes", "4", "--fabric", "dragonfly"},
      {"all_reduce", "--node", "rtx4090-pcie", "--nodes", "2"},
      {"all_reduce", "--node", "dgx-h100", "--gpus", "9"},
      {"all_reduce", "--node", "dgx-h100", "--like", "dgx-a100"},
      {"all_reduce", "--node", "tests/data/rings.xml"},
      {"all_reduce", "--node", "tests/data/machines/matrix.txt"},
      {"all_reduce", "--node", "tests/data/machines/matrix.txt", "--like", "dgx-1w"},
      {"all_reduce", "--node", "tests/data/machines/skeleton.xml", "--nic", "fast"},
      {"all_reduce", "--node", "tests/data/machines/skeleton.xml", "--nodes", "2", "--like", "a10g-pcie"},
      {"all_reduce", "--node", "dgx-h100", "--bytes", "1G"},
      {"all_reduce", "--node", "dgx-h100", "--bytes", "8..1GiB"},
      {"all_reduce", "--node", "dgx-h100", "--bytes", "1 furlong"},
      {"all_reduce", "--node", "dgx-h100", "--bytes", "1GiB..1MiB"},
      {"all_reduce", "--node", "dgx-h100", "--bytes", "0B..1MiB"},
      {"all_reduce", "--node", "dgx-h100", "--bytes", "1KiB..1MiB:1"},
      {"all_reduce", "--node", "dgx-h100", "-b", "8"},
      {"all_reduce", "--node", "dgx-h100", "--algorithm", "rign"},
      {"all_reduce", "--node", "dgx-h100", "--algorithm", "Tree"},
      {"all_reduce", "dgx-h100"},
      {"all_to_all", "--node", "dgx-h100", "--algorithm", "ring"},
      {"all_reduce", "--node", "dgx-h100", "--algorithm", "ring", "--nccl", "2.20.5"},
      {"all_reduce", "--node", "dgx-h100", "--nccl", "2.99.1"},
      {"all_reduce", "--node", "mi300x", "--nccl", "2.20.5"},
      {"barrier", "--node", "dgx-h100"},
      {"barrier", "--node", "dgx-h100", "--bytes", "1MiB"},
      {"all_reduce", "--node", "dgx-h100", "--set", "colective.root=1"},
      {"all_reduce", "--node", "dgx-h100", "--save", "x.txt"},
      {"all_reduce", "--node", "dgx-h100", "--save", "/nonexistent/folder/x.json"},
      {"all_reduce", "--node", "dgx-h100", "--save", "scenarios/star.json"},
      {"all_reduce", "--node", "dgx-h100", "-o", "x.svg"},
  };
  for (Words& words : mistakes) words.insert(words.begin(), "predict");
  expect_answers("predict", mistakes);
}

}  // namespace messages_test
