// Files of other programs, given to commands: what the error says; and gzip'd files of formats that are read.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/command.hpp"
#include "tests/support/files.hpp"
#include "tests/support/foreign_files.hpp"
#include "tests/support/message_page.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/paths.hpp"

namespace foreign_files_test {

using namespace ringsim::test;

namespace {

const std::string star = R"({"version": 1,
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "0.5 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})";

std::string err_of(const std::vector<std::string>& arguments, const std::string& file) {
  Outcome outcome = run_command(arguments);
  CHECK(outcome.code == 3);
  CHECK(outcome.out.empty());
  std::string said = outcome.err;
  for (std::size_t at; (at = said.find(file)) != std::string::npos;) said.replace(at, file.size(), "FILE");
  return said;
}

}  // namespace

TEST_CASE("each recognized file is named where a scenario, measured times or a machine belong, packed or not") {
  const std::string scenario = temporary_file("star.json", star);
  MessagePage page("foreign_formats");
  for (const ForeignFile& file : foreign_files()) {
    CAPTURE(file.name);
    const std::string plain = temporary_file(file.name, file.text);
    const std::string said = err_of({"run", plain}, plain);
    page.add(file.name, said);
    const std::string found = said.substr(said.find(", found "));
    const auto names_it = [&](const std::vector<std::string>& arguments, const std::string& path) {
      const std::string other = err_of(arguments, path);
      CHECK(other.substr(other.find(", found ")) == found);
    };
    const std::string zipped = temporary_file("no-such-ending", packed(file.text));
    names_it({"run", zipped}, zipped);
    names_it({"compare", scenario, plain}, plain);
    names_it({"compare", scenario, zipped}, zipped);
    if (!has(file.format, "network.yml")) names_it({"topology", "import", zipped}, zipped);  // it reads that
    names_it({"run", scenario, "--measured", plain}, plain);
    const Outcome piped = run_with_input({"run", "-"}, file.text);
    CHECK(piped.code == 3);
    CHECK(has(piped.err, found));
  }
  page.check();
}

TEST_CASE("gzip'd files are read as if they were not, whatever their name: scenario, log, machine") {
  const std::string scenario = temporary_file("star.json", star), zipped = temporary_file("star.json", packed(star));
  const Outcome plain = run_command({"run", scenario, "--format", "json"});
  REQUIRE(plain.code == 0);
  CHECK(run_command({"run", zipped, "--format", "json"}).out == plain.out);
  CHECK(run_with_input({"run", "-", "--format", "csv"}, packed(star)).out ==
        run_with_input({"run", "-", "--format", "csv"}, star).out);
  const std::string rows = "# collective: all_reduce\n# ranks: 4\nbytes,time_us\n1048576,160\n";
  const Outcome compared = run_command({"compare", scenario, temporary_file("m.csv", rows), "--format", "csv"});
  REQUIRE(compared.code == 0);
  CHECK(run_command({"compare", zipped, temporary_file("m.log", packed(rows)), "--format", "csv"}).out == compared.out);
  const std::string dump = source_dir() + "/tests/data/machines/dump.xml";
  const std::string path = temporary_file("dump.xml", packed(read_file(dump)));
  const Outcome imported = run_command({"topology", "import", path});  // sources in it name the file
  CHECK(imported.code == 0);
  CHECK(has(imported.out, "imported from dump.xml: 3 GPUs, 2 NICs, 2 PCIe switches, 2 NUMA domains"));
}

TEST_CASE("a small file that unpacks to more than a reader takes is refused") {
  const std::string bomb = temporary_file("bomb.gz", packed(std::string((std::size_t{32} << 20) + 1, ' ')));
  CHECK(std::filesystem::file_size(bomb) < 100'000);
  CHECK(err_of({"run", bomb}, bomb) ==
        "ringsim: error: FILE: expected a scenario file of at most 32 MiB, found a larger one\n");
}

}  // namespace foreign_files_test
