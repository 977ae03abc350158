// What NCCL does with the graphs of NCCL_GRAPH_FILE, and its searches' results as such graphs.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/topology/routes.hpp"
#include "sim/topology/topology.hpp"
#include "topologies/formats/nccl_graph.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/nccl/nccl_tuner.hpp"

namespace ringsim::nccl {

/// The numbers by which a file calls GPUs and NICs: those of the machine's file ("dev", "net0.dev"; NCCL's topology XML
/// has them), else their places among the machine's GPUs and its NICs that can be cabled, NICs that NCCL_IB_HCA leaves
/// out not counted. `gpus`: those that take part.
GraphDevices graph_devices(const Machine& machine, const std::vector<std::string>& gpus);

/// How a file is read by NCCL of that version on so many nodes.
GraphReading graph_reading(GraphDevices devices, int nodes, const std::string& version);

/// Takes out the graphs that NCCL leaves unused: those of crossnic 1 with NCCL_CROSS_NIC=0. A warning says so.
void leave_out_cross_nic(GraphFile& file, const std::string& name);

/// Puts a file's graphs in the place of what the search would find: number and speed of channels, how far they reach,
/// and the plugin's latency. Rings and trees then have as many channels as the fewer of both (src/init.cc:
/// `comm->nChannels = treeGraph->nChannels = ringGraph->nChannels = min`). Without a graph of trees these are as many
/// as the rings, as fast. Warns if rings and trees differ in what is known here of both together.
void take_graphs(TunerMachine& machine, GraphFile& file, const std::string& name, Release release);

/// The NIC of each GPU between two such nodes whose cables have the rate `nic`.
struct NearNics {
  std::vector<std::string> names;     ///< [GPU]
  PathType farthest = PathType::pix;  ///< of a GPU from its NIC
};
/// Nothing if two GPUs have one NIC. Requires NICs that can be cabled.
std::optional<NearNics> nearest_nics(const Machine& machine, const std::vector<std::string>& gpus, Bandwidth nic);

/// True if the ranks of each node are on the GPUs of the graph.
bool is_on_gpus_of(const SearchGraph& graph, const Topology& topology, std::span<const NodeId> ranks);

/// How many rings the channels of a graph are: those at the beginning, which the others repeat in order. Repeated ones
/// take the same links, as NCCL's do that were doubled after the search; channel k takes ring k modulo their number.
int rings_in(const SearchGraph& graph, int nodes, const std::string& version);

/// Rings of a graph over all nodes: [ring][position] index into `ranks`; `file` stands for it in errors. Each node is
/// crossed alike, in the order of the nodes' first ranks; from 2.20 on NCCL exchanges rings 0 and 1, 2 and 3 ... on
/// every second node if they were found with crossnic (src/graph/connect.cc, ncclTopoPostset); a graph that is turned
/// crosses these nodes backwards. Rings that repeat the first ones in order are left out, for they take the same links:
/// channel k takes ring k modulo their number. Ranks on other GPUs than those of the graph take these by their places
/// if `file` is empty: another communicator finds the same on a machine whose GPUs are alike. Otherwise throws
/// InputError (`where` empty).
std::vector<std::vector<Actor>> rings_of(const SearchGraph& graph, const Topology& topology,
                                         std::span<const NodeId> ranks, const std::string& file,
                                         const std::string& version);

/// The NICs of a graph's channels (src/graph/search.cc, ncclTopoGetNetDev): the first GPU of a channel takes that by
/// which it enters, to send as well; every other that by which it leaves. `channels`: of the run.
ChannelNics nics_of(const SearchGraph& graph, int channels);

}  // namespace ringsim::nccl
