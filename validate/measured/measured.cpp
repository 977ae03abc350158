#include "validate/measured/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>
#include <utility>

#include "scenarios/decoder/files.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/json.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim {

namespace measured {

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::vector<Line> lines_of(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<Line> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    Line line{.text = text.substr(0, end), .where = fmt::format("{}:{}", name, number), .number = number};
    line.cut = end == std::string_view::npos;
    if (line.text.find('\0') != std::string_view::npos)
      throw InputError(line.where, "expected text, found byte 0x00", "a file in UTF-16 must be saved as UTF-8 first");
    text.remove_prefix(line.cut ? text.size() : end + 1);
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(" \t\r", at)) != std::string_view::npos;) {
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

bool take_comment(std::string_view line, std::map<std::string, std::string>& about) {
  if (!line.starts_with('#')) return false;
  line = trimmed(line.substr(1));
  const std::size_t end = line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
  if (end == 0 || end == std::string_view::npos || line[end] != ':') return false;
  std::string& value = about[std::string(line.substr(0, end))];
  if (!value.empty()) value += "; ";
  value += trimmed(line.substr(end + 1));
  return true;
}

std::optional<Number> number_in(std::string_view text) {
  Number number;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number.value);
  if (stop != end || text.empty()) return std::nullopt;
  if (error == std::errc::result_out_of_range)
    number.value = HUGE_VAL;
  else if (error != std::errc())
    return std::nullopt;
  const std::size_t mantissa = std::min(text.find_first_of("eE"), text.size());
  const std::size_t point = text.substr(0, mantissa).find('.');
  int exponent = point == std::string_view::npos ? 0 : -static_cast<int>(mantissa - point - 1);
  if (mantissa < text.size()) {
    std::string_view digits = text.substr(mantissa + 1);
    if (digits.starts_with('+')) digits.remove_prefix(1);
    int written = 0;
    std::from_chars(digits.data(), digits.data() + digits.size(), written);
    exponent += std::clamp(written, -400, 400);
  }
  number.half = 0.5 * std::pow(10.0, exponent);
  return number;
}

Number measured_number(std::string_view text, const std::string& what, const std::string& where) {
  const auto number = number_in(text);
  if (!number)
    throw InputError(where, fmt::format("expected a number for {}, found {}", what, in_quotes(std::string(text))));
  if (!std::isfinite(number->value) || number->value < 0)
    throw InputError(where, fmt::format("expected {} of at least 0 and finite, found {}", what, text));
  return *number;
}

Number measured_time(std::string_view text, const std::string& what, const std::string& where) {
  const Number number = measured_number(text, what, where);
  if (number.value < 1e-6) throw InputError(where, fmt::format("expected {} above 0, found {}", what, text));
  return number;
}

std::int64_t measured_count(std::string_view text, const std::string& what, const std::string& where) {
  std::int64_t count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || stop != text.data() + text.size() || error != std::errc() || count < 0)
    throw InputError(where, fmt::format("expected a whole number of at least 0 for {}, found {}", what,
                                        in_quotes(std::string(text))));
  return count;
}

int check_ranks(std::int64_t ranks, const std::string& where) {
  if (ranks >= 1 && ranks <= most_ranks) return static_cast<int>(ranks);
  throw InputError(where, fmt::format("expected at least 1 rank and at most {}, found {}", most_ranks, ranks));
}

void take_ranks(Found& found, std::int64_t processes, std::int64_t gpus_each, const std::string& where) {
  const int ranks = check_ranks(std::int64_t{check_ranks(processes, where)} * check_ranks(gpus_each, where), where);
  if (found.ranks.value_or(ranks) != ranks)
    throw InputError(where, fmt::format("expected {} ranks, as in the rows before, found {}", *found.ranks, ranks),
                     "put the rows of each number of ranks into a file of their own");
  found.ranks = ranks;
}

}  // namespace measured

namespace {

using measured::Found;
using measured::Number;
using measured::Row;

/// Letters alone, small: "Reduce_scatter" -> "reducescatter".
std::string letters_of(std::string_view name) {
  std::string letters = measured::lower(name);
  std::erase_if(letters, [](char c) { return c < 'a' || c > 'z'; });
  return letters;
}

/// The collective that a file's name tells: the only one in it.
std::optional<CollectiveOp> collective_in(const std::string& name) {
  const std::string letters = letters_of(std::filesystem::path(name).filename().string());
  std::set<CollectiveOp> found;
  for (const CollectiveOp op : collective_ops())
    if (letters.find(letters_of(to_string(op))) != std::string::npos) found.insert(op);
  if (letters.find("bcast") != std::string::npos) found.insert(CollectiveOp::broadcast);
  // "reduce" and "scatter" lie within "reduce_scatter"; so do others.
  const auto hides = [&](CollectiveOp longer, CollectiveOp shorter) {
    if (found.contains(longer)) found.erase(shorter);
  };
  hides(CollectiveOp::all_reduce, CollectiveOp::reduce);
  hides(CollectiveOp::reduce_scatter, CollectiveOp::reduce);
  hides(CollectiveOp::reduce_scatter, CollectiveOp::scatter);
  hides(CollectiveOp::all_gather, CollectiveOp::gather);
  return found.size() == 1 ? std::optional(*found.begin()) : std::nullopt;
}

/// What rows are that do not say it themselves.
void name_collectives(Found& found, const std::string& name, std::optional<CollectiveOp> given) {
  std::optional<CollectiveOp> stated;
  if (const auto written = found.about.find("collective"); written != found.about.end()) {
    stated = collective_named(written->second);
    if (!stated)
      throw InputError(
          name, fmt::format("expected a collective behind \"# collective:\", found {}", in_quotes(written->second)));
  }
  for (Row& row : found.rows) {
    if (!row.op) row.op = stated;
    if (given && row.op && *row.op != *given)
      throw InputError(
          row.where, fmt::format("expected rows of {}, as was said, found {}", to_string(*given), to_string(*row.op)));
    if (!row.op) row.op = given;
    if (row.op) continue;
    row.op = collective_in(name);
    if (!row.op)
      throw InputError(row.where, "expected to find which collective was measured, found nothing that says it",
                       "say it with --collective NAME, or with a line \"# collective: all_reduce\" in the file");
    if (&row == &found.rows.front())
      found.warnings.push_back(
          fmt::format("{}: nothing in it names the collective; {} is taken from its name", name, to_string(*row.op)));
  }
}

void find_ranks(Found& found, const std::string& name) {
  const auto written = found.about.find("ranks");
  if (written == found.about.end()) return;
  const std::int64_t ranks = measured::measured_count(written->second, "\"# ranks:\"", name);
  measured::check_ranks(ranks, name);
  if (found.ranks && *found.ranks != ranks)
    throw InputError(name, fmt::format("expected one number of ranks, found \"# ranks: {}\" and {} in the log itself",
                                       ranks, *found.ranks));
  found.ranks = static_cast<int>(ranks);
}

/// From a rank's own part to what nccl-tests counts.
void total_bytes(Row& row, std::optional<int> ranks) {
  const bool totalled = *row.op == CollectiveOp::all_gather || *row.op == CollectiveOp::all_to_all ||
                        *row.op == CollectiveOp::gather || *row.op == CollectiveOp::scatter;
  if (!row.per_rank || !totalled) return;
  if (!ranks)
    throw InputError(
        row.where,
        fmt::format("expected to find the number of ranks: sizes of {} are here a rank's own", to_string(*row.op)),
        "add a line \"# ranks: N\" to the file");
  if (row.bytes.count > std::numeric_limits<std::int64_t>::max() / *ranks)
    throw InputError(row.where, "expected a size that 64 bits can count in bytes");
  row.bytes.count *= *ranks;
}

/// The bandwidths that were printed are those of size and time, as far as rounding lets one tell.
void check_bandwidth(const Row& row, std::optional<int> ranks, const Number& time, const std::optional<Number>& algbw,
                     const std::optional<Number>& busbw) {
  const double expected = static_cast<double>(row.bytes.count) / time.value / 1e3;
  // Transcribed tables lose trailing zeros and digits of long times: another 0.2 % of both.
  const auto near = [&](double value, const Number& printed) {
    return std::abs(printed.value - value) <= printed.half + value * (time.half / time.value + 0.002);
  };
  // Old nccl-tests counted only what travels: (n-1)/n, of all_gather and reduce_scatter.
  const bool may_be_less = *row.op == CollectiveOp::all_gather || *row.op == CollectiveOp::reduce_scatter;
  const auto is_less = [&] {
    if (!may_be_less) return false;
    if (ranks) return near(expected * (*ranks - 1) / *ranks, *algbw);
    return algbw->value < expected && algbw->value + algbw->half > 0.49 * expected;
  };
  if (algbw && !near(expected, *algbw) && !is_less())
    throw InputError(row.where,
                     fmt::format("expected algbw to be {} over {} us, {:.2f} GB/s, found {}", format(row.bytes),
                                 time.value, expected, algbw->value),
                     "a column is missing or out of place, or the row is cut");
  if (!busbw || !ranks) return;
  const double bus = expected * busbw_factor(*row.op, *ranks);
  if (!near(bus, *busbw))
    throw InputError(row.where,
                     fmt::format("expected busbw to be {:.2f} GB/s, as {} of {} ranks has it in {} us, found {}", bus,
                                 to_string(*row.op), *ranks, time.value, busbw->value),
                     "is it another collective, or another number of ranks?");
}

MeasuredRow row_of(const Row& row, std::optional<int> ranks) {
  const Number& time = row.time ? *row.time : *row.in_place;
  if (row.time) check_bandwidth(row, ranks, *row.time, row.algbw, row.busbw);
  if (row.in_place) check_bandwidth(row, ranks, *row.in_place, row.in_place_algbw, row.in_place_busbw);
  const auto value = [](const std::optional<Number>& n) { return n ? std::optional(n->value) : std::nullopt; };
  return {.op = *row.op,
          .bytes = row.bytes,
          .time_us = time.value,
          .in_place_us = value(row.in_place),
          .time_min_us = value(row.min),
          .time_max_us = value(row.max),
          .algbw_GBps = value(row.time ? row.algbw : row.in_place_algbw),
          .busbw_GBps = value(row.time ? row.busbw : row.in_place_busbw),
          .wrong = row.wrong,
          .line = row.line};
}

std::optional<double> median_of(const std::vector<MeasuredRow>& rows, std::optional<double> MeasuredRow::*member) {
  std::vector<double> values;
  for (const MeasuredRow& row : rows)
    if (row.*member) values.push_back(*(row.*member));
  return values.empty() ? std::nullopt : std::optional(quantile(values, 0.5));
}

/// Repetitions as one row. Bandwidths are those of the median's time: bytes over time falls as time grows.
MeasuredRow merged(const std::vector<MeasuredRow>& rows) {
  MeasuredRow result = rows.front();
  if (rows.size() == 1) return result;
  std::vector<double> times;
  for (const MeasuredRow& row : rows) {
    times.push_back(row.time_us);
    const auto keep = [&](std::optional<double>& kept, double value, bool less) {
      kept = !kept ? value : less ? std::min(*kept, value) : std::max(*kept, value);
    };
    keep(result.time_min_us, row.time_min_us.value_or(row.time_us), true);
    keep(result.time_max_us, row.time_max_us.value_or(row.time_us), false);
    if (&row != &rows.front() && row.wrong) result.wrong = result.wrong.value_or(0) + *row.wrong;
  }
  result.time_us = quantile(times, 0.5);
  result.in_place_us = median_of(rows, &MeasuredRow::in_place_us);
  result.algbw_GBps = median_of(rows, &MeasuredRow::algbw_GBps);
  result.busbw_GBps = median_of(rows, &MeasuredRow::busbw_GBps);
  return result;
}

/// One row for each (op, bytes), in the order in which they come first.
std::vector<MeasuredRow> merge_repetitions(const Found& found, const std::string& name,
                                           std::vector<std::string>& warnings) {
  using Key = std::pair<CollectiveOp, std::int64_t>;
  std::vector<Key> order;
  std::map<Key, std::vector<const Row*>> groups;
  for (const Row& row : found.rows) {
    auto& group = groups[{*row.op, row.bytes.count}];
    if (group.empty()) order.emplace_back(*row.op, row.bytes.count);
    if (!group.empty() && group.front()->variant != row.variant)
      throw InputError(row.where,
                       fmt::format("expected {} to be measured in one way, found \"{}\" here and \"{}\" at line {}",
                                   format(row.bytes), row.variant, group.front()->variant, group.front()->line),
                       "put the rows of each type, operation and root into a file of their own");
    group.push_back(&row);
  }
  const std::size_t times = groups.empty() ? 0 : groups.begin()->second.size();
  const bool alike = std::all_of(groups.begin(), groups.end(), [&](const auto& g) { return g.second.size() == times; });
  std::vector<MeasuredRow> rows;
  std::size_t repeated = 0, most = 0;
  for (const Key& key : order) {
    std::vector<MeasuredRow> same;
    for (const Row* row : groups.at(key)) same.push_back(row_of(*row, found.ranks));
    if (same.size() > 1 && !found.from_benchmark && !alike)
      throw InputError(groups.at(key)[1]->where,
                       fmt::format("expected each size once, found {} of {} here and at line {}", format(same[1].bytes),
                                   to_string(key.first), same[0].line),
                       "repetitions are read where every size has as many of them; their median counts");
    if (same.size() > 1) ++repeated;
    most = std::max(most, same.size());
    rows.push_back(merged(same));
  }
  if (repeated > 0)
    warnings.push_back(fmt::format(
        "{}: {} of {} sizes stand several times, up to {}; they are taken as repetitions, the median counts", name,
        repeated, rows.size(), most));
  return rows;
}

/// An object, or a list of objects: logs may begin with "[1622510346.87] ...".
bool is_json(std::string_view text) {
  const char* const space = " \t\r\n\xEF\xBB\xBF";
  std::size_t first = text.find_first_not_of(space);
  if (first != std::string_view::npos && text[first] == '[') first = text.find_first_not_of(space, first + 1);
  return first != std::string_view::npos && text[first] == '{';
}

Found found_in(std::string_view text, const std::string& name) {
  const std::vector<measured::Line> lines = measured::lines_of(text, name);
  if (is_json(text)) return measured::read_json(text, name);
  if (measured::is_osu(lines)) return measured::read_osu(lines);
  if (measured::is_csv(lines)) return measured::read_csv(lines);
  if (measured::is_nccl_text(lines)) return measured::read_nccl_text(lines);
  throw InputError(name, "expected measured times in a format that is read, found none of them",
                   "these are read:\n" + measured_formats());
}

}  // namespace

std::string measured_formats() {
  return "    output of nccl-tests and rccl-tests, and logs that contain it\n"
         "    JSON of nccl-tests (-J); JSON and CSV of rccl-tests (-x)\n"
         "    output of OSU's benchmarks of collectives\n"
         "    CSV with names in its first line: bytes, or size_KiB, size_MiB, ...;\n"
         "      time_us, or time_ms, latency_us, ...; and if there are any in_place_us,\n"
         "      min_us, max_us, algbw_GBps, busbw_GBps, wrong, collective, ranks";
}

std::optional<CollectiveOp> collective_named(std::string_view name) {
  std::string letters = letters_of(name);
  if (letters.starts_with("osu")) letters.erase(0, 3);
  if (letters.ends_with("perf")) letters.erase(letters.size() - 4);
  if (letters == "bcast") return CollectiveOp::broadcast;
  for (const CollectiveOp op : collective_ops())
    if (letters == letters_of(to_string(op))) return op;
  return std::nullopt;
}

MeasuredTable parse_measured(std::string_view text, const std::string& name, std::optional<CollectiveOp> collective) {
  Found found = found_in(text, name);
  name_collectives(found, name, collective);
  find_ranks(found, name);
  std::vector<Row> timed;
  for (Row& row : found.rows) {
    if (row.time || row.in_place) {
      total_bytes(row, found.ranks);
      timed.push_back(std::move(row));
    } else {
      found.warnings.push_back(row.where + ": no time was printed; the row is left out");
    }
  }
  found.rows = std::move(timed);
  if (found.rows.empty())
    throw InputError(name, fmt::format("expected rows with times ({}), found none", found.format));
  MeasuredTable table{.file = name, .format = found.format, .ranks = found.ranks, .about = found.about};
  table.rows = merge_repetitions(found, name, found.warnings);
  for (const MeasuredRow& row : table.rows)
    if (row.wrong.value_or(0) > 0)
      found.warnings.push_back(
          fmt::format("{}: {} wrong elements at {}: what was timed did not work", name, *row.wrong, format(row.bytes)));
  table.warnings = std::move(found.warnings);
  return table;
}

MeasuredTable read_measured(const std::string& path, std::optional<CollectiveOp> collective) {
  return parse_measured(scenarios::read_text(path, "a file of measured times"), path, collective);
}

}  // namespace ringsim
