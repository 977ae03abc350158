#include "scenarios/meaning/meaning_calibration.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"

namespace ringsim::scenarios {

Calibration calibration_of(const nlohmann::json& factors) {
  const auto factor = [&](const char* name) {
    return factors.contains(name) ? static_cast<double>(factors[name].get<std::int64_t>()) / 1e6 : 1.0;
  };
  Calibration out{.launch = {},
                  .links = {.latency = factor("latency_scale"),
                            .inside = factor("efficiency_inside"),
                            .between = factor("efficiency_between")}};
  if (factors.contains("launch")) out.launch = Picoseconds{factors["launch"].get<std::int64_t>()};
  return out;
}

void take_calibration(const nlohmann::json& canonical, const Blame& blame, const Files& files, Scenario& scenario) {
  if (!canonical.contains("calibration")) return;
  const nlohmann::json& given = canonical["calibration"];
  if (given.contains("file")) {
    for (const auto& [key, value] : given.items())
      if (key != "file")
        blame.fail("/calibration/" + key, fmt::format("expected either a file or factors, found file and {}", key));
    const Files::Content& content = files.read(given["file"]["path"].get<std::string>());
    scenario.calibration = read_calibration(content.text, content.path, scenario.warnings);
  } else {
    scenario.calibration = calibration_of(given);
  }
  try {
    scale_links(scenario.topology, scenario.calibration->links);
  } catch (const InputError& error) {
    blame.fail("/calibration", error.message(), error.hint());
  }
}

}  // namespace ringsim::scenarios
