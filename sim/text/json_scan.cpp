#include "sim/text/json_scan.hpp"

#include <algorithm>

namespace ringsim {

namespace {

constexpr std::string_view blanks = " \t\r\n";

std::size_t after_blanks(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(blanks, at), text.size());
}

/// One past the closing quote of the string that opens at `at`; npos if there is none.
std::size_t string_end(std::string_view text, std::size_t at) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '"') return i + 1;
    if (text[i] == '\\') ++i;
    if (i < text.size() && text[i] == '\n') break;
  }
  return std::string_view::npos;
}

/// One past a number or a word.
std::size_t word_end(std::string_view text, std::size_t at) {
  const auto is_part = [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '-' ||
           c == '.';
  };
  std::size_t end = at;
  while (end < text.size() && is_part(text[end])) ++end;
  return end == at ? std::string_view::npos : end;
}

constexpr std::size_t deepest_scan = 64;  // as parse_json()

/// The token that may come next. It ends the scan early if a brace belongs to other text.
enum class Next { value, key, colon, comma };

}  // namespace

std::size_t json_end(std::string_view text, std::size_t at) {
  std::string open;  // braces that wait for their end
  Next next = Next::value;
  for (std::size_t i = at;;) {
    i = after_blanks(text, i);
    if (i == text.size()) return std::string_view::npos;
    const char c = text[i];
    const bool closes = !open.empty() && c == (open.back() == '{' ? '}' : ']');
    const bool in_object = !open.empty() && open.back() == '{';
    if (closes && next != Next::colon && !(in_object && next == Next::value)) {
      open.pop_back();
      next = Next::comma;
      ++i;
    } else if (next == Next::comma) {
      if (c != ',') return std::string_view::npos;
      next = in_object ? Next::key : Next::value;
      ++i;
    } else if (next == Next::colon) {
      if (c != ':') return std::string_view::npos;
      next = Next::value;
      ++i;
    } else if (next == Next::key) {
      if (c != '"' || (i = string_end(text, i)) == std::string_view::npos) return std::string_view::npos;
      next = Next::colon;
    } else if (c == '{' || c == '[') {
      if (open.size() == deepest_scan) return std::string_view::npos;
      open += c;
      next = c == '{' ? Next::key : Next::value;
      ++i;
    } else {
      i = c == '"' ? string_end(text, i) : word_end(text, i);
      if (i == std::string_view::npos) return i;
      next = Next::comma;
    }
    if (open.empty()) return i;
  }
}

bool is_json_list(std::string_view text) {
  const std::size_t first = after_blanks(text, 0);
  return first < text.size() && text[first] == '[';
}

std::map<std::string, std::string_view, std::less<>> first_keys(std::string_view text) {
  std::map<std::string, std::string_view, std::less<>> keys;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t at = after_blanks(text, 0);
  if (is_json_list(text)) at = after_blanks(text, at + 1);
  if (at >= text.size() || text[at] != '{') return keys;
  for (++at;;) {
    at = after_blanks(text, at);
    if (at == text.size() || text[at] != '"') return keys;
    const std::size_t end = string_end(text, at);
    if (end == std::string_view::npos) return keys;
    const std::size_t colon = after_blanks(text, end);
    if (colon == text.size() || text[colon] != ':') return keys;
    const std::size_t value = after_blanks(text, colon + 1), value_end = json_end(text, value);
    keys.emplace(std::string(text.substr(at + 1, end - at - 2)), text.substr(value, value_end - value));
    if (value_end == std::string_view::npos) return keys;
    at = after_blanks(text, value_end);
    if (at == text.size() || text[at] != ',') return keys;
    ++at;
  }
}

}  // namespace ringsim
