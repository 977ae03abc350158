#include "validate/replay/tcp/lines.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ringsim::replay {

namespace {

// The line is 1, its lists 2.
constexpr int deepest = 2;

const LineJson& member_of(const LineJson& line, const char* name) {
  const auto found = line.find(name);
  if (found == line.end()) throw BadLine(fmt::format("expected a line with \"{}\"", name));
  return *found;
}

std::int64_t whole_of(const LineJson& value, const char* name, std::int64_t least, std::int64_t most) {
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > static_cast<std::uint64_t>(most);
  if (!value.is_number_integer() || too_large || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most)
    throw BadLine(fmt::format("expected a whole number from {} to {} as \"{}\"", least, most, name));
  return value.get<std::int64_t>();
}

/// Further lines are indented, as hints are, so that none looks as if it were of this program.
std::string one_paragraph(std::string text) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '\r' || (text[i] == '\n' && text.compare(i + 1, 2, "  ") != 0)) text[i] = ' ';
  return text;
}

std::string text_in(const LineJson& value, const char* name, std::size_t most) {
  if (!value.is_string() || value.get_ref<const std::string&>().size() > most)
    throw BadLine(fmt::format("expected a text of at most {} bytes as \"{}\"", most, name));
  return one_paragraph(value.get<std::string>());
}

const LineJson& list_of(const LineJson& line, const char* name, std::size_t most_items) {
  const LineJson& list = member_of(line, name);
  if (!list.is_array() || list.size() > most_items)
    throw BadLine(fmt::format("expected a list of at most {} as \"{}\"", most_items, name));
  return list;
}

}  // namespace

LineJson parse_line(std::string_view text) {
  bool too_deep = false;
  const auto look = [&](int depth, LineJson::parse_event_t event, LineJson&) {
    const bool begins = event == LineJson::parse_event_t::object_start || event == LineJson::parse_event_t::array_start;
    too_deep = too_deep || (begins && depth >= deepest);
    return !too_deep;
  };
  LineJson line = LineJson::parse(text, look, false);
  if (too_deep) throw BadLine("expected a line of JSON without lists in lists");
  if (!line.is_object()) throw BadLine("expected a line with an object of JSON");
  return line;
}

void expect_members(const LineJson& line, std::initializer_list<std::string_view> names) {
  for (const auto& member : line.items()) {
    if (std::find(names.begin(), names.end(), std::string_view(member.key())) != names.end()) continue;
    std::string all;
    for (const std::string_view name : names) all += fmt::format("{}\"{}\"", all.empty() ? "" : ", ", name);
    throw BadLine(fmt::format("expected a line with {} only", all));
  }
}

std::int64_t line_whole(const LineJson& line, const char* name, std::int64_t least, std::int64_t most) {
  return whole_of(member_of(line, name), name, least, most);
}

std::string line_text(const LineJson& line, const char* name, std::size_t most) {
  return text_in(member_of(line, name), name, most);
}

std::string line_digits(const LineJson& line, const char* name) {
  const LineJson& value = member_of(line, name);
  constexpr std::size_t n_digits = 64;
  if (!value.is_string() || value.get_ref<const std::string&>().size() != n_digits ||
      value.get_ref<const std::string&>().find_first_not_of("0123456789abcdef") != std::string::npos)
    throw BadLine(fmt::format("expected {} hexadecimal digits as \"{}\"", n_digits, name));
  return value.get<std::string>();
}

std::vector<std::int64_t> line_wholes(const LineJson& line, const char* name, std::int64_t least, std::int64_t most,
                                      std::size_t most_items) {
  std::vector<std::int64_t> wholes;
  for (const LineJson& value : list_of(line, name, most_items)) wholes.push_back(whole_of(value, name, least, most));
  return wholes;
}

std::vector<std::string> line_texts(const LineJson& line, const char* name, std::size_t most, std::size_t most_items) {
  std::vector<std::string> texts;
  for (const LineJson& value : list_of(line, name, most_items)) texts.push_back(text_in(value, name, most));
  return texts;
}

std::string cut_text(const std::string& text) { return text.substr(0, longest_text / 3); }

}  // namespace ringsim::replay
