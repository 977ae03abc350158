#include "sim/base/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "sim/base/ascii.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

__extension__ using Wide = unsigned __int128;

constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();

/// One unit is 2^twos * 5^fives base units. Exponents instead of factors: dividing by 10^d then only subtracts, and
/// what is not whole shows as a remainder. Bits have twos reduced by 3.
struct Unit {
  std::string_view name;
  int twos = 0, fives = 0;
  bool written = true;  ///< format() may use it; bits are only read
};

// Largest first within equal length of text: format() takes the first of the shortest.
constexpr std::array<Unit, 9> size_units{{{"TiB", 40, 0},
                                          {"TB", 12, 12},
                                          {"GiB", 30, 0},
                                          {"GB", 9, 9},
                                          {"MiB", 20, 0},
                                          {"MB", 6, 6},
                                          {"KiB", 10, 0},
                                          {"kB", 3, 3},
                                          {"B", 0, 0}}};
constexpr std::array<Unit, 14> rate_units{{{"TiB/s", 40, 0},
                                           {"TB/s", 12, 12},
                                           {"GiB/s", 30, 0},
                                           {"GB/s", 9, 9},
                                           {"MiB/s", 20, 0},
                                           {"MB/s", 6, 6},
                                           {"KiB/s", 10, 0},
                                           {"kB/s", 3, 3},
                                           {"B/s", 0, 0},
                                           {"Tb/s", 9, 12, false},
                                           {"Gb/s", 6, 9, false},
                                           {"Mb/s", 3, 6, false},
                                           {"kb/s", 0, 3, false},
                                           {"b/s", -3, 0, false}}};
constexpr std::array<Unit, 5> time_units{{{"s", 12, 12}, {"ms", 9, 9}, {"us", 6, 6}, {"ns", 3, 3}, {"ps", 0, 0}}};

/// What is read, in the words of its errors.
struct Quantity {
  std::string_view like;   ///< "a rate such as ..."
  std::string_view whole;  ///< what the result must be a whole number of
  std::string_view most;   ///< the largest value that fits
  std::string_view help;
  std::span<const Unit> units;
};
constexpr Quantity size_quantity{R"(a size such as "64 MiB" or "1.5 GB")", "bytes", "9223372036854775807 B (8 EiB)",
                                 "units are B, kB MB GB TB (powers of 1000), KiB MiB GiB TiB (powers of 1024)",
                                 size_units};
constexpr Quantity rate_quantity{R"(a rate such as "25 GB/s" or "200 Gb/s")", "bytes per second",
                                 "9223372036854775807 B/s", "Gb/s is bits, GB/s is bytes; G is 10^9, Gi is 2^30",
                                 rate_units};
constexpr Quantity time_quantity{R"(a time such as "1.3 us" or "500 ns")", "picoseconds",
                                 "9223372036854775807 ps (106 days)", "units are ps, ns, us, ms, s", time_units};

/// The text in quotes, safe to print: control characters escaped, cut if it is long.
std::string quoted(std::string_view text) {
  constexpr std::size_t most = 60;
  std::string out = "\"";
  std::size_t end = text.size();
  if (end > most) {
    end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a character
  }
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) {
      out += fmt::format("\\u{:04x}", byte);
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + (end < text.size() ? "...\"" : "\"");
}

/// A decimal number and the text after it.
struct Parts {
  std::string digits;  ///< before and after the point, without leading zeros
  int decimals = 0;    ///< how many of them are after the point; trailing zeros there are dropped
  std::string_view unit;
};

std::optional<Parts> split(std::string_view text) {
  Parts parts;
  std::size_t i = 0;
  const auto take_digits = [&] {
    const std::size_t first = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    parts.digits += text.substr(first, i - first);
    return i - first;
  };
  if (take_digits() == 0) return std::nullopt;
  std::size_t decimals = 0;
  if (i < text.size() && text[i] == '.') {
    ++i;
    decimals = take_digits();
    if (decimals == 0) return std::nullopt;
  }
  while (decimals > 0 && parts.digits.back() == '0') {
    parts.digits.pop_back();
    --decimals;
  }
  parts.digits.erase(0, parts.digits.find_first_not_of('0'));
  parts.decimals = static_cast<int>(std::min<std::size_t>(decimals, 1'000'000));
  if (i < text.size() && text[i] == ' ') ++i;
  parts.unit = text.substr(i);
  return parts;
}

std::int64_t parse(const Quantity& quantity, std::string_view text) {
  const auto fail = [&](std::string_view expected, std::string_view hint) {
    return InputError("", fmt::format("expected {}, found {}", expected, quoted(text)), std::string(hint));
  };
  if (text.size() > 1 && text[0] == '-' && is_digit(text[1])) {
    throw fail(fmt::format("{}, not negative", quantity.like), "");
  }
  const std::optional<Parts> parts = split(text);
  if (!parts) throw fail(quantity.like, quantity.help);
  const Unit* unit = nullptr;
  for (const Unit& u : quantity.units) {
    if (u.name == parts->unit) unit = &u;
  }
  if (unit == nullptr) throw fail(quantity.like, quantity.help);

  const std::string too_large = fmt::format("at most {}", quantity.most);
  const std::string not_whole = fmt::format("a whole number of {}", quantity.whole);
  // 38 digits fit 128 bits. Longer ones are too large, or so fine that no unit makes them whole (1 B has 40 decimals of
  // a TiB, but 28 digits).
  if (parts->digits.size() > 38) throw fail(parts->decimals > 0 ? not_whole : too_large, "");
  Wide value = 0;
  for (const char c : parts->digits) value = value * 10 + static_cast<unsigned>(c - '0');
  if (value == 0) return 0;
  const auto scale = [&](int exponent, unsigned base) {
    for (; exponent < 0; ++exponent) {
      if (value % base != 0) throw fail(not_whole, "");
      value /= base;
    }
    return exponent;
  };
  const int fives = scale(unit->fives - parts->decimals, 5);
  const int twos = scale(unit->twos - parts->decimals, 2);
  for (int i = 0; i < fives + twos; ++i) {
    if (value > largest) throw fail(too_large, "");
    value *= i < fives ? 5U : 2U;
  }
  if (value > largest) throw fail(too_large, "");
  return static_cast<std::int64_t>(value);
}

/// `value` in `unit`, if that is at least 1 and exact with at most 6 decimals; else empty.
std::string in_unit(std::uint64_t value, const Unit& unit) {
  Wide factor = 1;
  for (int i = 0; i < unit.twos; ++i) factor *= 2;
  for (int i = 0; i < unit.fives; ++i) factor *= 5;
  if (value < factor) return "";
  std::string text = fmt::format("{}", static_cast<std::uint64_t>(value / factor));
  Wide rest = value % factor;
  if (rest != 0) text += '.';
  for (int decimals = 0; rest != 0; ++decimals) {
    if (decimals == 6) return "";
    text += static_cast<char>('0' + static_cast<int>(rest * 10 / factor));
    rest = rest * 10 % factor;
  }
  return fmt::format("{} {}", text, unit.name);
}

/// `base_last`: the base unit only if no larger one is exact.
std::string shortest(std::int64_t value, std::span<const Unit> units, std::string_view base, bool base_last = false) {
  if (value == 0) return fmt::format("0 {}", base);
  const std::uint64_t size = value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value);
  std::string best;
  for (const Unit& unit : units) {
    if (!unit.written || (base_last && unit.name == base && !best.empty())) continue;
    const std::string text = in_unit(size, unit);
    if (!text.empty() && (best.empty() || text.size() < best.size())) best = text;
  }
  return (value < 0 ? "-" : "") + best;
}

}  // namespace

Bytes parse_bytes(std::string_view text) { return {parse(size_quantity, text)}; }

Bandwidth parse_bandwidth(std::string_view text) {
  const std::int64_t rate = parse(rate_quantity, text);
  if (rate == 0) throw InputError("", fmt::format("expected a rate of at least 1 B/s, found {}", quoted(text)));
  return {rate};
}

Picoseconds parse_time(std::string_view text) { return Picoseconds{parse(time_quantity, text)}; }

std::string format(Bytes size) { return shortest(size.count, size_units, "B"); }
std::string format(Bandwidth rate) { return shortest(rate.bytes_per_second, rate_units, "B/s"); }
std::string format(Picoseconds time) { return shortest(time.count(), time_units, "ps", true); }

}  // namespace ringsim
