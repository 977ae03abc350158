// Tables for terminals.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/text/wrap.hpp"

namespace ringsim {

/// A text, or a time, whose unit the table chooses.
struct TableCell {
  TableCell(std::string words) : text(std::move(words)) {}
  TableCell(const char* words) : text(words) {}
  TableCell(Picoseconds its_time) : time(its_time) {}
  /// A difference: "+1.234".
  static TableCell with_sign(Picoseconds difference);

  std::string text;  ///< without a time
  std::optional<Picoseconds> time;
  bool is_signed = false;
};

/// Columns as wide as they need to be; numbers to the right with their points in line, text to the left.
///
/// All times of a table are in one unit, which their headings name: that of TimeUnit::of() for the shortest time but 0
/// of the first column that has times. In a table whose rows are parts of a whole, the whole decides: parts_of().
class Table {
 public:
  explicit Table(std::vector<std::string> head) : head_(std::move(head)) {}
  void parts_of(Picoseconds whole) { whole_ = whole; }
  /// Lets fitted() show the column of that heading once above the table, if all rows agree in it: as `pattern`, with
  /// the value for "{}". For what rows are about, not for results. A heading that the table does not have is ignored;
  /// of several columns of one heading the first call means the first.
  void pull_out(const std::string& heading, const std::string& pattern = "{}");
  void add(std::vector<TableCell> row) { rows_.push_back(std::move(row)); }
  void add(std::initializer_list<TableCell> row) { rows_.emplace_back(row); }
  void add(std::vector<std::string> row) {
    rows_.emplace_back(std::make_move_iterator(row.begin()), std::make_move_iterator(row.end()));
  }
  std::size_t size() const { return rows_.size(); }
  /// The headings, then a line for each row, as texts.
  std::vector<std::vector<std::string>> cells() const;
  /// As wide as it gets: width() characters.
  std::string text() const;
  std::size_t width() const;
  /// In lines of at most `width` characters. What rows share is pulled out; if the rest is too wide, headings take two
  /// lines, then long texts become numbers that a line below the table explains, then columns continue in a second
  /// table.
  std::string fitted(std::size_t width = text_width) const;
  /// True if fitted() needs a second table.
  bool is_in_parts(std::size_t width = text_width) const;

 private:
  std::string fitted(std::size_t width, bool& in_parts) const;

  std::vector<std::string> head_;
  std::vector<std::vector<TableCell>> rows_;
  std::optional<Picoseconds> whole_;
  std::map<std::string, std::vector<std::string>> pulled_out_;  // [heading] patterns of its columns, in order
};

}  // namespace ringsim
