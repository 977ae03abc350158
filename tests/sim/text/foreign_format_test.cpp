// Formats that are recognized by sight, and files of ringsim's own that must not be taken for one.
#include "sim/text/foreign_format.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "tests/support/files.hpp"
#include "tests/support/foreign_files.hpp"
#include "tests/support/paths.hpp"

namespace foreign_format_test {

using namespace ringsim;
namespace fs = std::filesystem;

TEST_CASE("each format is recognized by its first bytes, also if no more of it is there") {
  for (const test::ForeignFile& file : test::foreign_files()) {
    CAPTURE(file.name);
    const auto format = foreign_format(file.text);
    REQUIRE(format.has_value());
    CHECK(format->name.starts_with(file.format));
    CHECK(!format->instead.empty());
    CHECK(foreign_format(file.text + std::string(file.text.size(), ' ')).has_value());
  }
}

TEST_CASE("what ringsim reads is taken for no other program's file: everything in the repository") {
  int files = 0;
  for (const char* folder :
       {"scenarios", "topologies/presets", "tests/data", "tests/fuzz/corpus", "validate", "docs"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(test::source_dir()) / folder)) {
      const fs::path extension = entry.path().extension();
      const fs::path own = entry.path().parent_path().filename();
      // Seeds of the fuzzer; and profiles, which only `ringsim trace` reads.
      const bool is_seed = own == "decorated" || own == "gzip" || own == "kineto" || own == "inspector" ||
                           own == "flight_recorder" || own == "nsight" || own == "astra" || own == "profiles" ||
                           own == "chakra" || extension == ".et";
      if (!entry.is_regular_file() || extension == ".png" || is_seed) continue;
      CAPTURE(entry.path().string());
      CHECK(!foreign_format(test::read_file(entry.path()).substr(0, recognized_bytes)).has_value());
      ++files;
    }
  }
  CHECK(files > 300);
  for (const char* text : {"", "\n", "\n\n\n\n\n\n\n\n\n\n\n\n", "{}", "[]", "{\"schema\": 1}", "{\"nodes\": []}",
                           "topology: star\n", "{\"entries\": []}", "BZ", "# ranks: 4\n", "NVIDIA A100\n",
                           "{\"traceEvent\": []}", "{\"$schema\": \"chakra\", \"nodes\": 1}"}) {
    CAPTURE(text);
    CHECK(!foreign_format(text).has_value());
  }
}

}  // namespace foreign_format_test
