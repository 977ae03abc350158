#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "topologies/builders.hpp"
#include "topologies/fabrics/fabrics.hpp"

namespace ringsim {

namespace {

/// NICs that all k pods hold: k^3 / 4 for each fold of oversubscription.
std::uint64_t capacity(int k, int oversubscription) {
  const auto half = static_cast<std::uint64_t>(k) / 2;
  return static_cast<std::uint64_t>(k) * half * half * static_cast<std::uint64_t>(oversubscription);
}

}  // namespace

/// k ports a switch, m = k/2; here k = 4 with two of its four pods:
///
///     core0  core1   core2  core3     m^2 cores; agg a of a pod is cabled to cores a m .. a m + m - 1
///       |\  \  |  \   /  |   / |
///     agg0   agg1    agg2   agg3      m aggregation switches a pod, cabled to all edge switches of their pod
///       | \ / |        | \ / |
///       | / \ |        | / \ |
///    edge0  edge1    edge2  edge3     m edge switches a pod, each with m NICs (n m if oversubscribed n:1)
///     /\     /\       /\     /\       ..
///
/// NICs fill the edge switches in the order of nodes and NICs, m (n m) each; a node's NICs may lie on several. Pods
/// that hold no NIC are not built; of P pods that do, all switches are: P m edge, P m aggregation, m^2 cores, 2 P m^2
/// cables between them. The edge switches of an oversubscribed tree have n m + m ports. Source: Al-Fares, Loukissas,
/// Vahdat, A Scalable, Commodity Data Center Network Architecture, SIGCOMM 2008, 3.1.
void add(const FatTree& fabric, std::span<const NicPort> ports, TopologyBuilder& builder) {
  constexpr int most = 1024;  // 268 million NICs, beyond what can be built
  if (fabric.k < 2 || fabric.k > most || fabric.k % 2 != 0) {
    throw InputError("/k", fmt::format("expected an even number of ports from 2 to {}, found {}", most, fabric.k));
  }
  require_positive(fabric.oversubscription, "/oversubscription");
  require_usable(fabric.link, "/link");
  const LinkSpec cable = trunk(std::nullopt, fabric.link, "/link", ports);
  if (ports.size() > capacity(fabric.k, fabric.oversubscription)) {
    int enough = fabric.k;
    while (enough < most && capacity(enough, fabric.oversubscription) < ports.size()) enough += 2;
    throw InputError("/k",
                     fmt::format("expected at most {} NICs, k^3/4 = {} for each of {}:1, found {}",
                                 capacity(fabric.k, fabric.oversubscription), capacity(fabric.k, 1),
                                 fabric.oversubscription, ports.size()),
                     fmt::format("k = {} holds {}", enough, capacity(enough, fabric.oversubscription)));
  }

  const auto m = static_cast<std::size_t>(fabric.k) / 2;
  const std::size_t nics_per_edge = m * static_cast<std::size_t>(fabric.oversubscription);
  const std::size_t pods = (ports.size() - 1) / (nics_per_edge * m) + 1;
  require_size(static_cast<double>(2 * pods * m + m * m), 2.0 * static_cast<double>(pods) * static_cast<double>(m * m));

  builder.break_ties(Ties::by_destination);
  const std::vector<NodeId> edges = add_switches("edge", pods * m, builder);
  const std::vector<NodeId> aggs = add_switches("agg", pods * m, builder);
  const std::vector<NodeId> cores = add_switches("core", m * m, builder);
  for (std::size_t p = 0; p < ports.size(); ++p) {
    builder.add_cable(ports[p].nic, edges[p / nics_per_edge], through_port(ports[p].port, fabric.link));
  }
  for (std::size_t e = 0; e < edges.size(); ++e) {
    for (std::size_t a = 0; a < m; ++a) builder.add_cable(edges[e], aggs[e / m * m + a], cable);
  }
  for (std::size_t a = 0; a < aggs.size(); ++a) {
    for (std::size_t c = 0; c < m; ++c) builder.add_cable(aggs[a], cores[a % m * m + c], cable);
  }
}

}  // namespace ringsim
