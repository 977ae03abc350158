#include "validate/score/alternatives.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
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
  int nodes = 1, gpus = 1;        ///< GPUs of a node
  std::vector<std::string> nics;  ///< those of a node that messages may use
  bool gpudirect = false;         ///< some GPU and some NIC may exchange data directly
  bool has_pcie_switch = false;
  std::map<LinkClass, std::vector<std::string>> gpu_links;  ///< from and to the first GPU: "node0.gpu0 -> node0.pcie0"
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
  std::optional<NodeId> gpu;
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    const Node& node = topology.node({n});
    if (node.host && node.kind == NodeKind::pcie_switch) counts.has_pcie_switch = true;
    if (node.host != 0U) continue;
    by_gpu = by_gpu || (node.kind == NodeKind::gpu && node.gpudirect);
    if (node.kind == NodeKind::gpu && !gpu) gpu = NodeId{n};
    if (node.kind != NodeKind::nic || node.idle || !is_cabled({n})) continue;
    counts.nics.push_back(node.name.substr(node.name.find('.') + 1));
    by_nic = by_nic || node.gpudirect;
  }
  for (const Link& link : topology.links())
    if (gpu && (link.from == *gpu || link.to == *gpu))
      counts.gpu_links[class_of(topology, link)].push_back(
          fmt::format("{} -> {}", topology.node(link.from).name, topology.node(link.to).name));
  const Transport& transport = row.scenario.transport;
  counts.gpudirect = transport.gdr_level != PathType::loc && (transport.assumes_gpudirect || (by_gpu && by_nic));
  return counts;
}

/// Microseconds. No launch differs by more: one thread that launches eight kernels in turn adds 52 (the fit of
/// launch_of_others(), topologies/nccl/nccl_costs.hpp).
constexpr double most_of_a_launch = 100;

class AlternativeList {
 public:
  AlternativeList(std::span<const ComparedRow> rows, Picoseconds launch_off, std::string release,
                  std::optional<double> shared_us)
      : rows_(rows),
        last_(rows.back()),
        launch_off_(launch_off),
        release_(std::move(release)),
        shared_us_(shared_us),
        counts_(counts_of(last_)) {
    if (const auto* cluster = std::get_if<Cluster>(&last_.scenario.topology); cluster != nullptr && cluster->fabric)
      fabric_ = &*cluster->fabric;
  }

  std::vector<Alternative> all() && {
    if (is_rccl())
      plans_of_rccl();
    else if (last_.scenario.library)
      plans_of_library();
    else
      plans();
    const double sum = total_difference();
    if (sum > 0)
      slower_paths();
    else
      faster_paths();
    if (rows_.size() > 1 || shared_us_) fitted_launch();
    if (rows_.size() > 1) {
      fitted_rate();
      if (sum > 0) fitted_times();
    }
    return std::move(list_);
  }

 private:
  /// What NCCL may choose at some sizes.
  void add(std::string label, std::vector<std::string> set, bool is_plan = false) {
    list_.push_back({.label = std::move(label), .set = std::move(set), .is_plan = is_plan});
  }
  /// What is so at all sizes, and where it can be seen.
  void add_everywhere(std::string label, std::vector<std::string> set, std::string look, bool is_fitted = false) {
    list_.push_back({.label = std::move(label),
                     .set = std::move(set),
                     .is_fitted = is_fitted,
                     .is_everywhere = true,
                     .look = std::move(look)});
  }

  /// Sum of measured - predicted.
  double total_difference() const {
    double sum = 0;
    for (const ComparedRow& row : rows_) sum += row.measured_us() - row.predicted_us();
    return sum;
  }

  bool is_rccl() const { return last_.scenario.library && last_.scenario.library->name == "rccl"; }

  /// The choices of RCCL's tuner. MSCCL schedules are not among them: they come before the tuner.
  void plans_of_rccl() {
    const std::string tuner = "library.env.RCCL_MSCCL_ENABLE=0";
    const bool by_msccl = last_.algorithm == "MSCCL";
    if (by_msccl) add("RCCL_MSCCL_ENABLE=0", {tuner}, /*is_plan=*/true);
    for (const char* algorithm : {"Ring", "Tree"})
      for (const char* protocol : {"LL", "Simple"})
        if (last_.algorithm != algorithm || last_.protocol != protocol)
          add(fmt::format("NCCL_ALGO={} NCCL_PROTO={}{}", algorithm, protocol, by_msccl ? " RCCL_MSCCL_ENABLE=0" : ""),
              {fmt::format("library.env.NCCL_ALGO={}", algorithm), fmt::format("library.env.NCCL_PROTO={}", protocol),
               tuner},
              /*is_plan=*/true);
  }

  void plans_of_library() {
    const bool peers = nccl::sends_to_peers(last_.result.prediction.request.op);
    const auto env = [](const char* variable, const std::string& value) {
      return fmt::format("library.env.{}={}", variable, value);
    };
    for (const char* protocol : {"LL", "LL128", "Simple"})
      if (last_.protocol != protocol && !(peers && protocol == std::string("LL128")))
        add(fmt::format("NCCL_PROTO={}", protocol), {env("NCCL_PROTO", protocol)}, /*is_plan=*/true);
    // Also where NCCL does not trust it: for LL128, links and releases decide.
    if (last_.protocol == "LL128")
      add_everywhere("no LL128: NCCL_PROTO=^LL128", {env("NCCL_PROTO", "^LL128")}, "NCCL_PROTO in the environment");
    if (last_.algorithm.starts_with("NVLS"))
      add_everywhere("without NVLS: NCCL_NVLS_ENABLE=0", {"library.env.NCCL_NVLS_ENABLE=0"}, "NCCL's log for NVLS");
    if (peers) return;
    for (const char* algorithm : {"Ring", "Tree", "NVLS", "NVLSTree"})
      if (last_.algorithm != algorithm)
        add(fmt::format("NCCL_ALGO={}", algorithm), {env("NCCL_ALGO", algorithm)}, /*is_plan=*/true);
    // NVLS and NVLSTree have Simple alone.
    for (const char* algorithm : {"Ring", "Tree"})
      for (const char* protocol : {"LL", "LL128", "Simple"})
        if (last_.algorithm != algorithm || last_.protocol != protocol)
          add(fmt::format("NCCL_ALGO={} NCCL_PROTO={}", algorithm, protocol),
              {env("NCCL_ALGO", algorithm), env("NCCL_PROTO", protocol)}, /*is_plan=*/true);
  }

  void plans() {
    for (const Protocol& protocol : protocols())
      if (last_.protocol != protocol.name)
        add(fmt::format("protocol {}", protocol.name), {fmt::format("transport.protocol={}", protocol.name)},
            /*is_plan=*/true);
    for (const char* algorithm : {"ring", "double_binary_tree", "in_switch", "hierarchical"})
      if (last_.result.prediction.algorithm != algorithm)
        add(fmt::format("algorithm {}", algorithm), {fmt::format("collective.algorithm={}", algorithm)},
            /*is_plan=*/true);
    if (const auto* cluster = std::get_if<Cluster>(&last_.scenario.topology);
        cluster != nullptr && cluster->parts.size() == 1)
      add("NCCL's own choice: library nccl", library_instead({}), /*is_plan=*/true);
  }

  /// A level of the transport, whichever of its spellings the scenario has.
  void level(std::string label, const char* key, const char* other_key, const char* value,
             const std::vector<const char*>& variables, const char* look) {
    std::vector<std::string> set;
    for (const char* variable : variables)
      for (const char* where : {"transport", "library.env"}) set.push_back(fmt::format("{}.{}=null", where, variable));
    if (*other_key != '\0') set.push_back(fmt::format("transport.{}=null", other_key));
    set.push_back(fmt::format("transport.{}={}", key, value));
    add_everywhere(std::move(label), std::move(set), look);
  }

  void gpudirect(const char* label, const char* to) {
    level(label, "gdr_level", "gpudirect", to, {"NCCL_NET_GDR_LEVEL"},
          "NCCL's log for GDRDMA, `lsmod` for nvidia_peermem");
  }
  void peer_access(const char* label, const char* to) {
    level(label, "p2p_level", "", to, {"NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE"},
          "NCCL's log for SHM and P2P, `nvidia-smi topo -p2p r`");
  }
  void pxn(const char* label, const char* to) { level(label, "pxn", "", to, {"NCCL_PXN_DISABLE"}, "NCCL_PXN_DISABLE"); }

  static const char* where_seen(LinkClass of) {
    switch (of) {
      case LinkClass::nic:
        return "congestion, errors, the PCIe links of the NICs";
      case LinkClass::pcie:
        return "`lspci -vvv`: LnkSta";
      case LinkClass::nvlink:
        return "`nvidia-smi nvlink -s`";
      default:
        return "";
    }
  }

  void scale(std::string label, LinkClass of, double factor, bool is_fitted = false) {
    const auto& calibration = last_.scenario.calibration;
    const double before = calibration ? calibration->classes.bandwidth[static_cast<std::size_t>(of)] : 1;
    add_everywhere(std::move(label), {fmt::format("calibration.scale_{}={:.4g}", to_string(of), before * factor)},
                   where_seen(of), is_fitted);
  }

  bool carries(LinkClass kind) const {
    const auto& kinds = last_.result.prediction.explanation->kinds;
    return std::find(kinds.begin(), kinds.end(), to_string(kind)) != kinds.end();
  }

  /// NCCL takes fewer channels than it has only for small sizes, so another number of large ones is one of all sizes.
  void bound_channels(const char* variable, int channels, const char* other) {
    add_everywhere(fmt::format("{}={}", variable, channels),
                   {fmt::format("library.env.{}=null", other), fmt::format("library.env.{}={}", variable, channels)},
                   "NCCL's log for the number of channels");
  }

  /// The most channels of any row.
  int channels() const {
    int most = 1;
    for (const ComparedRow& row : rows_) most = std::max(most, row.result.prediction.request.channels);
    return most;
  }

  /// Halves of what there are, and the powers of two that people write.
  std::vector<int> fewer_channels() const {
    std::set<int, std::greater<>> numbers;
    for (int n = channels() / 2; n >= 1; n /= 2) numbers.insert(n);
    for (int n = 1; n < channels(); n *= 2) numbers.insert(n);
    return {numbers.begin(), numbers.end()};
  }

  void slower_paths() {
    const Transport& transport = last_.scenario.transport;
    if (counts_.nodes > 1) {
      if (counts_.gpudirect) gpudirect("without GPUDirect: NCCL_NET_GDR_LEVEL=LOC", "LOC");
      if (transport.pxn) pxn("NCCL_PXN_DISABLE=1", "false");
    }
    // Of RCCL what follows is not modeled: other ways between GPUs, fewer channels, launches in turn.
    if (counts_.gpus > 1 && transport.p2p_level != PathType::loc && !is_rccl())
      peer_access("through host memory: NCCL_P2P_DISABLE=1", "LOC");
    if (!transport.acs && counts_.has_pcie_switch)
      add_everywhere("ACS in PCIe switches: transport.acs=true", {"transport.acs=true"},
                     "`lspci -vvv`: ACSCtl of PCIe switches");
    if (last_.scenario.library && !is_rccl()) {
      for (const int n : fewer_channels()) bound_channels("NCCL_MAX_NCHANNELS", n, "NCCL_MIN_NCHANNELS");
      if (counts_.gpus > 1)
        add_everywhere(fmt::format("one thread calls {} GPUs (-g {})", counts_.gpus, counts_.gpus),
                       {fmt::format("harness.gpus_per_thread={}", counts_.gpus)}, "-g of the benchmark's command line");
      if (counts_.nodes > 1)
        add_everywhere("plugin aws-ofi-nccl", {"library.plugin=aws-ofi-nccl"}, "NCCL's log for NET/OFI");
    }
    if (carries(LinkClass::nic)) {
      fewer_nics();
      slower_nics();
      slower_switches();
    }
    if (carries(LinkClass::nvlink)) {
      scale("NVLink at half the rate", LinkClass::nvlink, 0.5);
      slow_gpu("NVLink of one GPU at half the rate", LinkClass::nvlink);
    }
    if (carries(LinkClass::pcie)) {
      scale("PCIe at half the rate (lanes, generation)", LinkClass::pcie, 0.5);
      slow_gpu("PCIe of one GPU at half the rate", LinkClass::pcie);
    }
    if (carries(LinkClass::socket)) scale("link between CPU sockets at half the rate", LinkClass::socket, 0.5);
  }

  /// The links of that class of one GPU at half their rates. A scenario with faults of its own keeps those.
  void slow_gpu(const char* label, LinkClass of) {
    const auto links = counts_.gpu_links.find(of);
    if (links == counts_.gpu_links.end() || !last_.scenario.faults.empty()) return;
    std::string faults;
    for (const std::string& link : links->second)
      faults += fmt::format(R"({}{{"link": "{}", "bandwidth": "50%"}})", faults.empty() ? "" : ", ", link);
    add_everywhere(label, {"faults=[" + faults + "]"}, where_seen(of));
  }

  /// Subsets of the NICs, which NCCL chooses by.
  void fewer_nics() {
    const auto* cluster = std::get_if<Cluster>(&last_.scenario.topology);
    if (!last_.scenario.library || cluster == nullptr || cluster->parts.size() != 1) return;
    const std::size_t all = counts_.nics.size();
    const auto with = [&](const std::vector<std::string>& nics, const std::string& which) {
      add_everywhere(fmt::format("{} of {} NICs{} (NCCL_IB_HCA)", nics.size(), all, which),
                     {fmt::format("library.env.NCCL_IB_HCA=\"={}\"", fmt::join(nics, ","))},  // =: whole names
                     "NCCL's log for NET/IB: which NICs it uses");
    };
    const auto first = [&](std::size_t n) {
      return std::vector<std::string>(counts_.nics.begin(), counts_.nics.begin() + std::ptrdiff_t(n));
    };
    if (all > 2) with(first(all - 1), "");
    for (std::size_t n = all / 2; n >= 1; n /= 2) with(first(n), "");
    if (all < 4) return;
    std::vector<std::string> others;  // GPUs share NICs otherwise
    for (std::size_t i = 0; i < all; i += 2) others.push_back(counts_.nics[i]);
    with(others, ", every other one");
  }

  /// Slower ports, which NCCL chooses by, and NICs that are slower without NCCL's knowledge.
  void slower_nics() {
    for (const int part : {2, 4}) {
      if (fabric_ != nullptr) slower_cables(part);
      scale(fmt::format("one or all NICs at 1/{} of the rate, unknown to NCCL", part), LinkClass::nic, 1.0 / part);
    }
  }
  void slower_cables(int part) {
    const LinkSpec cable = std::visit([](const auto& fabric) { return fabric.link; }, *fabric_);
    std::vector<std::string> set{
        fmt::format("topology.fabric.link.bandwidth={} B/s", cable.bandwidth.bytes_per_second / part)};
    const auto* leaves = std::get_if<LeafSpine>(fabric_);
    if (leaves != nullptr && !leaves->uplink)  // by default, uplinks have the rate of the cables to the NICs
      set.push_back(fmt::format("topology.fabric.uplink={{\"bandwidth\": \"{} B/s\", \"latency\": \"{} ps\"}}",
                                cable.bandwidth.bytes_per_second, cable.latency.count()));
    const bool are_of_nics = leaves != nullptr || std::holds_alternative<StarFabric>(*fabric_);
    add_everywhere(fmt::format("cables of {} at 1/{} of the rate", are_of_nics ? "all NICs" : "the fabric", part),
                   std::move(set), "`ibstat` for the rate");
  }

  /// Switches with fewer cables upward, or that spread flows badly.
  void slower_switches() {
    if (fabric_ == nullptr) return;
    const auto* leaves = std::get_if<LeafSpine>(fabric_);
    const auto* tree = std::get_if<FatTree>(fabric_);
    if (leaves == nullptr && tree == nullptr) return;
    const int now = leaves != nullptr ? leaves->oversubscription : tree->oversubscription;
    for (const int factor : {2, 4})
      add_everywhere(fmt::format("oversubscription {}:1", factor * now),
                     {fmt::format("topology.fabric.oversubscription={}", factor * now)},
                     "the uplinks of the switches, and whether all of them are up");
    add_everywhere("flows that share cables: network.routing=ecmp", {"network.routing=ecmp"},
                   "the switches' load balancing, and their counters");
  }

  void faster_paths() {
    const Transport& transport = last_.scenario.transport;
    if (counts_.nodes > 1 && transport.gdr_level != PathType::sys)
      gpudirect("GPUDirect at any distance: NCCL_NET_GDR_LEVEL=SYS", "SYS");
    if (counts_.nodes > 1 && !transport.assumes_gpudirect && denies_gpudirect(last_.scenario.topology))
      add_everywhere("GPUDirect, although the file states gdr=0", {"transport.gpudirect=true"},
                     "`lsmod` on the nodes: nvidia_peermem");
    if (counts_.nodes > 1 && !transport.pxn) pxn("NCCL_PXN_DISABLE=0", "true");
    if (counts_.gpus > 1 && transport.p2p_level != PathType::sys && !is_rccl())
      peer_access("NCCL_P2P_LEVEL=SYS", "SYS");
    if (last_.scenario.library && !is_rccl())
      bound_channels("NCCL_MIN_NCHANNELS", std::min(64, 2 * channels()), "NCCL_MAX_NCHANNELS");
    if (carries(LinkClass::nic)) scale("NICs at twice the rate, or twice as many", LinkClass::nic, 2);
    if (carries(LinkClass::pcie)) scale("PCIe at twice the rate", LinkClass::pcie, 2);
  }

  void fitted_launch() {
    std::vector<double> differences;
    for (const ComparedRow& row : rows_) differences.push_back(row.measured_us() - row.predicted_us());
    const double median = std::round(10 * shared_us_.value_or(quantile(differences, 0.5))) / 10;
    const bool by_library = last_.scenario.library.has_value();
    const Picoseconds now = by_library ? launch_of(last_.scenario) - launch_off_ : launch_of(last_.scenario);
    const double launch = std::max(0.0, microseconds(now) + median);
    if (launch == microseconds(now) || std::abs(median) > most_of_a_launch) return;
    add_everywhere(fmt::format("launch {:.4g} us instead of {:.4g}", launch, microseconds(now)),
                   {fmt::format("{}={:.6f} us", by_library ? "devices.gpu.launch" : "transport.launch", launch)},
                   "the smallest sizes", /*is_fitted=*/true);
    list_.back().is_shared = shared_us_.has_value();
  }

  /// The links that hold the largest row take so long that the rest of its time, unchanged, comes to what was measured.
  void fitted_rate() {
    double busiest = 0;
    std::optional<LinkClass> holds;
    for (const LinkClass kind : link_classes) {
      double us = 0;
      for (const ExplainedPart& part : last_.result.prediction.explanation->parts)
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

  /// Times that rows of many steps, peers or channels show more than others.
  void fitted_times() {
    const auto fit = [&](Alternative::Fit what, const char* look) {
      list_.push_back({.label = {}, .set = {}, .is_fitted = true, .is_everywhere = true, .look = look, .fit = what});
    };
    const Prediction& p = last_.result.prediction;
    if (counts_.nodes > 1 && fabric_ != nullptr) {
      const LinkSpec cable = std::visit([](const auto& fabric) { return fabric.link; }, *fabric_);
      // A message crosses a node's cable at either end.
      fit({.key = "topology.fabric.link.latency",
           .now_us = microseconds(cable.latency),
           .unit_us = 5,
           .most_us = 15,  // switches do not add more than that
           .shown = 2,
           .label = "steps between nodes {} us longer"},
          "`ib_send_lat` between the nodes; congestion");
    }
    const bool peers = p.request.op == CollectiveOp::all_to_all || nccl::sends_to_peers(p.request.op);
    Picoseconds post = last_.scenario.devices.gpu ? last_.scenario.devices.gpu->post : Picoseconds{0};
    if (last_.scenario.library) post = std::max(post, last_.scenario.library->call.protocol->post);
    if (counts_.nodes > 1 && peers)
      fit({.key = "devices.gpu.post",
           .now_us = microseconds(post),
           .unit_us = 2,
           .most_us = 50,
           .label = "each remote peer costs {} us more"},
          "NCCL's proxy thread: its core, the NIC's driver");
    const auto starts_several = [](const ComparedRow& row) { return row.scenario.library->call.plan.launched > 1; };
    if (last_.scenario.library && !is_rccl() && may_start_channels_alone(release_) &&
        std::any_of(rows_.begin(), rows_.end(), starts_several))
      fit({.key = "devices.gpu.launch_channel", .unit_us = 1, .most_us = 5, .label = "each channel starts in {} us"},
          "NCCL's release: before 2.18, each channel starts separately");
  }

  std::span<const ComparedRow> rows_;
  const ComparedRow& last_;
  Picoseconds launch_off_;
  std::string release_;
  std::optional<double> shared_us_;
  NodeCounts counts_;
  const Fabric* fabric_ = nullptr;  // of a cluster; nullptr: none
  std::vector<Alternative> list_;
};

}  // namespace

std::string releases_text(const std::vector<std::string>& versions) {
  const auto all = nccl::versions_told_apart();
  const auto is_one = [&](std::string_view version) {
    return std::find(versions.begin(), versions.end(), version) != versions.end();
  };
  std::vector<std::string> runs;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!is_one(all[i])) continue;
    std::size_t last = i;
    while (last + 1 < all.size() && is_one(all[last + 1])) ++last;
    runs.push_back(last == i ? std::string(all[i]) : fmt::format("{} to {}", all[i], all[last]));
    i = last;
  }
  return fmt::format("release {}", runs.empty() ? versions.front() : fmt::format("{}", fmt::join(runs, " or ")));
}

namespace {

std::string version_set(const std::string& version) { return fmt::format("library.version=\"{}\"", version); }

/// All that a library decides, and what its kernels cost, but for its release.
std::string decided(const Scenario& scenario) {
  const LibraryRun& library = *scenario.library;
  const nccl::LibraryPlan& plan = library.call.plan;
  const Protocol& protocol = *library.call.protocol;
  std::string out = fmt::format("{} {} {} {} {} {} {} {}", to_string(plan.algorithm), to_string(plan.protocol),
                                plan.channels, plan.blocks, plan.launched, plan.running,
                                library.call.channel.bytes_per_second, scenario.main().request.channels);
  for (const auto& [name, number] : scenario.main().arguments.numbers) out += fmt::format(" {}={}", name, number);
  for (const Picoseconds each : {protocol.nvlink, protocol.pcie, protocol.network, library.call.own_pass,
                                 scenario.launch.value_or(Picoseconds{0})})
    out += fmt::format(" {}", each.count());
  for (const auto& shares : {library.call.reached, library.searched})
    out += fmt::format(" {} {} {}", shares.nvlink, shares.pcie, shares.network);
  const Transport& transport = scenario.transport;
  return out + fmt::format(" {} {} {} {} {}", protocol.slots, to_string(transport.gdr_level),
                           to_string(transport.p2p_level), transport.staging.size.count, library.machine.crosses_nics);
}

}  // namespace

bool may_start_channels_alone(const std::string& release) {
  return release.empty() || nccl::minor_of_version(release) < 18;
}

std::vector<Alternative> other_releases(std::span<const ComparedRow> rows, const std::string& release,
                                        const std::string& text, const std::string& name,
                                        const std::vector<std::string>& set) {
  std::vector<Alternative> out;
  if (!rows.back().scenario.library || rows.back().scenario.library->name != "nccl") return out;  // RCCL's is one
  const auto decided_at = [&](std::vector<std::string> with) {
    std::string all;
    for (const ComparedRow& row : rows) {
      with.push_back(fmt::format("collective.bytes={} B", row.bytes().count));
      all += decided(ScenarioFile::parse(text, name, with).point(0)) + '\n';
      with.pop_back();
    }
    return all;
  };
  std::string own;
  for (const ComparedRow& row : rows) own += decided(row.scenario) + '\n';
  struct Found {
    std::string decision;
    std::vector<std::string> versions;  // that decide so
  };
  std::vector<Found> found;
  // Returns true for the first version that decides so.
  const auto add = [&](const std::string& version) {
    std::vector<std::string> with = set;
    with.push_back(version_set(version));
    std::string all;
    try {
      all = decided_at(with);
    } catch (const InputError&) {
      return false;  // a machine that this release does not take
    }
    if (all == own) return false;
    for (Found& each : found) {
      if (each.decision != all) continue;
      each.versions.push_back(version);
      return false;
    }
    found.push_back({std::move(all), {version}});
    return true;
  };
  const auto listed = [&] {
    for (const Found& each : found)
      out.push_back({.label = releases_text(each.versions),
                     .set = {version_set(each.versions.front())},
                     .is_everywhere = true,
                     .look = "NCCL's release: \"NCCL version\" in its log",
                     .releases = each.versions});
    return out;
  };
  const nccl::Release here = nccl::release_of_version(rows.back().scenario.library->version);
  const int minor = nccl::minor_of_version(rows.back().scenario.library->version);
  if (!release.empty()) {
    if (release != rows.back().scenario.library->version) add(release);
    return listed();
  }
  std::vector<std::string_view> older, newer;
  for (const std::string_view version : nccl::versions_told_apart()) {
    const std::string said(version);
    const std::pair its(nccl::release_of_version(said), nccl::minor_of_version(said)), own_one(here, minor);
    if (its < own_one) older.insert(older.begin(), version);
    if (own_one < its) newer.push_back(version);
  }
  for (const auto* side : {&older, &newer})
    for (const std::string_view version : *side) add(std::string(version));
  return listed();
}

std::vector<Alternative> alternatives_of(std::span<const ComparedRow> rows, Picoseconds launch_off,
                                         const std::string& release, std::optional<double> shared_us) {
  ensure(!rows.empty(), "alternatives are for rows");
  ensure(rows.back().result.prediction.explanation.has_value(), "alternatives are made for rows that were explained");
  return AlternativeList(rows, launch_off, release, shared_us).all();
}

}  // namespace ringsim
