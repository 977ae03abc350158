// What fuzzers found, and what they begin with: every text is read or refused, never anything else.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "tests/fuzz/targets.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace corpus_test {

using namespace ringsim;

namespace {

namespace fs = std::filesystem;

/// A number of the text becomes one that leaves 32 or 64 bits, or is negative.
std::string with_other_number(std::string text, std::mt19937& random) {
  constexpr const char* numbers[] = {"-1", "0", "2147483648", "9223372036854775807", "18446744073709551616", "1e308"};
  const std::size_t first = text.find_first_of("123456789", text.empty() ? 0 : random() % text.size());
  if (first == std::string::npos) return text;
  const std::size_t end = std::min(text.find_first_not_of("0123456789", first), text.size());
  return text.replace(first, end - first, numbers[random() % std::size(numbers)]);
}

/// True if it was read; a failure says what came instead.
bool reads(const fuzz::Target& target, const std::string& text) {
  try {
    return target.reads(text);
  } catch (const std::exception& error) {
    FAIL_CHECK(error.what());
    return false;
  }
}

/// True if one of the files was read after mutations that the seed draws.
bool reads_damaged(const fuzz::Target& target, const std::vector<std::string>& files, unsigned seed) {
  CAPTURE(seed);
  std::mt19937 random(seed);
  const std::string& file = files[seed % files.size()];
  CAPTURE(file);
  std::string text = test::read_file(file);
  do text = random() % 3 == 0 ? with_other_number(text, random) : test::damaged(text, random);
  while (random() % 3 == 0 && !text.empty());
  return reads(target, text);
}

unsigned number_in_environment(const char* name, unsigned fallback) {
  const char* text = std::getenv(name);
  return text == nullptr ? fallback : static_cast<unsigned>(std::stoul(text));
}

/// The files of a target in the corpus, or among the crashes.
std::size_t files_of(const fs::path& folder) {
  std::error_code none;
  std::size_t n = 0;
  for (const auto& entry : fs::directory_iterator(folder, none)) n += entry.is_regular_file();
  return n;
}

}  // namespace

TEST_CASE("every reader reads or refuses its seeds and what crashed it before") {
  for (const fuzz::Target& target : fuzz::targets()) {
    CAPTURE(target.name);
    const std::vector<std::string> files = fuzz::seed_files(target);
    int read = 0;
    for (const std::string& file : files) {
      CAPTURE(file);
      read += reads(target, test::read_file(file));
    }
    CHECK(read > 0);  // a seed that is refused leads nowhere
  }
}

TEST_CASE("every reader reads or refuses damaged seeds") {
  constexpr unsigned n_mutations = 60;
  for (const fuzz::Target& target : fuzz::targets()) {
    CAPTURE(target.name);
    const std::vector<std::string> files = fuzz::seed_files(target);
    REQUIRE_FALSE(files.empty());
    int read = 0;
    for (unsigned seed = 0; seed < n_mutations; ++seed) read += reads_damaged(target, files, seed);
    CHECK(read < static_cast<int>(n_mutations));
  }
}

// As CI asks for, with other seeds each time; a failure names its own. Without libFuzzer's feedback, and so less than
// run.sh, but under the same sanitizers and at no cost of a build.
TEST_CASE("every reader reads or refuses damaged seeds for RINGSIM_FUZZ_SECONDS each, from RINGSIM_FUZZ_SEED on") {
  const unsigned milliseconds = 1000 * number_in_environment("RINGSIM_FUZZ_SECONDS", 0);
  if (milliseconds == 0) return;
  const unsigned first = number_in_environment("RINGSIM_FUZZ_SEED", std::random_device()());
  for (const fuzz::Target& target : fuzz::targets()) {
    CAPTURE(target.name);
    const std::vector<std::string> files = fuzz::seed_files(target);
    const auto begin = std::chrono::steady_clock::now();
    unsigned seed = first;
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(milliseconds))
      reads_damaged(target, files, seed++);
    MESSAGE(target.name << ": " << seed - first << " texts, seeds from " << first);
  }
}

TEST_CASE("the corpus and the crashes belong to targets, and are small") {
  std::set<std::string> names;
  for (const fuzz::Target& target : fuzz::targets()) CHECK(names.insert(std::string(target.name)).second);
  std::size_t n = 0;
  for (const char* kind : {"corpus", "crashes"}) {
    for (const auto& folder : fs::directory_iterator(fs::path(test::source_dir()) / "tests/fuzz" / kind)) {
      CAPTURE(folder.path().string());
      CHECK(names.contains(folder.path().filename().string()));
      CHECK(files_of(folder.path()) > 0);
      for (const auto& file : fs::directory_iterator(folder)) CHECK(file.file_size() <= 4096);
      ++n;
    }
  }
  CHECK(n > 10);
}

}  // namespace corpus_test
