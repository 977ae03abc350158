#include "scenarios/setup/searched_graph.hpp"

#include <fmt/format.h>

#include <variant>

#include "scenarios/setup/blaming.hpp"
#include "sim/base/error.hpp"
#include "topologies/nccl/graph_use.hpp"

namespace ringsim {

SearchedGraph searched_graph(const Scenario& scenario, const Topology& topology, const std::vector<NodeId>& ranks,
                             const ChannelRings& rings) {
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
  if (ranks.size() < 2) refuse("/collective", "expected several GPUs, found one", "a single GPU has no rings");
  const Machine& machine = *std::get<Cluster>(scenario.topology).parts.front().machine;
  std::vector<std::string> gpus;
  for (const NodeId id : ranks) gpus.emplace_back(local_name(topology.node(id).name));
  Transport transport = scenario.transport;
  transport.nics = Transport::Nics::per_channel;
  SearchedGraph out;
  // NCCL has room for twice what its search may find (src/init.cc: maxChannels = MAXCHANNELS / 2), and does not count
  // what a file brings.
  const int room = nccl::most_channels_of(library.version), most = room / 2, channels = library.machine.ring.count;
  if (channels > room)
    refuse("/library",
           fmt::format("expected at most {} channels, the limit of NCCL {}, found {}", room, library.version, channels),
           "the search finds one for each NIC; NCCL's own search stops at half of that");
  if (channels > most)
    out.warnings.push_back(fmt::format(
        "{}: {} channels are more than NCCL {} would search for, {}; NCCL does not check whether it supports them",
        scenario.file, channels, library.version, most));
  out.text = blaming(scenario, scenario.main().pointer, [&] {
    // Trees take the rings that are searched for, also if rings cross NICs.
    const auto plain = library.crossing ? channel_rings(topology, ranks, transport).orders : rings.orders;
    std::vector<nccl::SearchGraph> graphs =
        nccl::graphs_of(library.machine, plain, topology, ranks, transport, routing_of(topology, scenario));
    if (library.crossing) graphs.front() = *library.crossing;
    return nccl::to_nccl_graph(graphs, nccl::graph_devices(machine, gpus));
  });
  return out;
}

SearchedGraph searched_graph(const Scenario& scenario) {
  const Topology topology = topology_for_search(scenario);
  const std::vector<NodeId> ranks = collectives_of(scenario, topology).front().front().ranks;
  Transport transport = scenario.transport;
  transport.nics = Transport::Nics::per_channel;
  return searched_graph(scenario, topology, ranks, rings_for(topology, scenario, ranks, transport));
}

}  // namespace ringsim
