// What NCCL does for a collective on a machine: algorithm, protocol and channels, as its own tuner decides.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topologies/nccl/nccl_tuner.hpp"

namespace ringsim::nccl {

/// The newest release whose constants are known here.
inline constexpr std::string_view newest_version = "2.30.7";
inline constexpr int newest_minor = 30;
/// The oldest: its rules stand for all before.
inline constexpr std::string_view oldest_version = "2.8.3";

/// What to do on a machine whose library is not modeled: the end of a hint.
inline constexpr std::string_view without_a_library =
    R"(remove "library" and set the algorithm, such as "collective": {"algorithm": ["ring", "direct"]})";

/// The release whose constants and rules stand for a version, "2.19.3". Throws InputError (`where` empty) for what is
/// no version of NCCL 2, or is newer than newest_version.
Release release_of_version(const std::string& version);

/// True if a version is newer than newest_version, and so not modeled; false for what is no version.
bool is_after_newest(const std::string& version);

/// A version of each release whose choices or costs may differ here from those of its neighbors, the oldest first.
std::span<const std::string_view> versions_told_apart();

/// True if a version is older than oldest_version; "2.8" is not. Requires that release_of_version() takes it.
bool is_before_oldest(const std::string& version);
/// The 19 of "2.19.3". Requires that release_of_version() takes it.
int minor_of_version(const std::string& version);
/// The farthest at which NIC and GPU exchange data directly, if users do not say (src/graph/paths.cc,
/// ncclTopoCheckGdr): PXB; from 2.27 on also P2C, a NIC that the GPU reaches over the chip-to-chip link to its
/// CPU. 2.26 does so only with NCCL_NET_GDR_C2C=1 (`c2c`), which is 1 by default in later releases; earlier ones do not
/// have it.
PathType gdr_level(int minor, std::optional<bool> c2c);
/// The level that users' NCCL_NET_GDR_LEVEL stands for: in 2.26 to 2.28 NCCL_NET_GDR_C2C counts such a NIC as nearer
/// than PIX, so a level of PIX or PXB reaches it as well. `has_c2c`: the machine has such links.
PathType said_gdr_level(PathType said, int minor, std::optional<bool> c2c, bool has_c2c);
/// The most channels that a release has room for: MAXCHANNELS (src/include/device.h; 64 since 2.25).
int most_channels_of(const std::string& version);
int most_channels_of(int minor);

/// The algorithms or protocols that NCCL_ALGO or NCCL_PROTO allows, for each op.
template <class Value>
class AllowedByOp {
 public:
  AllowedByOp() = default;
  AllowedByOp(std::initializer_list<Value> all) : all_(all) {}
  AllowedByOp(std::vector<Value> all) : all_(std::move(all)) {}

  /// Empty: every one.
  const std::vector<Value>& at(CollectiveOp op) const {
    const auto own = of_.find(op);
    return own == of_.end() ? all_ : own->second;
  }
  void set(CollectiveOp op, std::vector<Value> values) { of_[op] = std::move(values); }
  /// False if it only names other ops.
  bool restricts(CollectiveOp op) const { return !all_.empty() || of_.contains(op); }
  bool operator==(const AllowedByOp&) const = default;

 private:
  std::vector<Value> all_;
  std::map<CollectiveOp, std::vector<Value>> of_;
};

/// What users set by environment variables. Defaults are NCCL's.
struct LibrarySettings {
  Release release = Release::v2_30_7;
  int minor = newest_minor;                       ///< minor_of_version(): what changed between the two releases
  AllowedByOp<TunerAlgorithm> algorithms;         ///< NCCL_ALGO
  AllowedByOp<TunerProtocol> protocols;           ///< NCCL_PROTO
  std::optional<int> min_channels, max_channels;  ///< NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS
  std::optional<int> threads;                     ///< NCCL_NTHREADS: of a block, protocols LL and Simple
  bool nvls = true;                               ///< NCCL_NVLS_ENABLE
  /// Settings of sends and receives: NCCL_MIN_P2P_NCHANNELS, NCCL_MAX_P2P_NCHANNELS, NCCL_NCHANNELS_PER_NET_PEER,
  /// NCCL_P2P_LL_THRESHOLD.
  std::optional<int> min_p2p_channels, max_p2p_channels, channels_per_net_peer;
  std::optional<std::int64_t> ll_threshold;
  std::int64_t net_chunk = 131'072;  ///< NCCL_P2P_NET_CHUNKSIZE, from 2.14 on
};

/// A chunk of sends and receives to another node, by Simple: NCCL_P2P_NET_CHUNKSIZE, which 2.14 brought; before, a
/// whole step of the buffer.
Bytes net_chunk_of(const LibrarySettings& settings);
/// The chunk that aws-ofi-nccl sets on EFA, but for p3dn, 512 KiB (aws/aws-ofi-nccl 2daf7d303aa1 src/platform-aws.cpp,
/// platform_data_map); elsewhere NCCL's own.
std::int64_t net_chunk_of_aws_ofi_nccl(const TunerMachine& machine);

/// The first minor release whose NCCL_ALGO and NCCL_PROTO may name functions.
inline constexpr int names_functions_from = 24;
/// NCCL_ALGO and NCCL_PROTO: names with commas, "Ring,Tree", in any case; all others with ^, "^Tree". From 2.24 on also
/// lists of functions, "^NVLS;allreduce:Tree;broadcast:Ring", of which the first may be for all (src/graph/tuning.cc,
/// parseList). `minor`: of the release. Throws InputError (`where` empty) for names that are not modeled:
/// CollNetDirect, CollNetChain; for functions that the release does not take; and where nothing is left.
AllowedByOp<TunerAlgorithm> read_algorithms(const std::string& text, int minor = newest_minor);
AllowedByOp<TunerProtocol> read_protocols(const std::string& text, int minor = newest_minor);

/// One decision of NCCL.
struct LibraryPlan {
  TunerAlgorithm algorithm{};
  TunerProtocol protocol{};
  int channels = 1;     ///< simulated at this size
  double tuner_us = 0;  ///< what NCCL itself takes it to last
  int blocks = 1;       ///< thread blocks that share the buffer: NCCL's own channels. On several nodes up to twice
                        ///< those that its search finds
  double running = 1;   ///< thread blocks that run, as full ones of 512 threads: also on one node, more than its search
                        ///< finds; of sends those for all peers
  int launched = 1;     ///< thread blocks of the kernel
  double at_work = 1;   ///< of those that a channel has without bounds by the user
};

/// The tuner's choice for the op, and the channels in use: as many as the search finds, within the user's bounds, but
/// fewer if a channel would have less than its threads' least share (NVIDIA/nccl 5067397c2676 src/enqueue.cc:
/// channels go while bytes < channels * threads * threshold; thresholds 8 B for LL and LL128, 64 B for Simple, for
/// rings of LL times the ranks; 512, 640, 512 threads, 256 if rings bring no more than 12 GB/s). Nothing if the
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

/// True if NCCL does it by sends and receives to all peers at once.
bool sends_to_peers(CollectiveOp op);

/// How NCCL sends to a peer (src/graph/paths.cc: ncclTopoGetNchannels, ncclTopoComputeP2pChannels; src/enqueue.cc:
/// scheduleP2pTasksToPlan, addP2pToPlan, NCCL_P2P_LL_THRESHOLD). A peer on another node may have, by release:
///   - before 2.12: 1 channel;
///   - 2.12 to 2.19: 2 (NCCL_NCHANNELS_PER_NET_PEER); before 2.18.3 halved while channels x ranks > 4 x all that sends
///     have, as on one node up to 2.19 (2.18.1 and 2.18.3 are not told apart);
///   - 2.20 to 2.28: 2, halved by the same rule, but as many as the GPU has NICs;
///   - from 2.29 on: as many as bring the NICs' rate at 14 GB/s each, halved while ranks / 8 x channels > all.
struct SendPlan {
  TunerProtocol protocol = TunerProtocol::simple;
  int channels = 1;    ///< for each peer: few, so that all peers have some at once, more if each had much to carry
  Bytes a_chunk{0};    ///< of a channel, at most; a receiver takes a chunk out of the buffer when all of it is there
  Bytes a_channel{0};  ///< what it carries
  int all = 1;         ///< channels that sends may use, for all peers together
};
SendPlan send_plan(const TunerMachine& machine, Bytes a_peer, const LibrarySettings& settings);

}  // namespace ringsim::nccl
