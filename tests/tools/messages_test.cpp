// What the command says to mistakes: tests/data/messages/command_line.txt.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/paths.hpp"

namespace messages_test {

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
  ringsim::test::MessagePage page("command_line");
  for (const Words& words : mistakes) {
    const ringsim::test::Outcome outcome = ringsim::test::run_with_input(words, "", ringsim::test::source_dir());
    CHECK(outcome.out == "");
    page.add(fmt::format("{}: exit code {}", fmt::join(words, " "), outcome.code), outcome.err);
  }
  page.check();
}

}  // namespace messages_test
