#include "scenarios/decoder/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "scenarios/decoder/decode.hpp"
#include "sim/base/error.hpp"
#include "sim/text/foreign_format.hpp"
#include "sim/text/gzip.hpp"

namespace ringsim::scenarios {

namespace {

/// Reads a stream piece by piece, and unpacks gzip.
class Unpacked {
 public:
  Unpacked(std::istream& in, const std::string& name) : in_(in), name_(name), block_(1 << 16) {}

  /// Appends until the text has more than `most` bytes (returns true) or the stream ends (false).
  bool read(std::string& text, std::size_t most) {
    while (text.size() <= most) {
      in_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
      const std::string_view piece(block_.data(), static_cast<std::size_t>(in_.gcount()));
      if (in_.bad()) throw InputError(name_, fmt::format("expected a readable file, found: {}", std::strerror(errno)));
      if (first_ && is_gzip(piece)) gzip_.emplace(name_);
      first_ = false;
      if (piece.empty()) {
        if (gzip_) gzip_->end();
        return false;
      }
      if (gzip_)
        gzip_->feed(piece, text);
      else
        text += piece;
    }
    return true;
  }

 private:
  std::istream& in_;
  const std::string& name_;
  std::vector<char> block_;
  bool first_ = true;
  std::optional<Gunzip> gzip_;
};

}  // namespace

std::string read_text(std::istream& in, const std::string& name, const std::string& what, std::size_t most) {
  std::string text;
  Unpacked file(in, name);
  bool more = file.read(text, std::min(most, recognized_bytes));
  // Traces exceed the limit on size, so they are recognized first.
  refuse_foreign_format(std::string_view(text).substr(0, recognized_bytes), name, what);
  more = more && file.read(text, most);
  if (more || text.size() > most)
    throw InputError(name, fmt::format("expected {} of at most {} MiB, found a larger one", what, most >> 20));
  return text;
}

std::string read_text(const std::string& path, const std::string& what, std::size_t most) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw InputError(path, "expected " + what + ", found no file of that name");
  }
  if (std::filesystem::is_directory(status)) throw InputError(path, "expected " + what + ", found a directory");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path, fmt::format("expected a readable file, found: {}", std::strerror(errno)));
  return read_text(in, path, what, most);
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
