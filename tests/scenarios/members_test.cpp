#include "scenarios/fields/member.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "scenarios/fields/fields.hpp"
#include "scenarios/fields/keys.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"

namespace members_test {

using namespace ringsim;
using namespace ringsim::scenarios;

enum class Color : std::uint8_t { red, blue };

struct Wheel {
  int spokes = 32;
  std::optional<Picoseconds> turn;
};
struct Bike {
  Bytes load{};
  Bandwidth speed{};
  double scale = 1;
  bool bell = true;
  std::string name;
  std::vector<int> gears;
  Color color = Color::red;
  Wheel front;
  std::optional<Wheel> spare;
};
struct Boat {
  int oars = 2;
};
using Vehicle = std::variant<Boat, Wheel>;

Field row(std::string name, Member into, std::vector<Field> members = {}) {
  return {
      .name = std::move(name), .type = Type::object, .doc = "", .members = std::move(members), .into = std::move(into)};
}

Field bike() {
  const std::vector<Field> wheel{row("spokes", &Wheel::spokes), row("turn", &Wheel::turn)};
  return row(
      "bike", {},
      {row("load", &Bike::load), row("speed", &Bike::speed), row("scale", &Bike::scale), row("bell", &Bike::bell),
       row("name", &Bike::name), row("gears", &Bike::gears),
       row("color", {&Bike::color, {{"red", Color::red}, {"blue", Color::blue}}}), row("front", &Bike::front, wheel),
       row("spare", &Bike::spare, wheel),
       row("spokes", Member::through<Bike>([](Bike& to) -> int& { return to.front.spokes; })), row("by_meaning", {})});
}

TEST_CASE("an object's rows fill the members that they name, in base units; what is not said keeps its default") {
  Bike made;
  read_members(bike(),
               {{"load", 1024},
                {"speed", 25'000'000'000},
                {"scale", 1'500'000},  // millionths
                {"bell", false},
                {"name", "b"},
                {"gears", {3, 7}},
                {"color", "blue"},
                {"front", {{"turn", 7}}},
                {"spare", {{"spokes", 24}}},
                {"by_meaning", "read by others"}},
               made);
  CHECK(made.load == Bytes{1024});
  CHECK(made.speed == Bandwidth{25'000'000'000});
  CHECK(made.scale == 1.5);
  CHECK(!made.bell);
  CHECK(made.name == "b");
  CHECK(made.gears == std::vector<int>{3, 7});
  CHECK(made.color == Color::blue);
  CHECK(made.front.spokes == 32);
  CHECK(made.front.turn == Picoseconds{7});
  REQUIRE(made.spare.has_value());
  CHECK(made.spare->spokes == 24);
  CHECK(!made.spare->turn.has_value());

  Bike untouched;
  read_members(bike(), nlohmann::json::object(), untouched);
  CHECK(untouched.front.spokes == 32);
  CHECK(!untouched.spare.has_value());
  read_members(bike(), {{"spokes", 20}}, untouched);  // a member of a member
  CHECK(untouched.front.spokes == 20);
}

TEST_CASE("a variant becomes the structure of the kind that is named") {
  const Field kinds{.name = "vehicle",
                    .type = Type::variant,
                    .doc = "",
                    .discriminator = "kind",
                    .variants = {row("boat", Member::alternative<Vehicle, Boat>(), {row("oars", &Boat::oars)}),
                                 row("wheel", Member::alternative<Vehicle, Wheel>(), {row("spokes", &Wheel::spokes)})}};
  Vehicle made;
  read_variant(kinds, {{"kind", "wheel"}, {"spokes", 5}}, made);
  REQUIRE(std::holds_alternative<Wheel>(made));
  CHECK(std::get<Wheel>(made).spokes == 5);
  read_variant(kinds, {{"kind", "boat"}}, made);
  REQUIRE(std::holds_alternative<Boat>(made));
  CHECK(std::get<Boat>(made).oars == 2);
}

TEST_CASE(
    "a row that fills a member of another structure, or names a choice that nothing stands for, is a mistake of the "
    "table") {
  Boat boat;
  CHECK_THROWS_AS(read_members(bike(), {{"load", 1}}, boat), InvariantError);
  Bike made;
  CHECK_THROWS_AS(read_members(bike(), {{"color", "green"}}, made), InvariantError);
}

TEST_CASE("a member is changed if it differs from that of a new structure; an optional one if it is there") {
  const Field table = bike();
  const auto changed = [&](const Bike& of) {
    std::string names;
    for (const Field& each : table.members)
      if (each.into && each.into.is_changed(of)) names += each.name + ' ';
    return names;
  };
  Bike made;
  CHECK(changed(made).empty());
  made.bell = false;
  made.gears = {1};
  made.spare.emplace();
  CHECK(changed(made) == "bell gears spare ");
}

TEST_CASE("every key has one place by its kind, and its row's default is one that its type has") {
  // What `read_members` would not find: a path that is listed twice for one kind.
  std::vector<std::string> seen;
  for (const KeyPlace& place : key_places()) {
    std::string id;
    for (const KindAbove& kind : place.kinds) id += kind.name + '/';
    for (const std::string& part : place.path) id += '.' + part;
    CAPTURE(id);
    CHECK(std::find(seen.begin(), seen.end(), id) == seen.end());
    seen.push_back(std::move(id));
    CHECK(!place.field->doc.empty());
    if (place.field->max < place.field->min) FAIL("bounds that nothing satisfies");
  }
  CHECK(seen.size() > 400);
}

}  // namespace members_test
