// Which algorithm is best at which size, as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/schedule/schedule.hpp"
#include "validate/analysis/crossover.hpp"

namespace ringsim::tools {

/// The points of a scenario that differ in algorithm and size only.
struct CrossoverGroup {
  CollectiveOp op = CollectiveOp::all_reduce;
  int ranks = 0;
  int nodes = 0;  ///< as Prediction::nodes
  /// What else varies: dotted path, value as JSON text.
  std::vector<std::pair<std::string, std::string>> others;
  Comparison comparison;
};

/// Ranges of sizes as a table.
std::string crossover_table(const std::vector<CrossoverGroup>& groups);
/// Every size and algorithm, a row.
std::string crossover_csv(const std::vector<CrossoverGroup>& groups);
/// The configuration file of NCCL's example tuner plugin (NVIDIA/nccl 5067397c2676, version 2.30.7,
/// plugins/tuner/example/plugin.c), of NCCL's own algorithms alone. `refined`: whether changes were located.
/// Throws InputError (empty `where`) if no group compares two of them.
std::string crossover_nccl_tuner(const std::vector<CrossoverGroup>& groups, bool refined);

}  // namespace ringsim::tools
