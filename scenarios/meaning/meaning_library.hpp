// What `library` means: the keys of a scenario that a communication library would decide, decided.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

/// Takes the variables of `library.env` that `transport` has, too, by the same names, over to it. Refuses those that
/// are said twice.
void share_variables(nlohmann::json& canonical, const Json& written, const Blame& blame);

/// Where a collective or a training stands that the library decides for.
struct LibraryPlace {
  nlohmann::json& part;       ///< the collective, or the training
  std::string pointer;        ///< "/collective", "/jobs/0/training"
  nlohmann::json& transport;  ///< of the scenario; a copy of its own for each job
};

/// Decides, and writes the decision into the canonical form, as if the user had chosen algorithm, order, channels, NICs
/// and launch. Refuses what is not modeled. Requires the key `library`, that refuse_decided() and share_variables()
/// were called and spellings are resolved. Reads the file that NCCL_GRAPH_FILE names, whose warnings go to the
/// scenario. Requires scenario.topology.
LibraryRun decide(const nlohmann::json& canonical, const Json& written, const LibraryPlace& at, Scenario& scenario,
                  const Blame& blame, const Files& files);

/// Decides likewise for each of the exchanges of a training step, and writes down that of the largest.
LibraryRun decide_training(const nlohmann::json& canonical, const Json& written, const TrainingSpec& training,
                           const LibraryPlace& at, Scenario& scenario, const Blame& blame, const Files& files);

/// Sets LibraryCall::number of all calls of the scenario; that of its own is 0.
void number_calls(Scenario& scenario);

/// True if a rank of such a collective adds to its own part, or copies it.
inline bool adds_own_part(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter;
}
inline bool copies_own_part(CollectiveOp op) {
  return op == CollectiveOp::all_gather || op == CollectiveOp::all_to_all;
}
/// True if the rate of a thread block limits a channel, of which a scenario may state the rate.
bool is_bound_by_blocks(const nccl::LibraryPlan& plan, Bandwidth channel);

/// Settings of the library, its harness and devices that change nothing, and variables whose effect is not modeled.
/// `written`: as in decide(). Comes when scenario.varied is known.
void warn_of_library(const nlohmann::json& canonical, const Json& written, const Blame& blame, Scenario& scenario);

}  // namespace ringsim::scenarios
