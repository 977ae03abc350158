// The columns of a result that are lists, in JSON only: links, phases, ranks, staleness. Their members are described in
// columns.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "validate/results/result.hpp"

namespace ringsim {

nlohmann::ordered_json links_of(const Prediction& p);
nlohmann::ordered_json phases_json(const Prediction& p);
nlohmann::ordered_json exchanges_json(const TrainingReport& training);
nlohmann::ordered_json stages_json(const PlanReport& plan);
nlohmann::ordered_json ranks_of(const TrainingReport& training);
nlohmann::ordered_json staleness_of(const AsyncReport& async);

}  // namespace ringsim
