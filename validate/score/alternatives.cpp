#include "validate/score/alternatives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/scale_links.hpp"
#include "validate/measured/measured.hpp"
#include "validate/results/columns.hpp"
#include "validate/score/scorecard.hpp"

namespace ringsim {

namespace {

/// The machine of the rows, as far as alternatives ask for it.
struct NodeCounts {
  int nodes = 1, gpus = 1, nics = 0;  ///< of a node; NICs that messages may use
  bool gpudirect = false;             ///< some GPU and some NIC may exchange data directly
};

NodeCounts counts_of(const ComparedRow& row) {
  NodeCounts counts{.nodes = std::max(1, row.result.prediction.nodes)};
  counts.gpus = std::max(1, row.result.prediction.request.ranks / counts.nodes);
  const Topology topology = topology_of(row.scenario);
  const auto is_cabled = [&](NodeId nic) {
    for (const LinkId link : topology.links_from(nic))
      if (!topology.node(topology.link(link).to).host) return true;
    return false;
  };
  bool by_gpu = false, by_nic = false;
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    const Node& node = topology.node({n});
    if (node.host != 0U) continue;
    by_gpu = by_gpu || (node.kind == NodeKind::gpu && node.gpudirect);
    if (node.kind != NodeKind::nic || node.idle || !is_cabled({n})) continue;
    ++counts.nics;
    by_nic = by_nic || node.gpudirect;
  }
  const Transport& transport = row.scenario.transport;
  counts.gpudirect = transport.gdr_level != PathType::loc && (transport.assumes_gpudirect || (by_gpu && by_nic));
  return counts;
}

/// Microseconds. No launch differs by more: one thread that launches eight kernels in turn adds 52 (the fit of
/// launch_of_others(), topologies/nccl/nccl_costs.hpp).
constexpr double most_of_a_launch = 100;

class AlternativeList {
 public:
  AlternativeList(std::span<const ComparedRow> rows, Picoseconds launch_off)
      : rows_(rows), last_(rows.back()), launch_off_(launch_off), counts_(counts_of(last_)) {}

  std::vector<Alternative> all() && {
    if (last_.scenario.library)
      plans_of_library();
    else
      plans();
    const double sum = total_difference();
    if (sum > 0)
      slower_paths();
    else
      faster_paths();
    if (rows_.size() > 1) {
      fitted_launch();
      fitted_rate();
    }
    return std::move(list_);
  }

 private:
  /// What NCCL may choose at some sizes.
  void add(std::string label, std::vector<std::string> set) {
    list_.push_back({.label = std::move(label), .set = std::move(set)});
  }
  /// What is so at all sizes.
  void add_everywhere(std::string label, std::vector<std::string> set, bool is_fitted = false) {
    list_.push_back({.label = std::move(label), .set = std::move(set), .is_fitted = is_fitted, .is_everywhere = true});
  }

  /// Sum of measured - predicted.
  double total_difference() const {
    double sum = 0;
    for (const ComparedRow& row : rows_) sum += row.measured_us() - row.predicted_us();
    return sum;
  }

  void plans_of_library() {
    const bool peers = nccl::sends_to_peers(last_.result.prediction.request.op);
    const auto env = [](const char* variable, const std::string& value) {
      return fmt::format("library.env.{}={}", variable, value);
    };
    for (const char* protocol : {"LL", "LL128", "Simple"})
      if (last_.protocol != protocol && !(peers && protocol == std::string("LL128")))
        add(fmt::format("NCCL_PROTO={}", protocol), {env("NCCL_PROTO", protocol)});
    if (peers) return;
    for (const char* algorithm : {"Ring", "Tree", "NVLS", "NVLSTree"})
      if (last_.algorithm != algorithm) add(fmt::format("NCCL_ALGO={}", algorithm), {env("NCCL_ALGO", algorithm)});
    // NVLS and NVLSTree have Simple alone.
    for (const char* algorithm : {"Ring", "Tree"})
      for (const char* protocol : {"LL", "LL128", "Simple"})
        if (last_.algorithm != algorithm || last_.protocol != protocol)
          add(fmt::format("NCCL_ALGO={} NCCL_PROTO={}", algorithm, protocol),
              {env("NCCL_ALGO", algorithm), env("NCCL_PROTO", protocol)});
  }

  void plans() {
    for (const Protocol& protocol : protocols())
      if (last_.protocol != protocol.name)
        add(fmt::format("protocol {}", protocol.name), {fmt::format("transport.protocol={}", protocol.name)});
    for (const char* algorithm : {"ring", "double_binary_tree", "in_switch", "hierarchical"})
      if (last_.result.prediction.algorithm != algorithm)
        add(fmt::format("algorithm {}", algorithm), {fmt::format("collective.algorithm={}", algorithm)});
    if (const auto* cluster = std::get_if<Cluster>(&last_.scenario.topology);
        cluster != nullptr && cluster->parts.size() == 1)
      add("what NCCL decides: library nccl", library_instead({}));
  }

  /// A level of the transport, whichever of its spellings the scenario has.
  void level(std::string label, const char* key, const char* other_key, const char* value,
             const std::vector<const char*>& variables) {
    std::vector<std::string> set;
    for (const char* variable : variables)
      for (const char* where : {"transport", "library.env"}) set.push_back(fmt::format("{}.{}=null", where, variable));
    if (*other_key != '\0') set.push_back(fmt::format("transport.{}=null", other_key));
    set.push_back(fmt::format("transport.{}={}", key, value));
    add_everywhere(std::move(label), std::move(set));
  }

  void gpudirect(const char* label, const char* to) {
    level(label, "gdr_level", "gpudirect", to, {"NCCL_NET_GDR_LEVEL"});
  }
  void peer_access(const char* label, const char* to) {
    level(label, "p2p_level", "", to, {"NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE"});
  }
  void pxn(const char* label, const char* to) { level(label, "pxn", "", to, {"NCCL_PXN_DISABLE"}); }

  void scale(std::string label, LinkClass of, double factor, bool is_fitted = false) {
    const auto& calibration = last_.scenario.calibration;
    const double before = calibration ? calibration->classes.bandwidth[static_cast<std::size_t>(of)] : 1;
    add_everywhere(std::move(label), {fmt::format("calibration.scale_{}={:.4g}", to_string(of), before * factor)},
                   is_fitted);
  }

  bool carries(LinkClass kind) const {
    const auto& kinds = last_.result.prediction.why->kinds;
    return std::find(kinds.begin(), kinds.end(), to_string(kind)) != kinds.end();
  }

  /// Of all rows the most.
  int channels() const {
    int most = 1;
    for (const ComparedRow& row : rows_) most = std::max(most, row.result.prediction.request.channels);
    return most;
  }

  void slower_paths() {
    const Transport& transport = last_.scenario.transport;
    if (counts_.nodes > 1) {
      if (counts_.gpudirect) gpudirect("without GPUDirect: NCCL_NET_GDR_LEVEL=LOC", "LOC");
      if (transport.pxn) pxn("NCCL_PXN_DISABLE=1", "false");
    }
    if (counts_.gpus > 1 && transport.p2p_level != PathType::loc)
      peer_access("through host memory: NCCL_P2P_DISABLE=1", "LOC");
    if (last_.scenario.library) {
      for (int n = channels() / 2; n >= 1; n /= 2)
        add(fmt::format("NCCL_MAX_NCHANNELS={}", n),
            {"library.env.NCCL_MIN_NCHANNELS=null", fmt::format("library.env.NCCL_MAX_NCHANNELS={}", n)});
      if (counts_.gpus > 1)
        add_everywhere(fmt::format("one thread calls {} GPUs (-g {})", counts_.gpus, counts_.gpus),
                       {fmt::format("harness.gpus_per_thread={}", counts_.gpus)});
      if (counts_.nodes > 1) add_everywhere("plugin aws-ofi-nccl", {"library.plugin=aws-ofi-nccl"});
    }
    if (carries(LinkClass::nic)) {
      for (int part = 2; part <= std::max(2, counts_.nics); part *= 2)
        scale(part <= counts_.nics
                  ? fmt::format("{} of {} NICs, or all at 1/{} of the rate", counts_.nics / part, counts_.nics, part)
                  : std::string("NICs at half the rate"),
              LinkClass::nic, 1.0 / part);
    }
    if (carries(LinkClass::pcie)) scale("PCIe at half the rate (lanes, generation)", LinkClass::pcie, 0.5);
  }

  void faster_paths() {
    const Transport& transport = last_.scenario.transport;
    if (counts_.nodes > 1 && transport.gdr_level != PathType::sys)
      gpudirect("GPUDirect at any distance: NCCL_NET_GDR_LEVEL=SYS", "SYS");
    if (counts_.nodes > 1 && !transport.assumes_gpudirect && denies_gpudirect(last_.scenario.topology))
      add_everywhere("GPUDirect, though the file says gdr=0", {"transport.gpudirect=true"});
    if (counts_.nodes > 1 && !transport.pxn) pxn("NCCL_PXN_DISABLE=0", "true");
    if (counts_.gpus > 1 && transport.p2p_level != PathType::sys) peer_access("NCCL_P2P_LEVEL=SYS", "SYS");
    if (last_.scenario.library)
      add(fmt::format("NCCL_MIN_NCHANNELS={}", std::min(64, 2 * channels())),
          {"library.env.NCCL_MAX_NCHANNELS=null",
           fmt::format("library.env.NCCL_MIN_NCHANNELS={}", std::min(64, 2 * channels()))});
    if (carries(LinkClass::nic)) scale("NICs at twice the rate, or twice as many", LinkClass::nic, 2);
    if (carries(LinkClass::pcie)) scale("PCIe at twice the rate", LinkClass::pcie, 2);
  }

  void fitted_launch() {
    std::vector<double> differences;
    for (const ComparedRow& row : rows_) differences.push_back(row.measured_us() - row.predicted_us());
    const double median = std::round(10 * quantile(differences, 0.5)) / 10;
    const bool by_library = last_.scenario.library.has_value();
    const Picoseconds now = by_library ? launch_of(last_.scenario) - launch_off_ : launch_of(last_.scenario);
    const double launch = microseconds(now) + median;
    if (median == 0 || launch < 0 || std::abs(median) > most_of_a_launch) return;
    add_everywhere(fmt::format("launch {:.4g} us instead of {:.4g}", launch, microseconds(now)),
                   {fmt::format("{}={:.6f} us", by_library ? "devices.gpu.launch" : "transport.launch", launch)},
                   /*is_fitted=*/true);
  }

  /// The links that hold the largest row take so long that the rest of its time, unchanged, comes to what was measured.
  void fitted_rate() {
    double busiest = 0;
    std::optional<LinkClass> holds;
    for (const LinkClass kind : link_classes) {
      double us = 0;
      for (const WhyPart& part : last_.result.prediction.why->parts)
        if (part.kind == to_string(kind)) us += microseconds(part.time);
      if (us <= busiest) continue;
      busiest = us;
      holds = kind;
    }
    if (!holds) return;
    const double left = last_.measured_us() - (last_.predicted_us() - busiest);
    if (left <= 0) return;
    const double factor = busiest / left;
    if (factor < 0.05 || factor > 20) return;
    scale(fmt::format("{} at {:.2g} of the rate", to_string(*holds), factor), *holds, factor, /*is_fitted=*/true);
  }

  std::span<const ComparedRow> rows_;
  const ComparedRow& last_;
  Picoseconds launch_off_;
  NodeCounts counts_;
  std::vector<Alternative> list_;
};

}  // namespace

std::vector<Alternative> alternatives_of(std::span<const ComparedRow> rows, Picoseconds launch_off) {
  ensure(!rows.empty(), "alternatives are for rows");
  ensure(rows.back().result.prediction.why.has_value(), "alternatives are made for rows that were explained");
  return AlternativeList(rows, launch_off).all();
}

}  // namespace ringsim
