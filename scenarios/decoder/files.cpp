#include "scenarios/decoder/files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <system_error>
#include <vector>

#include "scenarios/decoder/decode.hpp"
#include "sim/base/error.hpp"

namespace ringsim::scenarios {

namespace {

constexpr std::size_t most_bytes = std::size_t{32} << 20;  // a graph of some hundred thousand links

}  // namespace

std::string read_text(std::istream& in, const std::string& name, const std::string& what) {
  std::string text;
  std::vector<char> block(1 << 16);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())), in.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > most_bytes) {
      throw InputError(name, fmt::format("expected {} of at most {} MiB, found a larger one", what, most_bytes >> 20));
    }
  }
  if (in.bad()) throw InputError(name, fmt::format("expected a readable file, found: {}", std::strerror(errno)));
  return text;
}

std::string read_text(const std::string& path, const std::string& what) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw InputError(path, "expected " + what + ", found no file of that name");
  }
  if (std::filesystem::is_directory(status)) throw InputError(path, "expected " + what + ", found a directory");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path, fmt::format("expected a readable file, found: {}", std::strerror(errno)));
  return read_text(in, path, what);
}

Files::Files(const std::string& scenario) : scenario_(scenario) {}

const Files::Content& Files::read(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = contents_.find(name); known != contents_.end()) return known->second;
  const std::string path = (std::filesystem::path(scenario_).parent_path() / name).string();
  std::string text = read_text(path, "a file that the scenario names");
  std::string digest = digest_of(text);
  return contents_.emplace(name, Content{path, std::move(text), std::move(digest)}).first->second;
}

}  // namespace ringsim::scenarios
