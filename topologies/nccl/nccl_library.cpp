#include "topologies/nccl/nccl_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim::nccl {

namespace {

/// That the search's result is doubled to: MAXCHANNELS of src/include/devcomm.h up to 2.24. From 2.25 on it is 64,
/// which is taken only if a user asks for it (most_channels_of()).
constexpr int most_channels = 32;

std::array<int, 3> numbers_of(const std::string& version) {
  std::array<int, 3> parts{0, 0, 0};
  const char *at = version.data(), *end = version.data() + version.size();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, parts[i]);
    const bool separated = next == end || (*next == '.' && i + 1 < parts.size() && next + 1 != end);
    if (error != std::errc() || parts[i] < 0 || !separated) return {-1, 0, 0};
    if (next == end) return i == 0 ? std::array{-1, 0, 0} : parts;
    at = next + 1;
  }
  return parts;
}

std::string lowered(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

/// The list that a variable holds, of these; `others`: names of NCCL's that mean nothing here.
template <class Enum, std::size_t n>
std::vector<Enum> read_list(const std::string& variable, const std::array<Enum, n>& all, const std::string& text,
                            std::initializer_list<const char*> others) {
  const bool without = text.starts_with('^');
  std::vector<Enum> named;
  for (std::size_t at = without ? 1 : 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const std::string name = lowered(text.substr(at, comma - at));
    at = comma + 1;
    const auto is_it = [&](Enum each) { return lowered(std::string(to_string(each))) == name; };
    if (const auto found = std::find_if(all.begin(), all.end(), is_it); found != all.end()) {
      named.push_back(*found);
      continue;
    }
    const bool known =
        std::any_of(others.begin(), others.end(), [&](const char* each) { return lowered(each) == name; });
    if (known && without) continue;
    std::string names;
    for (const Enum each : all) names += (names.empty() ? "" : ", ") + std::string(to_string(each));
    throw InputError("",
                     fmt::format("expected names of {}, separated by commas, found \"{}\"{}", names, text,
                                 known ? ", which is not modeled" : ""),
                     fmt::format("{}=^NAME excludes one", variable));
  }
  std::vector<Enum> out;
  for (const Enum each : all)
    if ((std::find(named.begin(), named.end(), each) != named.end()) != without) out.push_back(each);
  if (out.empty())
    throw InputError("", fmt::format("expected at least one that is not excluded, found all excluded by \"{}\"", text));
  return out;
}

/// Threads of a block of LL or Simple, at most (src/include/device.h, NCCL_LL_MAX_NTHREADS, NCCL_SIMPLE_MAX_NTHREADS).
constexpr int full_block = 512;

/// Threads of a block, and the bytes that each is worth at least.
struct Threads {
  std::int64_t threads, least;
};
Threads threads_of(const LibraryPlan& plan, const TunerMachine& machine, const LibrarySettings& settings) {
  const bool ring = plan.algorithm == TunerAlgorithm::ring;
  // A ring that one thin link holds up needs fewer threads (src/graph/tuning.cc).
  const bool thin = ring && machine.ring.inside * machine.ring.count <= 12;
  const int chosen = settings.threads.value_or(thin ? 256 : full_block);
  switch (plan.protocol) {
    case TunerProtocol::ll:
      return {chosen, std::int64_t{8} * (ring ? machine.ranks() : 1)};
    case TunerProtocol::ll128:
      return {640, 8};
    case TunerProtocol::simple:
      return {chosen, 64};
  }
  fail_invariant("a protocol is one of three");
}

/// Thread blocks for each channel that the search found on one node: NCCL doubles them (src/graph/connect.cc,
/// ncclTopoPostset). On Blackwell measured sends to 1, 3 and 7 peers move 345, 506 and 592 GB/s, which is in proportion
/// to their blocks if there are twice as many again: the search itself doubles fast channels there
/// (src/graph/search.cc, ncclTopoDupChannels), which the tuner's channels leave out.
int blocks_of_a_channel(const TunerMachine& machine) { return machine.sm >= 100 ? 4 : 2; }

/// All thread blocks between nodes: those of the search, doubled, and doubled again if few channels are fast
/// (src/graph/connect.cc, ncclTopoPostset, "Use 4 compute channels per search channel"). With the search's doubling on
/// Blackwell: 8 B300 with 800 Gb/s each have 8 channels of 96 GB/s, which become 16 of 48 and 32 blocks, and reach 760
/// GB/s (NVIDIA/nccl issue 2035), which 16 blocks of 30 GB/s could not.
int blocks_between_nodes(const Channels& found, const TunerMachine& machine, const LibrarySettings& settings) {
  int channels = found.count;
  double speed = machine.ring.inside;
  if (machine.sm >= 100 && speed >= 25 && (speed >= 50 || channels <= 4)) channels *= 2, speed /= 2;
  int blocks = std::min(2 * channels, most_channels);
  const bool doubles = settings.minor >= 25 ? machine.sm >= 90 : machine.sm == 90 && settings.minor >= 18;
  const bool few = settings.minor < 20 ? 2 * blocks <= most_channels : blocks < 16;
  if (doubles && speed > 45 && few) blocks *= 2;
  return blocks;
}

int within_bounds(int channels, const LibrarySettings& settings) {
  channels = std::max(channels, settings.min_channels.value_or(1));
  return std::max(1, std::min(channels, settings.max_channels.value_or(channels)));
}

/// As LibraryPlan's, of rings and trees.
struct Running {
  int channels, blocks, launched;
  double running;
};
Running running(const LibraryPlan& plan, Bytes bytes, const TunerMachine& machine, const LibrarySettings& settings) {
  const bool several = machine.nodes > 1, tree = plan.algorithm == TunerAlgorithm::tree;
  const int found = tree ? machine.tree.count : machine.ring.count;
  const Threads each = threads_of(plan, machine, settings);
  const std::int64_t needed = bytes.count / (each.threads * each.least);
  const auto at_most = [&](int most) {
    return static_cast<int>(std::clamp<std::int64_t>(needed, 1, within_bounds(most, settings)));
  };
  // ncclTopoPostset doubles what the search found (src/graph/connect.cc). On one node that is in the costs of steps,
  // which were fitted to the channels of the search.
  const int blocks =
      at_most(several ? blocks_between_nodes(tree ? machine.tree : machine.ring, machine, settings) : found);
  const int launched =
      several ? blocks : std::max(blocks, at_most(std::min(blocks_of_a_channel(machine) * found, most_channels)));
  // A channel of trees has both of them, which are two of NCCL's; the second half of the rings takes the same links as
  // the first.
  const int channels = !several ? blocks : tree ? (blocks + 1) / 2 : std::min(blocks, within_bounds(found, settings));
  return {several ? spread_over_ports(channels, machine) : channels, blocks, launched,
          static_cast<double>(launched * each.threads) / full_block};
}

void set_channels(LibraryPlan& plan, Bytes bytes, const TunerMachine& machine, const LibrarySettings& settings) {
  if (plan.algorithm == TunerAlgorithm::nvls || plan.algorithm == TunerAlgorithm::nvls_tree) {
    // A GPU's NICs act as one: ports of a card are merged (NCCL_IB_MERGE_NICS).
    const bool in_node = plan.algorithm == TunerAlgorithm::nvls;
    plan.channels = in_node ? machine.nvls.count : machine.nvls.count * machine.rails * machine.ports;
    plan.blocks = in_node ? plan.channels : nvls_tree_shape(machine, settings.release).blocks;
    plan.launched = plan.blocks;
    return;
  }
  const Running its = running(plan, bytes, machine, settings),
                usual = running(plan, bytes, machine, {.release = settings.release, .minor = settings.minor});
  plan.channels = its.channels;
  plan.blocks = its.blocks;
  plan.launched = its.launched;
  plan.running = its.running;
  plan.at_work = std::min(1.0, its.running / its.channels / (usual.running / usual.channels));
}

}  // namespace

NvlsTreeShape nvls_tree_shape(const TunerMachine& machine, Release release) {
  constexpr std::int64_t k64 = 65'536, k128 = 131'072, k256 = 262'144;
  const std::int64_t usual = release < Release::v2_21 ? 524'288 : k128;  // NCCL_NVLS_CHUNKSIZE
  NvlsTreeShape out{machine.sm >= 100 ? 32 : 16, machine.nodes >= 4 && release >= Release::v2_19 ? k64 : usual};
  // ncclNvlsTreeSm100Tuning, whose thresholds are NICs of 400 and 800 Gb/s. GPUs with LL128 have them as near as PXB.
  if (machine.sm < 100 || release < Release::v2_30_7 || machine.nic_GBps < 48) return out;
  const bool near = machine.ll128, fast = machine.nic_GBps >= 96;
  const int gpus = machine.gpus;
  if (machine.nodes == 2) {
    out.chunk = gpus <= 4 ? k256 : gpus >= 16 || (gpus <= 8 && near && !fast) ? k64 : k128;
  } else if (fast) {
    if (gpus <= 8) out.blocks = 24;
    out.chunk = gpus <= 8 ? k256 : gpus < 32 ? k128 : k64;
  } else {
    out = {24, near ? k64 : k128};
  }
  return out;
}

Release release_of_version(const std::string& version) {
  const std::array<int, 3> found = numbers_of(version), newest = numbers_of(std::string(newest_version));
  if (found[0] != 2)
    throw InputError("",
                     fmt::format("expected a version of NCCL 2 such as \"{}\", found \"{}\"", newest_version, version));
  if (found > newest)
    throw InputError(
        "", fmt::format("expected a version up to {}, the newest that is modeled, found {}", newest_version, version),
        fmt::format("newer releases use different rules (docs/guide/nccl.md, Newer releases); \"{}\" shows what this "
                    "release would do",
                    newest_version));
  using enum Release;
  constexpr std::tuple<int, int, Release> from[] = {
      {30, 0, v2_30_7}, {29, 7, v2_29_7}, {29, 0, v2_29}, {28, 9, v2_28_9}, {28, 0, v2_28},
      {27, 0, v2_27},   {24, 0, v2_24},   {23, 0, v2_23}, {21, 0, v2_21},   {20, 0, v2_20},
      {19, 0, v2_19},   {18, 0, v2_18},   {14, 0, v2_14}, {12, 0, v2_12},   {10, 0, v2_10}};
  for (const auto& [minor, patch, release] : from)
    if (std::pair(found[1], found[2]) >= std::pair(minor, patch)) return release;
  return v2_8_3;
}

std::span<const std::string_view> versions_told_apart() {
  static constexpr std::string_view versions[] = {"2.8.4",  "2.10.3", "2.12.12", "2.14.3", "2.17.1", "2.18.3", "2.19.3",
                                                  "2.20.5", "2.21.5", "2.22.3",  "2.23.4", "2.24.3", "2.26.2", "2.27.3",
                                                  "2.28.3", "2.28.9", "2.29.2",  "2.29.7", "2.30.7"};
  return versions;
}

bool is_after_newest(const std::string& version) {
  return numbers_of(version) > numbers_of(std::string(newest_version));
}

bool is_before_oldest(const std::string& version) {
  return version != "2.8" && numbers_of(version) < numbers_of(std::string(oldest_version));
}

int minor_of_version(const std::string& version) { return numbers_of(version)[1]; }
int most_channels_of(int minor) { return minor < 25 ? 32 : 64; }
int most_channels_of(const std::string& version) { return most_channels_of(minor_of_version(version)); }

namespace {
bool gdr_over_c2c(int minor, std::optional<bool> c2c) { return minor >= 26 && c2c.value_or(minor >= 27); }
}  // namespace

PathType gdr_level(int minor, std::optional<bool> c2c) {
  return gdr_over_c2c(minor, c2c) ? PathType::p2c : PathType::pxb;
}

PathType said_gdr_level(PathType said, int minor, std::optional<bool> c2c, bool has_c2c) {
  const bool raised = gdr_over_c2c(minor, c2c) && minor < 29 && has_c2c;
  return raised && said >= PathType::pix ? std::max(said, PathType::p2c) : said;
}

namespace {

/// NCCL's functions by the names that it prints (src/graph/tuning.cc, ncclFuncStr), in small letters.
std::optional<CollectiveOp> function_named(const std::string& name) {
  constexpr std::pair<std::string_view, CollectiveOp> known[] = {{"broadcast", CollectiveOp::broadcast},
                                                                 {"reduce", CollectiveOp::reduce},
                                                                 {"allgather", CollectiveOp::all_gather},
                                                                 {"reducescatter", CollectiveOp::reduce_scatter},
                                                                 {"allreduce", CollectiveOp::all_reduce}};
  for (const auto& [its, op] : known)
    if (its == name) return op;
  return std::nullopt;
}

/// The lists of a variable, for all functions or for one each. `read`: reads one list.
template <class Value, class Read>
AllowedByOp<Value> read_lists(const std::string& variable, const std::string& text, int minor, Read read) {
  if (text.find_first_of(":;") == std::string::npos) return read(text);
  if (minor < names_functions_from)
    throw InputError(
        "", fmt::format("expected names separated by commas, found \"{}\"", text),
        fmt::format("{} accepts lists for functions only in NCCL 2.{} and later", variable, names_functions_from));
  AllowedByOp<Value> out;
  for (std::size_t at = 0, end = 0; at <= text.size(); at = end + 1) {
    end = std::min(text.find(';', at), text.size());
    const std::string list = text.substr(at, end - at);
    if (list.empty()) continue;  // as strtok_r() skips it
    const std::size_t colon = list.find(':');
    if (colon == std::string::npos && at > 0)
      throw InputError("", fmt::format("expected FUNCTION:NAMES after the first semicolon, found \"{}\"", list),
                       "only the first list may be for all functions");
    if (colon == std::string::npos) {
      out = read(list);
      continue;
    }
    const std::string name = list.substr(0, colon);
    const std::optional<CollectiveOp> op = function_named(lowered(name));
    if (!op)
      throw InputError("", fmt::format("expected one of NCCL's functions before the colon, found \"{}\"", name),
                       "they are Broadcast, Reduce, AllGather, ReduceScatter and AllReduce");
    out.set(*op, read(list.substr(colon + 1)));
  }
  return out;
}

}  // namespace

AllowedByOp<TunerAlgorithm> read_algorithms(const std::string& text, int minor) {
  using enum TunerAlgorithm;
  return read_lists<TunerAlgorithm>("NCCL_ALGO", text, minor, [](const std::string& list) {
    return read_list("NCCL_ALGO", std::array{tree, ring, nvls, nvls_tree, pat}, list,
                     {"CollNet", "CollNetDirect", "CollNetChain"});
  });
}

AllowedByOp<TunerProtocol> read_protocols(const std::string& text, int minor) {
  using enum TunerProtocol;
  return read_lists<TunerProtocol>("NCCL_PROTO", text, minor, [](const std::string& list) {
    return read_list("NCCL_PROTO", std::array{ll, ll128, simple}, list, {});
  });
}

namespace {

template <class Value>
bool allowed(const std::vector<Value>& list, Value value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

/// What NCCL falls back to if NCCL_ALGO leaves it no choice (src/graph/tuning.cc). Up to 2.23 rings stay,
/// before 2.19 not for all_reduce; rings and trees if all that is named is off on this machine.
std::vector<TunerAlgorithm> instead_of_none(CollectiveOp op, const TunerMachine& machine,
                                            const LibrarySettings& settings) {
  using enum TunerAlgorithm;
  const std::vector<TunerAlgorithm>& left = settings.algorithms.at(op);
  if (settings.minor >= 24 || allowed(left, ring)) return {};
  const auto off = [&](TunerAlgorithm each) {
    return settings.minor < 18 ? each != tree : each == (machine.nodes == 1 ? nvls_tree : nvls);
  };
  if (std::all_of(left.begin(), left.end(), off)) return {ring, tree};
  return settings.minor >= 19 || op != CollectiveOp::all_reduce ? std::vector{ring} : std::vector<TunerAlgorithm>{};
}

}  // namespace

std::optional<LibraryPlan> library_plan(CollectiveOp op, Bytes bytes, const TunerMachine& machine,
                                        const LibrarySettings& settings) {
  std::optional<LibraryPlan> best;
  for (const TunerChoice& choice : tuner_choices(op, machine, settings.release)) {
    const bool in_switch = choice.algorithm == TunerAlgorithm::nvls || choice.algorithm == TunerAlgorithm::nvls_tree;
    // Also weighed for other ops, but those of 8 H100 and 8 B200 that were measured are rings at all sizes.
    if (in_switch && (!settings.nvls || op != CollectiveOp::all_reduce)) continue;
    if (!allowed(settings.algorithms.at(op), choice.algorithm) || !allowed(settings.protocols.at(op), choice.protocol))
      continue;
    const double us = tuner_time_us(choice, op, bytes, machine, settings.release);
    if (!best || us < best->tuner_us) best = LibraryPlan{choice.algorithm, choice.protocol, 1, us};
  }
  if (best) {
    set_channels(*best, bytes, machine, settings);
    return best;
  }
  const std::vector<TunerAlgorithm> instead = instead_of_none(op, machine, settings);
  if (instead.empty()) return best;
  LibrarySettings others = settings;
  others.algorithms = instead;
  return library_plan(op, bytes, machine, others);
}

bool sends_to_peers(CollectiveOp op) {
  return is_point_to_point(op) || op == CollectiveOp::gather || op == CollectiveOp::scatter;
}

Bytes net_chunk_of(const LibrarySettings& settings) { return {settings.minor < 14 ? 524'288 : settings.net_chunk}; }

std::int64_t net_chunk_of_aws_ofi_nccl(const TunerMachine& machine) {
  const bool sets = machine.provider == NicProvider::efa && machine.sm >= 80;  // p3dn has V100s
  return sets ? 524'288 : LibrarySettings{}.net_chunk;
}

namespace {

int power_of_2_from(int n) { return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(1, n)))); }

/// All channels that sends may use, before they are rounded up to a power of two.
int found_for_sends(const TunerMachine& machine, const LibrarySettings& settings) {
  const int found = machine.nodes > 1 ? blocks_between_nodes(machine.ring, machine, settings)
                                      : machine.ring.count * blocks_of_a_channel(machine);
  const int most = settings.max_p2p_channels.value_or(most_channels_of(settings.minor));
  return std::max(std::min(within_bounds(found, settings), most), settings.min_p2p_channels.value_or(1));
}

/// As long as a peer's channels would be overloaded, half of them (release notes and comments of src/enqueue.cc: more
/// than 8 operations at a time on a channel lose its sync warp).
int halved(int channels, int ranks, int all) {
  while (channels > 1 && channels * ranks > 4 * all) channels /= 2;
  return channels;
}

/// Channels that a peer on another node may have: SendPlan has the rules. `all`: as found_for_sends().
int channels_of_a_net_peer(const TunerMachine& machine, int all, const LibrarySettings& settings) {
  const int minor = settings.minor;
  if (settings.channels_per_net_peer && minor >= 12) return *settings.channels_per_net_peer;
  if (minor < 12) return 1;
  if (minor < 20) return 2;
  if (minor < 29) return std::max(machine.rails, halved(2, machine.ranks(), all));
  constexpr double rate_of_a_channel = 14;  // GB/s: NCCL_P2P_PER_CHANNEL_NET_BW
  return std::max(machine.rails, static_cast<int>(std::ceil(machine.ring.between / rate_of_a_channel)));
}

/// Most channels for one peer, a power of two.
int channels_of_a_peer(const TunerMachine& machine, int found, int all, const LibrarySettings& settings) {
  int most = machine.gpus > 1 ? 2 * std::max(1, machine.nvlinks) : all;
  if (machine.nodes > 1) most = std::min(most, channels_of_a_net_peer(machine, found, settings));
  int each = std::min(all, power_of_2_from(most));
  if (settings.minor < 18 || (settings.minor < 20 && machine.nodes == 1)) each = halved(each, machine.ranks(), all);
  if (machine.nodes == 1 || settings.minor < 29 || settings.channels_per_net_peer) return each;
  constexpr int peers_at_once = 8;  // NCCL_MAX_DEV_WORK_P2P_PER_BATCH
  while (each > 1 && each * ((machine.ranks() + peers_at_once - 1) / peers_at_once) > all) each /= 2;
  return each;
}

}  // namespace

SendPlan send_plan(const TunerMachine& machine, Bytes a_peer, const LibrarySettings& settings) {
  const int found = found_for_sends(machine, settings), all = std::min(power_of_2_from(found), most_channels);
  const int most = channels_of_a_peer(machine, found, all, settings);
  const bool several = machine.nodes > 1;
  int least = most;  // of channels, so that each peer has its own; 2.18 and 2.19 do so on one node only
  if (!several || settings.minor < 18 || settings.minor >= 20)
    while (least > 1 && least * machine.ranks() > all) least /= 2;
  const auto parts_of = [&](std::int64_t size) { return (a_peer.count + size - 1) / size; };
  const auto in_steps_of = [&](std::int64_t step) {
    int channels = static_cast<int>(std::clamp<std::int64_t>(parts_of(several ? step / 2 : step / 8), 1, least));
    while (parts_of(channels) > (several ? step : step * 32) && channels <= most / 2) channels *= 2;
    return channels;
  };
  constexpr std::int64_t of_ll = 65'536;  // with flags
  // NCCL_P2P_NVL_CHUNKSIZE; over PCIe and, from 2.14 on, between nodes a quarter of it (src/init.cc).
  const std::int64_t of_simple = several ? net_chunk_of(settings).count : machine.nvlinks > 0 ? 524'288 : 131'072;
  SendPlan plan{.protocol = TunerProtocol::simple,
                .channels = in_steps_of(of_simple),
                .a_chunk = {of_simple},
                .a_channel = {},
                .all = all};

  // Some releases allow LL by the channels that a peer may have, others by those that it has. Sources have the former
  // from 2.22 on; measured sends of 2.27.3 are by it, those of 2.29.2 are not.
  const std::int64_t most_by_ll = settings.ll_threshold.value_or(16'384);  // a channel
  const bool by_those_it_may_have = settings.minor >= 22 && settings.minor <= 27;
  const auto& allowed = settings.protocols.at(CollectiveOp::send_recv);
  const bool may = allowed.empty() || std::find(allowed.begin(), allowed.end(), TunerProtocol::ll) != allowed.end();
  if (may && a_peer.count <= most_by_ll * (by_those_it_may_have ? most : plan.channels))
    plan = {.protocol = TunerProtocol::ll,
            .channels = by_those_it_may_have ? in_steps_of(of_ll) : plan.channels,
            .a_chunk = {of_ll / 2},
            .a_channel = {},
            .all = all};
  plan.a_channel = {parts_of(plan.channels)};
  return plan;
}

}  // namespace ringsim::nccl
