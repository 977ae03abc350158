// Tables with a header that names columns and their units; rccl-tests' CSV is one of them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "validate/measured/measured.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

namespace {

enum class What { size, time, in_place, min, max, algbw, busbw, wrong, op, ranks, gpus_per_rank, is_in_place, kind };

struct Column {
  What what{};
  double unit = 1;  ///< bytes, us or GB/s that one of it is
};

struct Name {
  const char* text;
  What what;
};
// Without their units.
constexpr std::array names = std::to_array<Name>({{"bytes", What::size},
                                                  {"size", What::size},
                                                  {"message_size", What::size},
                                                  {"msg_size", What::size},
                                                  {"time", What::time},
                                                  {"latency", What::time},
                                                  {"avg_time", What::time},
                                                  {"avg_latency", What::time},
                                                  {"time_avg", What::time},
                                                  {"out_of_place", What::time},
                                                  {"out_of_place_time", What::time},
                                                  {"in_place", What::in_place},
                                                  {"in_place_time", What::in_place},
                                                  {"min", What::min},
                                                  {"min_time", What::min},
                                                  {"time_min", What::min},
                                                  {"min_latency", What::min},
                                                  {"max", What::max},
                                                  {"max_time", What::max},
                                                  {"time_max", What::max},
                                                  {"max_latency", What::max},
                                                  {"algbw", What::algbw},
                                                  {"busbw", What::busbw},
                                                  {"wrong", What::wrong},
                                                  {"collective", What::op},
                                                  {"op", What::op},
                                                  {"name", What::op},
                                                  {"ranks", What::ranks}});

struct Unit {
  const char* text;
  What of;  ///< size, time or algbw
  double size;
};
constexpr std::array units = std::to_array<Unit>({{"B", What::size, 1},
                                                  {"bytes", What::size, 1},
                                                  {"KiB", What::size, 1024},
                                                  {"MiB", What::size, 1024.0 * 1024},
                                                  {"GiB", What::size, 1024.0 * 1024 * 1024},
                                                  {"kB", What::size, 1e3},
                                                  {"MB", What::size, 1e6},
                                                  {"GB", What::size, 1e9},
                                                  {"ns", What::time, 1e-3},
                                                  {"us", What::time, 1},
                                                  {"ms", What::time, 1e3},
                                                  {"s", What::time, 1e6},
                                                  {"GBps", What::algbw, 1},
                                                  {"GB/s", What::algbw, 1},
                                                  {"MBps", What::algbw, 1e-3},
                                                  {"MB/s", What::algbw, 1e-3}});

What unit_kind(What what) {
  switch (what) {
    case What::in_place:
    case What::min:
    case What::max:
      return What::time;
    case What::busbw:
      return What::algbw;
    default:
      return what;
  }
}

bool has_unit(What what) {
  const What kind = unit_kind(what);
  return kind == What::size || kind == What::time || kind == What::algbw;
}

std::vector<std::string> texts_of(std::vector<CsvField> fields) {
  std::vector<std::string> texts;
  for (CsvField& field : fields) texts.push_back(std::move(field.text));
  return texts;
}

char separator_of(std::string_view header) {
  for (const char c : {',', ';', '\t'})
    if (header.find(c) != std::string_view::npos) return c;
  return ',';
}

const Name* name_of(std::string_view text) {
  const std::string wanted = lower(text);
  const auto found = std::find_if(names.begin(), names.end(), [&](const Name& n) { return wanted == n.text; });
  return found == names.end() ? nullptr : &*found;
}

struct Split {
  const Name* name = nullptr;
  std::string unit;  ///< empty: none
};

/// "size_KiB", "Time (us)", "algbw [GB/s]": name and unit.
Split split(std::string_view heading) {
  std::string text;
  for (const char c : heading) text += c == ' ' || c == '(' || c == '[' || c == '-' || c == '_' ? '_' : c;
  std::erase_if(text, [](char c) { return c == ')' || c == ']' || c == '#'; });
  while (text.find("__") != std::string::npos) text.replace(text.find("__"), 2, "_");
  if (const Name* whole = name_of(text)) return {whole, lower(text) == "bytes" ? "B" : ""};
  const std::size_t last = text.rfind('_');
  if (last == std::string::npos) return {};
  return {name_of(text.substr(0, last)), text.substr(last + 1)};
}

Column column_of(const Split& split, const std::string& heading, const std::string& where) {
  const What what = split.name->what;
  if (!has_unit(what)) return {what};
  std::string known;
  for (const Unit& unit : units) {
    if (unit.of != unit_kind(what)) continue;
    if (unit.text == split.unit) return {what, unit.size};
    known += (known.empty() ? "" : ", ") + std::string(unit.text);
  }
  throw InputError(where,
                   fmt::format("expected a unit in the column's name, as in {}_{}, found {}", split.name->text,
                               what == What::size              ? "KiB"
                               : unit_kind(what) == What::time ? "us"
                                                               : "GBps",
                               in_quotes(heading)),
                   fmt::format("units: {}; b is bits, B is bytes", known));
}

/// rccl-tests names no units.
std::optional<Column> rccl_column(std::string_view heading) {
  struct Known {
    const char* text;
    What what;
  };
  static constexpr Known known[] = {{"size", What::size},   {"time", What::time},
                                    {"algbw", What::algbw}, {"busbw", What::busbw},
                                    {"ranks", What::ranks}, {"gpusperrank", What::gpus_per_rank},
                                    {"gpus", What::ranks},  {"inplace", What::is_in_place},
                                    {"type", What::kind},   {"redop", What::kind}};
  const std::string wanted = lower(heading);
  for (const Known& each : known)
    if (wanted == each.text) return Column{each.what};
  return std::nullopt;
}

class Reader {
 public:
  Reader(const Line& header, Found& found) : found_(found), separator_(separator_of(header.text)) {
    headings_ = texts_of(fields_of(header, separator_));
    const auto is = [](const char* wanted) { return [wanted](const std::string& h) { return lower(h) == wanted; }; };
    rccl_ = std::any_of(headings_.begin(), headings_.end(), is("inplace"));
    found.format = rccl_ ? "rccl-tests CSV" : "CSV";
    found.from_benchmark = rccl_;
    for (std::size_t i = 0; i < headings_.size(); ++i) take_heading(i, header.where);
    for (const What needed : {What::size, What::time})
      if (count(needed) == 0 && (needed == What::size || count(What::in_place) == 0))
        throw InputError(
            header.where,
            fmt::format("expected a column for the {}, found none", needed == What::size ? "size" : "time"),
            needed == What::size ? "bytes, or size_KiB, size_MiB, ..." : "time_us, time_ms, latency_us, ...");
  }

  void take(const Line& line) {
    std::vector<std::string> fields = texts_of(fields_of(line, separator_));
    // rccl-tests over MPI prints the number of nodes, and has no heading for it.
    if (rccl_ && fields.size() == headings_.size() + 1 && lower(headings_[2]) == "ranks")
      fields.erase(fields.begin() + 2);
    if (fields.size() != headings_.size() && line.cut) {
      found_.warnings.push_back(line.where + ": the file's last line is cut; it is left out");
      return;
    }
    if (fields.size() != headings_.size())
      throw InputError(
          line.where, fmt::format("expected {} columns, as the header has, found {}", headings_.size(), fields.size()));
    Row row{.line = line.number, .where = line.where};
    in_place_ = false;
    processes_ = gpus_ = std::nullopt;
    for (std::size_t i = 0; i < fields.size(); ++i)
      if (columns_[i]) take_field(row, *columns_[i], headings_[i], fields[i]);
    if (processes_) take_ranks(found_, *processes_, gpus_.value_or(1), line.where);
    if (in_place_) to_in_place(row);
    found_.rows.push_back(std::move(row));
  }

 private:
  std::ptrdiff_t count(What what) const {
    return std::count_if(columns_.begin(), columns_.end(), [&](const auto& c) { return c && c->what == what; });
  }

  void take_heading(std::size_t i, const std::string& where) {
    const std::string& heading = headings_[i];
    std::optional<Column> column = rccl_ ? rccl_column(heading) : std::nullopt;
    if (!column)
      if (const Split parts = split(heading); parts.name != nullptr) column = column_of(parts, heading, where);
    if (column && column->what != What::kind && count(column->what) > 0)
      throw InputError(where,
                       fmt::format("expected one column of each kind, found another one with {}", in_quotes(heading)));
    if (!column && !rccl_)
      found_.warnings.push_back(fmt::format("{}: the column {} is not read", where, in_quotes(heading)));
    columns_.push_back(column);
  }

  void take_field(Row& row, const Column& column, const std::string& heading, const std::string& text) {
    const auto scaled = [&](Number number) { return Number{number.value * column.unit, number.half * column.unit}; };
    const auto time = [&]() -> std::optional<Number> {
      if (text.empty()) return std::nullopt;
      return scaled(measured_time(text, heading, row.where));
    };
    const auto rate = [&]() -> std::optional<Number> {
      if (text.empty()) return std::nullopt;
      return scaled(measured_number(text, heading, row.where));
    };
    switch (column.what) {
      case What::size:
        row.bytes = size(scaled(measured_number(text, heading, row.where)).value, text, heading, row.where);
        return;
      case What::time:
        row.time = time();
        return;
      case What::in_place:
        row.in_place = time();
        return;
      case What::min:
        row.min = time();
        return;
      case What::max:
        row.max = time();
        return;
      case What::algbw:
        row.algbw = rate();
        return;
      case What::busbw:
        row.busbw = rate();
        return;
      case What::wrong:
        if (!text.empty() && text != "N/A") row.wrong = measured_count(text, heading, row.where);
        return;
      case What::op:
        row.op = collective_named(text);
        if (!row.op)
          throw InputError(row.where, fmt::format("expected the name of a collective, found {}", in_quotes(text)));
        return;
      case What::ranks:
        processes_ = measured_count(text, heading, row.where);
        return;
      case What::gpus_per_rank:
        gpus_ = measured_count(text, heading, row.where);
        return;
      case What::is_in_place:
        in_place_ = measured_count(text, heading, row.where) != 0;
        return;
      case What::kind:
        row.variant += (row.variant.empty() ? "" : " ") + text;
        return;
    }
  }

  static Bytes size(double bytes, const std::string& text, const std::string& heading, const std::string& where) {
    if (bytes > 9e18 || bytes != std::floor(bytes))
      throw InputError(where, fmt::format("expected {} to be a whole number of bytes, found {}", heading, text));
    return {static_cast<std::int64_t>(bytes)};
  }

  static void to_in_place(Row& row) {
    row.in_place = std::exchange(row.time, std::nullopt);
    row.in_place_algbw = std::exchange(row.algbw, std::nullopt);
    row.in_place_busbw = std::exchange(row.busbw, std::nullopt);
  }

  Found& found_;
  char separator_;
  bool rccl_ = false, in_place_ = false;
  std::optional<std::int64_t> processes_, gpus_;
  std::vector<std::string> headings_;
  std::vector<std::optional<Column>> columns_;
};

}  // namespace

std::vector<CsvField> fields_of(const Line& line, char separator) {
  std::vector<CsvField> fields;
  const auto begin_field = [&](std::size_t at) { fields.push_back({"", fmt::format("{}:{}", line.where, at + 1)}); };
  begin_field(0);
  bool quoted = false;
  for (std::size_t i = 0; i < line.text.size(); ++i) {
    const char c = line.text[i];
    if (quoted && c == '"' && i + 1 < line.text.size() && line.text[i + 1] == '"')
      fields.back().text += line.text[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == separator && !quoted)
      begin_field(i + 1);
    else
      fields.back().text += c;
  }
  if (quoted) throw InputError(fields.back().where, "expected an end of the quotes in this line, found none");
  for (CsvField& field : fields) field.text = std::string(trimmed(field.text));
  return fields;
}

bool is_csv(const std::vector<Line>& lines) {
  for (const Line& line : lines) {
    if (trimmed(line.text).empty() || line.text.starts_with('#')) continue;
    if (std::count(line.text.begin(), line.text.end(), '"') % 2 != 0) return false;
    int known = 0;
    for (const auto& [heading, where] : fields_of(line, separator_of(line.text))) {
      if (number_in(heading)) return false;
      known += split(heading).name != nullptr ? 1 : 0;
    }
    return known > 0 && line.text.find(separator_of(line.text)) != std::string_view::npos;
  }
  return false;
}

void join_places(std::vector<Row>& rows) {
  std::vector<Row> joined;
  for (Row& row : rows) {
    const auto partner = [&](const Row& other) {
      return other.op == row.op && other.bytes == row.bytes && other.variant == row.variant && other.time &&
             !other.in_place;
    };
    const auto found = row.time ? joined.end() : std::find_if(joined.begin(), joined.end(), partner);
    if (found == joined.end()) {
      joined.push_back(std::move(row));
      continue;
    }
    found->in_place = row.in_place;
    found->in_place_algbw = row.in_place_algbw;
    found->in_place_busbw = row.in_place_busbw;
    if (row.wrong) found->wrong = found->wrong.value_or(0) + *row.wrong;
  }
  rows = std::move(joined);
}

Found read_csv(const std::vector<Line>& lines) {
  Found found;
  std::optional<Reader> reader;
  for (const Line& line : lines) {
    if (trimmed(line.text).empty() || take_comment(line.text, found.about) || line.text.starts_with('#')) continue;
    if (reader)
      reader->take(line);
    else
      reader.emplace(line, found);
  }
  if (found.from_benchmark) join_places(found.rows);
  return found;
}

}  // namespace ringsim::measured
