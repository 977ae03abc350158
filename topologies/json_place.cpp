#include "topologies/json_place.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include "sim/error.hpp"

namespace ringsim {

void Place::fail(const std::string& message, const std::string& hint) const {
  throw InputError(file + ": " + (pointer.empty() ? "/" : pointer), message, hint);
}

Place Place::at(const std::string& key) const {
  if (!has(key)) fail("expected a key \"" + key + "\"");
  return {json.at(key), file, pointer + "/" + key};
}

std::vector<Place> Place::items() const {
  if (!json.is_array()) fail("expected a list");
  std::vector<Place> all;
  for (std::size_t i = 0; i < json.size(); ++i) all.push_back({json[i], file, pointer + "/" + std::to_string(i)});
  return all;
}

std::vector<std::pair<std::string, Place>> Place::entries() const {
  if (!json.is_object()) fail("expected an object");
  std::vector<std::pair<std::string, Place>> all;
  for (const auto& [key, value] : json.items()) all.push_back({key, {value, file, pointer + "/" + key}});
  return all;
}

void Place::allow(const std::vector<std::string>& keys) const {
  for (const auto& [key, value] : entries()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
      value.fail("unknown key \"" + key + "\"", did_you_mean(key, keys));
    }
  }
}

std::string Place::text() const {
  if (!json.is_string() || json.get_ref<const std::string&>().empty()) fail("expected a text");
  return json.get<std::string>();
}

bool Place::truth() const {
  if (!json.is_boolean()) fail("expected true or false, found " + json.dump());
  return json.get<bool>();
}

void Place::fail_word(const std::string& found, const std::vector<std::string>& words) const {
  std::string list;
  for (const std::string& each : words) list += (list.empty() ? "\"" : ", \"") + each + "\"";
  fail("expected one of " + list + ", found \"" + found + "\"", did_you_mean(found, words));
}

Json parse_strictly(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      throw InputError(file, "the key \"" + parsed.get<std::string>() + "\" stands twice in one object");
    }
    return true;
  };
  try {
    return Json::parse(text, watch);
  } catch (const Json::parse_error& error) {
    const std::size_t end = std::min(text.size(), error.byte);
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    throw InputError(file + ":" + std::to_string(line), "not JSON");
  }
}

Place sourced(const Place& number, const std::string& what, std::string& origins) {
  if (!number.json.is_object() || !(number.has("source") || number.has("assumed"))) {
    number.fail("a number without a source",
                R"(write {"value": ..., "source": "where it is from"}, or "assumed": "why it is taken to be so")");
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
/// Reads "7" or "0-7" into a first and a last number; false where it is neither, or counts down.
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
