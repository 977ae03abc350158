// What collectives mean: the scenario's own, or that of its training step, and those of "jobs".
#pragma once

#include <cstddef>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

/// The parameters of an algorithm, as its canonical form has them.
Arguments arguments_of(const Algorithm& algorithm, const nlohmann::json& given);

/// The algorithm of all collectives of a plan's groups: one of the catalog, without servers.
const Algorithm& algorithm_of_groups(const nlohmann::json& given, const std::string& pointer, const Blame& blame);

/// The number of the job of that name.
std::optional<std::size_t> find_job(const std::vector<Job>& jobs, const std::string& name);

/// Decides for a job's collective, or for its training (`training`: what that means), as the scenario's library does;
/// `transport`: becomes that of the job. Empty: there is no library.
using DecideJob = std::function<LibraryRun(nlohmann::json& part, const std::string& pointer,
                                           const TrainingSpec* training, nlohmann::json& transport)>;

/// Sets Scenario::jobs, and the ports that their helpers need on a star. Requires its topology and, where there is one,
/// its training step. `gpus`: of the topology. `written`: as the user wrote it, for what was left out.
void take_jobs(const nlohmann::json& canonical, const Json& written, std::size_t gpus, const DecideJob& decide,
               const Blame& blame, const Files& files, Scenario& out);

}  // namespace ringsim::scenarios
