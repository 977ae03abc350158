// What NCCL does for a collective on a machine: algorithm, protocol and channels, as its own tuner decides.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/nccl/nccl_tuner.hpp"

namespace ringsim::nccl {

/// The newest release whose constants are known here.
inline constexpr std::string_view newest_version = "2.30.7";
/// The oldest: its rules stand for all before.
inline constexpr std::string_view oldest_version = "2.8.3";

/// What to do on a machine whose library is not modelled: the end of a hint.
inline constexpr std::string_view without_a_library =
    R"(leave "library" out and name the algorithm, such as "collective": {"algorithm": ["ring", "direct"]})";

/// The release whose constants and rules stand for a version, "2.19.3". Throws InputError (`where` empty) for what is
/// no version of NCCL 2, or is newer than newest_version.
Release release_of_version(const std::string& version);

/// Whether a version is older than oldest_version; "2.8" is not. Requires that release_of_version() takes it.
bool is_before_oldest(const std::string& version);
/// The 19 of "2.19.3". Requires that release_of_version() takes it.
int minor_of_version(const std::string& version);
/// The most channels that a release has room for: MAXCHANNELS (src/include/device.h; 64 since 2.25).
int most_channels_of(const std::string& version);

/// What users set by environment variables. Defaults are NCCL's.
struct LibrarySettings {
  Release release = Release::v2_30_7;
  int minor = 30;                                 ///< minor_of_version(): what changed between the two releases
  std::vector<TunerAlgorithm> algorithms;         ///< NCCL_ALGO; empty: all
  std::vector<TunerProtocol> protocols;           ///< NCCL_PROTO; empty: all
  std::optional<int> min_channels, max_channels;  ///< NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS
  std::optional<int> threads;                     ///< NCCL_NTHREADS: of a block, protocols LL and Simple
  bool nvls = true;                               ///< NCCL_NVLS_ENABLE
};

/// NCCL_ALGO and NCCL_PROTO: names with commas, "Ring,Tree", in any case; all others with ^, "^Tree". Throws InputError
/// (`where` empty) for names that are not modelled: CollNetDirect, CollNetChain; and where nothing is left.
std::vector<TunerAlgorithm> read_algorithms(const std::string& text);
std::vector<TunerProtocol> read_protocols(const std::string& text);

/// One decision of NCCL.
struct LibraryPlan {
  TunerAlgorithm algorithm{};
  TunerProtocol protocol{};
  int channels = 1;     ///< simulated at this size
  double tuner_us = 0;  ///< what NCCL itself takes it to last
  int blocks = 1;       ///< thread blocks that share the buffer: NCCL's own channels. On several nodes up to twice
                        ///< those that its search finds
  double running = 1;   ///< thread blocks that run, as full ones of 512 threads: on one node, too, more than its search
                        ///< finds
  double at_work = 1;   ///< of those that a channel has without bounds by the user
};

/// The tuner's choice for the op, and the channels in use: as many as the search finds, within the user's bounds, but
/// fewer where a channel would have less than its threads' least share (NVIDIA/nccl 5067397c2676 src/enqueue.cc:
/// channels go while bytes < channels * threads * threshold; thresholds 8 B for LL and LL128, 64 B for Simple, for
/// rings of LL times the ranks; 512, 640, 512 threads, 256 where rings bring no more than 12 GB/s). Nothing where the
/// settings leave no choice, or for an op that the tuner does not weigh.
std::optional<LibraryPlan> library_plan(CollectiveOp op, Bytes bytes, const TunerMachine& machine,
                                        const LibrarySettings& settings);

/// How NVLSTree runs: thread blocks, each with a part of every head's, and the bytes that one takes of it at a time, at
/// most. Source: src/transport/nvls.cc (NVLS_NCHANNELS_SM90, _SM100; ncclNvlsTuning of 2.30), src/enqueue.cc.
struct NvlsTreeShape {
  int blocks = 16;
  std::int64_t chunk = 0;
};
NvlsTreeShape nvls_tree_shape(const TunerMachine& machine, Release release);

/// Whether NCCL does it by sends and receives to all peers at once.
bool sends_to_peers(CollectiveOp op);

/// How NCCL sends to a peer (src/graph/paths.cc: ncclTopoGetNchannels, ncclTopoComputeP2pChannels; src/enqueue.cc:
/// scheduleP2pTasksToPlan, addP2pToPlan, NCCL_P2P_LL_THRESHOLD).
struct SendPlan {
  TunerProtocol protocol = TunerProtocol::simple;
  int channels = 1;    ///< for each peer: few, so that all peers have some at once, more where each had much to carry
  Bytes a_chunk{0};    ///< of a channel, at most; a receiver takes a chunk out of the buffer when all of it is there
  Bytes a_channel{0};  ///< what it carries
};
SendPlan send_plan(const TunerMachine& machine, Bytes a_peer, const LibrarySettings& settings);

}  // namespace ringsim::nccl
