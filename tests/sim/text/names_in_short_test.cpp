// Lists of devices in short.
#include "sim/text/names_in_short.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace names_in_short_test {

using ringsim::names_in_short;

TEST_CASE("a list of devices is as short as people say it, in the same order") {
  CHECK(names_in_short(R"(["gpu0","gpu1","gpu2","gpu3"])") == "gpu0-3");
  CHECK(names_in_short(R"(["gpu3","gpu2","gpu1"])") == "gpu3-1");
  CHECK(names_in_short(R"(["gpu0","gpu1","gpu4","gpu6"])") == "gpu0,1,4,6");  // two are no run
  CHECK(names_in_short(R"(["node0.gpu0","node1.gpu0"])") == "node0,1 x gpu0");
  // Node by node, and GPU by GPU.
  CHECK(names_in_short(R"(["node0.gpu0","node0.gpu1","node0.gpu2","node1.gpu0","node1.gpu1","node1.gpu2"])") ==
        "node0,1 x gpu0-2");
  CHECK(names_in_short(R"(["node0.gpu0","node2.gpu0","node1.gpu0","node0.gpu1","node2.gpu1","node1.gpu1"])") ==
        "gpu0,1 x node0,2,1");
  // The second node the other way round.
  CHECK(names_in_short(R"(["node0.gpu0","node0.gpu2","node0.gpu4","node1.gpu4","node1.gpu2","node1.gpu0"])") ==
        "node0 x gpu0,2,4, node1 x gpu4,2,0");
  CHECK(names_in_short(R"(["a0","b1","b2","b3"])") == "a0, b1-3");
}

TEST_CASE("what is no list of devices stays as it is") {
  for (const char* text : {"ring", "[1,2]", R"(["gpu07","gpu08"])", R"(["leaf","spine"])", R"(["gpu0",1])", "[]",
                           R"({"kind":"star"})", R"(["n-1.gpu0","n-2.gpu0"])", "[\"gpu0\"", R"(["9","10","11"])"})
    CHECK(names_in_short(text) == text);
}

TEST_CASE("different lists have different texts") {
  // Lists of up to 6 of 2 x 3 devices and 3 bare ones, at random: equal texts only for equal lists.
  std::mt19937 random(7);
  std::set<std::string> lists, texts;
  for (int i = 0; i < 20000; ++i) {
    nlohmann::json list = nlohmann::json::array();
    const auto n = 1 + random() % 6;
    for (unsigned k = 0; k < n; ++k) {
      const auto host = random() % 3, device = random() % 3;
      const std::string name = "gpu" + std::to_string(device);
      list.push_back(host == 2 ? name : "node" + std::to_string(host) + "." + name);
    }
    if (lists.insert(list.dump()).second) CHECK(texts.insert(names_in_short(list.dump())).second);
  }
  CHECK(lists.size() > 5000);
}

}  // namespace names_in_short_test
