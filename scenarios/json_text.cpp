#include "scenarios/json_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "sim/base/error.hpp"

namespace ringsim::scenarios {

namespace {

constexpr std::size_t deepest = 64;

/// Hands the text to nlohmann's parser and tells how far it has read, which its events do not say.
struct Reader {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** read = nullptr;

  reference operator*() const { return *at; }
  Reader& operator++() {
    *read = ++at;
    return *this;
  }
  Reader operator++(int) {
    Reader old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Reader& other) const { return at == other.at; }
  bool operator!=(const Reader& other) const { return at != other.at; }
};

std::size_t line_of(std::string_view text, std::size_t offset) {
  return 1 +
         static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

/// "file:3:7": lines and columns count from 1, columns in characters.
std::string place(const std::string& source, std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto column = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(),
                                    [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return fmt::format("{}:{}:{}", source, line_of(text, offset), column + 1);
}

/// The token in which the parser gave up: the last that begins before `end`. All before it is well formed.
std::string_view last_token(std::string_view text, std::size_t end) {
  constexpr std::string_view blank = " \t\r\n\xEF\xBB\xBF", single = "{}[]:,";
  std::string_view token = text.substr(0, 0);
  for (std::size_t i = 0; i < std::min(end, text.size());) {
    const std::size_t first = i;
    if (blank.find(text[i]) != std::string_view::npos) {
      ++i;
      continue;
    }
    const bool line = text.substr(i, 2) == "//", block = text.substr(i, 2) == "/*";
    if (line || block) {
      i = std::min(text.find(line ? "\n" : "*/", i + 2), text.size());
      if (block && i < text.size()) i += 2;
      if (i < end || line) continue;  // else a comment that does not end
    } else if (single.find(text[i]) != std::string_view::npos) {
      ++i;
    } else if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"' && text[i] != '\n'; ++i) {
        if (text[i] == '\\') ++i;
      }
      i = std::min(i + 1, text.size());
    } else {
      while (i < text.size() && blank.find(text[i]) == std::string_view::npos &&
             single.find(text[i]) == std::string_view::npos && text[i] != '"') {
        ++i;
      }
    }
    token = text.substr(first, i - first);
  }
  return token;
}

/// Builds the value from the parser's events; refuses what nlohmann's own builder would take in silence.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const std::string& source) : text_(text), source_(source), read_(text.data()) {}

  const char** read() { return &read_; }
  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override {
    constexpr double exact = 9007199254740992.0;  // 2^53: doubles below count by ones
    if (std::abs(value) <= exact && value == std::trunc(value)) return add(static_cast<std::int64_t>(value));
    return add(value);
  }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // never in text

  bool start_object(std::size_t) override { return open(Json::object()); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const std::size_t offset = this->offset();
    const auto [known, fresh] = open_.back().keys.try_emplace(name, offset);
    if (!fresh) {
      const auto start = static_cast<std::size_t>(last_token(text_, offset).data() - text_.data());
      throw InputError(place(source_, text_, start),
                       fmt::format("expected each key once, found {} again (first on line {})", in_quotes(name),
                                   line_of(text_, known->second)));
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    fail(position, error.id == 406, error.what());
  }

 private:
  struct Open {
    Json* value;
    std::map<std::string, std::size_t> keys;  ///< where each was read
  };

  std::size_t offset() const { return static_cast<std::size_t>(read_ - text_.data()); }

  /// Where a value goes. Growing a list moves only values that are closed, so the pointers of open_ stay good.
  Json* put(Json&& value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    // Behind the back of ordered_map, which would compare with every key before; key() has done that in a map.
    auto& members = parent.get_ref<Json::object_t&>();
    members.Container::emplace_back(std::move(key_), std::move(value));
    return &members.back().second;
  }
  bool add(Json value) {
    put(std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() == deepest) {
      throw InputError(place(source_, text_, offset() - 1),
                       fmt::format("expected at most {} levels of nesting, found more", deepest));
    }
    open_.push_back({put(std::move(value)), {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  [[noreturn]] void fail(std::size_t position, bool too_large, std::string_view what) const;

  std::string_view text_;
  const std::string& source_;
  const char* read_;
  Json root_;
  std::vector<Open> open_;
  std::string key_;
};

/// nlohmann's message, "... while parsing CONTEXT - WRONG; expected TOKEN", in our words.
void Builder::fail(std::size_t position, bool too_large, std::string_view what) const {
  const auto has = [&](std::string_view part) { return what.find(part) != std::string_view::npos; };
  std::string_view token = last_token(text_, position);
  const bool inside = has("invalid literal") || has("invalid number");
  if (inside && token.size() == 1 && std::string_view("{}[]:,").find(token) != std::string_view::npos) {
    // What is wrong is the word that this sign cut short.
    token = last_token(text_, static_cast<std::size_t>(token.data() - text_.data()));
  }
  const bool at_end = has("unexpected end of input");
  const std::string where =
      place(source_, text_, at_end ? text_.size() : static_cast<std::size_t>(token.data() - text_.data()));
  if (too_large) throw InputError(where, fmt::format("expected a number that fits 64 bits, found {}", token));
  if (has("invalid string")) {
    const bool cut = has("missing closing quote") || has("control character");
    throw InputError(where, cut ? "expected text that ends with a double quote on the same line, found none"
                                : fmt::format("expected text with valid escapes, found {}", token));
  }
  std::string expected = "a value: an object, a list, text in double quotes, a number, true or false";
  std::string hint;
  const bool first = open_.empty() || open_.back().value->empty();
  if (has("; expected end of input")) {
    expected = "the end of the file";
  } else if (has("parsing object separator")) {
    expected = "':' after the key";
  } else if (has("parsing object key")) {
    expected = first ? "a key in double quotes or '}'" : "a key in double quotes";
    if (token == "}") hint = "no comma behind the last key";
  } else if (has("parsing object")) {
    expected = "',' or '}'";
  } else if (has("parsing array")) {
    expected = "',' or ']'";
  } else if (token == "]" && !first) {
    hint = "no comma behind the last value";
  }
  const bool is_text = token.size() > 1 && token.front() == '"' && token.back() == '"';
  throw InputError(
      where,
      fmt::format("expected {}, found {}", expected,
                  at_end ? "the end of the file" : in_quotes(is_text ? token.substr(1, token.size() - 2) : token)),
      hint);
}

}  // namespace

std::size_t first_not_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  for (std::size_t i = 0; i < text.size();) {
    const unsigned lead = byte(i);
    const std::size_t more = lead < 0x80                   ? 0
                             : lead >= 0xC2 && lead < 0xE0 ? 1
                             : (lead & 0xF0) == 0xE0       ? 2
                             : lead >= 0xF0 && lead < 0xF5 ? 3
                                                           : 4;
    if (more == 4) return i;
    for (std::size_t k = 1; k <= more; ++k) {
      if ((byte(i + k) & 0xC0) != 0x80) return i;
    }
    // No longer spelling than needed, no surrogates, nothing beyond U+10FFFF.
    const unsigned second = byte(i + 1);
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) || (lead == 0xF0 && second < 0x90) ||
        (lead == 0xF4 && second >= 0x90)) {
      return i;
    }
    i += more + 1;
  }
  return std::string_view::npos;
}

Json parse_json(std::string_view text, const std::string& source) {
  if (const std::size_t bad = first_not_utf8(text); bad != std::string_view::npos) {
    throw InputError(place(source, text, bad),
                     fmt::format("expected text in UTF-8, found byte 0x{:02x}", static_cast<unsigned char>(text[bad])));
  }
  // nlohmann takes a zero byte for the end of the text.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) {
    throw InputError(place(source, text, zero), "expected text, found byte 0x00");
  }
  Builder builder(text, source);
  const char* end = text.data() + text.size();
  Json::sax_parse(Reader{text.data(), builder.read()}, Reader{end, builder.read()}, &builder,
                  Json::input_format_t::json,
                  /*strict=*/true, /*ignore_comments=*/true);
  return builder.take();
}

std::string without_quotes(const std::string& json) {
  return json.size() >= 2 && json.front() == '"' ? json.substr(1, json.size() - 2) : json;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t most = 60;
  std::size_t end = text.size();
  if (end > most) {
    end = most;
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a character
  }
  std::string out = Json(std::string(text.substr(0, end))).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (end < text.size()) out.insert(out.size() - 1, "...");
  return out;
}

std::string describe(const Json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  if (value.is_object()) return "an object";
  return value.dump();
}

}  // namespace ringsim::scenarios
