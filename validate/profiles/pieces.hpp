// Files of any size, read piece by piece and unpacked.
#pragma once

#include <cstdint>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sim/text/gzip.hpp"
#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// Called with the bytes read of a file and its size.
using ReadProgress = std::function<void(std::uint64_t done, std::uint64_t size)>;

/// A file, or a text, in pieces of at most 17 MB.
class Pieces {
 public:
  /// Opens a file; gzip is recognized by its first bytes. Throws InputError if it cannot be read.
  Pieces(const std::string& path, const Limits& limits, ReadProgress progress = {});
  /// A stream, which errors call `name`.
  Pieces(std::unique_ptr<std::istream> in, std::string name, const Limits& limits);

  /// Puts the next piece into `piece`; false at the end of the file. Throws InputError for a damaged file, and for one
  /// that unpacks to more than Limits::ratio times its size.
  bool next(std::string& piece);
  /// Reads on until `text` has at least `bytes`, or all; what was put into `text` comes again from next().
  std::string_view beginning(std::size_t bytes);

  const std::string& name() const { return name_; }
  bool is_packed() const { return gzip_.has_value(); }  ///< by gzip; known once something is read
  const Limits& limits() const { return limits_; }

 private:
  bool read(std::string& piece);

  std::string name_;
  Limits limits_;
  ReadProgress progress_;
  std::unique_ptr<std::istream> in_;
  std::uint64_t size_ = 0, packed_ = 0, unpacked_ = 0;
  bool first_ = true;
  std::optional<Gunzip> gzip_;
  std::string beginning_;
};

}  // namespace ringsim::profiles
