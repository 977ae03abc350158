// The results that are kept next to examples and questions, which golden_test compares with what the command prints.
// Tests that only look at an example's results read them here and simulate nothing.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/csv.hpp"
#include "tests/support/files.hpp"
#include "tests/support/paths.hpp"

namespace ringsim::test {

class KeptRow {
 public:
  KeptRow(std::vector<std::string> head, std::vector<std::string> fields)
      : head_(std::move(head)), fields_(std::move(fields)) {}

  /// Empty if the row has no value there, or the file no such column.
  std::string text(const std::string& column) const {
    const auto found = std::find(head_.begin(), head_.end(), column);
    return found == head_.end() ? "" : fields_.at(static_cast<std::size_t>(found - head_.begin()));
  }
  /// 0 if it is empty.
  double number(const std::string& column) const {
    const std::string value = text(column);
    return value.empty() ? 0 : std::stod(value);
  }

 private:
  std::vector<std::string> head_, fields_;
};

/// `name` below scenarios, without its ending: "questions/12-nvls". A row for each result, in the order of the points.
inline std::vector<KeptRow> kept_results(const std::string& name) {
  std::istringstream lines(read_file(source_dir() + "/scenarios/" + name + ".csv"));
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> head = csv_fields(line);
  std::vector<KeptRow> rows;
  while (std::getline(lines, line)) rows.emplace_back(head, csv_fields(line));
  REQUIRE(!rows.empty());
  return rows;
}

}  // namespace ringsim::test
