// Runs the ringsim command as a user does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ringsim::test {

using Words = std::vector<std::string>;

struct Outcome {
  int code = -1;  ///< exit code; 128 + the signal where a signal ended it
  std::string out, err;
};

/// True if the text has that part.
inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// A ring of four ranks, as a file's text.
inline constexpr const char* ring_of_four = R"({"version": 1, "name": "four",
  "topology": {"kind": "star", "ranks": 4, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
  "collective": {"op": "all_reduce", "algorithm": "ring", "bytes": "1 MiB"}})";

/// Runs the command under test with these arguments; `output_file` becomes its standard output where given
/// ("/dev/full").
Outcome run_command(const std::vector<std::string>& arguments, const std::string& output_file = "");
/// As run_command(), with a text as its standard input, in that folder if one is given.
Outcome run_with_input(const std::vector<std::string>& arguments, const std::string& input,
                       const std::string& folder = "");
/// The same command linked with fake GPUs (tests/support/fake_gpu). `fault`: how they fail, as open_fake.cpp lists it.
Outcome run_on_fake_gpu(const std::vector<std::string>& arguments, const std::string& fault = "", int gpus = 1);

/// Makes a folder below the system's temporary one whose name begins with `name`. The caller removes it.
std::filesystem::path fresh_folder(const std::string& name);

/// Writes a file into a fresh place below the system's temporary folder and returns its path.
std::string temporary_file(const std::string& name, const std::string& text);

}  // namespace ringsim::test
