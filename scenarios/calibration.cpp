#include "scenarios/calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/values.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/meaning/meaning_calibration.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/text/json.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim {

using namespace scenarios;

namespace {

/// What a file says of where its factors come from (validate/score/calibrate.hpp writes it).
constexpr std::array<const char*, 9> provenance = {"scenario", "measured", "ringsim", "model_version", "fitted",
                                                   "left_out", "errors",   "loss",    "rows"};

void check_keys(const Json& object, const std::vector<std::string>& known, const std::string& pointer,
                const Blame& blame) {
  if (!object.is_object()) blame.fail(pointer, fmt::format("expected an object, found {}", describe(object)));
  for (const auto& [key, value] : object.items()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string near = nearest(key, known);
    blame.fail(child(pointer, key), "expected a calibration key, found another key",
               near.empty() ? "" : fmt::format("did you mean \"{}\"?", near));
  }
}

}  // namespace

std::string to_string(const Calibration& calibration) {
  std::string text;
  const auto add = [&](const std::string& name, const std::string& value) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  };
  if (calibration.launch.count() != 0) add("launch", format(calibration.launch));
  const LinkScales& links = calibration.links;
  if (links.latency != 1) add("latency_scale", fmt::to_string(links.latency));
  if (links.inside != 1) add("efficiency_inside", fmt::to_string(links.inside));
  if (links.between != 1) add("efficiency_between", fmt::to_string(links.between));
  for (const LinkClass each : link_classes)
    if (const double factor = calibration.classes.bandwidth[static_cast<std::size_t>(each)]; factor != 1)
      add(fmt::format("scale_{}", to_string(each)), fmt::to_string(factor));
  if (calibration.classes.latency != 1) add("scale_latency", fmt::to_string(calibration.classes.latency));
  if (calibration.compute != 1) add("scale_compute", fmt::to_string(calibration.compute));
  return text.empty() ? "nothing" : text;
}

Calibration read_calibration(std::string_view text, const std::string& path, std::vector<std::string>& warnings) {
  const Json json = parse_json(text, path);
  const Blame blame(path);
  std::vector<std::string> known(provenance.begin(), provenance.end());
  known.emplace_back("factors");
  check_keys(json, known, "", blame);
  if (!json.contains("factors"))
    blame.fail("", "expected the key \"factors\", found none", "`ringsim calibrate` writes these files");
  std::vector<Field> fields = calibration_field().members;
  std::erase_if(fields,
                [](const Field& field) { return field.type == Type::file || field.name.starts_with("scale_"); });
  check_keys(json["factors"], names(fields), "/factors", blame);
  nlohmann::json factors = nlohmann::json::object();
  for (const Field& field : fields) {
    if (!json["factors"].contains(field.name)) continue;
    const Json& value = json["factors"][field.name];
    const std::string pointer = "/factors/" + field.name;
    factors[field.name] = field.type == Type::time ? read_scalar(field, value, pointer, blame)
                                                   : read_factor(field, value, pointer, blame);
  }
  if (json.contains("model_version") && json["model_version"] != model_version)
    warnings.push_back(fmt::format("{}: fitted with model version {}, but this is version {}: calibrate again", path,
                                   describe(json["model_version"]), model_version));
  return calibration_of(factors);
}

}  // namespace ringsim
