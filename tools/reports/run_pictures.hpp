// The pictures of a run in its report: the last step, links by load, links over time, the critical rank over time.
#pragma once

#include <cstdint>
#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/predict/trace.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::tools {

/// What a run is to keep for its pictures: give it to PredictOptions. Of more than 2 million messages only what the
/// streams of a training step do. Requires a step that all ranks have in common, if it is one.
Recording recording_for_pictures(const Scenario& scenario, std::int64_t messages);

/// HTML sections with the streams of a training step, the topology colored by load, a heat map of the busiest links and
/// a chart of the rank that is on the critical path for longest. `found`: the point's prediction; `recording`: of its
/// run, by recording_for_pictures(); a sentence says why what was not recorded is not drawn.
std::string run_pictures(const Scenario& scenario, const Prediction& found, const Recording& recording);

}  // namespace ringsim::tools
