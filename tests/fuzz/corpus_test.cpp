// What fuzzers found, and what they begin with: every text is read or refused, never anything else.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
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

/// Whether it was read; a failure says what came instead.
bool reads(const fuzz::Target& target, const std::string& text) {
  try {
    return target.reads(text);
  } catch (const std::exception& error) {
    FAIL_CHECK(error.what());
    return false;
  }
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
    for (unsigned seed = 0; seed < n_mutations; ++seed) {
      CAPTURE(seed);
      std::mt19937 random(seed);
      std::string text = test::read_file(files[seed % files.size()]);
      CAPTURE(files[seed % files.size()]);
      do text = random() % 3 == 0 ? with_other_number(text, random) : test::damaged(text, random);
      while (random() % 3 == 0 && !text.empty());
      read += reads(target, text);
    }
    CHECK(read < static_cast<int>(n_mutations));
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
