#include "scenarios/meaning/meaning_devices.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "sim/base/quantity.hpp"

namespace ringsim::scenarios {

DeviceRates device_rates_of(const nlohmann::json& rates) {
  const auto rate = [&](const char* key) {
    return rates.contains(key) ? std::optional(Bandwidth{rates[key].get<std::int64_t>()}) : std::nullopt;
  };
  return {.copy = rate("copy"),
          .reduce = rate("reduce"),
          .channel = rate("channel"),
          .start = Picoseconds{rates.value("start", std::int64_t{0})},
          .post = Picoseconds{rates.value("post", std::int64_t{0})},
          .over = {}};
}

DeviceSpec devices_of(const nlohmann::json& canonical, const Blame& blame, const Scenario& scenario) {
  DeviceSpec spec;
  if (canonical.contains("devices")) {
    const nlohmann::json& devices = canonical["devices"];
    if (devices.contains("gpu")) spec.gpu = device_rates_of(devices["gpu"]);
    if (devices.contains("cpu")) spec.cpu = device_rates_of(devices["cpu"]);
  }
  const auto check = [&](const std::optional<DeviceRates>& rates, const std::string& pointer) {
    if (!rates) return;
    for (const auto& [key, rate] :
         {std::pair{"copy", rates->copy}, std::pair{"reduce", rates->reduce}, std::pair{"channel", rates->channel}})
      if (rate && max_bandwidth < *rate)
        blame.fail(fmt::format("{}/{}", pointer, key),
                   fmt::format("expected a rate of at most 1000000 TB/s, found {}", format(*rate)),
                   "leave it out: then it takes no time");
    if (rates->channel && scenario.routing.policy == Routing::Policy::flow_spray)
      blame.fail(pointer + "/channel", "cannot be combined with routing flow_spray",
                 "flow_spray tells messages of a pair apart by their number, a rate of channels by their channel");
  };
  check(spec.gpu, "/devices/gpu");
  check(spec.cpu, "/devices/cpu");
  if (const auto* graph = std::get_if<Graph>(&scenario.topology))
    for (std::size_t n = 0; n < graph->nodes.size(); ++n) {
      const std::string pointer = fmt::format("/topology/nodes/{}/rates", n);
      const Graph::NodeSpec& node = graph->nodes[n];
      check(node.rates, pointer);
      if (!node.over.empty() && !node.rates->reduce && !node.rates->copy)
        blame.fail(pointer + "/over", "expected reduce or copy next to it, found neither",
                   "it says what additions and copies draw on");
    }
  return spec;
}

}  // namespace ringsim::scenarios
