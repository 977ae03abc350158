#include "validate/results/written_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/base/utf8.hpp"
#include "sim/text/json.hpp"

namespace ringsim {

namespace {

/// Fields of CSV, record by record; quoted ones may have line ends.
class CsvRecords {
 public:
  CsvRecords(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  std::size_t line() const { return line_; }  ///< of the last record, from 1
  std::string where() const { return fmt::format("{}:{}", name_, line_); }

  /// The next record; false at the end.
  bool next(std::vector<std::string>& fields) {
    fields.clear();
    if (at_ == text_.size()) return false;
    line_ = next_line_;
    for (;;) {
      fields.push_back(field());
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (at_ < text_.size() && text_[at_] == '\r') ++at_;
      if (at_ < text_.size() && text_[at_] != '\n')
        throw InputError(
            where(),
            fmt::format("expected a comma or the end of the line after a quoted field, found \"{}\"", text_[at_]));
      if (at_ < text_.size()) ++at_;
      ++next_line_;
      return true;
    }
  }

 private:
  std::string field() {
    std::string text;
    if (at_ == text_.size() || text_[at_] != '"') {
      const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
      text = text_.substr(at_, end - at_);
      at_ = end;
      return text;
    }
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++next_line_;
      if (text_[at_] == '"') {
        if (at_ + 1 == text_.size() || text_[at_ + 1] != '"') {
          ++at_;
          return text;
        }
        ++at_;  // two stand for one
      }
      text += text_[at_];
    }
    throw InputError(where(), "expected a quote at the end of a field, found the end of the file");
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0, line_ = 0, next_line_ = 1;
};

/// A number, true or false if the field is one, else text.
Cell cell_of(const std::string& column, const std::string& field) {
  if (field == "true" || field == "false") return {column, field == "true"};
  const char* const end = field.data() + field.size();
  if (field.find_first_not_of("0123456789.+-eE") == std::string::npos) {
    std::int64_t whole = 0;
    if (const auto read = std::from_chars(field.data(), end, whole); read.ec == std::errc() && read.ptr == end)
      return {column, whole};
    double number = 0;
    if (const auto read = std::from_chars(field.data(), end, number); read.ec == std::errc() && read.ptr == end)
      return {column, number};
  }
  return {column, field};
}

void require_numbers(const ResultRow& row, const std::string& where) {
  for (const char* column : {"time_us", "bytes", "busbw_GBps", "algbw_GBps", "measured_us", "bound_us", "ranks"}) {
    const Cell* cell = row.find(column);
    if (cell == nullptr) continue;
    const auto* whole = std::get_if<std::int64_t>(&cell->value);
    const auto* number = std::get_if<double>(&cell->value);
    if ((whole == nullptr || *whole < 0) && (number == nullptr || *number < 0))
      throw InputError(
          where,
          fmt::format("expected {} to be a number of at least 0, found {}", column, in_quotes(plain_text(*cell))),
          "the row was changed or is damaged");
  }
  if (row.find("time_us") == nullptr && !row.failed())
    throw InputError(where, "expected a result of ringsim, found one with neither \"time_us\" nor \"error.message\"",
                     how_rows_are_written);
}

}  // namespace

std::vector<ResultRow> rows_of_document(std::string_view text, const std::string& name) {
  const Json document = parse_json(text, name);
  if (!document.contains("results") || !document["results"].is_array())
    throw InputError(name, "expected a document with \"results\", found none in it", how_rows_are_written);
  std::vector<ResultRow> rows;
  for (const Json& result : document["results"]) {
    if (!result.is_object())
      throw InputError(fmt::format("{}: /results/{}", name, rows.size()),
                       fmt::format("expected a result, found {}", describe(result)), how_rows_are_written);
    Json line = Json::object();
    for (const char* origin : {"ringsim", "scenario"})
      if (document.contains(origin)) line[origin] = document[origin];
    line.update(result);
    rows.push_back(ResultRow::parse(json_text(line), name, rows.size() + 1));
  }
  return rows;
}

namespace {

/// As it was before csv_field().
std::string without_apostrophe(const std::string& field) {
  return field.size() > 1 && field[0] == '\'' && std::string_view("=+-@\t\r").find(field[1]) != std::string_view::npos
             ? field.substr(1)
             : field;
}

}  // namespace

std::vector<ResultRow> rows_of_csv(std::string_view text, const std::string& name) {
  if (const std::size_t bad = first_not_utf8(text); bad != std::string_view::npos)
    throw InputError(
        fmt::format("{}:{}", name, 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n')),
        fmt::format("expected text in UTF-8, found byte 0x{:02x}", static_cast<unsigned char>(text[bad])),
        "the row was changed or is damaged");
  CsvRecords records(text, name);
  std::vector<std::string> head, fields;
  if (!records.next(head)) throw InputError(name, "expected results of ringsim, found nothing", how_rows_are_written);
  if (const std::set<std::string> columns(head.begin(), head.end()); columns.size() != head.size())
    throw InputError(records.where(), "expected every column only once, found one twice");
  std::vector<ResultRow> rows;
  while (records.next(fields)) {
    if (fields.size() != head.size())
      throw InputError(records.where(),
                       fmt::format("expected {} fields, as in the first line, found {}", head.size(), fields.size()),
                       "the row was changed or is damaged");
    ResultRow row;
    for (std::size_t i = 0; i < head.size(); ++i)
      if (!fields[i].empty()) row.cells.push_back(cell_of(head[i], without_apostrophe(fields[i])));
    require_numbers(row, records.where());
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace ringsim
