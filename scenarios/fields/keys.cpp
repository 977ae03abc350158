#include "scenarios/fields/keys.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "scenarios/scenario.hpp"

namespace ringsim::scenarios {

namespace {

class Walk {
 public:
  void into(const Field& field, const KeyPlace& above) {
    KeyPlace below = above;
    if (field.type == Type::list) {
      below.path.emplace_back("0");
      into(field.members.front(), below);
    } else if (field.type == Type::object) {
      for (const Field& member : field.members) add(member, above);
    } else if (field.type == Type::variant) {
      for (const Field& variant : field.variants) {
        below.kinds = above.kinds;
        below.kinds.push_back({above.path, field.discriminator, variant.name});
        for (const Field& member : variant.members) add(member, below);
      }
    }
  }

  std::vector<KeyPlace> places;

 private:
  void add(const Field& member, KeyPlace place) {
    place.path.push_back(member.name);
    place.field = &member;
    places.push_back(place);
    into(member, place);
  }
};

}  // namespace

const std::vector<KeyPlace>& key_places() {
  static const std::vector<KeyPlace> places = [] {
    Walk walk;
    walk.into(scenario_field(), {});
    return std::move(walk.places);
  }();
  return places;
}

}  // namespace ringsim::scenarios

namespace ringsim {

std::vector<ScenarioKey> scenario_keys() {
  std::vector<ScenarioKey> keys;
  for (const scenarios::KeyPlace& place : scenarios::key_places()) {
    const scenarios::Field& field = *place.field;
    if (place.path.front() == "jobs" && place.path.size() > 3) continue;  // as of the scenario's own collective
    ScenarioKey key{.path = fmt::format("{}", fmt::join(place.path, ".")),
                    .expects = scenarios::expectation(field),
                    .fallback = field.fallback,
                    .doc = field.doc,
                    .kinds = {}};
    if (!place.kinds.empty()) key.kinds.push_back(place.kinds.back().name);
    const auto same = std::find_if(keys.begin(), keys.end(), [&](const ScenarioKey& other) {
      return other.path == key.path && other.doc == key.doc && other.expects == key.expects;
    });
    if (same == keys.end())
      keys.push_back(std::move(key));
    else if (!key.kinds.empty() &&
             std::find(same->kinds.begin(), same->kinds.end(), key.kinds.front()) == same->kinds.end())
      same->kinds.push_back(key.kinds.front());
  }
  return keys;
}

}  // namespace ringsim
