// The example scenarios, run by the command itself, against the results kept beside them.
#include <doctest/doctest.h>
#include <fmt/format.h>
#define XXH_INLINE_ALL  // the header alone
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/version.hpp"
#include "tests/support/command.hpp"
#include "tests/support/paths.hpp"

namespace {

namespace fs = std::filesystem;
const fs::path scenarios = fs::path(ringsim::test::source_dir()) / "scenarios";

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<fs::path> examples() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(scenarios))
    if (entry.path().extension() == ".json" && entry.path().parent_path() != scenarios / "questions/machines")
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// As model_history.txt calls it: "star", "questions/17-acs", "examples/replay/lab-trunk".
std::string name_of(const fs::path& scenario) {
  return fs::relative(scenario, scenarios).replace_extension().generic_string();
}

std::string digest(const std::string& text) { return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size())); }

}  // namespace

TEST_CASE("every example scenario gives the result that is kept beside it, to the last digit") {
  REQUIRE(examples().size() >= 28);
  for (const fs::path& scenario : examples()) {
    CAPTURE(name_of(scenario));
    const auto outcome = ringsim::test::run_command({"run", scenario.string(), "--format", "csv"});
    CHECK(outcome.code == 0);
    CHECK(outcome.err == "");
    CHECK(outcome.out == read(fs::path(scenario).replace_extension(".expected")));
  }
}

TEST_CASE("the results do not depend on how many points are simulated at a time, nor on whether any may be folded") {
  for (const fs::path& scenario : examples()) {
    CAPTURE(name_of(scenario));
    const auto one = ringsim::test::run_command({"run", scenario.string(), "--format", "json", "-j", "1"});
    const auto two = ringsim::test::run_command({"run", scenario.string(), "--format", "json", "-j", "2", "--no-fold"});
    CHECK(one.out == two.out);
    CHECK(one.out.size() > 100);
  }
}

// scenarios/model_history.txt: a line `model_version scenario digest-of-the-question digest-of-its-expected-result` for
// each version of a result. Another question is another line; another answer to the same one takes another model.
TEST_CASE("a result that changes raises the model's version") {
  std::map<std::string, std::pair<int, std::string>> latest;  // [scenario and its digest] version, digest of the result
  std::istringstream history(read(scenarios / "model_history.txt"));
  int version_read = 0;
  std::string name, question, answer;
  while (history >> version_read >> name >> question >> answer) {
    CAPTURE(name);
    const std::string key = name + " " + question;
    const auto before = latest.find(key);
    if (before != latest.end()) CHECK(version_read > before->second.first);
    CHECK(version_read <= ringsim::model_version);
    latest[key] = {version_read, answer};
  }
  for (const fs::path& scenario : examples()) {
    CAPTURE(name_of(scenario));
    const auto found = latest.find(name_of(scenario) + " " + digest(read(scenario)));
    REQUIRE_MESSAGE(found != latest.end(), "run tests/scripts/update_goldens.sh to add its line");
    CHECK_MESSAGE(
        found->second.second == digest(read(fs::path(scenario).replace_extension(".expected"))),
        "the result changed: raise model_version in sim/base/version.hpp, then run tests/scripts/update_goldens.sh");
  }
}
