// One point of a sweep, and its outcome.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "scenarios/predict/no_effect.hpp"
#include "scenarios/scenario.hpp"
#include "validate/closed_forms/bound.hpp"

namespace ringsim::tools {

struct PointOutcome {
  enum class Kind {
    result,     ///< `text` is its rows; if the point failed, one with its error
    no_memory,  ///< this machine cannot hold it; another may
    stopped,    ///< Ctrl-C
    lacking     ///< something else of this machine; `text` says what
  };
  Kind kind = Kind::result;
  std::string text;
  std::vector<std::string> warnings;
  std::vector<SettingEffect> settings;  ///< as Prediction's
};

/// Simulates point `i`. Throws nothing: whatever goes wrong is an outcome. `bounds`: as for results_of().
PointOutcome sweep_point(const ScenarioFile& file, const std::string& scenario_path, std::size_t i,
                         Bounds* bounds = nullptr);

/// An outcome as bytes, to travel between processes.
std::string packed(const PointOutcome& outcome);
PointOutcome unpacked(const std::string& bytes);

/// Simulates the points, `jobs` at a time (0: one per core), and hands each outcome to `take` as it comes, one at a
/// time. If `take` returns false no further ones are begun. Throws what `take` throws.
void sweep_points(const ScenarioFile& file, const std::string& scenario_path, const std::vector<std::size_t>& points,
                  int jobs, const std::function<bool(std::size_t point, PointOutcome&& outcome)>& take,
                  Bounds* bounds = nullptr);

}  // namespace ringsim::tools
