// --report and --trace of `ringsim trace`: the calls of a job, split into waiting and transfer.
#pragma once

#include <optional>
#include <string>

#include "scenarios/predict/trace.hpp"
#include "tools/command_line/input.hpp"
#include "validate/profiles/job_comparison.hpp"
#include "validate/profiles/record.hpp"
#include "validate/profiles/waiting.hpp"

namespace ringsim::tools {

/// The page (HTML): what was read, a sentence on the rank that waits most, a Gantt of all ranks with waiting and
/// transfer in two colors, tables of collectives and of ranks. `comparison` adds predictions and verdicts, with the
/// scenario. `command`: what was typed.
std::string job_page(const profiles::Profile& profile, const profiles::Account& account,
                     const profiles::JobComparison* comparison, const std::optional<ScenarioText>& scenario,
                     const std::string& command);

/// A process per rank, with the original kernels on aligned clocks, and below each its waiting and its transfer. Throws
/// InputError if times are beyond 106 days.
Trace job_trace(const profiles::Profile& profile, const profiles::Account& account);

}  // namespace ringsim::tools
