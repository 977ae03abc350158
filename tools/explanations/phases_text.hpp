// How the time of a run divides over the phases of its algorithm, as tables.
#pragma once

#include <string>

#include "scenarios/predict/predict.hpp"
#include "sim/text/table.hpp"

namespace ringsim::tools {

/// A row per phase. Requires phases.
Table phase_table(const Prediction& prediction);

/// The phases as a table with a heading line; empty if the prediction has none.
std::string phases_text(const Prediction& prediction);

/// A line per step of each phase; one line that counts them if they are more than a screen shows.
std::string phase_steps_text(const Prediction& prediction);

}  // namespace ringsim::tools
