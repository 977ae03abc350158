// The files that a scenario names, relative to its own folder.
#pragma once

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
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

/// Gives a file piece by piece, unpacked, whatever its size. Throws as read_text().
void read_pieces(const std::string& path, const std::string& what, const std::function<void(std::string_view)>& take);

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

  /// Files of any size that are not kept.
  struct Numbered {
    std::vector<std::string> paths;  ///< [number] as errors call them
    std::string digest;              ///< of all
  };
  /// The files of a name in which "{rank}" stands for 0, 1, 2 ... until there is none of that number; of any other name
  /// the one file. Throws as read(), also if there is no file 0.
  const Numbered& numbered(const std::string& name) const;
  /// The result of make(), which is called once for each key: later points take what it returned.
  template <class T, class Make>
  std::shared_ptr<const T> once(const std::string& key, Make make) const {
    const std::lock_guard lock(made_mutex_);
    std::shared_ptr<const void>& kept = made_[key];
    if (!kept) kept = std::make_shared<const T>(make());
    return std::static_pointer_cast<const T>(kept);
  }

 private:
  std::string scenario_;
  mutable std::mutex mutex_;
  mutable std::map<std::string, Content> contents_;
  mutable std::map<std::string, Numbered> numbered_;
  mutable std::mutex made_mutex_;
  mutable std::map<std::string, std::shared_ptr<const void>> made_;
};

}  // namespace ringsim::scenarios
