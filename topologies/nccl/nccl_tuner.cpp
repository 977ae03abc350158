#include "topologies/nccl/nccl_tuner.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "sim/base/error.hpp"

namespace ringsim::nccl {

namespace {

using Triple = std::array<double, 3>;  // LL, LL128, Simple

/// Microseconds of a step, by what joins the two ends.
struct StepTimes {
  Triple nvlink, pcie, net;
};
struct AlgorithmTimes {
  Triple base;
  StepTimes step;
};
/// Caps in GB/s, columns: on one, two, more nodes.
using Caps = std::array<double, 3>;

/// What releases have as numbers; Formula has where its shape differs.
struct Constants {
  AlgorithmTimes tree, ring;
  double nvls = 0, nvls_tree = 0;        // of Simple, the only one: in the node, and a step of the tree between nodes
  std::array<Caps, 4> ll, tree_channel;  // [0 Volta, 1 Ampere, 2 Hopper, 3 Blackwell]
  std::array<Caps, 4> ring_ll128_channel, tree_ll128_channel, nvls_tree_channel;
};

constexpr Constants of_2_30_7{
    .tree = {{6.8, 14.0, 8.4}, {{0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14.0}}},
    .ring = {{6.6, 14.0, 8.4}, {{0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14.0}}},
    .nvls = 25,
    .nvls_tree = 20.9,
    .ll = {{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {141, 45, 35}, {282, 90, 70}}},
    .tree_channel = {{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}}},
    .ring_ll128_channel = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}}},
    .tree_ll128_channel = {{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}}},
    .nvls_tree_channel = {{{26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {0, 57.7, 45.5}, {0, 96, 80}}}};

// Backwards: what a release had other than the next one.
constexpr Constants of_2_29_7 = [] {
  Constants its = of_2_30_7;
  its.nvls_tree_channel[3][2] = 43.8;
  return its;
}();
constexpr Constants of_2_29 = [] {
  Constants its = of_2_29_7;
  its.ring_ll128_channel[3] = {34.5, 34.6, 34.5};
  return its;
}();
constexpr Constants of_2_28_9 = [] {
  Constants its = of_2_29;
  its.ring_ll128_channel[3] = {73.4, 34.6, 73.4};
  return its;
}();
constexpr Constants of_2_28 = [] {
  Constants its = of_2_28_9;
  its.nvls_tree = 14;
  its.ring_ll128_channel[3][1] = 73.4;
  its.nvls_tree_channel[3][2] = 43.1;
  return its;
}();
constexpr Constants of_2_23 = [] {
  Constants its = of_2_28;
  its.tree_channel[3] = {77.4, 82.8, 72.0};
  its.tree_ll128_channel[3] = {73.4, 73.4, 58.0};
  return its;
}();
constexpr Constants of_2_21 = [] {
  Constants its = of_2_23;
  its.tree.base[2] = 0;
  its.tree.step.nvlink[2] = its.tree.step.pcie[2] = its.tree.step.net[2] = 28;
  return its;
}();
constexpr Constants of_2_19 = [] {
  Constants its = of_2_21;
  its.ll[2] = its.ll[3] = its.ll[1];
  its.nvls = 23;
  return its;
}();
constexpr Constants of_2_18 = [] {  // 2.18.3 to 2.18.6
  Constants its = of_2_19;
  its.tree.step.nvlink[2] = 4;
  its.tree.step.pcie[2] = 6;
  its.tree.step.net[2] = 14;
  its.nvls_tree = 19;
  return its;
}();

// Its LL128 caps are one a collective (ll128_channel_2_8_3); NVLS and GPUs after Ampere came later.
constexpr Constants of_2_8_3{
    .tree = {{4.4, 4.4, 0}, {{0.52, 1.25, 28}, {1.0, 1.9, 28}, {5.0, 8.5, 28}}},
    .ring = {{3.6, 10.0, 8.4}, {{0.47, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 9.6}}},
    .ll = {{{39.0, 39.0, 20.4}, {87.7, 22.5, 19.0}, {87.7, 22.5, 19.0}, {87.7, 22.5, 19.0}}},
    .tree_channel = {{{26.5, 18.5, 10.0}, {24.0, 22.5, 16.0}, {24.0, 22.5, 16.0}, {24.0, 22.5, 16.0}}},
    .ring_ll128_channel = {},
    .tree_ll128_channel = {},
    .nvls_tree_channel = {}};
// 2.14 has the same constants.
constexpr Constants of_2_10 = [] {
  Constants its = of_2_8_3;
  for (std::size_t after_volta = 1; after_volta < 4; ++after_volta) its.tree_channel[after_volta] = {24.0, 23.6, 17.8};
  for (Caps& caps : its.ring_ll128_channel) caps = {20, 20, 20};
  its.tree_ll128_channel = its.ring_ll128_channel;
  return its;
}();
constexpr Constants of_2_12 = [] {
  Constants its = of_2_10;
  its.ring.step.net[2] = 28;
  return its;
}();

double ll128_channel_2_8_3(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::broadcast:
      return 18.8;
    case CollectiveOp::reduce:
      return 12.0;
    case CollectiveOp::all_gather:
      return 18.3;
    case CollectiveOp::reduce_scatter:
      return 15.2;
    default:
      return 16.9;
  }
}

/// Trees fall short of the formula at medium sizes; [i] is for 64 B * 2^i. The last is of NVLSTree alone.
constexpr std::array<std::array<double, 24>, 3> tree_correction{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};
/// The values of 2.8.3 that differ: LL128 from 13 on.
constexpr std::array<double, 10> tree_correction_ll128_2_8_3{.5, .6, .6, .7, .7, .8, .9, .9, .92, .92};

const Constants& constants(Release release) {
  switch (release) {
    case Release::v2_8_3:
      return of_2_8_3;
    case Release::v2_10:
    case Release::v2_14:
      return of_2_10;
    case Release::v2_12:
      return of_2_12;
    case Release::v2_18:
      return of_2_18;
    case Release::v2_19:
    case Release::v2_20:
      return of_2_19;
    case Release::v2_21:
      return of_2_21;
    case Release::v2_23:
    case Release::v2_24:
    case Release::v2_27:
      return of_2_23;
    case Release::v2_28:
      return of_2_28;
    case Release::v2_28_9:
      return of_2_28_9;
    case Release::v2_29:
      return of_2_29;
    case Release::v2_29_7:
      return of_2_29_7;
    case Release::v2_30_7:
      return of_2_30_7;
  }
  fail_invariant("a release is one of those listed");
}

std::size_t generation(int sm) { return sm >= 100 ? 3 : sm >= 90 ? 2 : sm >= 80 ? 1 : 0; }
std::size_t nodes_column(int nodes) { return static_cast<std::size_t>(std::min(nodes, 3) - 1); }
int log2_floor(int n) { return static_cast<int>(std::bit_width(static_cast<unsigned>(n))) - 1; }
std::size_t at(TunerProtocol protocol) { return static_cast<std::size_t>(protocol); }

/// The steps round the ring, and how many of them lead to another node.
struct RingSteps {
  int all = 0, between = 0;
};
RingSteps ring_steps(CollectiveOp op, const TunerMachine& machine, Release release) {
  const int n = machine.ranks(), nodes = machine.nodes;
  const bool one_more = nodes > 1 && release >= Release::v2_12 && release < Release::v2_23;
  if (op == CollectiveOp::all_reduce) return {2 * (n - 1), 2 * (one_more ? nodes : nodes - 1)};
  if (op == CollectiveOp::broadcast || op == CollectiveOp::reduce) return {n, 0};
  return {n - 1, nodes - 1};
}

class Formula {
 public:
  Formula(CollectiveOp op, const TunerMachine& machine, Release release)
      : op_(op), machine_(machine), release_(release), old_(release < Release::v2_18), constants_(constants(release)) {}

  TunerChoice ring(TunerProtocol protocol) const {
    return {TunerAlgorithm::ring, protocol, ring_latency(protocol), ring_bandwidth(protocol)};
  }
  TunerChoice tree(TunerProtocol protocol) const {
    const Triple& inside = machine_.tree.nvlink ? constants_.tree.step.nvlink : constants_.tree.step.pcie;
    const double latency =
        constants_.tree.base[at(protocol)] + 2 * ((machine_.gpus - 1) * inside[at(protocol)] * extra_of_ll(protocol) +
                                                  log2_floor(machine_.nodes) * network(constants_.tree.step, protocol));
    return {TunerAlgorithm::tree, protocol, latency, tree_bandwidth(protocol)};
  }
  /// PAT, for one GPU per node, all_gather and reduce_scatter (src/graph/tuning.cc, ncclPatEnable; ncclTopoTuneModel
  /// has these numbers as they stand here): binomial trees, of which NCCL still counts a part for each rank.
  TunerChoice pat() const {
    const double rounds = log2_floor(machine_.nodes) * network(constants_.tree.step, TunerProtocol::simple) / 3.5;
    const double share = release_ < Release::v2_24 ? 0.85 : pat_share;
    return {TunerAlgorithm::pat, TunerProtocol::simple, 8 + rounds + 2.8 * machine_.ranks(),
            bus_bandwidth(machine_.tree) * share};
  }
  /// In the switches of one node; over several with a tree between them.
  TunerChoice nvls() const {
    if (release_ < Release::v2_28) return nvls_before_2_28();
    const Channels& found = machine_.nvls;
    const bool several = machine_.nodes > 1;
    const double efficiency = machine_.sm >= 100 ? 0.74 : 0.85;
    double channel = found.inside * efficiency * (found.count - 1) / found.count;
    channel *= op_ == CollectiveOp::all_reduce ? 2 : (machine_.gpus - 1.0) / machine_.gpus;
    channel = std::min(channel, found.between * (machine_.nodes == 2 ? 2 : 1));
    if (several) channel = std::min(channel, cap(constants_.nvls_tree_channel));
    const double ratio = op_ == CollectiveOp::all_reduce ? machine_.ranks() / (2.0 * (machine_.ranks() - 1))
                                                         : 1;  // as the source has it
    return {several ? TunerAlgorithm::nvls_tree : TunerAlgorithm::nvls, TunerProtocol::simple,
            constants_.nvls + 2 * log2_floor(machine_.nodes) * nvls_tree_step(), found.count * channel * ratio};
  }

 private:
  TunerChoice nvls_before_2_28() const {
    const Channels& found = machine_.nvls;
    const int nodes = machine_.nodes;
    if (nodes == 1) {
      const bool all_reduce = op_ == CollectiveOp::all_reduce;
      double channel = found.inside;
      if (all_reduce || release_ < Release::v2_23)
        channel *= 5.0 / 6;
      else if (release_ == Release::v2_27)
        channel = std::min(channel * (machine_.gpus - 1) / machine_.gpus, found.between * 0.9);
      return {TunerAlgorithm::nvls, TunerProtocol::simple, constants_.nvls, found.count * channel};
    }
    if (release_ == Release::v2_18)
      return {TunerAlgorithm::nvls_tree, TunerProtocol::simple,
              constants_.nvls + 2 * (nodes - 1) * constants_.nvls_tree,
              bus_bandwidth(found) * 0.7 * nodes / (2 * (nodes - 1))};
    const double channel = std::min(found.inside, nodes == 2 ? found.between : found.between / 2);
    return {TunerAlgorithm::nvls_tree, TunerProtocol::simple,
            constants_.nvls + 2 * log2_floor(nodes) * nvls_tree_step(), found.count * channel * 5 / 6};
  }
  double nvls_tree_step() const { return constants_.nvls_tree + 2 * machine_.net_latency_us; }
  /// A step between nodes; Simple waits for the flush as well. Before 2.18 what the plugin declares stood instead of
  /// the constant, before 2.12 it did not count.
  double network(const StepTimes& step, TunerProtocol protocol) const {
    const double constant = step.net[at(protocol)], declared = machine_.net_latency_us;
    if (old_) return release_ < Release::v2_12 || declared == 0 ? constant : declared;
    return constant + declared * (protocol == TunerProtocol::simple ? 2 : 1);
  }
  double bus_bandwidth(const Channels& found) const {
    const double all = found.count * (machine_.nodes <= 2 ? found.inside : found.between);
    return old_ && machine_.sm == 80 ? std::min(all, 235.0) : all;
  }
  /// The row of tables. Before 2.18 GPUs of 8.6 and 8.9 are like Volta's.
  std::size_t row() const { return old_ && machine_.sm > 80 && machine_.sm < 90 ? 0 : generation(machine_.sm); }
  /// On several nodes the cap goes by the CPUs.
  double ll_cap() const {
    const std::size_t by = machine_.nodes == 1 ? row() : machine_.amd ? 1 : 0;
    return constants_.ll[by][nodes_column(machine_.nodes)];
  }
  double cap(const std::array<Caps, 4>& table) const { return table[row()][nodes_column(machine_.nodes)]; }
  double ll128_channel(const std::array<Caps, 4>& table) const {
    return release_ == Release::v2_8_3 ? ll128_channel_2_8_3(op_) : cap(table);
  }
  double extra_of_ll(TunerProtocol protocol) const {
    return old_ && machine_.nodes > 1 && protocol == TunerProtocol::ll ? 1.8 : 1;
  }

  double ring_bandwidth(TunerProtocol protocol) const {
    double bus = bus_bandwidth(machine_.ring);
    if (protocol == TunerProtocol::ll) {
      const bool third = op_ != CollectiveOp::all_reduce && op_ != CollectiveOp::reduce && machine_.nodes == 1;
      bus = std::min(ll_cap(), release_ < Release::v2_21 ? bus / (third ? 3 : 4) : bus / 2);
    } else if (protocol == TunerProtocol::ll128) {
      const double share = release_ < Release::v2_23 && machine_.gpus < 2 ? 0.7 : 0.92;
      bus = std::min(bus * share, machine_.ring.count * ll128_channel(constants_.ring_ll128_channel));
    }
    return bus * machine_.ranks() / ring_steps(op_, machine_, release_).all;
  }

  double ring_latency(TunerProtocol protocol) const {
    const StepTimes& step = constants_.ring.step;
    const std::size_t p = at(protocol);
    const double base = constants_.ring.base[p];
    const RingSteps steps = ring_steps(op_, machine_, release_);
    const auto here = [&](const StepTimes& times) {
      return machine_.nodes > 1 ? times.net[p] : machine_.ring.nvlink ? times.nvlink[p] : times.pcie[p];
    };
    if (op_ == CollectiveOp::broadcast || op_ == CollectiveOp::reduce) {
      if (machine_.same_rings) return base + here(step);
      return base + steps.all * here(protocol == TunerProtocol::simple ? constants_.tree.step : step);
    }
    double inside = (machine_.ring.nvlink ? step.nvlink[p] : step.pcie[p]) * extra_of_ll(protocol);
    if (!old_ && machine_.nodes > 1)  // what posting to the network takes
      inside = std::max(inside, (machine_.amd ? 2.0 : 1.0) * (protocol == TunerProtocol::simple ? 3 : 1));
    const bool exposed = release_ >= Release::v2_23 && machine_.gpus == 1;
    const double between = network(exposed ? constants_.tree.step : step, protocol);
    return base + (steps.all - steps.between) * inside + steps.between * between;
  }

  double tree_bandwidth(TunerProtocol protocol) const {
    const Channels& found = machine_.tree;
    double bus = std::min(bus_bandwidth(found) * 0.92, found.count * cap(constants_.tree_channel));
    if (protocol == TunerProtocol::ll) bus = std::min(bus / 3.8, ll_cap());
    if (protocol == TunerProtocol::ll128) {
      const double several = release_ == Release::v2_8_3 ? 0.915 : 120.0 / 128;
      bus = std::min(bus * (machine_.nodes == 1 ? 7.0 / 9 : several),
                     found.count * ll128_channel(constants_.tree_ll128_channel));
    }
    if (found.chains && !old_) bus *= 0.85;
    return bus * 0.5;
  }

  CollectiveOp op_;
  const TunerMachine& machine_;
  Release release_;
  bool old_;  ///< before 2.18
  const Constants& constants_;
};

}  // namespace

double latency_of_aws_ofi_nccl(const TunerMachine& machine) {
  constexpr double of_200_Gbps = 20;  // GB/s, less than what an adapter of 200 Gb/s has, and more than one of 100
  if (machine.provider != NicProvider::efa) return 75;
  return machine.sm < 80 ? 150 : machine.nic_GBps / machine.ports > of_200_Gbps ? 35 : 75;
}

std::string_view to_string(TunerAlgorithm algorithm) {
  constexpr std::array<std::string_view, 6> names{"Tree", "Ring", "NVLS", "NVLSTree", "PAT", "MSCCL"};
  return names[static_cast<std::size_t>(algorithm)];
}

std::string_view to_string(TunerProtocol protocol) {
  constexpr std::array<std::string_view, 3> names{"LL", "LL128", "Simple"};
  return names[at(protocol)];
}

std::vector<TunerChoice> tuner_choices(CollectiveOp op, const TunerMachine& machine, Release release) {
  std::vector<TunerChoice> choices;
  const bool ring = op == CollectiveOp::all_reduce || op == CollectiveOp::all_gather ||
                    op == CollectiveOp::reduce_scatter || op == CollectiveOp::broadcast || op == CollectiveOp::reduce;
  if (!ring || machine.ranks() < 2) return choices;
  const Formula formula(op, machine, release);
  for (const TunerProtocol protocol : {TunerProtocol::ll, TunerProtocol::ll128, TunerProtocol::simple}) {
    const bool ll128 = protocol == TunerProtocol::ll128;
    if (op == CollectiveOp::all_reduce && machine.tree.count > 0 && (!ll128 || machine.tree.ll128))
      choices.push_back(formula.tree(protocol));
    if (!ll128 || machine.ring.ll128) choices.push_back(formula.ring(protocol));
  }
  const bool gathers = op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter;
  if (gathers && machine.gpus == 1 && machine.tree.count > 0 && release >= Release::v2_23)
    choices.push_back(formula.pat());
  // Without all-reduce NVLS stays within a node, and 2.18 has it for nothing else.
  const bool rooted = op == CollectiveOp::broadcast || op == CollectiveOp::reduce;
  const bool in_switch = op == CollectiveOp::all_reduce ? release >= Release::v2_18
                                                        : !rooted && machine.nodes == 1 && release >= Release::v2_19;
  if (in_switch && machine.nvls.count >= 2) choices.push_back(formula.nvls());
  return choices;
}

namespace {
double correction(TunerProtocol protocol, CollectiveOp op, Bytes bytes, Release release, bool nvls_tree = false) {
  const auto size = static_cast<std::uint64_t>(bytes.count);
  const auto index = static_cast<std::size_t>(std::bit_width(std::max<std::uint64_t>(size / 64, 1))) - 1;
  const std::size_t all = tree_correction[0].size(), count = nvls_tree ? all : all - 1;
  if (op != CollectiveOp::all_reduce || index >= count) return 1;
  const bool differs = release == Release::v2_8_3 && protocol == TunerProtocol::ll128 && index >= 13;
  return differs ? tree_correction_ll128_2_8_3[index - 13] : tree_correction[at(protocol)][index];
}

/// The correction as a property of the machine: it does not jump at a power of two, as NCCL's choice does, but goes
/// evenly from one to the next. Assumption; all but 13 rows of validate/measured are at powers of two, where it is
/// exact.
double smooth_correction(TunerProtocol protocol, CollectiveOp op, Bytes bytes, Release release) {
  const std::int64_t size = std::max<std::int64_t>(bytes.count, 64);
  const auto octave = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(size)));
  const double here = correction(protocol, op, {octave}, release);
  if (octave > INT64_MAX / 2) return here;
  const double way = static_cast<double>(size - octave) / static_cast<double>(octave);
  return here + way * (correction(protocol, op, {2 * octave}, release) - here);
}
}  // namespace

double tree_share(TunerProtocol protocol, CollectiveOp op, Bytes bytes, const TunerMachine& machine, Release release) {
  // What machines do does not change with what a release takes them to do: Blackwell's were guesses up to 2.27.
  const Constants& known = release < Release::v2_12 ? constants(release) : of_2_30_7;
  const Caps& caps = known.tree_channel[generation(machine.sm)];
  const double most = caps[nodes_column(machine.nodes)] / machine.tree.between;
  return std::min(1.0, most) * smooth_correction(protocol, op, bytes, release);
}

double ring_ll128_share(const TunerMachine& machine) {
  constexpr double wire = 128.0 / 120;  // with flags
  const double channel = of_2_30_7.ring_ll128_channel[generation(machine.sm)][nodes_column(machine.nodes)];
  return std::min(1.0, channel * wire / machine.nic_GBps);
}

double tuner_time_us(const TunerChoice& choice, CollectiveOp op, Bytes bytes, const TunerMachine& machine,
                     Release release) {
  double latency = choice.latency_us, bandwidth = choice.bandwidth_GBps;
  const auto size = static_cast<std::uint64_t>(bytes.count);
  const bool old = release < Release::v2_18;
  if (choice.algorithm == TunerAlgorithm::tree) bandwidth *= correction(choice.protocol, op, bytes, release);
  const bool corrected = release >= Release::v2_29 && machine.sm >= 100 && !machine.arm;
  if (choice.algorithm == TunerAlgorithm::nvls_tree && corrected)
    bandwidth *= correction(choice.protocol, op, bytes, release, /*nvls_tree=*/true);
  const bool simple_ring = choice.algorithm == TunerAlgorithm::ring && choice.protocol == TunerProtocol::simple;
  if (simple_ring && op == CollectiveOp::all_reduce && machine.nodes > 1) {  // the ring's plateau
    const double a_rank = static_cast<double>(size) / machine.ranks();
    if (old ? a_rank >= 65536 / 16.0 : a_rank / machine.ring.count >= 64) latency *= old || machine.sm < 80 ? 1.9 : 1.4;
  }
  return latency + static_cast<double>(size) / (1000 * bandwidth);
}

}  // namespace ringsim::nccl
