// The machines that are built in: that each is whole, and what its copies reach.
#include <doctest/doctest.h>

#include <string>

#include "topologies/catalog.hpp"
#include "topologies/machine.hpp"

using namespace ringsim;

TEST_CASE("every preset is called as its file, and every link of it says where its numbers come from") {
  REQUIRE_FALSE(preset_files().empty());
  for (const PresetFile& file : preset_files()) {
    const Machine preset = node_preset(std::string(file.name));
    CHECK(preset.name == file.name);
    for (const Machine::Cable& each : preset.cables) {
      CHECK(each.link.source.find("latency: ") != std::string::npos);
    }
  }
  CHECK(node_catalog().size() == preset_files().size());
}
