// docs/guide/adding-an-algorithm.md: its code is that of docs/examples, and does what the page says.
#include <doctest/doctest.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/catalog_parts.hpp"
#include "algorithms/neighbor_exchange.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"
#include "tests/support/tiny.hpp"
#include "validate/closed_forms/forms.hpp"

namespace docs_examples_test {

using namespace ringsim;
using namespace ringsim::literals;

namespace {

// What the page puts into files that exist, in surroundings like theirs.
#include "docs/examples/make.inc"

void add_exchange(std::vector<Algorithm>& rows){
#include "docs/examples/row.inc"
}

std::optional<ClosedForm> form_of(const Algorithm& algorithm, const CollectiveRequest& request,
                                  const Uniform& machine) {
  using namespace forms;
  const int n = request.ranks;
  const std::int64_t p = request.bytes.count;
#include "docs/examples/form.inc"
  return std::nullopt;
}

/// [file] its blocks on the page: a fence of code, and above it the comment that names the file.
std::map<std::string, std::vector<std::string>> blocks_of(const std::string& page) {
  std::map<std::string, std::vector<std::string>> blocks;
  std::istringstream lines(page);
  std::string line, before;
  while (std::getline(lines, line)) {
    if (line == "```cpp" || line == "```json") {
      const bool named = before.starts_with("<!-- ") && before.ends_with(" -->");
      const std::string name = named ? before.substr(5, before.size() - 9) : "a block without a file's name";
      std::string code;
      while (std::getline(lines, line) && line != "```") code += line + '\n';
      blocks[name].push_back(code);
    }
    before = line;
  }
  return blocks;
}

}  // namespace

TEST_CASE("every block of code on the page is a file of docs/examples, and every such file is on the page") {
  namespace fs = std::filesystem;
  const fs::path root(test::source_dir());
  std::map<std::string, std::vector<std::string>> files;
  for (const auto& entry : fs::recursive_directory_iterator(root / "docs/examples"))
    if (entry.is_regular_file())
      files[fs::relative(entry.path(), root).generic_string()] = {test::read_file(entry.path())};
  CHECK(files.size() == 7);
  const auto blocks = blocks_of(test::read_file(root / "docs/guide/adding-an-algorithm.md"));
  for (const auto& file : files) {
    CAPTURE(file.first);
    REQUIRE(blocks.count(file.first) == 1);
    CHECK(blocks.at(file.first) == file.second);
  }
  CHECK(blocks.size() == files.size());
}

TEST_CASE("the page's row makes the page's schedule, which takes what the page's form says") {
  std::vector<Algorithm> rows;
  add_exchange(rows);
  REQUIRE(rows.size() == 1);
  const LinkSpec cable{.bandwidth = 10_GBps, .latency = 2'000'000_ps};
  for (const Topology& net : {build(Ring{8, cable}), build(Star{8, cable}), build(FullMesh{8, cable})}) {
    for (const std::int64_t bytes : {8000, 1000003}) {
      CAPTURE(bytes);
      const CollectiveRequest request{.op = CollectiveOp::all_gather, .ranks = 8, .bytes = {bytes}};
      const auto form = form_of(rows[0], request, uniform_of(net, net.ranks(), {}, {}));
      REQUIRE(form);
      CHECK(form->holds());
      CHECK(form->agrees(run(net, check(make_schedule(rows[0], request, {}))).duration()));
    }
  }
}

}  // namespace docs_examples_test
