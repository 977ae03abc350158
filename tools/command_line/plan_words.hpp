// Scenarios of plans made of words: a model by its name, on machines by their name.
#pragma once

#include <string>

#include "tools/command_line/machine_scenario.hpp"

namespace ringsim::tools {

/// `ringsim plan llama3_70b --node dgx-h100 --nodes 8`.
struct PlanWords {
  std::string model;  ///< a transformer of scenarios/workloads
  MachineWords machine;
  int batch = 0;      ///< sequences of a step, over all GPUs; 0: see scenario_of()
  int sequence = 0;   ///< tokens; 0: as on the model card
  bool fp32 = false;  ///< the precision that --set gives: products run at the rate of TF32, or of fp32
};

/// The scenario of all plans of the model on the machine, with NCCL and Adam. Without `batch` a step has about 4 Mi
/// tokens. Throws InputError for a model without a card, and for a machine whose GPUs' peak is not known; `where` is
/// the option of `ringsim plan`, or MODEL.
MachineScenario scenario_of(const PlanWords& words);

/// True if the word is the name of such a model.
bool is_divisible_model(const std::string& word);

}  // namespace ringsim::tools
