#include "sim/text/wrap.hpp"

#include <algorithm>

namespace ringsim {

namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

/// The bytes of the first `n` characters.
std::size_t bytes_of(std::string_view text, std::size_t n) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (begins_character(text[at]) && n-- == 0) break;
  return at;
}

/// The end of a line of at most `room` characters.
std::size_t break_of(std::string_view text, std::size_t room) {
  const std::size_t end = bytes_of(text, room);
  if (end == text.size()) return end;
  const std::size_t blank = text.substr(0, end + 1).rfind(' '), mark = text.substr(0, end).find_last_of(",|");
  const bool is_late = blank != std::string_view::npos && blank > end / 2;  // else a long word follows, such as JSON
  if (is_late) return blank;
  if (mark != std::string_view::npos) return mark + 1;  // of JSON, or of choices: "chain|kary_tree"
  return blank != std::string_view::npos && blank > 0 ? blank : end;
}

}  // namespace

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string lines;
  for (bool first = true; first || !text.empty(); first = false) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    const std::size_t end = break_of(text.substr(0, newline), first ? width : width - indent);
    if (!first && end > 0) lines.append(indent, ' ');
    lines += text.substr(0, end);
    text.remove_prefix(end);
    const bool at_newline = text.starts_with('\n');
    if (at_newline) text.remove_prefix(1);
    while (!at_newline && text.starts_with(' ')) text.remove_prefix(1);
    if (!text.empty() || at_newline) lines += '\n';
  }
  return lines;
}

std::size_t width_of(const std::vector<Definition>& lines) {
  constexpr std::size_t widest = 24;
  std::size_t width = 0;
  for (const Definition& line : lines)
    if (const std::size_t size = characters(line.name); size <= widest) width = std::max(width, size);
  return width;
}

std::string definitions(const std::vector<Definition>& lines, std::size_t first, std::size_t width) {
  const std::string indent(2 + first + 2, ' ');
  std::string text;
  for (const auto& [name, meaning] : lines) {
    const std::size_t size = characters(name);
    text += "  " + name + (size <= first ? std::string(first - size + 2, ' ') : '\n' + indent);
    for (const char c : wrapped(meaning, 0, width - indent.size())) {
      text += c;
      if (c == '\n') text += indent;
    }
    text += '\n';
  }
  return text;
}

}  // namespace ringsim
