#include "scenarios/decoder/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <istream>
#include <iterator>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "scenarios/decoder/decode.hpp"
#include "sim/base/error.hpp"
#include "sim/text/foreign_format.hpp"
#include "sim/text/gzip.hpp"
#include "sim/text/json.hpp"
#include "sim/text/spelling.hpp"

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

/// "did you mean "scenarios/star.json"?" for a missing file: one in the same folder with nearly that name, or one of
/// the name in a folder below; else empty.
std::string nearest_file(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr int most_entries = 2000, most_levels = 3;
  const fs::path wanted(path);
  const fs::path folder = wanted.has_parent_path() ? wanted.parent_path() : fs::path(".");
  const auto called = [&](const fs::path& found) {
    const fs::path relative = wanted.has_parent_path() ? found : found.lexically_relative(".");
    return fmt::format("did you mean {}?", in_quotes(relative.string()));
  };
  std::error_code error;
  std::vector<std::string> siblings;
  int seen = 0;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end && seen < most_entries;
       entry.increment(error), ++seen)
    if (entry->path().extension() == wanted.extension() && entry->is_regular_file(error))
      siblings.push_back(entry->path().filename().string());
  std::sort(siblings.begin(), siblings.end());
  const std::string near = nearest(wanted.filename().string(), siblings, Numbers::exact);
  if (!near.empty()) return called(folder / near);
  std::vector<fs::path> below;
  seen = 0;
  constexpr auto readable = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, readable, error), end;
       !error && entry != end && seen < most_entries; entry.increment(error), ++seen) {
    const std::string name = entry->path().filename().string();
    if (entry.depth() >= most_levels || name.starts_with('.')) entry.disable_recursion_pending();
    if (name == wanted.filename().string() && entry->is_regular_file(error)) below.push_back(entry->path());
  }
  const auto depth = [](const fs::path& each) { return std::distance(each.begin(), each.end()); };
  const auto first = std::min_element(below.begin(), below.end(), [&](const fs::path& a, const fs::path& b) {
    return std::pair(depth(a), a) < std::pair(depth(b), b);
  });
  return first == below.end() ? "" : called(*first);
}

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

namespace {
std::ifstream opened(const std::string& path, const std::string& what) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw InputError(path, "expected " + what + ", found no file of that name", nearest_file(path));
  }
  if (std::filesystem::is_directory(status)) throw InputError(path, "expected " + what + ", found a directory");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(path, fmt::format("expected a readable file, found: {}", std::strerror(errno)));
  return in;
}
}  // namespace

std::string read_text(const std::string& path, const std::string& what, std::size_t most) {
  std::ifstream in = opened(path, what);
  return read_text(in, path, what, most);
}

void read_pieces(const std::string& path, const std::string& what, const std::function<void(std::string_view)>& take) {
  constexpr std::size_t piece = std::size_t{1} << 20;
  std::ifstream in = opened(path, what);
  Unpacked file(in, path);
  std::string text;
  for (bool more = true; more;) {
    more = file.read(text, piece);
    take(text);
    text.clear();
  }
}

Files::Files(const std::string& scenario) : scenario_(scenario) {}

const Files::Content& Files::read(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = contents_.find(name); known != contents_.end()) return known->second;
  const std::string path = (std::filesystem::path(scenario_).parent_path() / name).string();
  std::string text = read_text(path, "a file named in the scenario");
  std::string digest = digest_of(text);
  return contents_.emplace(name, Content{path, std::move(text), std::move(digest)}).first->second;
}

const Files::Numbered& Files::numbered(const std::string& name) const {
  const std::lock_guard lock(mutex_);
  if (const auto known = numbered_.find(name); known != numbered_.end()) return known->second;
  constexpr int most_numbered = 65536;
  constexpr std::string_view mark = "{rank}";
  const bool is_numbered = name.find(mark) != std::string::npos;
  const std::filesystem::path folder = std::filesystem::path(scenario_).parent_path();
  const auto path_of = [&](int number) {
    std::string one = name;
    const std::string digits = fmt::to_string(number);
    for (std::size_t at = 0; (at = one.find(mark, at)) != std::string::npos; at += digits.size())
      one.replace(at, mark.size(), digits);
    return (folder / one).string();
  };
  const auto is_there = [](const std::string& path) {
    std::error_code error;
    return std::filesystem::exists(path, error);
  };
  Numbered found;
  std::string digests;
  for (int number = 0;; ++number) {
    const std::string path = path_of(number);
    if (number > 0 && (!is_numbered || !is_there(path))) break;
    if (number == most_numbered)
      throw InputError(path, fmt::format("expected at most {} files for one name pattern, found more", most_numbered));
    std::string pieces;
    read_pieces(path, "a file named in the scenario", [&](std::string_view piece) { pieces += digest_of(piece); });
    digests += digest_of(pieces);
    found.paths.push_back(path);
  }
  // A file that is lost is likelier than one of these many numbers in a job that ends here.
  constexpr int looked_ahead = 64;
  const auto n_files = static_cast<int>(found.paths.size());
  for (int later = n_files + 1; is_numbered && later <= n_files + looked_ahead; ++later)
    if (is_there(path_of(later)))
      throw InputError(
          path_of(n_files),
          fmt::format("expected files numbered without gaps, found no number {}, but {}", n_files, path_of(later)),
          "every rank needs a file, starting at 0");
  found.digest = digest_of(digests);
  return numbered_.emplace(name, std::move(found)).first->second;
}

const Files::Content& Files::read(const std::string& name, const FileKind& kind) const {
  const Content& content = read(name);
  const auto has = [&](const std::string& mark) { return content.text.find(mark) != std::string::npos; };
  if (std::any_of(kind.marks.begin(), kind.marks.end(), has)) return content;
  throw InputError(
      content.path,
      fmt::format("expected {}, found a file of {} bytes with other contents", kind.what, content.text.size()),
      "the contents are not shown because the file is named in a scenario");
}

}  // namespace ringsim::scenarios
