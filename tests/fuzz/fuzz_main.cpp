// The fuzzer: libFuzzer's options, and before all others
//
//     ringsim_fuzz --targets             their names
//     ringsim_fuzz --seeds NAME FOLDER   copies the seeds of a target
//     ringsim_fuzz --words               a dictionary: keys and words of scenarios
//     RINGSIM_FUZZ_TARGET=NAME ringsim_fuzz [option...] [folder or file...]
//
// By the environment, for libFuzzer starts itself again with its own options.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "scenarios/scenario.hpp"
#include "tests/fuzz/targets.hpp"

namespace ringsim::fuzz {

namespace {

const Target* find_target(std::string_view name) {
  for (const Target& target : targets())
    if (target.name == name) return &target;
  std::fprintf(stderr, "ringsim_fuzz: error: no target \"%.*s\"; --targets lists them\n", static_cast<int>(name.size()),
               name.data());
  std::exit(2);
}

void copy_seeds(const Target& target, const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  int n = 0;
  for (const std::string& file : seed_files(target)) {
    const std::filesystem::path to = folder / ("seed-" + std::to_string(n++));
    std::filesystem::copy_file(file, to, std::filesystem::copy_options::overwrite_existing);
  }
}

/// All texts in the schema of scenarios that look like keys.
void print_words() {
  const std::string schema = scenario_schema();
  std::set<std::string> words;
  for (std::size_t open = schema.find('"'); open != std::string::npos;) {
    const std::size_t end = schema.find('"', open + 1);
    if (end == std::string::npos) break;
    const std::string word = schema.substr(open + 1, end - open - 1);
    if (!word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos)
      words.insert(word);
    open = schema.find('"', end + 1);
  }
  for (const std::string& word : words) std::printf("\"%s\"\n", word.c_str());
}

const Target* chosen = nullptr;

}  // namespace

}  // namespace ringsim::fuzz

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  using namespace ringsim::fuzz;
  const auto argument = [&](int i) { return i < *argc ? std::string_view((*argv)[i]) : std::string_view(); };
  if (argument(1) == "--targets") {
    for (const Target& target : targets())
      std::printf("%.*s\n", static_cast<int>(target.name.size()), target.name.data());
    std::exit(0);
  }
  if (argument(1) == "--seeds") {
    copy_seeds(*find_target(argument(2)), std::string(argument(3)));
    std::exit(0);
  }
  if (argument(1) == "--words") {
    print_words();
    std::exit(0);
  }
  const char* name = std::getenv("RINGSIM_FUZZ_TARGET");
  chosen = find_target(name == nullptr ? "" : name);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ringsim::fuzz::chosen->reads(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
