// The example scenarios, run by the command itself, against the results kept next to them.
#include <doctest/doctest.h>
#include <fmt/format.h>
#define XXH_INLINE_ALL  // the header alone
#include <xxhash.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "algorithms/traces/chakra_messages.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/version.hpp"
#include "sim/text/wrap.hpp"
#include "tests/support/command.hpp"
#include "tests/support/csv.hpp"
#include "tests/support/paths.hpp"

namespace golden_test {

namespace {

using ringsim::test::run_command;

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
    if (entry.path().extension() == ".json" && entry.path().parent_path() != scenarios / "questions/machines" &&
        entry.path().parent_path() != scenarios / "workloads")
      found.push_back(entry.path());
  std::sort(found.begin(), found.end());
  return found;
}

/// As model_history.txt calls it: "star", "questions/17-acs", "examples/replay/lab-trunk".
std::string name_of(const fs::path& scenario) {
  return fs::relative(scenario, scenarios).replace_extension().generic_string();
}

/// What the command says of an example; of all others nothing.
std::string warning_of(const std::string& name) {
  static const std::map<std::string, std::string> warnings{
      {"examples/library/hyperplane-v100",
       "/library/version: 2.4.8 is simulated with the rules of 2.8.3, the oldest release that is modeled"},
      {"questions/35-fsdp-or-tp-pp",  // one of its plans has no tensor ranks
       "/training/parallel/sequence_parallel: has no effect, because tensor is 1 and there are no tensor parallel "
       "ranks (at training.parallel.tensor=1, training.parallel.pipeline=1, training.parallel.virtual_pipeline=1, "
       "training.parallel.shard=full, training.parallel.recompute=full)"},
      {"questions/37-context",  // one of its plans has no context ranks
       "/training/parallel/cp_comm: has no effect, because context is 1 and no ranks share samples (at "
       "training.workload.sequence=8192, training.parallel.context=1 and at another point)"}};
  const auto found = warnings.find(name);
  if (found == warnings.end()) return "";
  return fmt::format("ringsim: warning: {}/{}.json: {}\n", scenarios.string(), name, found->second);
}

/// Of the times and fingerprints of a result: what a model version promises.
std::string digest(const std::string& golden) {
  std::istringstream lines(golden);
  std::string line, text;
  std::getline(lines, line);
  const std::vector<std::string> head = ringsim::test::csv_fields(line);
  const auto column = [&](const char* name) {
    const auto found = std::find(head.begin(), head.end(), name);
    REQUIRE(found != head.end());
    return static_cast<std::size_t>(found - head.begin());
  };
  const std::size_t time = column("time_us"), fingerprint = column("fingerprint");
  while (std::getline(lines, line)) {
    const std::vector<std::string> fields = ringsim::test::csv_fields(line);
    REQUIRE(fields.size() == head.size());
    text += fields[time] + ' ' + fields[fingerprint] + '\n';
  }
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

/// In characters as a terminal shows them.
std::size_t longest_line(const std::string& text) {
  std::istringstream in(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(in, line);) longest = std::max(longest, ringsim::characters(line));
  return longest;
}

}  // namespace

namespace {

/// The folder of an example below scenarios; "." of those that lie there themselves.
std::string folder_of(const fs::path& scenario) {
  const std::string folder = fs::relative(scenario.parent_path(), scenarios).generic_string();
  return folder.starts_with("examples/") ? folder.substr(9) : folder;
}

std::size_t columns_of(const fs::path& scenario) {
  std::istringstream lines(read(fs::path(scenario).replace_extension(".csv")));
  std::string head;
  std::getline(lines, head);
  return ringsim::test::csv_fields(head).size();
}

/// The text without the lines that tell how far a slow machine is.
std::string without_progress(const std::string& text) {
  std::string rest, line;
  for (std::istringstream lines(text); std::getline(lines, line);)
    if (!line.starts_with("ringsim: after ")) rest += line + '\n';
  return rest;
}

/// Simulates each example of a folder once. The one whose result has the most columns is also printed as a table.
void check_examples_of(const std::string& folder) {
  int jobs = 0;  // 1, 2, 3 points at a time: results do not depend on it
  fs::path widest;
  for (const fs::path& scenario : examples()) {
    if (folder_of(scenario) != folder) continue;
    if (folder == "trace" && !ringsim::traces::has_chakra()) return;
    CAPTURE(name_of(scenario));
    jobs = jobs % 3 + 1;
    const auto csv = run_command({"run", scenario.string(), "--format", "csv", "-j", std::to_string(jobs)});
    CHECK(csv.code == 0);
    CHECK(without_progress(csv.err) == warning_of(name_of(scenario)));
    CHECK(csv.out == read(fs::path(scenario).replace_extension(".csv")));
    if (widest.empty() || columns_of(scenario) > columns_of(widest)) widest = scenario;
  }
  REQUIRE(!widest.empty());
  CAPTURE(name_of(widest));
  const auto table = run_command({"run", widest.string()});
  CHECK(table.code == 0);
  CHECK(longest_line(table.out) <= 100);
}

const std::set<std::string> folders{".",         "algorithms", "collectives", "explain",  "faults",
                                    "inference", "library",    "machines",    "networks", "replay",
                                    "training",  "questions",  "trace"};

}  // namespace

// One case a folder, so that ctest runs them at the same time (tests/CMakeLists.txt).
#define EXAMPLES_OF(folder)                                                                         \
  TEST_CASE("examples of " folder                                                                   \
            ": each gives the result that is kept next to it, to the last digit, and tables fit") { \
    check_examples_of(folder);                                                                      \
  }
EXAMPLES_OF(".")
EXAMPLES_OF("algorithms")
EXAMPLES_OF("collectives")
EXAMPLES_OF("explain")
EXAMPLES_OF("faults")
EXAMPLES_OF("inference")
EXAMPLES_OF("library")
EXAMPLES_OF("machines")
EXAMPLES_OF("networks")
EXAMPLES_OF("replay")
EXAMPLES_OF("training")
EXAMPLES_OF("trace")
EXAMPLES_OF("questions")

TEST_CASE("every folder of examples has its case here") {
  std::set<std::string> found;
  for (const fs::path& scenario : examples()) found.insert(folder_of(scenario));
  CHECK(found == folders);
  CHECK(examples().size() >= 70);
}

TEST_CASE("the results do not depend on how many points are simulated at a time, nor on whether any may be folded") {
  for (const char* name : {"examples/networks/leaf-spine", "examples/algorithms/crossover-hgx-h100", "star"}) {
    CAPTURE(name);
    const std::string scenario = (scenarios / name).string() + ".json";
    const auto one = run_command({"run", scenario, "--format", "json", "-j", "1"});
    const auto two = run_command({"run", scenario, "--format", "json", "-j", "2", "--no-fold"});
    CHECK(one.out == two.out);
    CHECK(one.out.size() > 100);
  }
}

// scenarios/model_history.txt has a line for each example: since which model version it has its answer, its name, the
// hash of the question (Scenario::hash()), the digest of the answer (times and fingerprints). A new answer to the same
// question requires a higher model_version: update_goldens.py refuses it else.
TEST_CASE("a result that changes raises the model's version") {
  struct Line {
    int since = 0;
    std::string question, answer;
  };
  std::map<std::string, Line> lines;  // [scenario]
  std::istringstream history(read(scenarios / "model_history.txt"));
  std::string name;
  for (Line line; history >> line.since >> name >> line.question >> line.answer;) {
    CAPTURE(name);
    CHECK(line.since <= ringsim::model_version);
    CHECK(lines.emplace(name, line).second);
  }
  CHECK(lines.size() == examples().size());
  for (const fs::path& scenario : examples()) {
    if (folder_of(scenario) == "trace" && !ringsim::traces::has_chakra()) continue;
    CAPTURE(name_of(scenario));
    const Line& line = lines[name_of(scenario)];
    CHECK_MESSAGE(line.question == ringsim::ScenarioFile::load(scenario.string()).hash(),
                  "another question: run tests/scripts/update_goldens.py");
    CHECK_MESSAGE(
        line.answer == digest(read(fs::path(scenario).replace_extension(".csv"))),
        "the result changed: raise model_version in sim/base/version.hpp, then run tests/scripts/update_goldens.py");
  }
}

}  // namespace golden_test
