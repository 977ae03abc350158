// Scenarios of tests as JSON, changed and predicted.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/complaint.hpp"

namespace ringsim::test {

inline Prediction predicted(const nlohmann::json& scenario) {
  return predict(ScenarioFile::parse(scenario.dump(), "s.json").point(0), PredictOptions{});
}

/// With values put in at their pointers; null takes a key out.
inline nlohmann::json changed(nlohmann::json scenario, const std::map<std::string, nlohmann::json>& values) {
  for (const auto& [pointer, value] : values) {
    const nlohmann::json::json_pointer at(pointer);
    if (value.is_null())
      scenario[at.parent_pointer()].erase(at.back());
    else
      scenario[at] = value;
  }
  return scenario;
}

/// What the error of a scenario says; empty if there is none.
inline std::string refusal(const nlohmann::json& scenario) {
  return complaint([&] { ScenarioFile::parse(scenario.dump(), "s.json").point(0); });
}

}  // namespace ringsim::test
