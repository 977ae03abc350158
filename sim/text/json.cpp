#include "sim/text/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <vector>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

constexpr std::size_t deepest_nesting = 64;

/// Hands the text to nlohmann's parser and tells how far it has read, which its events do not say.
struct Cursor {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;
  const char** read = nullptr;

  reference operator*() const { return *at; }
  Cursor& operator++() {
    *read = ++at;
    return *this;
  }
  Cursor operator++(int) {
    Cursor old = *this;
    ++*this;
    return old;
  }
  bool operator==(const Cursor& other) const { return at == other.at; }
  bool operator!=(const Cursor& other) const { return at != other.at; }
};

struct Source {
  const std::string& name;
  std::size_t first_line;
};

std::size_t line_of(const Source& source, std::string_view text, std::size_t offset) {
  return source.first_line +
         static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
}

/// "file:3:7": lines and columns count from 1, columns in characters.
std::string place(const Source& source, std::string_view text, std::size_t offset) {
  offset = std::min(offset, text.size());
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  const auto column = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(),
                                    [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
  return fmt::format("{}:{}:{}", source.name, line_of(source, text, offset), column + 1);
}

/// Cuts well-formed UTF-8 into the tokens of JSON: signs, strings with their quotes, and words (numbers, true, null,
/// and whatever else stands between signs and blanks). Comments are skipped.
class Tokens {
 public:
  /// A byte order mark may stand first, and nowhere else.
  explicit Tokens(std::string_view text) : text_(text), at_(text.starts_with("\xEF\xBB\xBF") ? 3 : 0) {}

  /// The next token; empty at the end of the text.
  std::string_view next() {
    skip();
    const std::size_t first = at_;
    if (at_ == text_.size()) return text_.substr(at_);
    const char c = text_[at_];
    if (signs.find(c) != std::string_view::npos) {
      ++at_;
    } else if (c == '"') {
      for (++at_; at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n'; ++at_) {
        if (text_[at_] == '\\') ++at_;
      }
      at_ = std::min(at_ + (at_ < text_.size() && text_[at_] == '"' ? 1 : 0), text_.size());
    } else {
      while (at_ < text_.size() && text_[at_] != '"' && blanks.find(text_[at_]) == std::string_view::npos &&
             signs.find(text_[at_]) == std::string_view::npos)
        ++at_;
    }
    return text_.substr(first, at_ - first);
  }

 private:
  static constexpr std::string_view blanks = " \t\r\n", signs = "{}[]:,";
  static constexpr std::string_view ends_of_line = "\r\n";  // of a comment, as nlohmann's parser sees it

  void skip() {
    for (;;) {
      at_ = std::min(text_.find_first_not_of(blanks, at_), text_.size());
      const std::string_view two = text_.substr(at_, 2);
      if (two == "//") {
        at_ = std::min(text_.find_first_of(ends_of_line, at_), text_.size());
      } else if (two == "/*" && text_.find("*/", at_ + 2) != std::string_view::npos) {
        at_ = text_.find("*/", at_ + 2) + 2;
      } else {
        return;  // a comment that does not end is a word: an error
      }
    }
  }

  std::string_view text_;
  std::size_t at_;
};

/// The beginning of a text, as much as an error shows.
std::string_view beginning(std::string_view text) {
  constexpr std::size_t most = 60;
  if (text.size() <= most) return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // not within a character
  return text.substr(0, end);
}

/// The beginning of a text, with "..." if there is more.
std::string shown(std::string_view text) {
  const std::string_view begin = beginning(text);
  return std::string(begin) + (begin.size() < text.size() ? "..." : "");
}

/// True if a token that begins with a quote ends with one that no backslash escapes.
bool has_end(std::string_view string) {
  if (string.size() < 2 || string.back() != '"') return false;
  const std::size_t before = string.find_last_not_of('\\', string.size() - 2);  // there is one: the first quote
  return (string.size() - 2 - before) % 2 == 0;
}

bool is_number(std::string_view word) {
  std::size_t at = 0;
  const auto digits = [&] {
    const std::size_t first = at;
    while (at < word.size() && word[at] >= '0' && word[at] <= '9') ++at;
    return at - first;
  };
  const auto skip_one_of = [&](std::string_view signs) {
    const bool found = at < word.size() && signs.find(word[at]) != std::string_view::npos;
    if (found) ++at;
    return found;
  };
  skip_one_of("-");
  const bool zero = at < word.size() && word[at] == '0';
  const std::size_t n = digits();
  if (n == 0 || (zero && n > 1)) return false;
  if (skip_one_of(".") && digits() == 0) return false;
  if (skip_one_of("eE")) {
    skip_one_of("+-");
    if (digits() == 0) return false;
  }
  return at == word.size();
}

/// The number of four hexadecimal digits; nothing if they are not.
std::optional<unsigned> four_digits(std::string_view text) {
  unsigned number = 0;
  const std::string_view digits = text.substr(0, 4);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number, 16);
  if (error != std::errc() || end != digits.data() + 4) return std::nullopt;
  return number;
}

/// Requires quotes at both ends.
bool has_valid_escapes(std::string_view string) {
  bool in_pair = false;  // a first half of a surrogate pair was last, and its second half has to be next
  for (std::size_t i = 1; i + 1 < string.size(); ++i) {
    if (static_cast<unsigned char>(string[i]) < 0x20) return false;
    const bool is_escape = string[i] == '\\';
    if (is_escape && std::string_view("\"\\/bfnrtu").find(string[++i]) == std::string_view::npos) return false;
    const std::optional<unsigned> unit =
        is_escape && string[i] == 'u' ? four_digits(string.substr(i + 1)) : std::optional(0U);
    if (!unit) return false;
    const bool is_second = *unit >= 0xDC00 && *unit <= 0xDFFF;
    if (is_second != in_pair) return false;
    in_pair = *unit >= 0xD800 && *unit <= 0xDBFF;
    if (is_escape && string[i] == 'u') i += 4;
  }
  return !in_pair;
}

/// What is wrong with a text that nlohmann's parser refused, in words of our own: the first token that JSON does not
/// allow where it stands. Returns if all tokens are allowed.
class Explainer {
 public:
  Explainer(std::string_view text, const Source& source) : text_(text), source_(source), tokens_(text) {}

  void throw_first_error() {
    advance();
    value();
    if (!token_.empty()) fail("the end of the file");
  }

 private:
  static constexpr const char* any_value =
      "a value (an object, a list, text in double quotes, a number, true or false)";

  void advance() { token_ = tokens_.next(); }
  bool take(std::string_view sign) {
    if (token_ != sign) return false;
    advance();
    return true;
  }

  void value(const char* hint_at_close = "") {
    if (token_.starts_with('"')) return string();
    if (token_ == "{") return object();
    if (token_ == "[") return list();
    if (token_ != "true" && token_ != "false" && token_ != "null" && !is_number(token_))
      fail(any_value, token_ == "]" ? hint_at_close : "");
    advance();
  }

  void string() {
    if (!has_end(token_) || token_.find('\n') != std::string_view::npos)
      throw InputError(here(), "expected text that ends with a double quote on the same line, found none");
    if (!has_valid_escapes(token_))
      throw InputError(here(), fmt::format("expected text with valid escapes, found {}", shown(token_)));
    advance();
  }

  void object() {
    advance();
    if (take("}")) return;
    for (const char* expected = "a key in double quotes or '}'";; expected = "a key in double quotes") {
      if (!token_.starts_with('"')) fail(expected, token_ == "}" ? "remove the comma after the last key" : "");
      string();
      if (!take(":")) fail("':' after the key");
      value();
      if (take("}")) return;
      if (!take(",")) fail("',' or '}'");
    }
  }

  void list() {
    advance();
    if (take("]")) return;
    for (const char* hint = "";; hint = "remove the comma after the last value") {
      value(hint);
      if (take("]")) return;
      if (!take(",")) fail("',' or ']'");
    }
  }

  std::string here() const { return place(source_, text_, static_cast<std::size_t>(token_.data() - text_.data())); }
  [[noreturn]] void fail(const std::string& expected, const std::string& hint = "") const {
    const bool is_text = token_.size() > 1 && token_.front() == '"' && token_.back() == '"';
    throw InputError(here(),
                     fmt::format("expected {}, found {}", expected,
                                 token_.empty() ? "the end of the file"
                                                : in_quotes(is_text ? token_.substr(1, token_.size() - 2) : token_)),
                     hint);
  }

  std::string_view text_;
  const Source& source_;
  Tokens tokens_;
  std::string_view token_;
};

/// Builds the value from the parser's events; refuses what nlohmann's own builder would take in silence.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, const Source& source) : text_(text), source_(source), read_(text.data()) {}

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
      throw InputError(place(source_, text_, start_of_key()),
                       fmt::format("expected each key once, found {} again (first on line {})", in_quotes(name),
                                   line_of(source_, text_, known->second)));
    }
    key_ = std::move(name);
    return true;
  }

  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    constexpr int number_out_of_range = 406;
    if (error.id == number_out_of_range) throw_first_large_number();
    Explainer(text_, source_).throw_first_error();
    throw InputError(place(source_, text_, position), "expected JSON", error.what());
  }

 private:
  struct Open {
    Json* value;
    std::map<std::string, std::size_t> keys;  ///< where each was read
  };

  std::size_t offset() const { return static_cast<std::size_t>(read_ - text_.data()); }

  /// Puts a value into the list or object that is open. Growing a list moves only values that are closed, so the
  /// pointers of open_ stay good.
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
    if (open_.size() == deepest_nesting) {
      throw InputError(place(source_, text_, offset() - 1),
                       fmt::format("expected at most {} levels of nesting, found more", deepest_nesting));
    }
    open_.push_back({put(std::move(value)), {}});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  void throw_first_large_number() const {
    Tokens tokens(text_);
    for (std::string_view token = tokens.next(); !token.empty(); token = tokens.next())
      if (is_number(token) && !std::isfinite(std::strtod(std::string(token).c_str(), nullptr)))
        throw InputError(place(source_, text_, static_cast<std::size_t>(token.data() - text_.data())),
                         fmt::format("expected a number that fits 64 bits, found {}", shown(token)));
  }

  /// The offset at which the text of the key that was just read begins. Quotes within it are escaped.
  std::size_t start_of_key() const {
    std::size_t quote = text_.rfind('"', offset() - 1);
    do quote = text_.rfind('"', quote - 1);
    while (escaped(quote));
    return quote;
  }
  bool escaped(std::size_t at) const {
    std::size_t n = 0;
    while (n < at && text_[at - 1 - n] == '\\') ++n;
    return n % 2 == 1;
  }

  std::string_view text_;
  const Source& source_;
  const char* read_;
  Json root_;
  std::vector<Open> open_;
  std::string key_;
};

}  // namespace

Json parse_json(std::string_view text, const std::string& name, std::size_t first_line) {
  const Source source{name, first_line};
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
  Json::sax_parse(Cursor{text.data(), builder.read()}, Cursor{end, builder.read()}, &builder,
                  Json::input_format_t::json,
                  /*strict=*/true, /*ignore_comments=*/true);
  return builder.take();
}

namespace {

void write(const Json& value, int indent, int depth, std::string& out) {
  const auto line = [&](int level) {
    if (indent > 0) out += '\n' + std::string(static_cast<std::size_t>(indent * level), ' ');
  };
  if (value.is_number_float()) {
    ensure(std::isfinite(value.get<double>()), "JSON cannot represent a number that is not finite");
    // nlohmann's dump() is not always the shortest text that reads back to the same double; fmt's is.
    const std::string text = fmt::format("{}", value.get<double>());
    out += text.find_first_of(".en") == std::string::npos ? text + ".0" : text;
  } else if (value.is_structured() && !value.empty()) {
    const bool object = value.is_object();
    out += object ? '{' : '[';
    bool first = true;
    for (const auto& [key, member] : value.items()) {
      if (!first) out += ',';
      first = false;
      line(depth + 1);
      if (object) out += Json(key).dump() + (indent > 0 ? ": " : ":");
      write(member, indent, depth + 1, out);
    }
    line(depth);
    out += object ? '}' : ']';
  } else {
    out += value.dump();
  }
}

}  // namespace

std::string json_text(const Json& value, int indent) {
  std::string text;
  write(value, indent, 0, text);
  return text;
}

namespace {

std::string on_one_line(const Json& value) {
  if (!value.is_structured() || value.empty()) return json_text(value);
  std::string text;
  for (const auto& [key, member] : value.items())
    text += (text.empty() ? "" : ", ") + (value.is_object() ? Json(key).dump() + ": " : "") + on_one_line(member);
  return value.is_object() ? '{' + text + '}' : '[' + text + ']';
}

/// `begun`: characters of the first line that stand already; `after`: those that must follow on the last one.
std::string in_lines(const Json& value, std::size_t width, std::size_t indent, std::size_t begun, std::size_t after) {
  std::string line = on_one_line(value);
  if (!value.is_structured() || value.empty() || begun + line.size() + after <= width) return line;
  constexpr std::size_t step = 2;
  const std::string margin(indent + step, ' ');
  std::string text;
  for (const auto& [key, member] : value.items()) {
    const std::string name = value.is_object() ? Json(key).dump() + ": " : "";
    text += text.empty() ? "\n" : ",\n";
    text += margin;
    text += name;
    text += in_lines(member, width, indent + step, margin.size() + name.size(), /*after=*/1);
  }
  text += '\n';
  text.append(indent, ' ');
  return value.is_object() ? '{' + text + '}' : '[' + text + ']';
}

}  // namespace

std::string json_in_lines(const Json& value, std::size_t width) { return in_lines(value, width, 0, 0, 0); }

std::string without_quotes(const std::string& json) {
  return json.size() >= 2 && json.front() == '"' ? json.substr(1, json.size() - 2) : json;
}

std::string in_quotes(std::string_view text) {
  const std::string_view begin = beginning(text);
  std::string out = Json(std::string(begin)).dump(-1, ' ', false, Json::error_handler_t::replace);
  if (begin.size() < text.size()) out.insert(out.size() - 1, "...");
  return out;
}

std::string describe(const Json& value) {
  if (value.is_string()) return in_quotes(value.get_ref<const std::string&>());
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  if (value.is_object()) return "an object";
  return value.dump();
}

}  // namespace ringsim
