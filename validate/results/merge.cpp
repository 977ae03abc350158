// Rows of several files in one order.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <fstream>
#include <tuple>
#include <utility>

#include "scenarios/decoder/decode.hpp"
#include "sim/base/error.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/results.hpp"

namespace ringsim {

namespace {

/// Texts that compare byte by byte as what they stand for does.
void add_number(double number, std::string& order) {
  auto bits = std::bit_cast<std::uint64_t>(number == 0 ? 0.0 : number);
  bits = (bits >> 63) != 0 ? ~bits : bits | (std::uint64_t{1} << 63);  // negative ones backwards, and below
  for (int shift = 56; shift >= 0; shift -= 8) order += static_cast<char>(bits >> shift & 0xFF);
}

/// Letters as they are; of a number in the text first how long it is: gpu2 comes before gpu10.
void add_text(std::string_view text, std::string& order) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (std::size_t i = 0; i < text.size();) {
    if (!is_digit(text[i])) {
      order += text[i++];
      continue;
    }
    std::size_t end = i;
    while (end < text.size() && is_digit(text[end])) ++end;
    order += '0';
    order += static_cast<char>(std::min<std::size_t>(end - i, 255));
    order += text.substr(i, end - i);
    i = end;
  }
  order += '\x01';
}

void add_value(const ResultRow& row, const Cell& cell, std::string& order) {
  const std::optional<ExpressionValue> value = row.value(cell.column);
  if (const auto* quantity = std::get_if<Quantity>(&*value)) {
    order += static_cast<char>('a' + static_cast<int>(quantity->dimension));
    add_number(quantity->value, order);
  } else {
    order += 'z';
    add_text(plain_text(cell), order);
  }
}

/// By scenario, what varies in the order in which it does, and job: the scenario's own first.
std::string order_of(const ResultRow& row) {
  std::string order;
  if (const Cell* name = row.find("scenario.name")) add_text(plain_text(*name), order);
  for (const Cell& cell : row.cells) {
    if (!cell.column.starts_with("point.")) continue;
    add_text(cell.column, order);
    add_value(row, cell, order);
  }
  const std::string job = row.job();
  order += job == "main" ? '\x01' : '\x02';
  add_text(job, order);
  return order;
}

}  // namespace

MergedResults::MergedResults(std::vector<std::string> files) : files_(std::move(files)) {
  for (std::size_t file = 0; file < files_.size(); ++file) {
    const FileEnd end = read_results(files_[file], [&](ResultRow&& row, std::string_view line, const RowPlace& place) {
      add(file, row, line, place);
    });
    if (end.torn) torn_.push_back(files_[file]);
  }
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.order, a.key, a.job, a.file, a.place.line) <
           std::tie(b.order, b.key, b.job, b.file, b.place.line);
  });
  drop_repeated();
}

void MergedResults::add(std::size_t file, const ResultRow& row, std::string_view line, const RowPlace& place) {
  const std::string where = fmt::format("{}:{}", files_[file], place.line);
  if (row.key.empty())
    throw InputError(where, "expected a row of a sweep, found a row without \"key\"",
                     "`ringsim sweep` writes this key, `ringsim run` does not");
  std::string made_by = fmt::format("ringsim {}, model {}", plain_text(*row.find("ringsim.version")),
                                    plain_text(*row.find("ringsim.model_version")));
  if (version_.empty()) {
    version_ = std::move(made_by);
    version_from_ = where;
  } else if (made_by != version_) {
    throw InputError(where,
                     fmt::format("expected a row of {}, like {}, found a row of {}", version_, version_from_, made_by),
                     "results of different models cannot be merged; compare them with --baseline");
  }
  entries_.push_back({order_of(row), row.key, row.job(), scenarios::digest_of(line), file, place});
}

void MergedResults::drop_repeated() {
  const auto name = [&](const Entry& entry) { return fmt::format("{}:{}", files_[entry.file], entry.place.line); };
  const auto same = [&](const Entry& a, const Entry& b) {
    if (a.key != b.key || a.job != b.job) return false;
    if (a.digest == b.digest) return true;
    throw InputError(name(b),
                     fmt::format("expected the same row as {}, which has the same key, found another", name(a)),
                     "one of them was changed or is damaged");
  };
  const auto end = std::unique(entries_.begin(), entries_.end(), same);
  repeated_ = static_cast<std::size_t>(entries_.end() - end);
  entries_.erase(end, entries_.end());
}

void MergedResults::each_line(const std::function<void(const std::string&)>& take) const {
  std::vector<std::ifstream> open;
  for (const std::string& file : files_) open.emplace_back(file, std::ios::binary);
  std::string line;
  for (const Entry& entry : entries_) {
    std::ifstream& in = open[entry.file];
    in.seekg(static_cast<std::streamoff>(entry.place.offset));
    if (!std::getline(in, line) || scenarios::digest_of(line) != entry.digest)
      throw InputError(fmt::format("{}:{}", files_[entry.file], entry.place.line),
                       "expected the row that was read before, found another one, because the file has changed");
    take(line += '\n');
  }
}

void MergedResults::each(const std::function<void(const ResultRow&)>& take) const {
  each_line([&](const std::string& line) { take(ResultRow::parse(line, "a row")); });
}

void see_columns(const ResultRow& row, std::vector<std::string>& seen) {
  auto at = seen.begin();  // after the column found last: rows mostly have the same ones in the same order
  for (const Cell& cell : row.cells) {
    auto found = at != seen.end() && *at == cell.column ? at : std::find(seen.begin(), seen.end(), cell.column);
    if (found == seen.end()) found = seen.insert(at, cell.column);
    at = found + 1;
  }
}

std::vector<std::string> MergedResults::columns(ColumnsFor format) const {
  std::vector<std::string> seen;
  each([&](const ResultRow& row) { see_columns(row, seen); });
  return columns_for(format, seen);
}

namespace {

/// Spreadsheets take a cell that begins so for a formula, which may read other cells or fetch a page. Numbers stay
/// numbers.
bool is_formula(const std::string& text) {
  if (text.find_first_of("=+-@\t\r") != 0) return false;
  char* end = nullptr;
  std::strtod(text.c_str(), &end);
  return end == text.c_str() || *end != '\0';
}

}  // namespace

std::string csv_field(const std::string& field) {
  std::string text = is_formula(field) ? "'" + field : field;
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    line += csv_field(field);
  }
  return line + '\n';
}

std::vector<std::string> fields_of(const ResultRow& row, const std::vector<std::string>& columns) {
  std::vector<std::string> fields(columns.size());
  std::size_t at = 0;  // cells mostly come in the order of the columns
  for (const Cell& cell : row.cells) {
    std::size_t tried = 0;
    for (; tried < columns.size() && columns[at] != cell.column; ++tried) at = (at + 1) % columns.size();
    if (tried < columns.size()) fields[at] = plain_text(cell);
  }
  return fields;
}

}  // namespace ringsim
