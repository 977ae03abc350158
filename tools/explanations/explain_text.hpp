// An explanation as text to read and as JSON.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"
#include "validate/analysis/what_if.hpp"
#include "validate/results/result.hpp"

namespace ringsim::tools {

/// "2.9 ms": a time in three digits, for sentences.
std::string short_time(Picoseconds time);

/// "limited by node0.nic3 -> leaf0 for 61 % of the critical path": the longest part, in words. `time`: of the whole.
std::string blame_text(const ExplainedPart& part, Picoseconds time);

/// What the point is, its time, its bandwidth, its share of the bound if there is one, and what holds it, in a
/// sentence. Requires a result with an explanation.
std::string why_sentence(const Scenario& scenario, const Result& result);

/// All of an explanation: a sentence, the parts, the path, the assumptions of the closed form, the what-ifs.
std::string explain_text(const Scenario& scenario, const Result& result, const std::vector<WhatIf>& what_ifs);
/// The explanation as one JSON document. `input`: the canonical scenario.
std::string why_json(const ScenarioFile& file, const Scenario& scenario, const Result& result,
                     const std::vector<WhatIf>& what_ifs, const std::string& input);

}  // namespace ringsim::tools
