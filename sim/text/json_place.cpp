#include "sim/text/json_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "sim/base/error.hpp"

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

std::int64_t Place::whole(std::int64_t least, std::int64_t most) const {
  const bool fits = json.is_number_integer() && (!json.is_number_unsigned() || json.get<std::uint64_t>() <= INT64_MAX);
  const std::int64_t value = fits ? json.get<std::int64_t>() : 0;
  if (!fits || value < least || value > most)
    fail(fmt::format("expected a whole number from {} to {}, found {:.40}", least, most, json.dump()));
  return value;
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

}  // namespace ringsim
