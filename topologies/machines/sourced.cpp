#include "topologies/machines/sourced.hpp"

#include <charconv>
#include <string_view>

namespace ringsim {

Place sourced(const Place& number, const std::string& what, std::string& origins) {
  if (!number.json.is_object() || !(number.has("source") || number.has("assumed"))) {
    number.fail("a number without a source",
                R"(write {"value": ..., "source": "where it comes from"}, or "assumed": "why this value is assumed")");
  }
  number.allow({"value", "source", "assumed"});
  origins += (origins.empty() ? "" : "; ") + what + ": ";
  if (number.has("source")) origins += number.at("source").text();
  if (number.has("assumed")) {
    origins += (number.has("source") ? ", assumed: " : "assumed: ") + number.at("assumed").text();
  }
  return number.at("value");
}

namespace {
/// Reads "7" or "0-7" into a first and a last number; false if it is neither, or counts down.
bool read_range(std::string_view text, int& first, int& last) {
  const auto number = [](std::string_view digits, int& value) {
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc{} && end == digits.data() + digits.size() && std::to_string(value) == digits;
  };
  const std::size_t dash = text.find('-');
  if (!number(text.substr(0, dash), first)) return false;
  last = first;
  return (dash == std::string_view::npos || number(text.substr(dash + 1), last)) && first <= last;
}
}  // namespace

std::vector<std::string> listed_names(const Place& list) {
  constexpr std::size_t most = 10000;  // of one kind in one machine: beyond it, a slip of the finger
  const std::string text = list.text();
  const auto wrong = [&] {
    list.fail("expected a name or a list of names such as \"gpu[0-7]\" or \"gpu[0-1,4]\", found \"" + text + "\"");
  };
  const std::size_t open = text.find_first_of("[]");
  if (open == std::string::npos) return {text};
  if (text[open] != '[' || text.back() != ']' || text.find_first_of("[]", open + 1) != text.size() - 1) wrong();

  std::vector<std::string> names;
  for (std::size_t at = open + 1; at < text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size() - 1);
    int first = 0, last = 0;
    if (!read_range(std::string_view(text).substr(at, end - at), first, last)) wrong();
    if (static_cast<std::size_t>(last - first) >= most) list.fail("at most 10000 names, found \"" + text + "\"");
    for (int n = first; n <= last; ++n) names.push_back(text.substr(0, open) + std::to_string(n));
    at = end + 1;
  }
  return names;
}

}  // namespace ringsim
