#include "sim/text/plain_text.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "sim/base/ascii.hpp"

namespace ringsim {

namespace {

/// The end of a code whose introducer ends at `at`: parameters, then one final byte (ECMA-48, 5.4).
std::size_t end_of_control(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] >= ' ' && text[at] <= '?') ++at;
  return at < text.size() && text[at] >= '@' && text[at] <= '~' ? at + 1 : at;
}

/// The end of a title or a similar string: BEL or ESC \, at the latest the end of the line.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '\a' && text[at] != '\n' && text[at] != '\x1b') ++at;
  if (at + 1 < text.size() && text[at] == '\x1b' && text[at + 1] == '\\') return at + 2;
  return at < text.size() && text[at] == '\a' ? at + 1 : at;
}

/// The end of the code whose ESC is at `at`.
std::size_t end_of_escape(std::string_view text, std::size_t at) {
  if (at + 1 >= text.size()) return at + 1;
  const char kind = text[at + 1];
  if (kind == '[') return end_of_control(text, at + 2);
  if (kind == ']' || kind == 'P' || kind == 'X' || kind == '^' || kind == '_') return end_of_string(text, at + 2);
  at += 1;
  while (at < text.size() && text[at] >= ' ' && text[at] <= '/') ++at;  // "(B": a set of characters
  return at < text.size() && text[at] >= '0' && text[at] <= '~' ? at + 1 : at;
}

/// The end of "[1;32m" or "[0K"; `at` itself if it is something else. Codes without a digit look like words:
/// "[mpiexec]".
std::size_t end_of_bare_code(std::string_view text, std::size_t at) {
  constexpr std::size_t longest = 16;
  std::size_t end = at + 1;
  while (end < text.size() && end < at + longest && (is_digit(text[end]) || text[end] == ';')) ++end;
  if (end == at + 1 || end >= text.size() || (text[end] != 'm' && text[end] != 'K')) return at;
  return end + 1;
}

struct Spelling {
  std::string_view text, means;
};

/// Spellings of ESC in copies, and characters of web pages.
constexpr std::array spelled_escapes =
    std::to_array<std::string_view>({"^[", "\\x1b", "\\x1B", "\\033", "\\e", "\\u001b", "\\u001B", "\xE2\x90\x9B"});
constexpr std::array web_characters = std::to_array<Spelling>({{"\xC2\xA0", " "},
                                                               {"\xE2\x80\x87", " "},
                                                               {"\xE2\x80\x89", " "},
                                                               {"\xE2\x80\xAF", " "},
                                                               {"\xE2\x88\x92", "-"},
                                                               {"\xE2\x80\x8B", ""},
                                                               {"\xEF\xBB\xBF", ""}});

/// The meaning of a code or character and its length; length 0: an ordinary byte.
struct Taken {
  std::size_t bytes = 0;
  std::string_view means;
};

Taken taken_at(std::string_view text, std::size_t at) {
  if (text[at] == '\x1b') return {end_of_escape(text, at) - at, ""};
  if (text[at] == '[') return {end_of_bare_code(text, at) - at, ""};
  const std::string_view rest = text.substr(at);
  if (rest.starts_with("\xC2\x9B")) return {end_of_control(text, at + 2) - at, ""};
  for (const auto& [character, means] : web_characters)
    if (rest.starts_with(character)) return {character.size(), means};
  for (const std::string_view escape : spelled_escapes) {
    if (!rest.starts_with(escape) || rest.substr(escape.size(), 1) != "[") continue;
    const std::size_t code = at + escape.size(), end = end_of_bare_code(text, code);
    if (end != code) return {end - at, ""};
  }
  return {};
}

}  // namespace

std::string plain_text(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t next = std::min(text.find_first_of("\x1b[^\\\xC2\xE2\xEF", at), text.size());
    out += text.substr(at, next - at);
    if (next == text.size()) break;
    const Taken taken = taken_at(text, next);
    out += taken.bytes == 0 ? text.substr(next, 1) : taken.means;
    at = next + std::max<std::size_t>(taken.bytes, 1);
  }
  return out;
}

namespace {

/// The word at the start, up to a blank.
std::string_view first_word(std::string_view text) { return text.substr(0, text.find(' ')); }

bool is_made_of(std::string_view text, std::string_view others) {
  return std::all_of(text.begin(), text.end(), [&](char c) { return is_digit(c) || others.find(c) != others.npos; });
}

/// "10:11:12", "10:11:12.123456Z", "10:11:12,123", "10:11:12+01:00".
bool is_clock(std::string_view word) {
  return word.size() >= 8 && word[2] == ':' && word[5] == ':' && is_digit(word[0]) && is_made_of(word, ":.,Z+-");
}

/// "2026-02-03", "2026/02/03", and with a clock: "2026-02-03T10:11:12Z".
bool is_date(std::string_view word) {
  if (word.size() < 10 || (word[4] != '-' && word[4] != '/') || word[7] != word[4]) return false;
  if (!is_made_of(word.substr(0, 10), "-/")) return false;
  return word.size() == 10 || (word[10] == 'T' && is_clock(word.substr(11)));
}

bool is_month(std::string_view word) {
  constexpr std::string_view months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec ";
  return word.size() == 3 && months.find(std::string(word) + ' ') % 4 == 0;
}

std::string_view after_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(' '), text.size()));
}

/// These return the rest of a line after a prefix, and the whole line if it has none.
std::string_view after_time(std::string_view line) {
  const std::string_view word = first_word(line);
  if (word.size() == line.size()) return line;
  if (is_clock(word) || (is_date(word) && word.size() > 10)) return line.substr(word.size() + 1);
  if (is_date(word)) {
    const std::string_view clock = first_word(line.substr(word.size() + 1));
    const bool ends = word.size() + 1 + clock.size() == line.size();
    return is_clock(clock) && !ends ? line.substr(word.size() + clock.size() + 2) : line;
  }
  if (!is_month(word)) return line;
  // "Feb  3 10:11:12 node1 slurmd[321]: " of syslog and journalctl.
  const std::string_view day = after_blanks(line.substr(word.size())), at_day = first_word(day);
  if (at_day.size() > 2 || at_day.size() == day.size() || !is_made_of(at_day, "")) return line;
  const std::string_view clock = after_blanks(day.substr(at_day.size())), at_clock = first_word(clock);
  if (!is_clock(at_clock)) return line;
  const std::string_view host = after_blanks(clock.substr(at_clock.size()));
  const std::string_view program = after_blanks(host.substr(first_word(host).size()));
  return first_word(program).ends_with(':') ? program.substr(first_word(program).size()) : host;
}

/// "[1,0]<stdout>:", "[prterun-node1-7@1,0]<stdout>: ", "[0] ", "[2026-02-03 10:11:12,123] ".
std::string_view after_brackets(std::string_view line) {
  constexpr std::size_t longest = 80;
  const std::size_t close = line.substr(0, longest).find(']');
  if (!line.starts_with('[') || close == std::string_view::npos || close == 1) return line;
  const std::string_view inside = line.substr(1, close - 1);
  if (inside.find_first_of("[{\"") != std::string_view::npos) return line;
  std::string_view rest = line.substr(close + 1);
  bool tagged = false;
  for (; rest.starts_with('<') && rest.find('>') != std::string_view::npos; tagged = true)
    rest = rest.substr(rest.find('>') + 1);
  if (rest.starts_with(':')) return rest.substr(1);
  if (tagged) return rest;
  // A list of numbers is not a prefix: "[1, 2] ".
  const bool is_list = inside.find(',') != std::string_view::npos && inside.find(':') == std::string_view::npos;
  return rest.starts_with(' ') && !is_list ? rest.substr(1) : line;
}

/// "0: ", "node1.cluster: ", "worker-1  | ".
std::string_view after_label(std::string_view line) {
  constexpr std::size_t longest = 64;
  const auto is_name = [](char c) {
    return is_digit(c) || is_letter(c) || c == '-' || c == '_' || c == '.' || c == '/';
  };
  const auto end = static_cast<std::size_t>(std::find_if_not(line.begin(), line.end(), is_name) - line.begin());
  if (end == 0 || end > longest || end == line.size()) return line;
  if (line[end] == ':') {
    const std::string_view rest = line.substr(end + 1);
    return rest.find_first_of(" #{|") == 0 ? rest : line;
  }
  // Docker's names end in a number. Other words before a bar are a table's cells.
  const std::size_t stem = line.find_last_not_of("0123456789", end - 1);
  const bool numbered = stem != std::string_view::npos && stem + 1 < end && (line[stem] == '-' || line[stem] == '_');
  const std::string_view rest = after_blanks(line.substr(end));
  return numbered && rest.size() < line.size() - end && rest.starts_with('|') ? rest.substr(1) : line;
}

std::string_view after_mark(std::string_view line) {
  for (const std::string_view mark : {"stdout F ", "stdout P ", "stderr F ", "stderr P ", "&gt; ", "> "})
    if (line.starts_with(mark)) return line.substr(mark.size());
  const bool quotes = line.starts_with('>') && (line.size() == 1 || std::string_view("#|>").find(line[1]) != line.npos);
  return quotes ? line.substr(1) : line;
}

}  // namespace

std::string_view without_log_prefix(std::string_view line) {
  constexpr int most = 8;  // of a quoted line of kubectl --prefix --timestamps there are four
  for (int i = 0; i < most; ++i) {
    const std::string_view start = after_blanks(line);
    std::string_view rest = start;
    for (const auto after : {after_mark, after_time, after_brackets, after_label})
      if (rest.size() == start.size()) rest = after(start);
    if (rest.size() == start.size()) break;
    line = rest;
  }
  return line;
}

std::string_view trimmed(std::string_view text) {
  constexpr const char* blanks = " \t\r";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

}  // namespace ringsim
