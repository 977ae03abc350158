// Lines of JSON from another process, which may say anything: each is held to what was expected of it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace ringsim::replay {

using LineJson = nlohmann::ordered_json;

/// A line that no process of a replay sends at that time. what() says what was expected, in words of our own: nothing
/// of the line itself is in it.
class BadLine : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// All of these throw BadLine.
/// An object, whose members are no deeper than a list.
LineJson parse_line(std::string_view text);
/// The line has these members, and no others.
void expect_members(const LineJson& line, std::initializer_list<std::string_view> names);
/// A whole number within bounds.
std::int64_t line_whole(const LineJson& line, const char* name, std::int64_t least, std::int64_t most);
/// A text of at most `most` bytes, to be read by users: ends of lines before which no indented line begins become
/// spaces. Control characters are left to whatever prints it.
std::string line_text(const LineJson& line, const char* name, std::size_t most);
/// 64 hexadecimal digits.
std::string line_digits(const LineJson& line, const char* name);
/// At most `most_items` whole numbers within bounds.
std::vector<std::int64_t> line_wholes(const LineJson& line, const char* name, std::int64_t least, std::int64_t most,
                                      std::size_t most_items);
/// At most `most_items` texts of at most `most` bytes.
std::vector<std::string> line_texts(const LineJson& line, const char* name, std::size_t most, std::size_t most_items);

/// The most bytes of a text for users: the reason of an end, or a note.
constexpr std::size_t longest_text = 4096;
/// Its beginning: at most `longest_text` bytes, even if a byte that is no UTF-8 becomes three.
std::string cut_text(const std::string& text);

}  // namespace ringsim::replay
