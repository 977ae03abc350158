// The table of steps of training, inference and traces.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "validate/results/result.hpp"

namespace ringsim::tools {

/// "training step of llama3_8b, ddp, 8 ranks, hgx-h100, nccl 2.30.7, NVLS": what all results agree in. Then of one step
/// its parts and their shares, and its other figures; of several steps a table, a row for each. `explain`: the table
/// has all columns. `closed_forms`: becomes whether it shows the ratio to the closed form.
/// Requires that all are steps.
std::string step_table(const ScenarioFile& file, const std::vector<Result>& results, bool explain, bool& closed_forms);

/// "training step of llama3_8b, ddp": one step in a line.
std::string step_name(const TrainingReport& training);

}  // namespace ringsim::tools
