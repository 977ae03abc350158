#include "scenarios/setup/searched_graph.hpp"

#include <fmt/format.h>

#include <utility>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "topologies/nccl/graph_use.hpp"
#include "topologies/nccl_search/node_search.hpp"

namespace ringsim {

std::string searched_graph(const Scenario& scenario) {
  const auto refuse = [&](const char* pointer, const std::string& message, const char* hint) {
    throw InputError(fmt::format("{}: {}", scenario.file, pointer), message, hint);
  };
  if (!scenario.library)
    refuse("/library", "expected a library, because NCCL's graph XML contains its rings, found none",
           R"("library": "nccl")");
  const LibraryRun& library = *scenario.library;
  if (library.name != "nccl")
    refuse("/library", fmt::format("expected NCCL, because the file replaces NCCL's search, found {}", library.name),
           "to show the rings, run `ringsim topology rings` without --to");
  if (!library.graph_file.empty())
    refuse("/library/env/NCCL_GRAPH_FILE",
           fmt::format("expected rings from a search, found those of {}", library.graph_file), "remove the variable");
  if (library.machine.ranks() < 2)
    refuse("/collective", "expected several GPUs, found one", "a single GPU has no rings");
  const nccl::NodeSearch& found = *library.machine.search;
  std::vector<nccl::SearchGraph> graphs{found.ring, found.tree};
  if (!found.nvls.channels.empty()) graphs.push_back(found.nvls);
  for (nccl::SearchGraph& graph : graphs) graph.latency_us = library.machine.net_latency_us;
  const Machine& machine = *std::get<Cluster>(scenario.topology).parts.front().machine;
  return nccl::to_nccl_graph(graphs, nccl::graph_devices(machine, found.ring.channels.front().gpus));
}

}  // namespace ringsim
