// The columns of a result, once: JSON, CSV, SQLite, the printed table, --assert and docs/results/columns.md read them
// here.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "validate/results/result.hpp"

namespace ringsim {

struct Column {
  /// When a row has the column.
  enum class In {
    every_row,  ///< null if there is no value
    some_rows,  ///< only with a value
    compared,   ///< only with a value, and only from commands that compare with measured times
    details,    ///< only with a value, and only in JSON with --explain
    phases      ///< only with a value, and only in JSON with --phases or of `explain`
  };

  /// "closed_form.ratio": dots separate the levels of JSON. "point.*": one column per key of what value() returns.
  std::string_view name;
  std::string_view unit;  ///< "us", "GB/s", "B", "share" (0 to 1); empty: a count, a text, or true and false
  std::string_view meaning;
  In in = In::every_row;
  nlohmann::ordered_json (*value)(const Result&) = nullptr;
  bool in_csv = true;
  /// In the printed table: its heading, empty if it is not there; and its text, if it is not just the value.
  std::string_view heading = "";
  std::string_view above = "";  ///< if all rows agree, the table says it once above its head: "{} ranks"
  std::string (*shown)(const Result&) = nullptr;
  /// The table has the column only if this holds for one of its rows, or with --explain. Null: always.
  bool (*relevant)(const Result&) = nullptr;
};

/// In the order of every format. Those of a row's origin (`ringsim.version`, `scenario.name`, `key` ...) come first;
/// they have no value(); the code that writes the rows supplies it.
std::span<const Column> result_columns();

/// An object of keys and values that are JSON texts.
nlohmann::ordered_json object_of(const std::vector<std::pair<std::string, std::string>>& pairs);

/// A result as JSON, without its origin. `details`: as --explain asks.
nlohmann::ordered_json as_json(const Result& result, bool details);

}  // namespace ringsim
