#include "scenarios/decoder/key_hint.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "scenarios/decoder/edit.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/fields/keys.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim::scenarios {

namespace {

using Entry = KeyPlace;

/// Those of that name, and those that people call so; outer ones first.
std::vector<Entry> named(std::string_view key) {
  std::vector<Entry> found;
  std::copy_if(key_places().begin(), key_places().end(), std::back_inserter(found), [&](const Entry& entry) {
    const auto& words = entry.field->words;
    return entry.path.back() == key || std::find(words.begin(), words.end(), key) != words.end();
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const Entry& a, const Entry& b) { return a.path.size() < b.path.size(); });
  return found;
}

/// The value at a path; nullptr if the scenario says none.
const Json* at(const Json& root, const DottedPath& path) {
  const Json* value = &root;
  for (const std::string& key : path) {
    if (!value->is_object() || !value->contains(key)) return nullptr;
    value = &(*value)[key];
  }
  return value;
}

/// The outermost variant above the key that the scenario says to be of another kind; nullptr if there is none.
const KindAbove* other_kind(const Entry& entry, const Json& root) {
  for (const KindAbove& each : entry.kinds) {
    const Json* variant = at(root, each.variant);
    if (variant == nullptr) return nullptr;
    const bool spelled = variant->is_object() && variant->contains(each.discriminator);
    const Json& kind = spelled ? (*variant)[each.discriminator] : *variant;
    if (kind.is_string() && kind != each.name) return &each;
  }
  return nullptr;
}

/// True if the JSON type of the value fits the field.
bool fits_value(const Field& field, const Json& value) {
  const bool several = field.varies && field.type != Type::list && value.is_array() && !value.empty();
  if (several) return fits_value(field, value.front());
  switch (field.type) {
    case Type::boolean:
      return value.is_boolean();
    case Type::whole:
      return value.is_number_integer() || value.is_object();  // a range
    case Type::size:
    case Type::rate:
    case Type::time:
      return value.is_string() || value.is_object();
    case Type::factor:
      return value.is_number();
    case Type::list:
      return value.is_array();
    case Type::object:
    case Type::variant:
      return value.is_object() || (!field.named_by.empty() && value.is_string());
    default:
      return value.is_string();
  }
}

/// Keeps those for which `keep` holds, if there are any.
template <class Keep>
void prefer(std::vector<Entry>& entries, Keep keep) {
  std::vector<Entry> kept;
  std::copy_if(entries.begin(), entries.end(), std::back_inserter(kept), keep);
  if (!kept.empty()) entries = std::move(kept);
}

std::size_t shared(const DottedPath& a, const DottedPath& b) {
  const auto most = static_cast<std::ptrdiff_t>(std::min(a.size(), b.size()));
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.begin() + most, b.begin()).first - a.begin());
}

bool in_list(const DottedPath& path) { return std::find(path.begin(), path.end(), "0") != path.end(); }

/// The places of a key, the likeliest first. `value`: its value; may be nullptr. `object`: the path of the
/// object that has the key now.
std::vector<Entry> places_of(const std::string& key, const Json* value, const DottedPath& object, const Json& root) {
  std::vector<Entry> found = named(key);
  const bool in_jobs = !object.empty() && object.front() == "jobs";
  prefer(found, [&](const Entry& entry) { return in_jobs || entry.path.front() != "jobs"; });
  if (!in_list(object)) prefer(found, [&](const Entry& entry) { return !in_list(entry.path); });
  // One of these is what a scenario is about; a trace the least often, then inference.
  const auto is_of = [&](std::string_view part) { return root.contains(part); };
  const bool says = is_of("collective") || is_of("training") || is_of("inference") || is_of("trace");
  for (const std::string_view part : {"trace", "inference", "training", "collective"})
    if (!is_of(part) && (says || part == "inference" || part == "trace"))
      prefer(found, [&](const Entry& entry) { return entry.path.front() != part; });
  const auto takes = [&](const Entry& entry) { return value == nullptr || fits_value(*entry.field, *value); };
  const auto is_here = [&](const Entry& entry) { return other_kind(entry, root) == nullptr; };
  // Kinds that the scenario does not have are worth a word if nothing that it has can take the value.
  if (std::any_of(found.begin(), found.end(), [&](const Entry& entry) { return takes(entry) && is_here(entry); }))
    prefer(found, is_here);
  std::stable_sort(found.begin(), found.end(), [&](const Entry& a, const Entry& b) {
    const auto rank = [&](const Entry& entry) {
      return std::pair(!takes(entry), object.size() - shared(entry.path, object));
    };
    return rank(a) < rank(b);
  });
  return found;
}

/// A place in words, and the kinds that have it if the scenario is of another.
struct Place {
  DottedPath path;
  std::vector<std::string> kinds;
  bool takes = true;         ///< the value
  std::ptrdiff_t depth = 0;  ///< of the variant that is of another kind, among those above the key
};

/// The entries by their paths, in the same order: of each path those that can take the value, or if there are none all.
std::vector<Place> by_path(const std::vector<Entry>& entries, const Json* value, const Json& root) {
  std::vector<Place> places;
  for (const Entry& entry : entries) {
    auto place = std::find_if(places.begin(), places.end(), [&](const Place& each) { return each.path == entry.path; });
    const bool takes = value == nullptr || fits_value(*entry.field, *value);
    if (place == places.end()) place = places.insert(places.end(), {entry.path, {}, takes, 0});
    const KindAbove* other = other_kind(entry, root);
    if (other == nullptr || takes != place->takes) continue;
    // The nearest to what the scenario has: of a cluster's fabric another kind of fabric, not another topology.
    const std::ptrdiff_t depth = other - entry.kinds.data();
    if (depth > place->depth) place->kinds.clear();
    place->depth = std::max(place->depth, depth);
    if (depth < place->depth) continue;
    if (std::find(place->kinds.begin(), place->kinds.end(), other->name) == place->kinds.end())
      place->kinds.push_back(other->name);
  }
  return places;
}

std::string said(const Place& place) {
  const std::string text = fmt::format("{}", fmt::join(place.path, "."));
  if (place.path.size() == 1) return fmt::format("\"{}\" at the top of the scenario", text);
  return place.kinds.empty() ? text : fmt::format("{} (of {})", text, fmt::join(place.kinds, ", "));
}

constexpr std::size_t most_places = 4;

/// "did you mean topology.ranks or collective.ranks?"; empty if the key may stand nowhere.
std::string elsewhere(const Json& root, const std::string& pointer, const std::string& key) {
  DottedPath object;
  for (std::size_t from = 1; from < pointer.size();) {
    const std::size_t end = std::min(pointer.find('/', from), pointer.size());
    object.push_back(pointer.substr(from, end - from));
    from = end + 1;
  }
  const Json* holder = at(root, object);
  const Json* value = holder != nullptr && holder->is_object() && holder->contains(key) ? &(*holder)[key] : nullptr;
  if (value != nullptr && value->is_null()) value = nullptr;
  const std::vector<Place> found = by_path(places_of(key, value, object, root), value, root);
  const bool only_in_lists = !found.empty() && in_list(found.front().path) && !in_list(object);
  if (found.empty() || (only_in_lists && found.size() > 1))
    return "";  // a word such as "from" or "rank" says too little
  DottedPath here = object;
  here.push_back(key);
  if (found.front().path == here)
    return fmt::format("{} is a key of {}.", in_quotes(key), fmt::join(found.front().kinds, ", "));
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(most_places, found.size()); ++i) texts.push_back(said(found[i]));
  if (found.size() > most_places) texts.push_back(fmt::format("one of {} other places", found.size() - most_places));
  const std::string last = texts.back();
  texts.pop_back();
  return texts.empty() ? fmt::format("did you mean {}?", last)
                       : fmt::format("did you mean {} or {}?", fmt::join(texts, ", "), last);
}

}  // namespace

std::vector<std::string> paths_of(const std::string& key, const std::string& text) {
  const Json json = Json::accept(text) ? Json::parse(text) : Json(text);
  const Json* value = text.empty() ? nullptr : &json;
  const Json nothing = Json::object();
  std::vector<std::string> paths;
  for (const Place& place : by_path(places_of(key, value, {}, nothing), value, nothing))
    if (!in_list(place.path) && place.path.front() != "jobs" && paths.size() < most_places)
      paths.push_back(fmt::format("{}", fmt::join(place.path, ".")));
  return paths;
}

std::string key_hint(const Json& root, const std::string& pointer, const std::string& key,
                     const std::vector<std::string>& known) {
  if (did_you_mean(key, known).empty())
    if (std::string place = elsewhere(root, pointer, key); !place.empty())
      return place.ends_with('.') ? place + ' ' + spelling_hint(key, known) : place;
  return spelling_hint(key, known);
}

}  // namespace ringsim::scenarios
