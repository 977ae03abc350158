#include "topologies/rccl/rccl_tuner.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "sim/base/error.hpp"

namespace ringsim::rccl {

using nccl::TunerAlgorithm;
using nccl::TunerChoice;
using nccl::TunerMachine;
using nccl::TunerProtocol;

namespace {

/// LL and Simple. LL128 has 0 everywhere in this model.
using Pair = std::array<double, 2>;
using Factors = std::array<std::array<double, 27>, 2>;  // [protocol][i] for 64 B * 2^i; the last also for all above

struct Constants {
  Pair base, inside, network;  ///< us; base is the same for rings and trees
  Pair two_nodes, more_nodes;  ///< share of the links; one node counts as two
  Factors correction;          ///< of rings on several nodes, of trees everywhere
};

constexpr Constants of_tree{
    .base = {12, 17},
    .inside = {0.9, 2.3},
    .network = {10.5, 25},
    .two_nodes = {0.06, 0.11},
    .more_nodes = {0.06, 0.59},
    .correction = {
        {{.1, .1, .1, .1, .1, .1, 1, 1, 1, 1, 1, .6, 1, .9, 1, 1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1},
         {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .7, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, .8}}}};
constexpr Constants of_ring{
    .base = {12, 17},
    .inside = {0.8, 2.1},
    .network = {9.5, 320},
    .two_nodes = {0.08, 1},
    .more_nodes = {0.08, 1},
    .correction = {
        {{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1, .2, 1, .4, .4, .1, .2, .2, .1, .1, .1, .1, .1, .1, .1, .1},
         {.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .8, 1, 1, 1}}}};

/// Rings of LL that go one way on one node bring more: a factor on their share.
constexpr double rooted_ll_on_one_node = 1.65;

const Constants& constants(TunerAlgorithm algorithm) { return algorithm == TunerAlgorithm::tree ? of_tree : of_ring; }
std::size_t at(TunerProtocol protocol) {
  ensure(protocol != TunerProtocol::ll128, "RCCL has no LL128 on gfx942");
  return protocol == TunerProtocol::ll ? 0 : 1;
}
bool is_rooted(CollectiveOp op) { return op == CollectiveOp::broadcast || op == CollectiveOp::reduce; }

/// The steps round the ring, and how many of them lead to another node.
struct RingSteps {
  int all = 0, between = 0;
};
RingSteps ring_steps(CollectiveOp op, const TunerMachine& machine) {
  const int n = machine.ranks(), nodes = machine.nodes;
  if (op == CollectiveOp::all_reduce) return {2 * (n - 1), nodes > 1 ? 2 * nodes : 0};
  if (is_rooted(op)) return {n, nodes};
  return {n - 1, nodes - 1};
}

/// GB/s of the algorithm.
double bandwidth(CollectiveOp op, TunerAlgorithm algorithm, TunerProtocol protocol, const TunerMachine& machine) {
  const Constants& own = constants(algorithm);
  const double all = machine.ring.count * machine.ring.inside;
  double bus = all * (machine.nodes <= 2 ? own.two_nodes : own.more_nodes)[at(protocol)];
  if (algorithm == TunerAlgorithm::tree) return bus / 2;
  if (protocol == TunerProtocol::ll && is_rooted(op) && machine.nodes == 1) bus *= rooted_ll_on_one_node;
  return bus * machine.ranks() / ring_steps(op, machine).all;
}

double latency(CollectiveOp op, TunerAlgorithm algorithm, TunerProtocol protocol, const TunerMachine& machine) {
  const Constants& own = constants(algorithm);
  const std::size_t p = at(protocol);
  const bool several = machine.nodes > 1;
  if (algorithm == TunerAlgorithm::tree) {
    const int levels = static_cast<int>(std::bit_width(static_cast<unsigned>(machine.nodes))) - 1;
    return own.base[p] + 2 * ((machine.gpus - 1) * own.inside[p] + levels * own.network[p]);
  }
  // All channels visit the GPUs alike, by what RCCL takes known rings for.
  if (is_rooted(op)) return own.base[p] + (several ? own.network : own.inside)[p];
  double inside = own.inside[p];
  if (several)  // what posting to the network takes
    inside = std::max(inside, (machine.amd ? 2.0 : 1.0) * (protocol == TunerProtocol::simple ? 3 : 1));
  const RingSteps steps = ring_steps(op, machine);
  return own.base[p] + (steps.all - steps.between) * inside + steps.between * own.network[p];
}

template <class Value>
bool allowed(const std::vector<Value>& list, Value value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

}  // namespace

double step_us(TunerAlgorithm algorithm, TunerProtocol protocol) { return constants(algorithm).inside[at(protocol)]; }
double base_us(TunerProtocol protocol) { return of_ring.base[at(protocol)]; }

std::vector<TunerChoice> tuner_choices(CollectiveOp op, const TunerMachine& machine, const Settings& settings) {
  const bool covered = op == CollectiveOp::all_reduce || op == CollectiveOp::all_gather ||
                       op == CollectiveOp::reduce_scatter || is_rooted(op);
  if (!covered || machine.ranks() < 2) return {};
  std::vector<TunerChoice> all, choices;
  for (const TunerAlgorithm algorithm : {TunerAlgorithm::tree, TunerAlgorithm::ring}) {
    const bool tree = algorithm == TunerAlgorithm::tree;
    if (tree && op != CollectiveOp::all_reduce) continue;
    for (const TunerProtocol protocol : {TunerProtocol::ll, TunerProtocol::simple}) {
      if (tree && protocol == TunerProtocol::simple && machine.nodes == 1) continue;
      const TunerChoice choice{algorithm, protocol, latency(op, algorithm, protocol, machine),
                               bandwidth(op, algorithm, protocol, machine)};
      if (!tree) all.push_back(choice);
      if (allowed(settings.algorithms, algorithm) && allowed(settings.protocols, protocol)) choices.push_back(choice);
    }
  }
  return choices.empty() ? all : choices;
}

double tuner_time_us(const TunerChoice& choice, Bytes bytes, const TunerMachine& machine) {
  const auto size = static_cast<std::uint64_t>(bytes.count);
  double rate = choice.bandwidth_GBps;
  if (choice.algorithm == TunerAlgorithm::tree || machine.nodes > 1) {
    const auto& factors = constants(choice.algorithm).correction[at(choice.protocol)];
    const auto octave = static_cast<std::size_t>(std::bit_width(std::max<std::uint64_t>(size / 64, 1))) - 1;
    rate *= factors[std::min(octave, factors.size() - 1)];
  }
  return choice.latency_us + static_cast<double>(size) / (1000 * rate);
}

}  // namespace ringsim::rccl
