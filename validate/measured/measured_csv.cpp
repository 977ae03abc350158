// Tables whose header names the columns: CSV by hand, of rccl-tests and of cloudai, and tables with bars.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "sim/text/plain_text.hpp"
#include "validate/measured/measured.hpp"
#include "validate/measured/measured_columns.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

namespace {

constexpr std::array separators = {',', ';', '\t'};

char separator_of(std::string_view header) {
  if (with_plain_bars(header).starts_with('|')) return '|';
  for (const char c : separators)
    if (header.find(c) != std::string_view::npos) return c;
  if (has_bars(header)) return '|';
  return header.find(' ') == std::string_view::npos ? ',' : ' ';
}

/// A line without letters and digits: "+----+----+", "| --- | ---: |", drawn lines.
bool is_rule(std::string_view line) {
  return std::none_of(line.begin(), line.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  });
}

/// What a column of ringsim's own results is called here; empty if it is not measured.
std::string measured_name(const std::string& own) {
  static const std::map<std::string, std::string> names{{"collective", "collective"},
                                                        {"ranks", "ranks"},
                                                        {"bytes", "bytes"},
                                                        {"measured_us", "time_us"},
                                                        {"measured_min_us", "min_us"},
                                                        {"measured_max_us", "max_us"},
                                                        {"wrong", "wrong"}};
  const auto found = names.find(own);
  return found == names.end() ? "" : found->second;
}

class Reader {
 public:
  Reader(const Line& header, Found& found) : found_(found), separator_(separator_of(header.text)) {
    const std::vector<std::string> texts = cells_of(header);
    const auto is = [](const char* wanted) { return [wanted](const std::string& h) { return lower(h) == wanted; }; };
    rccl_ = std::any_of(texts.begin(), texts.end(), is("inplace"));
    found.format = rccl_ ? "rccl-tests CSV" : separator_ == '|' ? "table" : "CSV";
    found.from_benchmark = rccl_;
    // Without a unit, sizes are bytes and times microseconds only next to columns that nccl-tests prints.
    as_printed_ =
        rccl_ || std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
          return lower(text) == "count" || lower(text) == "type" || lower(text) == "algbw" || lower(text) == "busbw";
        });
    const auto among = [&](const char* name) { return std::find(texts.begin(), texts.end(), name) != texts.end(); };
    own_ = among("scenario.name") && among("fingerprint");
    if (own_ && !among("measured_us")) refuse_predictions(header.where());
    for (const std::string& text : texts) take_heading(text, header.where());
    if (!own_) warn_of_others(header.where());
    for (const What needed : {What::size, What::time})
      if (!has(needed))
        throw InputError(
            header.where(),
            fmt::format("expected a column for the {}, found none", needed == What::size ? "size" : "time"),
            needed == What::size ? "bytes, or size_KiB, size_MiB, ..." : "time_us, time_ms, latency_us, ...");
  }

  /// Looks at the commas of a row's numbers; comes before take() of any row.
  void see(const Line& line) {
    if (!is_row(line)) return;
    const std::vector<std::string> cells = cells_of(line);
    for (std::size_t i = 0; i < std::min(cells.size(), columns_.size()); ++i)
      if (columns_[i] && unit_kind(columns_[i]->what) != What::nothing && columns_[i]->what != What::size)
        commas_.see(cells[i]);
  }

  void take(const Line& line) {
    if (!is_row(line)) return;
    std::vector<std::string> cells = cells_of(line);
    if (cells == headings_) return begin_run();
    // rccl-tests over MPI prints the number of nodes, and has no heading for it.
    if (rccl_ && cells.size() == headings_.size() + 1 && lower(headings_[2]) == "ranks") cells.erase(cells.begin() + 2);
    // pandas prints the number of each row.
    if (separator_ == ' ' && cells.size() == headings_.size() + 1 && cells[0] == std::to_string(n_rows_))
      cells.erase(cells.begin());
    ++n_rows_;
    if (cells.size() != headings_.size() && line.cut) {
      found_.warnings.push_back(line.where() + ": the last line of the file is incomplete and was ignored");
      return;
    }
    if (cells.size() != headings_.size())
      throw InputError(line.where(),
                       fmt::format("expected {} columns as in the header, found {}", headings_.size(), cells.size()),
                       separator_ == ',' && cells.size() > headings_.size()
                           ? "if the numbers have decimal commas, separate the columns with ';'"
                           : "");
    row_ = {.line = line.number};
    row_.where = line.where();
    flaws_ = {};
    in_place_ = false;
    processes_ = gpus_ = std::nullopt;
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (columns_[i]) take_cell(*columns_[i], headings_[i], cells[i]);
    keep();
  }

 private:
  bool has(What what) const {
    return std::any_of(columns_.begin(), columns_.end(), [&](const auto& c) { return c && c->what == what; });
  }

  /// A table with bars may have other text around it.
  bool is_row(const Line& line) const {
    if (separator_ != '|') return true;
    const std::string bars = with_plain_bars(line.text);
    return bars.find('|') != std::string::npos && !is_rule(line.text);
  }

  std::vector<std::string> cells_of(const Line& line) const {
    std::string plain;
    Line shown = line;
    if (separator_ == '|') shown.text = plain = with_plain_bars(line.text);
    std::vector<std::string> texts;
    for (CsvField& field : fields_of(shown, separator_)) texts.push_back(std::move(field.text));
    return texts;
  }

  void take_heading(const std::string& text, const std::string& where) {
    headings_.push_back(text);
    if (const auto what = rccl_ ? rccl_column(text) : std::nullopt) {
      columns_.push_back(Column{.what = *what});
      return;
    }
    if (own_ && measured_name(text).empty()) {
      columns_.push_back(std::nullopt);
      return;
    }
    // pandas appends a number to a repeated name.
    ColumnName heading = own_ ? column_name(measured_name(text))
                              : column_name(text.ends_with(".1") ? std::string_view(text).substr(0, text.size() - 2)
                                                                 : std::string_view(text));
    if (!heading.what) {
      columns_.push_back(std::nullopt);
      return;
    }
    const auto is_same = [&](const std::optional<Column>& c) {
      return c && c->what == *heading.what && c->in_place == heading.in_place;
    };
    if (std::any_of(columns_.begin(), columns_.end(), is_same)) {
      // nccl-tests repeats these columns for times in place.
      const std::string first = headings_[static_cast<std::size_t>(
          std::find_if(columns_.begin(), columns_.end(), is_same) - columns_.begin())];
      const bool again = !heading.has_place && has(What::algbw) && (text == first || text == first + ".1");
      const bool places = *heading.what == What::wrong || unit_kind(*heading.what) == What::time ||
                          unit_kind(*heading.what) == What::algbw;
      heading.in_place = again && places;
      if (*heading.what != What::nothing &&
          (!heading.in_place || std::any_of(columns_.begin(), columns_.end(), is_same)))
        throw InputError(where,
                         fmt::format("expected one column of each kind, found another one with {}", in_quotes(text)));
    }
    columns_.push_back(Column{
        .what = *heading.what, .in_place = heading.in_place, .unit = unit_of(heading, text, as_printed_, where)});
  }

  void warn_of_others(const std::string& where) {
    std::vector<std::string> others;
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (!columns_[i]) others.push_back(in_quotes(headings_[i]));
    if (!others.empty() && !rccl_)
      found_.warnings.push_back(fmt::format("{}: the column{} {} {} ignored", where, others.size() == 1 ? "" : "s",
                                            fmt::join(others, ", "), others.size() == 1 ? "is" : "are"));
  }

  /// A number with its unit; nothing if the cell is empty or its number cannot be measured.
  std::optional<Number> number(const Column& column, const std::string& heading, const std::string& text) {
    if (text.empty()) return std::nullopt;
    const Measure measure = unit_kind(column.what) == What::time ? Measure::time : Measure::quantity;
    const std::string plain = commas_.plain(text, heading, row_.where);
    if (auto flaw = flaw_of(plain, measure, heading)) {
      auto& first = flaws_[column.in_place ? 1 : 0];
      if (!first) first = std::move(flaw);
      return std::nullopt;
    }
    const Number number = measured_number(plain, measure, heading, row_.where);
    return Number{number.value * column.unit, number.half * column.unit};
  }

  void take_cell(const Column& column, const std::string& heading, const std::string& text) {
    Timed& timed = column.in_place ? row_.in : row_.out;
    switch (column.what) {
      case What::size:
        row_.bytes = size(column, heading, text);
        return;
      case What::time:
        timed.time = number(column, heading, text);
        return;
      case What::min:
        if (!column.in_place) row_.min = number(column, heading, text);
        return;
      case What::max:
        if (!column.in_place) row_.max = number(column, heading, text);
        return;
      case What::algbw:
        timed.algbw = number(column, heading, text);
        return;
      case What::busbw:
        timed.busbw = number(column, heading, text);
        return;
      case What::wrong:
        if (!text.empty() && text != "N/A" && lower(text) != "nan")
          row_.wrong =
              row_.wrong.value_or(0) +
              measured_count(text.ends_with(".0") ? text.substr(0, text.size() - 2) : text, heading, row_.where);
        return;
      case What::op:
        row_.op = collective_named(text);
        if (!row_.op)
          throw InputError(row_.where, fmt::format("expected the name of a collective, found {}", in_quotes(text)));
        return;
      case What::ranks:
        processes_ = measured_count(text, heading, row_.where);
        return;
      case What::gpus_per_rank:
        gpus_ = measured_count(text, heading, row_.where);
        return;
      case What::is_in_place:
        in_place_ = measured_count(text, heading, row_.where) != 0;
        return;
      case What::type:
        row_.type = text;
        return;
      case What::redop:
        row_.redop = text;
        return;
      case What::root:
        row_.root = text;
        return;
      case What::cycle:
        row_.cycle = text;
        return;
      case What::nothing:
        return;
    }
  }

  /// "1048576", "1,048,576", in a column of bytes also "1M" and "64 KiB".
  Bytes size(const Column& column, const std::string& heading, const std::string& text) {
    double unit = column.unit;
    std::string digits = unit == 1 ? Commas::plain_whole(text) : commas_.plain(text, heading, row_.where);
    const std::size_t end = unit == 1 ? digits.find_last_of("0123456789") + 1 : digits.size();
    const std::string_view behind = trimmed(std::string_view(digits).substr(end));
    if (!behind.empty() && end > 0) {
      unit = bytes_each(behind, heading, text);
      digits = commas_.plain(std::string_view(digits).substr(0, end), heading, row_.where);
    }
    const double bytes = measured_number(digits, Measure::quantity, heading, row_.where).value * unit;
    if (bytes > 9e18 || bytes != std::floor(bytes))
      throw InputError(row_.where, fmt::format("expected {} to be a whole number of bytes, found {}", heading, text));
    return {static_cast<std::int64_t>(bytes)};
  }

  double bytes_each(std::string_view unit, const std::string& heading, const std::string& text) {
    const std::optional<double> bytes = size_unit(unit);
    if (!bytes)
      throw InputError(row_.where, fmt::format("expected a size in bytes for {}, found {}", heading, in_quotes(text)),
                       "such as 1048576, 1M or 1 MiB");
    const bool decimal = *bytes > 1 && std::fmod(*bytes, 1000) == 0;
    if (decimal && !std::exchange(said_decimal_, true))
      found_.warnings.push_back(
          fmt::format("{}: {} is read as {:.0f} bytes each; M and MiB are 2^20", row_.where, unit, *bytes));
    return *bytes;
  }

  void keep() {
    const bool lost = flaws_[0] || (flaws_[1] && !row_.out.time);
    if (lost) return found_.leave_out(row_.where, flaws_[0] ? *flaws_[0] : *flaws_[1]);
    if (flaws_[1]) {
      found_.warnings.push_back(fmt::format("{}: {}; the in-place time is ignored", row_.where, *flaws_[1]));
      row_.in = {};
    }
    if (in_place_) row_.in = std::exchange(row_.out, {});
    const std::optional<int> ranks =
        processes_ ? std::optional(check_ranks(*processes_, gpus_.value_or(1), row_.where)) : std::nullopt;
    row_.run = run_of(ranks);
    found_.rows.push_back(std::move(row_));
  }

  /// Rows of several numbers of ranks are runs of their own.
  std::size_t run_of(std::optional<int> ranks) {
    for (std::size_t run = first_run_; run < found_.runs.size(); ++run)
      if (found_.runs[run].ranks == ranks) return run;
    found_.runs.push_back({.ranks = ranks, .op = std::nullopt, .program = {}});
    return found_.runs.size() - 1;
  }

  /// The header once more: what follows was another file.
  void begin_run() { first_run_ = found_.runs.size(); }

  Found& found_;
  char separator_;
  bool own_ = false, rccl_ = false, as_printed_ = false, in_place_ = false, said_decimal_ = false;
  std::optional<std::int64_t> processes_, gpus_;
  std::vector<std::string> headings_;
  std::vector<std::optional<Column>> columns_;
  Commas commas_;
  Row row_;
  std::array<std::optional<std::string>, 2> flaws_;  // out of place, in place
  std::size_t first_run_ = 0, n_rows_ = 0;
};

bool names_columns(const Line& line, Header which) {
  if (std::count(line.text.begin(), line.text.end(), '"') % 2 != 0) return false;
  const char separator = separator_of(line.text);
  std::string plain;
  Line shown = line;
  if (separator == '|') shown.text = plain = with_plain_bars(line.text);
  int known = 0, others = 0;
  bool size = false, time = false;
  for (const auto& [text, where] : fields_of(shown, separator)) {
    if (number_in(text)) return false;
    const ColumnName heading = column_name(text);
    (heading.what ? known : others) += 1;
    size = size || heading.what == What::size;
    time = time || heading.what == What::time;
  }
  // Prose has words like these as well.
  if (which == Header::anywhere) return size && time && known >= others;
  const bool is_csv = std::find(separators.begin(), separators.end(), separator) != separators.end();
  return is_csv && (which == Header::part ? known > 0 : size && time) &&
         shown.text.find(separator) != std::string_view::npos;
}

}  // namespace

std::optional<std::size_t> csv_header(const std::vector<Line>& lines, Header which) {
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (trimmed(lines[i].text).empty() || lines[i].text.starts_with('#')) continue;
    if (names_columns(lines[i], which)) return i;
    if (which != Header::anywhere) return std::nullopt;
  }
  return std::nullopt;
}

void join_places(std::vector<Row>& rows) {
  std::vector<Row> joined;
  for (Row& row : rows) {
    const auto partner = [&](const Row& other) {
      return other.op == row.op && other.bytes == row.bytes && other.run == row.run && other.cycle == row.cycle &&
             other.variant() == row.variant() && other.out.time && !other.in.time;
    };
    const auto found = row.out.time ? joined.end() : std::find_if(joined.begin(), joined.end(), partner);
    if (found == joined.end()) {
      joined.push_back(std::move(row));
      continue;
    }
    found->in = row.in;
    if (row.wrong) found->wrong = found->wrong.value_or(0) + *row.wrong;
  }
  rows = std::move(joined);
}

Found read_csv(const std::vector<Line>& lines, std::size_t header) {
  Found found;
  const auto is_comment = [](const Line& line) { return trimmed(line.text).empty() || line.text.starts_with('#'); };
  for (const Line& line : lines) take_comment(line.text, found.about);
  const auto is_text = [&](const Line& line) { return !is_comment(line) && !is_rule(line.text); };
  const auto before = std::count_if(lines.begin(), lines.begin() + static_cast<long>(header), is_text);
  if (before > 0)
    found.warnings.push_back(fmt::format("{}: the table starts here; {} before it {} ignored", lines[header].where(),
                                         before == 1 ? "the line" : fmt::format("{} lines", before),
                                         before == 1 ? "is" : "are"));
  Reader reader(lines[header], found);
  for (std::size_t i = header + 1; i < lines.size(); ++i)
    if (!is_comment(lines[i])) reader.see(lines[i]);
  for (std::size_t i = header + 1; i < lines.size(); ++i)
    if (!is_comment(lines[i])) reader.take(lines[i]);
  if (found.from_benchmark) join_places(found.rows);
  return found;
}

}  // namespace ringsim::measured
