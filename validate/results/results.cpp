#include "validate/results/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "scenarios/decoder/decode.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/text/json.hpp"
#include "validate/results/cells.hpp"

namespace ringsim {

namespace {

constexpr const char* one_per_line = "a results file has one JSON object per line, as written by `ringsim sweep`";

std::string text_of(const ResultRow& row, std::string_view column) {
  const Cell* cell = row.find(column);
  return cell == nullptr ? "" : plain_text(*cell);
}

/// The unit that a column's name tells.
Quantity in_named_unit(double number, std::string_view column) {
  const std::string_view name = column.substr(column.rfind('.') + 1);  // npos + 1 is 0
  if (name == "bytes" || name.ends_with("_bytes")) return {number, Dimension::size, 1};
  if (name.ends_with("_us")) return {number * 1e6, Dimension::time, 1e6};
  if (name.ends_with("GBps")) return {number * 1e9, Dimension::rate, 1e9};
  return {number, Dimension::none, 0};
}

}  // namespace

std::string result_key(const std::string& scenario_name, const PointId& id, bool bounded) {
  return result_key(std::string(version), model_version, scenario_name, id, bounded);
}

std::string result_key(const std::string& program, std::int64_t model, const std::string& scenario_name,
                       const PointId& id, bool bounded) {
  Json identity{program, model, scenario_name, id.hash};
  for (const auto& [path, value] : id.varied) identity.push_back({path, value});
  if (bounded) identity.push_back("bound");
  return scenarios::digest_of(identity.dump());
}

std::string plain_text(const Cell& cell) {
  return std::visit([](const auto& value) { return fmt::format("{}", value); }, cell.value);
}

static std::optional<Quantity> quantity_of(std::string_view text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const auto attempt = [&](auto parse, Dimension dimension) -> std::optional<Quantity> {
    try {
      return Quantity{parse(text), dimension, 0};
    } catch (const InputError&) {
      return std::nullopt;
    }
  };
  if (auto size = attempt([](auto t) { return static_cast<double>(parse_bytes(t).count); }, Dimension::size))
    return size;
  if (auto rate =
          attempt([](auto t) { return static_cast<double>(parse_bandwidth(t).bytes_per_second); }, Dimension::rate))
    return rate;
  return attempt([](auto t) { return static_cast<double>(parse_time(t).count()); }, Dimension::time);
}

ResultRow ResultRow::of(const Json& json) {
  ResultRow row;
  for (const auto& [key, value] : json.items()) {
    if (key == "point" && value.is_object()) {
      for (const auto& [path, chosen] : value.items()) add_cells(std::string(of_point) + path, chosen, row.cells);
    } else {
      add_cells(key, value, row.cells);
    }
  }
  row.key = text_of(row, "key");
  return row;
}

/// What a row may hold in columns that are computed with; others are only shown.
struct Expected {
  std::string_view column;
  std::string_view what;
  bool (*holds)(const Json& value);
};

static bool is_count(const Json& value, std::int64_t least) {
  return value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) &&
         value.get<std::int64_t>() >= least;
}
static bool is_measure(const Json& value) { return value.is_number() && value.get<double>() >= 0; }

static constexpr Expected expected_values[] = {
    {"key", "text", [](const Json& v) { return v.is_string(); }},
    {"job", "text", [](const Json& v) { return v.is_string(); }},
    {"ranks", "a whole number of at least 1", [](const Json& v) { return is_count(v, 1); }},
    {"bytes", "a whole number of at least 0", [](const Json& v) { return is_count(v, 0); }},
    {"transfers", "a whole number of at least 0", [](const Json& v) { return is_count(v, 0); }},
    {"time_us", "a number of at least 0", is_measure},
    {"algbw_GBps", "a number of at least 0", is_measure},
    {"busbw_GBps", "a number of at least 0", is_measure},
    {"measured_us", "a number of at least 0", is_measure},
    {"bound_us", "a number of at least 0", is_measure},
    {"latency_floor_us", "a number of at least 0", is_measure},
    {"point", "an object", [](const Json& v) { return v.is_object(); }},
};

static const Json* member(const Json& json, std::string_view key) {
  if (!json.is_object()) return nullptr;
  const auto found = json.find(std::string(key));
  return found == json.end() || found->is_null() ? nullptr : &*found;
}

/// Types, ranges, and whether the key is that of what the row says of its point.
static void check_row(const Json& json, const std::string& where) {
  const auto fail = [&](std::string_view column, std::string_view what, const std::string& found) {
    throw InputError(where, fmt::format("expected {} to be {}, found {}", column, what, found),
                     "the row was changed or is damaged");
  };
  for (const auto& [column, what, holds] : expected_values)
    if (const Json* value = member(json, column); value != nullptr && !holds(*value))
      fail(column, what, describe(*value));
  const Json *ringsim = member(json, "ringsim"), *scenario = member(json, "scenario"), *key = member(json, "key");
  const auto in = [](const Json* object, std::string_view name) {
    const Json* found = object == nullptr ? nullptr : member(*object, name);
    return found == nullptr ? Json() : *found;
  };
  const Json program = in(ringsim, "version"), model = in(ringsim, "model_version"), name = in(scenario, "name");
  if (!program.is_string()) fail("ringsim.version", "text", describe(program));
  if (!is_count(model, 1)) fail("ringsim.model_version", "a whole number of at least 1", describe(model));
  if (!name.is_string()) fail("scenario.name", "text", describe(name));
  if (key == nullptr) return;
  const Json hash = in(scenario, "hash");
  if (!hash.is_string()) fail("scenario.hash", "text", describe(hash));
  PointId id{.hash = hash.get<std::string>(), .varied = {}};
  if (const Json* point = member(json, "point"))
    for (const auto& [path, value] : point->items()) id.varied.emplace_back(path, value.dump());
  const auto key_of = [&](bool bounded) {
    return result_key(program.get<std::string>(), model.get<std::int64_t>(), name.get<std::string>(), id, bounded);
  };
  const std::string found = key->get<std::string>();
  if (found != key_of(false) && found != key_of(true))
    fail("key", "that of the row's version, scenario and point, " + key_of(member(json, "bound_us") != nullptr), found);
}

ResultRow ResultRow::parse(std::string_view line, const std::string& file, std::size_t number) {
  const auto fail = [&](const std::string& found) {
    throw InputError(fmt::format("{}:{}", file, number), "expected a result of ringsim, found " + found, one_per_line);
  };
  Json json;
  try {
    json = parse_json(line, file, number);
  } catch (const InputError& error) {
    throw InputError(error.where(), error.message(), error.hint().empty() ? one_per_line : error.hint());
  }
  if (!json.is_object()) fail(fmt::format("JSON of type {}", json.type_name()));
  ResultRow row = of(json);
  for (const char* column : {"ringsim.version", "ringsim.model_version", "scenario.name"})
    if (row.find(column) == nullptr) fail(fmt::format("one without \"{}\"", column));
  check_row(json, fmt::format("{}:{}", file, number));
  if (row.find("time_us") == nullptr && row.find("error.message") == nullptr)
    fail("one with neither \"time_us\" nor \"error\"");
  return row;
}

const Cell* ResultRow::find(std::string_view column) const {
  for (const Cell& cell : cells)
    if (cell.column == column) return &cell;
  return nullptr;
}

std::string ResultRow::job() const { return text_of(*this, "job"); }
bool ResultRow::failed() const { return find("error.message") != nullptr; }

std::string ResultRow::error() const {
  const std::string where = text_of(*this, "error.where"), message = text_of(*this, "error.message"),
                    hint = text_of(*this, "error.hint");
  return (where.empty() ? message : where + ": " + message) + (hint.empty() ? "" : "; hint: " + hint);
}

double ResultRow::time_us() const {
  const Cell* cell = find("time_us");
  ensure(cell != nullptr, "a row that did not fail has a time");
  if (const auto* whole = std::get_if<std::int64_t>(&cell->value)) return static_cast<double>(*whole);
  return std::get<double>(cell->value);
}

std::string ResultRow::label() const {
  std::string text;
  for (const Cell& cell : cells) {
    if (cell.column.starts_with(of_point))
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", cell.column.substr(of_point.size()), plain_text(cell));
  }
  if (text.empty()) text = text_of(*this, "scenario.name");
  return job().empty() ? text : text + ", job " + job();
}

std::string ResultRow::point() const {
  Json point = Json::array();
  for (const Cell& cell : cells)
    if (cell.column.starts_with(of_point)) point.push_back({cell.column, plain_text(cell)});
  return point.dump();
}

std::optional<ExpressionValue> ResultRow::value(const std::string& path) const {
  const Cell* cell = find(path);
  if (cell == nullptr) cell = find(std::string(of_point) + path);
  if (cell == nullptr) return std::nullopt;
  if (const bool* truth = std::get_if<bool>(&cell->value)) return *truth;
  if (const auto* whole = std::get_if<std::int64_t>(&cell->value))
    return in_named_unit(static_cast<double>(*whole), cell->column);
  if (const auto* number = std::get_if<double>(&cell->value)) return in_named_unit(*number, cell->column);
  const auto& text = std::get<std::string>(cell->value);
  if (cell->column.starts_with(of_point))
    if (const std::optional<Quantity> quantity = quantity_of(text)) return *quantity;
  return text;
}

namespace {

/// Lines of a stream, of bounded length: a device or a damaged file must not fill the memory.
class BoundedLines {
 public:
  static constexpr std::size_t most_bytes = std::size_t{32} << 20;

  BoundedLines(std::istream& in, const std::string& file) : in_(in), file_(file), block_(1 << 16) {}

  /// The next line, without its end; false at the end of the file. `whole`: whether it has an end.
  bool next(std::string& line, bool& whole) {
    line.clear();
    for (;;) {
      if (at_ == filled_) {
        in_.read(block_.data(), static_cast<std::streamsize>(block_.size()));
        at_ = 0, filled_ = static_cast<std::size_t>(in_.gcount());
        if (filled_ == 0) {
          whole = false;
          return !line.empty();
        }
      }
      const std::string_view rest(block_.data() + at_, filled_ - at_);
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      line.append(rest.substr(0, end));
      if (line.size() > most_bytes)
        throw InputError(
            fmt::format("{}:{}", file_, number_ + 1),
            fmt::format("expected a result of ringsim, found a line of more than {} MiB", most_bytes >> 20),
            one_per_line);
      at_ += end;
      if (end == rest.size()) continue;
      ++at_, ++number_;
      whole = true;
      return true;
    }
  }

 private:
  std::istream& in_;
  const std::string& file_;
  std::vector<char> block_;
  std::size_t at_ = 0, filled_ = 0, number_ = 0;
};

}  // namespace

/// True if the text may be the beginning of a row that was cut off.
static bool begins_as_row(std::string_view text) {
  constexpr std::string_view every_row = R"({"ringsim":{"version":")";
  return text.starts_with(every_row) || every_row.starts_with(text);
}

FileEnd read_results(const std::string& file,
                     const std::function<void(ResultRow&&, std::string_view, const RowPlace&)>& take) {
  std::error_code ignored;
  const auto status = std::filesystem::status(file, ignored);
  if (status.type() == std::filesystem::file_type::not_found)
    throw InputError(file, "expected a results file, found no file of that name");
  if (std::filesystem::is_directory(status)) throw InputError(file, "expected a results file, found a directory");
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InputError(file, fmt::format("expected a readable file, found: {}", std::strerror(errno)));
  FileEnd end;
  RowPlace place;
  BoundedLines lines(in, file);
  bool whole = true;
  for (std::string line; lines.next(line, whole); end.whole_bytes += line.size() + 1) {
    if (!whole) {  // no newline: a write that was cut off, if it is a row's
      if (!begins_as_row(line))
        throw InputError(fmt::format("{}:{}", file, place.line + 1),
                         "expected a ringsim result, or the start of an incomplete one, found other text");
      end.torn = true;
      break;
    }
    ++place.line;
    place.offset = end.whole_bytes;
    take(ResultRow::parse(line, file, place.line), line, place);
  }
  if (in.bad()) throw InputError(file, fmt::format("expected a readable file, found: {}", std::strerror(errno)));
  return end;
}

}  // namespace ringsim
