// Scenarios made of words: a machine by its name, how many of them, what joins them, and one collective.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/text/json.hpp"
#include "tools/command_line/options.hpp"

namespace ringsim::tools {

/// The fabric between nodes, as a word: "leaf_spine:2".
struct FabricWord {
  std::string kind;          ///< as scenarios write it
  std::vector<int> numbers;  ///< after the colon: the oversubscription, a torus's dimensions, a dragonfly's sizes
};
/// Reads KIND, KIND:N, torus:AxB... and dragonfly:GROUPSxROUTERSxNODES. Throws InputError (empty `where`).
FabricWord parse_fabric(const std::string& word);

/// The machine of a command line.
struct MachineWords {
  std::string node;  ///< a preset by any of its names, a machine file (.json), or NCCL's topology XML (.xml)
  int nodes = 1;
  std::optional<FabricWord> fabric;
  int gpus = 0;  ///< the first so many of each node take part; 0: all
};

/// Lets shells offer the names of machines, with their aliases, for this option.
void suggest_machines(Option& node);
/// --nodes and --fabric.
void declare_nodes(Options& options, MachineWords& machine);
/// " --nodes 4 --fabric leaf_spine:2", as they are typed; empty if neither is given.
std::string words_of(const MachineWords& machine);
/// The words with what acts: one node has no fabric, which a warning says.
MachineWords settled(MachineWords machine);

/// The collective that runs on the machine. By default an all-reduce of 1 GiB by NCCL.
struct CollectiveWords {
  std::string op = "all_reduce";        ///< as scenarios write it
  Json bytes = "1 GiB";                 ///< as scenarios write it: a size, a list or a range
  std::vector<std::string> algorithms;  ///< of ringsim; empty: NCCL decides
  std::string nccl;                     ///< its version; empty: the newest that is modeled
  std::string nccl_from = "--nccl";     ///< what states it, for errors
};

/// A value that the words do not say.
struct Assumption {
  std::string path;  ///< where the scenario has it: "topology.fabric.link"
  std::string text;  ///< what is taken
};

struct MachineScenario {
  Json document;                        ///< the scenario
  std::vector<Assumption> assumptions;  ///< in the order of the document
};

/// The scenario that the words stand for. Cables have the payload rate of the nodes' fastest NICs. Where NCCL does not
/// run (AMD's GPUs) and no algorithm is named, messages go to all (direct). Throws InputError for a node that is
/// neither a preset nor a file, and for what the machine cannot do; `where` is the option of `ringsim predict`.
MachineScenario scenario_of(const MachineWords& machine, const CollectiveWords& collective = {});

/// Those that hold if the scenario is changed as `set` (PATH=VALUE) says: the others are replaced by it.
std::vector<Assumption> assumed_with(std::vector<Assumption> assumptions, const std::vector<std::string>& set);

/// A size with its unit, several between commas, or a range FROM..TO, FROM..TO:FACTOR (2 if none is given), as
/// scenarios write them. Throws InputError (empty `where`).
Json parse_sizes(const std::string& word);

}  // namespace ringsim::tools
