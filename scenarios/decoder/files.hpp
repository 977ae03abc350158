// The files that a scenario names, relative to its own folder.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace ringsim::scenarios {

/// The limit of most readers: enough for a graph of some hundred thousand links.
inline constexpr std::size_t most_bytes = std::size_t{32} << 20;

/// Reads a whole file of at most `most` bytes, and unpacks gzip, whatever the file's name. `what` says what it should
/// be: "a scenario file". Throws InputError, also for files of other programs (sim/text/foreign_format.hpp).
std::string read_text(const std::string& path, const std::string& what, std::size_t most = most_bytes);
/// Reads a stream, which errors call `name`.
std::string read_text(std::istream& in, const std::string& name, const std::string& what,
                      std::size_t most = most_bytes);

/// The kind of file that a scenario's key expects, and texts of which such a file contains at least one. A scenario may
/// come from a stranger and name any file that its user can read, so errors show nothing of a file without such a text.
struct FileKind {
  std::string what;  ///< "a machine file, which has \"devices\""
  std::vector<std::string> marks;
};

/// Reads each file once; from any thread.
class Files {
 public:
  struct Content {
    std::string path;  ///< as errors call it: relative to the working directory
    std::string text;
    std::string digest;  ///< XXH3-128, 32 hex digits
  };

  /// `scenario`: the scenario's own file.
  explicit Files(const std::string& scenario);
  /// Throws InputError (with the file's path as `where`) where it cannot be read. The reference lives as long as this.
  const Content& read(const std::string& name) const;
  /// As read(), for a reader whose errors show what they found.
  const Content& read(const std::string& name, const FileKind& kind) const;

 private:
  std::string scenario_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Content> contents_;
};

}  // namespace ringsim::scenarios
