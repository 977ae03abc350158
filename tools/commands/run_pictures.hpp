// The pictures of a run in its report: links by load, links over time, the critical rank over time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/predict/trace.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::tools {

/// What a run is to keep for its pictures: give it to PredictOptions. Nothing for more than 2 million messages.
std::optional<Recording> recording_for_pictures(std::int64_t messages);

/// HTML sections with the topology colored by load, a heat map of the busiest links and a chart of the rank that is on
/// the critical path for longest. `found`: the point's prediction; `recording`: of its run, by
/// recording_for_pictures(); if there is none a sentence says why.
std::string run_pictures(const Scenario& scenario, const Prediction& found, const std::optional<Recording>& recording);

}  // namespace ringsim::tools
