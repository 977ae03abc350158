// Reads numbers of measured files, with their rounding errors.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

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

namespace {

constexpr double shortest_time = 1e-6;  // us: a picosecond

}  // namespace

std::optional<std::string> flaw_of(std::string_view text, Measure measure, const std::string& what) {
  const auto number = number_in(text);
  const bool counted_nothing = text == "N/A";
  if (counted_nothing || (number && !std::isfinite(number->value)))
    return fmt::format("expected a finite number for {}, found {}", what, text);
  if (measure == Measure::time && number && number->value >= 0 && number->value < shortest_time)
    return fmt::format("expected {} above 0, found {}", what, text);
  return std::nullopt;
}

Number measured_number(std::string_view text, Measure measure, const std::string& what, const std::string& where) {
  const auto number = number_in(text);
  if (!number)
    throw InputError(where, fmt::format("expected a number for {}, found {}", what, in_quotes(std::string(text))));
  if (!std::isfinite(number->value) || number->value < 0)
    throw InputError(where, fmt::format("expected {} of at least 0 and finite, found {}", what, text));
  if (measure == Measure::time && number->value < shortest_time)
    throw InputError(where, fmt::format("expected {} above 0, found {}", what, text));
  return *number;
}

std::int64_t measured_count(std::string_view text, const std::string& what, const std::string& where) {
  std::int64_t count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (text.empty() || stop != text.data() + text.size() || error != std::errc() || count < 0)
    throw InputError(where, fmt::format("expected a whole number of at least 0 for {}, found {}", what,
                                        in_quotes(std::string(text))));
  return count;
}

bool is_whole(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

int check_ranks(std::int64_t ranks, const std::string& where) {
  if (ranks >= 1 && ranks <= most_ranks) return static_cast<int>(ranks);
  throw InputError(where, fmt::format("expected at least 1 rank and at most {}, found {}", most_ranks, ranks));
}

int check_ranks(std::int64_t processes, std::int64_t gpus_each, const std::string& where) {
  return check_ranks(std::int64_t{check_ranks(processes, where)} * check_ranks(gpus_each, where), where);
}

namespace {

/// The meaning of commas and points in a number, without its neighbors.
enum class Mark { none, point, decimal, thousands, grouped_by_points, unclear };

/// "1,048,576": one to three digits, then groups of three.
bool is_grouped(std::string_view digits, char mark) {
  const std::size_t first = digits.find(mark);
  if (first == 0 || first > 3 || digits.front() == '0') return false;
  for (std::size_t at = first; at < digits.size(); at += 4)
    if (digits[at] != mark || at + 4 > digits.size() || !is_whole(digits.substr(at + 1, 3))) return false;
  return is_whole(digits.substr(0, first));
}

Mark mark_of(std::string_view text) {
  if (text.find_first_not_of("0123456789.,") != std::string_view::npos) return Mark::none;
  const auto commas = std::count(text.begin(), text.end(), ','), points = std::count(text.begin(), text.end(), '.');
  const std::size_t comma = text.find(','), point = text.find('.');
  if (commas == 0)
    return points == 1 ? Mark::point : points > 1 && is_grouped(text, '.') ? Mark::grouped_by_points : Mark::none;
  if (points == 0) {
    if (commas > 1) return is_grouped(text, ',') ? Mark::thousands : Mark::none;
    const bool whole = is_whole(text.substr(0, comma)) && is_whole(text.substr(comma + 1));
    return !whole ? Mark::none : is_grouped(text, ',') ? Mark::unclear : Mark::decimal;
  }
  if (points == 1 && point > text.rfind(','))
    return is_grouped(text.substr(0, point), ',') && is_whole(text.substr(point + 1)) ? Mark::thousands : Mark::none;
  if (commas == 1 && comma > text.rfind('.'))
    return is_grouped(text.substr(0, comma), '.') && is_whole(text.substr(comma + 1)) ? Mark::decimal : Mark::none;
  return Mark::none;
}

std::string without(std::string_view text, char mark) {
  std::string left(text);
  std::erase(left, mark);
  return left;
}

}  // namespace

void Commas::see(std::string_view text) {
  const Mark mark = mark_of(text);
  decimal_ = decimal_ || mark == Mark::decimal || mark == Mark::grouped_by_points;
  thousands_ = thousands_ || mark == Mark::thousands;
  points_ = points_ || (mark == Mark::point && !is_grouped(text, '.'));
}

std::string Commas::plain(std::string_view text, const std::string& what, const std::string& where) const {
  const Mark mark = mark_of(text);
  const bool by_comma = mark == Mark::decimal || mark == Mark::grouped_by_points ||
                        (mark == Mark::unclear && decimal_ && !thousands_ && !points_);
  const bool by_point = mark == Mark::thousands || (mark == Mark::unclear && thousands_ && !decimal_);
  // If other numbers have decimal commas, 1.250 may be 1250, unless others have decimal points as well.
  const bool may_be_group = mark == Mark::point && is_grouped(text, '.') && decimal_ && !points_;
  if (mark == Mark::unclear && !by_comma && !by_point)
    throw InputError(
        where, fmt::format("expected a number with a decimal point for {}, found {}", what, in_quotes(text)),
        "the comma is ambiguous (decimal or thousands separator), unless other numbers in the file resolve it");
  if (may_be_group)
    throw InputError(where,
                     fmt::format("expected a number with a decimal comma for {}, as others in the file have, found {}",
                                 what, in_quotes(text)),
                     "the point is ambiguous (decimal or thousands separator)");
  if (by_point) return without(text, ',');
  if (!by_comma) return std::string(text);
  std::string number = without(text, '.');
  std::replace(number.begin(), number.end(), ',', '.');
  return number;
}

std::string Commas::plain_whole(std::string_view text) {
  for (const char mark : {',', '.', ' ', '\'', '_'}) {
    const auto marks = std::count(text.begin(), text.end(), mark);
    if (marks > (mark == '.' ? 1 : 0) && is_grouped(text, mark)) return without(text, mark);  // 1.024 may be a fraction
  }
  return std::string(text);
}

}  // namespace ringsim::measured
