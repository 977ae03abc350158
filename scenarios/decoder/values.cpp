#include "scenarios/decoder/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim::scenarios {

namespace {

std::int64_t parse_quantity(Type type, const std::string& text) {
  if (type == Type::size) return parse_bytes(text).count;
  if (type == Type::rate) return parse_bandwidth(text).bytes_per_second;
  return parse_time(text).count();
}

std::string unit_hint(Type type) {
  const char* like = type == Type::size ? "64 MiB" : type == Type::rate ? "25 GB/s" : "1.3 us";
  return fmt::format("write the number with its unit as a string: \"{}\"", like);
}

/// The number that a text of digits alone stands for; none if it does not fit into 64 bits either.
std::optional<std::int64_t> number_of_digits(const std::string& text) {
  std::int64_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || at != end) return std::nullopt;
  return number;
}

/// A factor as a fraction of powers of ten: 1.5 is 15 / 10.
struct Factor {
  std::int64_t numerator = 0, denominator = 1;
};

std::optional<Factor> read_factor(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  const std::string text = value.dump();
  Factor factor;
  bool fraction = false;
  if (text.size() > 15) return std::nullopt;
  for (const char c : text) {
    if (c == '.') {
      fraction = true;
    } else if (c >= '0' && c <= '9') {
      factor.numerator = factor.numerator * 10 + (c - '0');
      if (fraction) factor.denominator *= 10;
    } else {
      return std::nullopt;  // a sign or an exponent
    }
  }
  if (factor.denominator > 1'000'000 || factor.numerator <= factor.denominator) return std::nullopt;
  return factor;
}

}  // namespace

nlohmann::json read_portion(const Field& field, const Json& value, const std::string& pointer, const Blame& blame) {
  const auto fail = [&](const std::string& hint = "") {
    blame.fail(pointer, fmt::format("expected {}, found {}", expectation(field), describe(value)), hint);
  };
  if (!value.is_string()) fail(R"(write either as a string: "25%", "25 GB/s")");
  std::string text = value.get<std::string>();
  if (!text.ends_with('%')) {
    try {
      return parse_bandwidth(text).bytes_per_second;
    } catch (const InputError& error) {
      fail(error.hint());
    }
  }
  // Digits of a share in ten thousandths of a percent, which are millionths of the whole.
  text.pop_back();
  if (text.ends_with(' ')) text.pop_back();
  const std::size_t point = std::min(text.find('.'), text.size());
  const std::string digits = text.substr(0, point) + (point < text.size() ? text.substr(point + 1) : "");
  const std::size_t decimals = point < text.size() ? text.size() - point - 1 : 0;
  const bool is_number = !digits.empty() && point > 0 && (point == text.size() || decimals > 0) &&
                         digits.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number) fail();
  if (decimals > 4 || digits.size() > 9) fail("a share can have at most 4 decimals");
  std::int64_t millionths = std::stoll(digits);
  for (std::size_t i = decimals; i < 4; ++i) millionths *= 10;
  const bool of_link = field.name == "bandwidth";
  if (millionths == 0) fail(of_link ? R"(to take a link down, write "state": "down")" : "");
  if (millionths > 1'000'000)
    fail(of_link ? "a fault can only reduce bandwidth; set a higher bandwidth in the topology" : "");
  return {{"millionths", millionths}};
}

std::int64_t read_factor(const Field& field, const Json& value, const std::string& pointer, const Blame& blame) {
  const auto fail = [&](const std::string& hint = "") {
    blame.fail(pointer, fmt::format("expected {}, found {}", expectation(field), describe(value)), hint);
  };
  if (!value.is_number()) fail(value.is_string() ? "write the factor without quotes: 0.9" : "");
  const double millionths = value.get<double>() * 1e6;
  if (!(millionths >= static_cast<double>(field.min) && millionths <= static_cast<double>(field.max))) fail();
  const double whole = std::round(millionths);
  if (std::abs(millionths - whole) > 1e-3) fail("a factor can have at most 6 decimals");
  return static_cast<std::int64_t>(whole);
}

std::int64_t read_scalar(const Field& field, const Json& value, const std::string& pointer, const Blame& blame) {
  const auto fail = [&](const std::string& hint = "") {
    blame.fail(pointer, fmt::format("expected {}, found {}", expectation(field), describe(value)), hint);
  };
  std::int64_t number = 0;
  if (field.type == Type::whole) {
    if (field.digits && value.is_string()) {
      const std::optional<std::int64_t> said = number_of_digits(value.get_ref<const std::string&>());
      if (!said) fail();
      number = *said;
    } else {
      if (!value.is_number_integer()) fail(value.is_string() ? "write the number without quotes" : "");
      if (value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX) fail();
      number = value.get<std::int64_t>();
    }
    if (number < field.min || number > field.max) fail();
    return number;
  }
  if (!value.is_string()) fail(value.is_number() ? unit_hint(field.type) : "");
  try {
    number = parse_quantity(field.type, value.get_ref<const std::string&>());
  } catch (const InputError& error) {
    blame.fail(pointer, error.message(), error.hint());
  }
  if (number < field.min) {
    blame.fail(pointer, fmt::format("expected at least {}, found {}",
                                    write_scalar(field.type, field.min).get<std::string>(), describe(value)));
  }
  if (number > field.max)
    blame.fail(pointer, fmt::format("expected at most {}, found {}",
                                    write_scalar(field.type, field.max).get<std::string>(), describe(value)));
  return number;
}

Json write_scalar(Type type, std::int64_t value) {
  if (type == Type::size) return format(Bytes{value});
  if (type == Type::rate) return format(Bandwidth{value});
  if (type == Type::time) return format(Picoseconds{value});
  return value;
}

Range Range::read(const Field& field, const Json& value, const std::string& pointer, const Blame& blame) {
  static const std::vector<std::string> known{"from", "to", "factor", "step"};
  for (const auto& [key, unused] : value.items()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      blame.fail(child(pointer, key), fmt::format("expected a key of a range, found {}", in_quotes(key)),
                 spelling_hint(key, known));
    }
  }
  for (const char* key : {"from", "to"}) {
    if (!value.contains(key)) blame.fail(pointer, fmt::format("expected the key \"{}\" of a range, found none", key));
  }
  const bool by_factor = value.contains("factor"), by_step = value.contains("step");
  if (by_factor == by_step) {
    blame.fail(pointer, fmt::format("expected either \"factor\" or \"step\", found {}", by_step ? "both" : "neither"));
  }

  Range range;
  range.type_ = field.type;
  range.from_ = read_scalar(field, value["from"], child(pointer, "from"), blame);
  range.to_ = read_scalar(field, value["to"], child(pointer, "to"), blame);
  if (range.to_ < range.from_) {
    blame.fail(child(pointer, "to"), fmt::format("expected at least {}, the start of the range, found {}",
                                                 describe(value["from"]), describe(value["to"])));
  }
  if (by_step) {
    Field step{.name = "step", .type = field.type, .doc = "", .min = 0};
    const std::string place = child(pointer, "step");
    range.step_ = read_scalar(step, value["step"], place, blame);
    if (range.step_ == 0) blame.fail(place, fmt::format("expected a step above 0, found {}", describe(value["step"])));
    // from and to are not negative, so neither the difference nor the last value overflows.
    range.size_ = static_cast<std::size_t>((range.to_ - range.from_) / range.step_) + 1;
    return range;
  }

  const std::string place = child(pointer, "factor");
  const std::optional<Factor> factor = read_factor(value["factor"]);
  if (!factor) {
    blame.fail(place,
               fmt::format("expected a factor above 1, with at most 6 decimals, found {}", describe(value["factor"])));
  }
  range.factor_ = value["factor"].dump();
  __extension__ using Wide = __int128;
  for (std::int64_t at = range.from_; range.products_.size() <= most_points;) {
    range.products_.push_back(at);
    const Wide next = static_cast<Wide>(at) * factor->numerator / factor->denominator;
    if (next > range.to_) break;
    if (next == at) {
      blame.fail(place,
                 fmt::format("expected a factor that increases {}, found {}", describe(write_scalar(field.type, at)),
                             range.factor_),
                 "use \"step\", or start at a higher value");
    }
    at = static_cast<std::int64_t>(next);
  }
  range.size_ = range.products_.size();
  return range;
}

Json Range::at(std::size_t i) const {
  return write_scalar(type_, products_.empty() ? from_ + static_cast<std::int64_t>(i) * step_ : products_[i]);
}

nlohmann::json Range::canonical() const {
  nlohmann::json out{{"from", from_}, {"to", to_}};
  if (factor_.empty()) {
    out["step"] = step_;
  } else {
    out["factor"] = factor_;
  }
  return out;
}

}  // namespace ringsim::scenarios
