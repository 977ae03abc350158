// The pictures of a run in its report: links by load, links over time, the critical rank over time.
#pragma once

#include <string>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::tools {

/// HTML sections with the topology colored by load, a heat map of the busiest links and a chart of the rank that is on
/// the critical path for longest. The point is simulated once or twice more, every message recorded; of a point with
/// more than 2 million messages a sentence says why there is no picture. `found`: its prediction. Throws what
/// predict() throws.
std::string run_pictures(const Scenario& scenario, const Prediction& found);

}  // namespace ringsim::tools
