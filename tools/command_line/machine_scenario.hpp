// Scenarios made of words: a machine by its name, how many of them, what joins them, and one collective.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
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
  std::string node;  ///< a preset by any of its names, a machine file, NCCL's XML or the matrix of `nvidia-smi topo -m`
  std::string like;  ///< the preset that supplies what an XML file or a matrix lacks
  std::string nic;   ///< the rate of the NICs, where it lacks it
  int nodes = 1;
  std::optional<FabricWord> fabric;
  int gpus = 0;  ///< the first so many of each node take part; 0: all
};

/// Lets shells offer the names of machines, with their aliases, for this option.
void suggest_machines(Option& node);
/// --nodes, --fabric, --like and --nic.
void declare_nodes(Options& options, MachineWords& machine);
/// " --nodes 4 --fabric leaf_spine:2", as they are typed; empty if none is given.
std::string words_of(const MachineWords& machine);
/// Those of declare_nodes() that are given, and the key of a scenario's topology that stands for each.
std::vector<std::pair<std::string, std::string>> given_words(const MachineWords& machine);
/// The words with what acts: one node has no fabric, which a warning says.
MachineWords settled(MachineWords machine);
/// True for the text that `nvidia-smi topo -m` prints.
bool is_smi_matrix(const std::string& text);

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
  std::int64_t gpus = 0;                ///< of all nodes
  Assumption near;                      ///< how near predictions with such a value are to measurements; may be empty
};

/// The scenario that the words stand for. Cables have the payload rate of the nodes' fastest NICs. On AMD's GPUs whose
/// RCCL is not modeled, and if no algorithm is named, messages go to all (direct) if all GPUs of one node are joined to
/// each other, else round a ring if the operation has one. Throws InputError for a node that is neither a preset nor a
/// file, and for what the machine cannot do; `where` is the option of `ringsim predict`.
MachineScenario scenario_of(const MachineWords& machine, const CollectiveWords& collective = {});

/// Those that hold if the scenario is changed as `set` (PATH=VALUE) says: the others are replaced by it.
std::vector<Assumption> assumed_with(std::vector<Assumption> assumptions, const std::vector<std::string>& set);

/// A size with its unit, several between commas, or a range FROM..TO, FROM..TO:FACTOR (2 if none is given), as
/// scenarios write them. Throws InputError (empty `where`).
Json parse_sizes(const std::string& word);

}  // namespace ringsim::tools
