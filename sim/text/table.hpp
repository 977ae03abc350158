// Tables for terminals.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/text/wrap.hpp"

namespace ringsim {

/// Columns as wide as they need to be; numbers to the right, text to the left.
class Table {
 public:
  explicit Table(std::vector<std::string> head) : rows_{std::move(head)} {}
  /// Lets fitted() show the column of that heading once above the table, if all rows agree in it: as `pattern`, with
  /// the value for "{}". For what rows are about, not for results. A heading that the table does not have is ignored;
  /// of several columns of one heading the first call means the first.
  void pull_out(const std::string& heading, const std::string& pattern = "{}");
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  std::size_t size() const { return rows_.size() - 1; }
  /// As wide as it gets: width() characters.
  std::string text() const;
  std::size_t width() const;
  /// In lines of at most `width` characters. What rows share is pulled out; if the rest is too wide, headings take two
  /// lines, then long texts become numbers that a line below the table explains, then columns continue in a second
  /// table.
  std::string fitted(std::size_t width = text_width) const;

 private:
  std::vector<std::vector<std::string>> rows_;
  std::map<std::string, std::vector<std::string>> pulled_out_;  // [heading] patterns of its columns, in order
};

}  // namespace ringsim
