// The file of a sweep: it grows by whole points, is never shared by two sweeps, and ends in its final order.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "validate/results/results.hpp"

namespace ringsim::tools {

class SweepFile {
 public:
  /// Opens or makes it, and locks it against other sweeps. Throws EnvironmentError if it cannot be written or
  /// another sweep writes it, InputError if it holds something already and `resume` does not go on with that.
  SweepFile(std::string path, bool resume);
  ~SweepFile();
  SweepFile(const SweepFile&) = delete;
  SweepFile& operator=(const SweepFile&) = delete;

  /// Reads the rows that it holds, and cuts off a last line that is not whole: true if there was one.
  bool read(const std::function<void(ResultRow&& row, const RowPlace& place)>& take);
  /// Leaves out rows that do not belong: writes the others to a new file.
  void keep(const std::function<bool(const ResultRow& row)>& wanted);
  /// Adds the rows of a point in one write; if that fails, none of them stays. Throws EnvironmentError, also if
  /// another program has put another file in this one's place.
  void append(std::string_view rows);
  /// Puts all rows into their final order. If that fails they stay as they are.
  void put_in_order();

 private:
  void replace(const std::function<void(const std::function<void(std::string_view)>& write)>& fill);
  void check_in_place() const;
  [[noreturn]] void fail(const std::string& what) const;

  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;  // up to the last whole point
};

/// True if a sweep has the file open now.
bool has_writer(const std::string& path);

}  // namespace ringsim::tools
