#include "scenarios/meaning/meaning_calibration.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "scenarios/fields/fields.hpp"
#include "sim/base/error.hpp"

namespace ringsim::scenarios {

Calibration calibration_of(const nlohmann::json& factors) {
  Calibration out;
  read_members(field_at("calibration"), factors, out);
  return out;
}

double compute_scale_of(const nlohmann::json& canonical) {
  return canonical.contains("calibration") ? calibration_of(canonical["calibration"]).compute : 1;
}

void take_calibration(const nlohmann::json& canonical, const Blame& blame, const Files& files, Scenario& scenario) {
  if (!canonical.contains("calibration")) return;
  const nlohmann::json& given = canonical["calibration"];
  if (given.contains("file")) {
    for (const auto& [key, value] : given.items())
      if (key != "file" && !key.starts_with("scale_"))
        blame.fail("/calibration/" + key, fmt::format("expected either a file or factors, found file and {}", key));
    const Files::Content& content =
        files.read(given["file"]["path"].get<std::string>(),
                   {"a file written by `ringsim calibrate`, with the key \"factors\"", {"\"factors\""}});
    const Calibration asked = calibration_of(given);  // scale_* alone
    scenario.calibration = read_calibration(content.text, content.path, scenario.warnings);
    scenario.calibration->classes = asked.classes;
    scenario.calibration->compute = asked.compute;
  } else {
    scenario.calibration = calibration_of(given);
  }
  if (!scenario.trains() && scenario.calibration->compute != 1)
    scenario.warnings.push_back(blame.where("/calibration/scale_compute") +
                                ": it has no effect, because there is no training step");
  try {
    scale_links(scenario.topology, scenario.calibration->links);
  } catch (const InputError& error) {
    blame.fail("/calibration", error.message(), error.hint());
  }
}

}  // namespace ringsim::scenarios
