#include "scenarios/meaning/meaning_devices.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "scenarios/fields/fields.hpp"

namespace ringsim::scenarios {

DeviceSpec devices_of(const nlohmann::json& canonical, const Blame& blame, const Scenario& scenario) {
  DeviceSpec spec;
  if (canonical.contains("devices")) read_members(field_at("devices"), canonical["devices"], spec);
  const auto check = [&](const std::optional<DeviceRates>& rates, const std::string& pointer) {
    if (rates && rates->channel && scenario.routing.policy == Routing::Policy::flow_spray)
      blame.fail(pointer + "/channel", "cannot be combined with routing flow_spray",
                 "flow_spray distinguishes messages of a pair by their number, the rate of channels by their channel");
  };
  check(spec.gpu, "/devices/gpu");
  check(spec.cpu, "/devices/cpu");
  if (const auto* graph = std::get_if<Graph>(&scenario.topology))
    for (std::size_t n = 0; n < graph->nodes.size(); ++n) {
      const std::string pointer = fmt::format("/topology/nodes/{}/rates", n);
      const Graph::NodeSpec& node = graph->nodes[n];
      check(node.rates, pointer);
      if (!node.over.empty() && !node.rates->reduce && !node.rates->copy)
        blame.fail(pointer + "/over", "expected reduce or copy as well, found neither",
                   "it sets the link that additions and copies use");
    }
  return spec;
}

}  // namespace ringsim::scenarios
