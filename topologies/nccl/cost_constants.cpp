#include "topologies/nccl/cost_constants.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim::nccl {

namespace {

constexpr std::array<const char*, 4> generation_names{"Volta and before", "Ampere", "Hopper", "Blackwell"};
constexpr std::array<const char*, 4> generation_keys{"volta", "ampere", "hopper", "blackwell"};
constexpr std::array<const char*, 3> protocol_keys{"ll", "ll128", "simple"};

// Read off the tables' floors (512 B to 2 KiB), the rows on both sides of a change of protocol, and slopes from 256 to
// 512 MiB. Those between nodes are fitted to all tables of several nodes at once (docs/results/make/fit_costs.py).
constexpr CostConstants fitted{.of = {{{.launch = 4.7,
                                        .step = {{{0, 2.4}, {2.4, 3}, {3.1, 6}}},
                                        .once = {0, 12, 3},
                                        .nvlink = {1, 0.94, 0.94},
                                        .copy = {0, 0, 0},
                                        .reduce = {0, 0, 0},
                                        .sends = {2.2, 4},
                                        .sends_simple = 8,
                                        .sends_fill = 30,
                                        .sends_nvlink = 0.94,
                                        .a_block = 20.4,
                                        .sends_copy = 0,
                                        .nvls = 1,
                                        .nvls_once = 0,
                                        .nvls_fill = 0},
                                       {.launch = 8,
                                        .step = {{{0.39, 0.7}, {1.09, 1.4}, {1.3, 8.6}}},
                                        .once = {0, 8, 9.9},
                                        .nvlink = {1.196, 0.85, 0.852},
                                        .copy = {96, 300, 482},
                                        .reduce = {96, 300, 630},
                                        .sends = {2.2, 4},
                                        .sends_simple = 8,
                                        .sends_fill = 30,
                                        .sends_nvlink = 0.797,
                                        .a_block = 20.4,
                                        .sends_copy = 749,
                                        .nvls = 1,
                                        .nvls_once = 0,
                                        .nvls_fill = 0},
                                       {.launch = 4.7,
                                        .step = {{{0.19, 0.3}, {0.79, 0.3}, {1.3, 4.6}}},
                                        .once = {0, 6, 5.9},
                                        .nvlink = {0.98, 0.95, 0.973},
                                        .copy = {214, 600, 1088},
                                        .reduce = {214, 600, 1300},
                                        .sends = {1.1, 5},
                                        .sends_simple = 2.9,
                                        .sends_fill = 14,
                                        .sends_nvlink = 0.848,
                                        .a_block = 20.4,
                                        .sends_copy = 0,
                                        .nvls = 0.7,
                                        .nvls_once = 17,
                                        .nvls_fill = 59},
                                       {.launch = 7.5,
                                        .step = {{{0.66, 0.15}, {1.3, 0.3}, {1.3, 4.5}}},
                                        .once = {0, 8, 5},
                                        .nvlink = {0.77, 0.945, 0.945},
                                        .copy = {291, 800, 1403},
                                        .reduce = {291, 800, 1210},
                                        .sends = {1.2, 4},
                                        .sends_simple = 4.2,
                                        .sends_fill = 8,
                                        .sends_nvlink = 0.928,
                                        .a_block = 22.8,
                                        .sends_copy = 0,
                                        .nvls = 0.6,
                                        .nvls_once = 14,
                                        .nvls_fill = 68}}},
                               .pcie = {{{0, 0.4}, {1.5, 0.4}, {1.3, 2.6}}},
                               .pcie_launch = 4.7,
                               .pcie_copy = {60, 100, 100},
                               .through_host = 27,
                               .both_ways = 0.7,  // measured by plain copies: cost_table()
                               .pcie_sends_simple = 1.5,
                               .pcie_fill = 3,
                               .host_read = 0.5,
                               // Posting, polling, flushing. LL goes through host memory on both sides
                               // (src/transport/net.cc, sendProxyConnect: `p != NCCL_PROTO_LL`), where a proxy looks at
                               // every flag and a thread reads 8 bytes at a time: so it grows to a whole chunk.
                               .network = {{{0.3, 23}, {2.8, 26}, {11.3, 24}}},
                               .network_width = {32'768, 80'000, 131'072},
                               .ramp_width = {8'192, 65'536, 65'536},
                               // Its larger messages begin with a handshake (FI_CXI_RDZV_THRESHOLD); whether that is
                               // the cause, the tables do not say.
                               .cxi_simple = 28,
                               .efa_share = 0.935,
                               .post_400 = 3.5,
                               .post = 5,
                               .post_cxi = 8,
                               .post_efa = 5.8,
                               .tree_network = 2.3,  // as the tuner has it: 5.0 us of LL, in rings 2.7
                               .a_gpu_more = 7.4,
                               .a_peer = 0.3,
                               .nvls_width = 14e6,
                               .nvls_tree_fill = 250,
                               .nvls_tree_level = 38,
                               .nvls_tree_width = 58e6};

/// By which a constant is divided, or which makes a link carry nothing at 0.
bool must_be_above_0(const std::string& name) {
  for (const char* part : {".nvlink.", "sends_nvlink", "efa_share", "a_block", ".nvls.share", "width.", "_width",
                           "through_host", "both_ways"})
    if (name.find(part) != std::string::npos) return true;
  return false;
}
constexpr double most_of_any = 1e12;  // above every constant, and in range as picoseconds and as bytes per second

}  // namespace

Generation generation_of(int sm) { return sm >= 100 ? blackwell : sm >= 90 ? hopper : sm >= 80 ? ampere : volta; }

const CostConstants& fitted_costs() { return fitted; }

void for_each_constant(CostConstants& costs, const std::function<void(const std::string&, double&)>& visit) {
  const auto by_protocol = [&](const std::string& name, std::array<double, 3>& values) {
    for (std::size_t p = 0; p < values.size(); ++p) visit(name + '.' + protocol_keys[p], values[p]);
  };
  const auto steps = [&](const std::string& name, std::array<StepCost, 3>& values) {
    for (std::size_t p = 0; p < values.size(); ++p) {
      visit(fmt::format("{}.{}.fixed", name, protocol_keys[p]), values[p].fixed);
      visit(fmt::format("{}.{}.full", name, protocol_keys[p]), values[p].full);
    }
  };
  for (std::size_t g = 0; g < costs.of.size(); ++g) {
    KernelCosts& own = costs.of[g];
    const std::string key = std::string(generation_keys[g]) + '.';
    visit(key + "launch", own.launch);
    steps(key + "step", own.step);
    by_protocol(key + "once", own.once);
    by_protocol(key + "nvlink", own.nvlink);
    by_protocol(key + "copy", own.copy);
    by_protocol(key + "reduce", own.reduce);
    visit(key + "sends.ll.fixed", own.sends.fixed);
    visit(key + "sends.ll.full", own.sends.full);
    visit(key + "sends.simple", own.sends_simple);
    visit(key + "sends_fill", own.sends_fill);
    visit(key + "sends_nvlink", own.sends_nvlink);
    visit(key + "a_block", own.a_block);
    visit(key + "sends_copy", own.sends_copy);
    visit(key + "nvls.share", own.nvls);
    visit(key + "nvls.once", own.nvls_once);
    visit(key + "nvls.fill", own.nvls_fill);
  }
  steps("pcie.step", costs.pcie);
  visit("pcie.launch", costs.pcie_launch);
  visit("pcie.host_read", costs.host_read);
  by_protocol("pcie.copy", costs.pcie_copy);
  visit("pcie.through_host", costs.through_host);
  visit("pcie.both_ways", costs.both_ways);
  visit("pcie.sends_simple", costs.pcie_sends_simple);
  visit("pcie.sends_fill", costs.pcie_fill);
  steps("network.step", costs.network);
  by_protocol("network.width", costs.network_width);
  visit("network.cxi_simple", costs.cxi_simple);
  visit("network.efa_share", costs.efa_share);
  visit("network.post.verbs_400", costs.post_400);
  visit("network.post.verbs", costs.post);
  visit("network.post.cxi", costs.post_cxi);
  visit("network.post.efa", costs.post_efa);
  visit("network.tree", costs.tree_network);
  by_protocol("width", costs.ramp_width);
  visit("launch.a_gpu_more", costs.a_gpu_more);
  visit("sends.a_peer", costs.a_peer);
  visit("nvls_width", costs.nvls_width);
  visit("nvls_tree.fill", costs.nvls_tree_fill);
  visit("nvls_tree.level", costs.nvls_tree_level);
  visit("nvls_tree_width", costs.nvls_tree_width);
}

CostConstants read_costs(std::string_view text, const std::string& file) {
  const Json json = parse_json(text, file);
  if (!json.is_object())
    throw InputError(file, fmt::format("expected an object of constants, found {}", describe(json)),
                     R"(such as {"hopper.launch": 5.1}; `ringsim list costs --format json` lists the names)");
  std::map<std::string, double> said;
  for (const auto& [name, value] : json.items()) {
    const std::string where = fmt::format("{}: /{}", file, name);
    if (!value.is_number()) throw InputError(where, fmt::format("expected a number, found {}", describe(value)));
    const auto number = value.get<double>();
    if (number < 0 || number > most_of_any || (number == 0 && must_be_above_0(name)))
      throw InputError(where, fmt::format("expected {} to 1e12, found {}", must_be_above_0(name) ? "above 0" : "0",
                                          describe(value)));
    said[name] = number;
  }
  CostConstants out = fitted;
  std::vector<std::string> known;
  for_each_constant(out, [&](const std::string& name, double& value) {
    known.push_back(name);
    if (const auto found = said.find(name); found != said.end()) {
      value = found->second;
      said.erase(found);
    }
  });
  if (said.empty()) return out;
  const std::string near = nearest(said.begin()->first, known);
  throw InputError(
      fmt::format("{}: /{}", file, said.begin()->first), "expected the name of a constant, found an unknown name",
      near.empty() ? "`ringsim list costs --format json` lists the names" : fmt::format("did you mean \"{}\"?", near));
}

namespace {

/// The constants of one line, in the order of for_each_constant().
class Lines {
 public:
  void of(std::string generation) { generation_ = std::move(generation); }
  /// A constant's value, or all below a name: "LL / LL128 / Simple", a step "fixed + full".
  void add(const std::string& name, const char* what, const char* unit, const char* fitted_to) {
    CostLine line{generation_, what, unit, "", fitted_to, {}};
    for (const auto& [each, value] : values_) {
      if (each != name && !each.starts_with(name + '.')) continue;
      line.constants.emplace_back(each, value);
      const bool more = each.ends_with(".full");
      line.value += fmt::format("{}{}", line.value.empty() ? "" : more ? " + " : " / ", value);
    }
    ensure(!line.constants.empty(), "a line of costs has constants: " + name);
    lines_.push_back(std::move(line));
  }
  std::vector<CostLine> take() { return std::move(lines_); }

 private:
  std::string generation_;
  std::vector<std::pair<std::string, double>> values_ = [] {
    std::vector<std::pair<std::string, double>> out;
    CostConstants costs = fitted;
    for_each_constant(costs, [&](const std::string& name, double& value) { out.emplace_back(name, value); });
    return out;
  }();
  std::vector<CostLine> lines_;
};

}  // namespace

std::vector<CostLine> cost_table() {
  constexpr const char* one_node = "single-node tables: 41 tables aic-* and 9 older ones in validate/measured/tables";
  constexpr const char* pcie_tables = "12 tables aic-l40s-* and aic-rtxpro6000-*";
  constexpr const char* all_of_pcie = "12 tables aic-l40s-* and aic-rtxpro6000-*, plus rtx2080ti-pcie and rtx4090-pcie";
  Lines lines;
  for (std::size_t g = 0; g < generation_names.size(); ++g) {
    lines.of(generation_names[g]);
    const auto add = [&](const char* name, const char* what, const char* unit, const char* fitted_to) {
      lines.add(fmt::format("{}.{}", generation_keys[g], name), what, unit, fitted_to);
    };
    add("launch", "kernel launch", "us",
        "lowest LL times, 512 B to 2 KiB; depends on the machine and the test harness");
    add("step", "step over NVLink, fixed + full", "us", one_node);
    add("once", "once per collective", "us", "first sizes after a protocol change");
    add("nvlink", "share of the NVLink copy rate", "",
        "time per byte, 256 to 512 MiB; for LL, the last doubling of the size before Simple");
    add("copy", "local copy of a rank's own data", "GB/s",
        "time per byte of all_gather on 2, 4 and 8 GPUs; 0 means unknown");
    add("reduce", "local reduction of a rank's own data", "GB/s",
        "time per byte of reduce_scatter and all_reduce; 0 means unknown");
    add("sends", "send to a peer, fixed + full with LL / full with Simple", "us",
        "alltoall; Volta uses Ampere's value");
    add("sends_fill", "sends to peers: filling and draining the first chunk", "us",
        "alltoall, 8 to 64 MiB; Volta uses Ampere's value");
    add("sends_nvlink", "share of the NVLink rate for sends to all peers", "", "alltoall, 256 to 512 MiB");
    add("a_block", "maximum rate of a channel for sends over NVLink (in rings and trees, 4/3 of this)", "GB/s",
        "Hopper: h100-1n4g-sendrecv, 8 channels, up to 128 MiB; Blackwell: time per byte of alltoall on 2, 4 and 8 "
        "GPUs; others use Hopper's value");
    add("sends_copy", "local copy of a rank's own data in sends", "GB/s", "alltoall; 0 means unknown");
    add("nvls", "NVLS: share of the rate, time per collective, fill time", "us",
        "all_reduce on 8 GPUs; 1 / 0 / 0 means no NVLS");
  }
  lines.of("all");
  lines.add("pcie.step", "step over PCIe, fixed + full", "us", all_of_pcie);
  lines.add("pcie.launch", "kernel launch on GPUs connected only by PCIe", "us",
            "the value of Hopper and Volta; it matches the lowest times of aic-l40s-* and aic-rtxpro6000-*");
  lines.add("pcie.host_read", "additional time per step through host memory", "us",
            "lowest times of 4 RTX PRO 6000; a read of host memory consists of a request and a response");
  lines.add("pcie.copy", "local copy or reduction of a rank's own data, GPUs connected only by PCIe", "GB/s",
            pcie_tables);
  lines.add("pcie.through_host", "maximum rate of Simple through host memory", "GB/s",
            "time per byte of 4 RTX PRO 6000");
  lines.add("pcie.both_ways", "share of the PCIe rate for Simple through host memory", "",
            "not fitted; from 8 medians of simultaneous copies in both directions with P2P disabled on DGX-1 P100, "
            "ABCI V and ABCI A (validate/measured/tables/copies.csv), which reach 0.57 to 0.81 of NCCL's rate, with a "
            "median of 0.71");
  lines.add("pcie.sends_simple", "additional time per send over PCIe with Simple", "us", pcie_tables);
  lines.add("pcie.sends_fill", "sends over PCIe: filling and draining the first chunk", "us", pcie_tables);
  lines.add("network.step", "step over the network, fixed + full", "us", "all tables of several nodes together");
  lines.add("network.width",
            "chunk size at which a network step takes its full time; for LL, also used for steps within a node in "
            "rings over several nodes",
            "B", "all tables of several nodes together; LL: rings of abci-v100-*, with one to four turns of LL");
  lines.add("network.cxi_simple", "additional time per step over Slingshot (cxi) with Simple", "us",
            "alps-gh200-* at 1 MiB and above, polaris-* at 2 MiB and above");
  lines.add("network.efa_share", "share of the EFA rate for Simple in rings and sends", "",
            "time per byte of all_gather and alltoall in p5-2n8g-* and p5-8n8g-*, 1 to 2 GiB");
  lines.add(
      "network.post",
      "posting a message in sends (over EFA, also in rings): InfiniBand and RoCE at 400 Gb/s or more / at lower rates "
      "/ Slingshot / EFA",
      "us",
      "400 Gb/s: between the time per byte of an alltoall on two servers of 8 RTX PRO 5000, 3.3 (NCCL 2.30.3, not "
      "among the tables), and of h20-2n2g-alltoall, 3.9; lower rates: observed on HDR, outside the fit; Slingshot: a "
      "4 GiB alltoall on 4 nodes of Perlmutter takes 200 ms "
      "(NVIDIA/nccl-tests issue 139) in chunks of 128 KiB; EFA: p5-2n8g-* and p5-8n8g-all_gather, 32 to 256 MiB");
  lines.add("network.tree", "additional time per step over the network in trees", "us",
            "NCCL's tuner: LL takes 5.0 us in trees and 2.7 us in rings");
  lines.add("width", "chunk size at which a step takes its full time", "B", one_node);
  lines.add("launch.a_gpu_more", "additional launch time for each GPU after the first that a thread drives", "us",
            "lowest times of a100-1n8g-* (one process with 8 GPUs), 52 us more");
  lines.add("sends.a_peer", "sends to all peers: additional time for each peer after the first", "us",
            "lowest times of alltoall");
  lines.add("nvls_width", "NVLS: buffer size at which the pipeline is 63 % full", "B",
            "all_reduce on 8 H100 and 8 B200");
  lines.add("nvls_tree", "NVLSTree: fill time on two nodes, and more for each doubling of the nodes", "us",
            "h100ib-2n8g-all_reduce, 1 to 512 MiB; h100-10n8g-all_reduce; Blackwell uses the values of Hopper");
  lines.add("nvls_tree_width", "NVLSTree: buffer size at which the pipeline is 63 % full", "B",
            "h100ib-2n8g-all_reduce, 1 to 512 MiB; Blackwell uses the value of Hopper");
  return lines.take();
}

}  // namespace ringsim::nccl
