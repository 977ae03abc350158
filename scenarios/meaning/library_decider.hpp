// Who decides for a library: its settings, and the machine and graphs that it sees.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "scenarios/decoder/blame.hpp"
#include "scenarios/decoder/files.hpp"
#include "scenarios/scenario.hpp"
#include "sim/text/json.hpp"
#include "topologies/formats/nccl_graph.hpp"
#include "topologies/nccl/cost_constants.hpp"
#include "topologies/nccl/nccl_library.hpp"
#include "topologies/nccl/nccl_tuner.hpp"
#include "topologies/rccl/rccl_library.hpp"

namespace ringsim::scenarios {

/// What NCCL_GRAPH_FILE names.
struct LibraryGraphs {
  std::string path;  ///< empty: nothing
  nccl::GraphFile file;
};

/// The part of a Decider that only RCCL has.
struct RcclDecider {
  rccl::Settings settings;
  nccl::SearchGraph rings, trees;  ///< of the machine
  Picoseconds link{0};             ///< latency of its xGMI links
};

/// A library's settings, and the machine that it decides for.
struct Decider {
  std::optional<RcclDecider> rccl;  ///< RCCL decides; else NCCL, by `settings`
  nccl::LibrarySettings settings;
  nccl::TunerMachine machine;
  nlohmann::json gpu = nlohmann::json::object();  ///< devices.gpu, as the user states it
  int in_turn = 1;                                ///< GPUs that one thread launches for
  bool own_staging = false;                       ///< the user states how data rests in host memory
  LibraryGraphs graphs;                           ///< of NCCL_GRAPH_FILE
  std::string version;
  nccl::CostConstants costs = nccl::fitted_costs();
};

/// Refuses keys that the library decides, of which `written` has those that the user gave.
void refuse_decided(const Json& written, const Blame& blame);

/// `part`: the collective or training, which has the names of the ranks if not all GPUs take part, `pointer` where it
/// is. Writes the level of peer access and of GPUDirect into `transport`, and warnings of the file that NCCL_GRAPH_FILE
/// names, of numbers that the release has no use for and of releases that are too old into the scenario.
/// Refuses machines that are not modeled, and groups that do not lie alike: what NCCL decides for the first, all do.
Decider decider_of(const nlohmann::json& canonical, const Json& written, const nlohmann::json& part,
                   const std::string& pointer, nlohmann::json& transport, Scenario& scenario, const Blame& blame,
                   const Files& files);

}  // namespace ringsim::scenarios
