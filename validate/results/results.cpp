#include "validate/results/results.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "scenarios/decoder/decode.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/text/json.hpp"

namespace ringsim {

namespace {

constexpr std::string_view of_point = "point.";
constexpr const char* one_per_line = "a file of results has one JSON object per line, as `ringsim sweep` writes them";

void add_cells(const std::string& column, const Json& value, std::vector<Cell>& cells) {
  if (value.is_null()) return;
  if (value.is_object() && !column.starts_with(of_point)) {
    const std::string prefix = column.empty() ? "" : column + ".";
    for (const auto& [key, member] : value.items()) add_cells(prefix + key, member, cells);
  } else if (value.is_boolean()) {
    cells.push_back({column, value.get<bool>()});
  } else if (value.is_number_integer() && !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX)) {
    cells.push_back({column, value.get<std::int64_t>()});
  } else if (value.is_number()) {
    cells.push_back({column, value.get<double>()});
  } else {
    cells.push_back({column, value.is_string() ? value.get<std::string>() : value.dump()});
  }
}

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
  Json identity{version, model_version, scenario_name, id.hash};
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
  const Cell* time = row.find("time_us");
  const bool timed = time != nullptr &&
                     (std::holds_alternative<double>(time->value) || std::holds_alternative<std::int64_t>(time->value));
  if (!timed && row.find("error.message") == nullptr) fail("one with neither \"time_us\" nor \"error\"");
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
  const std::string where = text_of(*this, "error.where"), message = text_of(*this, "error.message");
  return where.empty() ? message : where + ": " + message;
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

/// Whether it may have been cut off a row.
static bool begins_as_row(std::string_view text) {
  constexpr std::string_view every_row = R"({"ringsim":{"version":")";
  return text.starts_with(every_row) || every_row.starts_with(text);
}

FileEnd read_results(const std::string& file,
                     const std::function<void(ResultRow&&, std::string_view, const RowPlace&)>& take) {
  std::error_code ignored;
  const auto status = std::filesystem::status(file, ignored);
  if (status.type() == std::filesystem::file_type::not_found)
    throw InputError(file, "expected a file of results, found no file of that name");
  if (std::filesystem::is_directory(status)) throw InputError(file, "expected a file of results, found a directory");
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) throw InputError(file, fmt::format("expected a readable file, found: {}", std::strerror(errno)));
  FileEnd end;
  RowPlace place;
  for (std::string line; std::getline(in, line); end.whole_bytes += line.size() + 1) {
    if (in.eof()) {  // no newline: a write that was cut off, if it is a row's
      if (!begins_as_row(line))
        throw InputError(fmt::format("{}:{}", file, place.line + 1),
                         "expected a result of ringsim, or the begin of one that was cut off, found other text");
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
