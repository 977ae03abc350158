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

double compute_scale_of(const nlohmann::json& canonical) {
  if (!canonical.contains("calibration") || !canonical["calibration"].contains("scale_compute")) return 1;
  return static_cast<double>(canonical["calibration"]["scale_compute"].get<std::int64_t>()) / 1e6;
}

namespace {

ClassScales class_scales_of(const nlohmann::json& factors) {
  ClassScales out;
  const auto take = [&](const std::string& name, double& factor) {
    if (const std::string key = "scale_" + name; factors.contains(key))
      factor = static_cast<double>(factors[key].get<std::int64_t>()) / 1e6;
  };
  for (const LinkClass each : link_classes)
    take(std::string(to_string(each)), out.bandwidth[static_cast<std::size_t>(each)]);
  take("latency", out.latency);
  return out;
}

}  // namespace

void take_calibration(const nlohmann::json& canonical, const Blame& blame, const Files& files, Scenario& scenario) {
  if (!canonical.contains("calibration")) return;
  const nlohmann::json& given = canonical["calibration"];
  if (given.contains("file")) {
    for (const auto& [key, value] : given.items())
      if (key != "file" && !key.starts_with("scale_"))
        blame.fail("/calibration/" + key, fmt::format("expected either a file or factors, found file and {}", key));
    const Files::Content& content =
        files.read(given["file"]["path"].get<std::string>(),
                   {"a file of `ringsim calibrate`, which has \"factors\"", {"\"factors\""}});
    scenario.calibration = read_calibration(content.text, content.path, scenario.warnings);
  } else {
    scenario.calibration = calibration_of(given);
  }
  scenario.calibration->classes = class_scales_of(given);
  scenario.calibration->compute = compute_scale_of(canonical);
  if (!scenario.trains() && scenario.calibration->compute != 1)
    scenario.warnings.push_back(blame.where("/calibration/scale_compute") +
                                ": it has no effect, because nothing is trained");
  try {
    scale_links(scenario.topology, scenario.calibration->links);
  } catch (const InputError& error) {
    blame.fail("/calibration", error.message(), error.hint());
  }
}

}  // namespace ringsim::scenarios
