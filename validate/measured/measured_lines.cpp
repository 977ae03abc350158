// Lines, words and cells of measured files.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"
#include "sim/text/plain_text.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

void refuse_predictions(const std::string& where) {
  throw InputError(where, "expected measured times, found ringsim predictions",
                   "to compare two results, use `ringsim diff`; the CSV of `ringsim replay` contains measured times");
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string Line::where() const { return fmt::format("{}:{}", *file, number); }

std::vector<Line> lines_of(std::string_view text, const std::string& name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<Line> lines;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    Line line{.text = text.substr(0, end), .file = &name, .number = number};
    line.cut = end == std::string_view::npos;
    if (line.text.find('\0') != std::string_view::npos)
      throw InputError(line.where(), "expected text, found byte 0x00", "a file in UTF-16 must be saved as UTF-8 first");
    text.remove_prefix(line.cut ? text.size() : end + 1);
    lines.push_back(line);
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

namespace {

/// U+2502, U+2503, U+2551: tables of the Python library rich and others.
constexpr std::array drawn_bars = std::to_array<std::string_view>({"\xE2\x94\x82", "\xE2\x94\x83", "\xE2\x95\x91"});

}  // namespace

bool has_bars(std::string_view line) {
  return line.find_first_of("|`*") != std::string_view::npos ||
         std::any_of(drawn_bars.begin(), drawn_bars.end(),
                     [&](std::string_view bar) { return line.find(bar) != std::string_view::npos; });
}

std::string with_plain_bars(std::string_view line) {
  std::string plain(line);
  for (const std::string_view bar : drawn_bars)
    for (std::size_t at = 0; (at = plain.find(bar, at)) != std::string::npos;) plain.replace(at, bar.size(), "|");
  for (char& c : plain)
    if (c == '`' || c == '*') c = ' ';
  return plain;
}

std::string cells_in_line(std::string_view line) {
  std::string text = with_plain_bars(line);
  for (std::size_t bar = text.find('|'); bar != std::string::npos; bar = text.find('|', bar + 1)) {
    text[bar] = ' ';
    const std::size_t next = text.find_first_not_of(" \t", bar);
    if (next != std::string::npos && text[next] == '|') text.insert(bar, 10, ' '), bar += 10;
  }
  return text;
}

std::vector<CsvField> fields_of(const Line& line, char separator) {
  std::vector<CsvField> fields;
  const auto begin_field = [&](std::size_t at) { fields.push_back({"", fmt::format("{}:{}", line.where(), at + 1)}); };
  if (separator == ' ') {
    for (const std::string_view word : words_of(line.text)) {
      begin_field(static_cast<std::size_t>(word.data() - line.text.data()));
      fields.back().text = word;
    }
    return fields;
  }
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
  if (quoted) throw InputError(fields.back().where, "expected a closing quote on this line, found none");
  for (CsvField& field : fields) field.text = std::string(trimmed(field.text));
  if (separator == '|') {
    if (fields.front().text.empty()) fields.erase(fields.begin());
    if (!fields.empty() && fields.back().text.empty() && trimmed(line.text).ends_with('|')) fields.pop_back();
  }
  return fields;
}

}  // namespace ringsim::measured
