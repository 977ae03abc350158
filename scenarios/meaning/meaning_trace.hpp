// The meaning of `trace`: the step of a real job, from the execution traces of its ranks.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::scenarios {

/// The GPUs of the job, as `ranks` of the canonical `trace`: unless it names some, the first of `gpus`, the names of
/// all: as many as there are files, or all for one rank's trace. Throws InputError if there are too few, or another
/// number is named.
void name_traced_ranks(nlohmann::json& canonical, const std::vector<std::string>& gpus, const Blame& blame,
                       const Files& files);

/// Reads the canonical `trace`, whose `ranks` are named. Kernels run `speed` times as fast as recorded. Throws
/// InputError; what a reader of results should know becomes warnings.
TrainingSpec trace_of(const nlohmann::json& canonical, double speed, const Blame& blame, const Files& files,
                      std::vector<std::string>& warnings);

/// The exchange of most bytes, as the canonical form of a `collective`.
nlohmann::json largest_call_of(const nlohmann::json& canonical, const TrainingSpec& spec);

}  // namespace ringsim::scenarios
