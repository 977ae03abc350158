#include "validate/score/baselines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "scenarios/predict/predict.hpp"
#include "sim/base/error.hpp"
#include "topologies/rccl/rccl_machine.hpp"

namespace ringsim {

namespace {

constexpr double no_limit = std::numeric_limits<double>::max();

double gigabytes(Bandwidth rate) { return static_cast<double>(rate.bytes_per_second) / 1e9; }

std::vector<NodeId> ranks_of(const Topology& topology, const Scenario& scenario) {
  std::vector<NodeId> ranks(topology.ranks().begin(), topology.ranks().end());
  if (!scenario.main().ranks.empty()) ranks.clear();
  for (const std::string& name : scenario.main().ranks) {
    const auto node = topology.find(name);
    if (!node)
      throw InputError(scenario.file + ": /collective/ranks",
                       "expected the names of gpus of the topology, found \"" + name + '"');
    ranks.push_back(*node);
  }
  return ranks;
}

/// What the links of a rank carry, by where they lead.
struct Ports {
  double inside = 0;   ///< over NVLink or xGMI to other ranks and to switches for them
  double outside = 0;  ///< by all others
};

Ports ports_of(const Topology& topology, NodeId rank, const std::set<NodeId>& ranks) {
  Ports ports;
  for (const LinkId id : topology.links_from(rank)) {
    const Link& link = topology.link(id);
    if (link.kind != LinkKind::nvlink && link.kind != LinkKind::xgmi)
      ports.outside += gigabytes(link.bandwidth);
    else if (ranks.contains(link.to) || topology.node(link.to).kind == NodeKind::nvswitch)
      ports.inside += gigabytes(link.bandwidth);
  }
  return ports;
}

/// What the NICs of a host send into the fabric together.
double nics_of(const Topology& topology, std::uint32_t host) {
  double sum = 0;
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    const Link& link = topology.link({l});
    if (topology.node(link.from).host == host && !topology.node(link.to).host) sum += gigabytes(link.bandwidth);
  }
  return sum;
}

std::string lower_case(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

std::string said(const std::map<std::string, std::string>& about, const char* key) {
  const auto found = about.find(key);
  return found == about.end() ? "" : found->second;
}

/// The first of the names with which the text begins, the longest first.
template <class Enum>
std::optional<Enum> named(const std::string& text, std::initializer_list<Enum> longest_first) {
  for (const Enum each : longest_first)
    if (text.starts_with(to_string(each))) return each;
  return std::nullopt;
}

/// The GPUs of each node by their local names, if all nodes have the same: "gpu0", "gpu2".
std::vector<std::string> gpus_of_a_node(const Scenario& scenario, const Topology& topology, int& nodes) {
  std::map<std::uint32_t, std::vector<std::string>> by_host;
  for (const NodeId rank : ranks_of(topology, scenario)) {
    const Node& node = topology.node(rank);
    by_host[node.host.value()].emplace_back(local_name(node.name));
  }
  nodes = static_cast<int>(by_host.size());
  std::vector<std::string> names = by_host.begin()->second;
  for (const auto& [host, others] : by_host)
    if (others != names) return {};
  return names;
}

}  // namespace

TextbookMachine textbook_machine(const Scenario& scenario) {
  const Topology topology = topology_without_kernels(scenario);  // what is fitted is no baseline
  const std::vector<NodeId> ranks = ranks_of(topology, scenario);
  const std::set<NodeId> members(ranks.begin(), ranks.end());
  std::map<std::optional<std::uint32_t>, std::vector<Ports>> hosts;
  for (const NodeId rank : ranks) hosts[topology.node(rank).host].push_back(ports_of(topology, rank, members));

  TextbookMachine out{.ranks = static_cast<int>(ranks.size()), .a_us = 0, .b_GBps = no_limit};
  for (const auto& [host, ports] : hosts) {
    double outside = 0;
    for (const Ports& each : ports) {
      outside += each.outside;
      if (ports.size() > 1 || hosts.size() == 1)
        out.b_GBps = std::min(out.b_GBps, each.inside > 0 ? each.inside : each.outside);
    }
    if (hosts.size() > 1) out.b_GBps = std::min({out.b_GBps, outside, nics_of(topology, host.value())});
  }
  Routes routes(topology, scenario.transport, routing_of(topology, scenario));
  for (std::size_t r = 0; r < ranks.size() && ranks.size() > 1; ++r)
    out.a_us = std::max(out.a_us, microseconds(latency(routes.find(ranks[r], ranks[(r + 1) % ranks.size()]))));
  return out;
}

std::optional<ModelTime> textbook_time(const TextbookMachine& machine, CollectiveOp op, Bytes bytes) {
  const double k = machine.ranks, a = machine.a_us;
  const double whole = static_cast<double>(bytes.count) / (1000 * machine.b_GBps);  // us for the buffer
  if (machine.ranks < 2) return std::nullopt;
  const double ring = (k - 1) * (a + whole / k);
  switch (op) {
    case CollectiveOp::all_reduce:
      return ModelTime{2 * ring, ""};
    case CollectiveOp::reduce_scatter:
    case CollectiveOp::all_gather:
    case CollectiveOp::all_to_all:
      return ModelTime{ring, ""};
    case CollectiveOp::broadcast:
    case CollectiveOp::reduce: {
      const double best = a > 0 ? std::sqrt((k - 2) * whole / a) : no_limit;
      if (best == no_limit) return ModelTime{whole, ""};
      const double s = std::max(1.0, best);
      return ModelTime{(k - 2 + s) * (a + whole / s), ""};
    }
    case CollectiveOp::send_recv:
      return ModelTime{a + whole, ""};
    default:
      return std::nullopt;
  }
}

std::optional<SaidLibrary> said_library(const std::map<std::string, std::string>& about) {
  const std::string library = said(about, "library");
  const bool is_rccl = library.starts_with("RCCL");
  if (!is_rccl && lower_case(library).find("nccl") == std::string::npos) return std::nullopt;
  using enum nccl::TunerAlgorithm;
  using enum nccl::TunerProtocol;
  SaidLibrary out{.is_rccl = is_rccl,
                  .version = {},
                  .algorithm = named(said(about, "algorithm"), {nvls_tree, nvls, tree, ring}),
                  .protocol = named(said(about, "protocol"), {ll128, ll, nccl::TunerProtocol::simple})};
  if (const std::size_t at = library.find(is_rccl ? "RCCL " : "NCCL "); at != std::string::npos) {
    const std::size_t end = library.find_first_not_of("0123456789.", at + 5);
    out.version = library.substr(at + 5, end == std::string::npos ? end : end - at - 5);
  }
  return out;
}

std::string newer_release_text(const std::map<std::string, std::string>& about, const std::string& predicted) {
  const std::optional<SaidLibrary> said = said_library(about);
  if (!said || said->version.empty()) return "";
  if (said->is_rccl) {
    if (said->version == rccl::modeled_version) return "";
    return fmt::format(
        "the table is for RCCL {}, which is not modeled; the prediction is for {}, which uses different rules "
        "(docs/guide/rccl.md)",
        said->version, predicted);
  }
  if (!nccl::is_after_newest(said->version)) return "";
  return fmt::format(
      "the table is for NCCL {}, which is newer than any release that is modeled; the prediction is for {}, which uses "
      "different rules (docs/guide/nccl.md, Newer releases)",
      said->version, predicted);
}

TunerBaseline::TunerBaseline(const Scenario& scenario, const std::map<std::string, std::string>& about) {
  const std::optional<SaidLibrary> said = said_library(about);
  const auto* cluster = std::get_if<Cluster>(&scenario.topology);
  if (!said || said->is_rccl || cluster == nullptr || cluster->parts.size() != 1) return;
  int nodes = 0;
  const std::vector<std::string> gpus = gpus_of_a_node(scenario, topology_of(scenario), nodes);
  if (gpus.empty()) return;
  if (!said->version.empty()) {
    if (nccl::is_after_newest(said->version)) return;
    release_ = nccl::release_of_version(said->version);
  }
  algorithm_ = said->algorithm;
  protocol_ = said->protocol;
  Bandwidth nic;
  if (cluster->fabric) nic = std::visit([](const auto& fabric) { return fabric.link.bandwidth; }, *cluster->fabric);
  machine_ = nccl::tuner_machine(*cluster->parts.front().machine, gpus, nodes, nic, release_);
}

std::optional<ModelTime> TunerBaseline::time(CollectiveOp op, Bytes bytes) const {
  if (!machine_) return std::nullopt;
  std::optional<ModelTime> best;
  for (const nccl::TunerChoice& choice : nccl::tuner_choices(op, *machine_, release_)) {
    if ((algorithm_ && *algorithm_ != choice.algorithm) || (protocol_ && *protocol_ != choice.protocol)) continue;
    const double us = nccl::tuner_time_us(choice, op, bytes, *machine_, release_);
    if (!best || us < best->us)
      best = ModelTime{us, std::string(to_string(choice.algorithm)) + ' ' + std::string(to_string(choice.protocol))};
  }
  return best;
}

Line fitted_line(std::span<const std::pair<Bytes, double>> rows) {
  // Least squares of (alpha + S/beta)/t - 1, for each row u alpha + v/beta with u = 1/t and v = S/t against 1.
  double uu = 0, uv = 0, vv = 0, u1 = 0, v1 = 0;
  for (const auto& [bytes, us] : rows) {
    const double u = 1 / us, v = static_cast<double>(bytes.count) / us;
    uu += u * u, uv += u * v, vv += v * v, u1 += u, v1 += v;
  }
  const double determinant = uu * vv - uv * uv;
  ensure(determinant > 0, "a line goes through at least two sizes");
  Line line{(u1 * vv - v1 * uv) / determinant, (v1 * uu - u1 * uv) / determinant};
  if (line.alpha_us < 0) line = {0, v1 / vv};
  if (line.us_per_byte < 0) line = {u1 / uu, 0};
  return line;
}

}  // namespace ringsim
