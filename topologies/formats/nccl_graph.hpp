// NCCL's graph XML: the rings, trees and NVLS heads of one node (NCCL_GRAPH_DUMP_FILE writes it, NCCL_GRAPH_FILE reads
// it).
//
// Source: NVIDIA/nccl src/graph/search.cc, ncclTopoGetGraphFromXml and ncclTopoGetXmlFromGraphs, read at 5067397c2676
// (2.30.7) and at the tags of releases from 2.8.3 on; src/graph/xml.cc.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/topology/path_type.hpp"

namespace ringsim::nccl {

/// What `dev` of a file means on a machine: NVML's number of a GPU, NCCL's of a net.
struct GraphDevices {
  std::map<int, std::string> gpus;  ///< those that take part: "gpu0"
  std::map<int, std::string> nics;  ///< those that NCCL uses: "nic0"
};

/// One search's result: <graph>.
struct SearchGraph {
  enum class Id { ring, tree, collnet, nvls, collnet_direct };  ///< in the file a number
  /// One closed way, chain or head: <channel>.
  struct Channel {
    std::vector<std::string> gpus;              ///< in order; of nvls the head only
    std::optional<std::string> enters, leaves;  ///< NICs at its first and last GPU; none on one node
    bool operator==(const Channel&) const = default;
  };
  Id id{};
  int pattern = 4;                 ///< 1 balanced tree, 2 split tree, 3 tree, 4 ring, 5 nvls, 6 collnet direct
  int cross_nic = 0;               ///< 1, 2: channels may enter by another NIC than they leave by
  double inside = 0, between = 0;  ///< of each channel, GB/s (10^9)
  double latency_us = 0;           ///< that the net plugin declares
  PathType type_inside = PathType::nvl, type_between = PathType::pix;  ///< the farthest on the way
  bool same_channels = true;                                           ///< all channels visit the GPUs in one order
  /// Every second node is crossed the other way round, so that each NIC sends to the same one there. No file says so:
  /// RCCL does it with the rings that it knows (src/graph/rome_models.cc, parseGraph).
  bool turned = false;
  int times = 0;  ///< that the search repeated its channels, with so much less speed; 0: a file does not say
  std::vector<Channel> channels;
  int line = 0;  ///< in the file

  bool operator==(const SearchGraph&) const = default;
};

/// The graphs of a file that have channels: NCCL searches for those of none as if they were not there.
struct GraphFile {
  std::vector<SearchGraph> graphs;    ///< each id once
  std::vector<std::string> warnings;  ///< FILE:LINE: what has no effect
  const SearchGraph* find(SearchGraph::Id id) const;
};

struct GraphReading {
  GraphDevices devices;
  int nodes = 1;
  /// MAXCHANNELS of the release: 32 up to 2.24, 64 from 2.25 on (src/include/device.h).
  int most_channels = 64;
  /// How `dev` is read: as hexadecimal from 2.21 on, before as C reads numbers (0x10, 16, 020).
  bool hexadecimal = true;
};

/// Reads the graphs. Rings and trees must visit each GPU once, and on several nodes begin and end with a <net>; of NVLS
/// the first GPU of a channel counts. Of CollNet's graphs (2, 4), which nothing here uses, only the head is read.
/// `rank` of a <gpu>, which NCCL from 2.30 on believes more than `dev`, must be that of the GPU on the first node.
///
/// Throws InputError at FILE:LINE: not XML; another kind of file or version; an attribute that is missing or not of its
/// kind; a `dev` that no device has; a GPU twice or not at all; a missing <net>; speeds that are not positive; fewer or
/// more <channel>s than nchannels says, which NCCL does not notice; more than it has room for.
GraphFile import_nccl_graph(std::string_view text, const std::string& file, const GraphReading& reading);

/// The graphs as a file that NCCL of any release reads: `dev` with 0x, no `rank`, which would be right on one node
/// only. Requires that devices of channels are in `devices`.
std::string to_nccl_graph(const std::vector<SearchGraph>& graphs, const GraphDevices& devices);

}  // namespace ringsim::nccl
