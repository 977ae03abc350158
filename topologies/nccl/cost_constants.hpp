// The constants of NCCL's kernels: what each is called, what it was fitted to, and a file that changes some.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringsim::nccl {

/// GPUs whose kernels cost the same.
enum Generation : std::uint8_t { volta, ampere, hopper, blackwell };
/// The generation of a compute capability (times 10).
Generation generation_of(int sm);

/// What a step takes beyond the latencies of its links, in us: `fixed`, and up to `full` more as a channel's chunk
/// grows to `width` bytes (ramp_width). LL and LL128 pass on words, so a block with few of them is done sooner; Simple
/// fences each slice.
struct StepCost {
  double fixed, full;
};

/// Times in us, rates in GB/s (10^9), shares of what copies reach over NVLink, which is the rate of the links.
struct KernelCosts {
  double launch;                       // from the call to the first step, with the harness
  std::array<StepCost, 3> step;        // over NVLink [protocol]
  std::array<double, 3> once;          // of a collective [protocol]
  std::array<double, 3> nvlink;        // share [protocol]; LL: of its bytes with flags
  std::array<double, 3> copy, reduce;  // of a rank's own part [protocol]; 0: it takes no time
  StepCost sends;                      // of sends and receives by LL, full at four widths of LL for a peer
  double sends_simple, sends_fill;     // of Simple instead of `full`; until the first chunk is full, and taken out
  double sends_nvlink, a_block;  // share; what a channel sends to a peer over NVLink at most, in chunks of 512 KiB
  double sends_copy;
  double nvls, nvls_once, nvls_fill;  // share through the switch; us once, and us more for large buffers
};

/// All constants; those without a generation are of all.
struct CostConstants {
  std::array<KernelCosts, 4> of;        // [Generation]
  std::array<StepCost, 3> pcie;         // a step over PCIe [protocol]
  double pcie_launch;                   // us, of GPUs that PCIe alone joins
  std::array<double, 3> pcie_copy;      // of a rank's own part, or added up [protocol]
  double through_host;                  // most that a GPU moves of Simple through host memory
  double both_ways;                     // share of PCIe that Simple reaches there: its links carry as much up as down
  double pcie_sends_simple, pcie_fill;  // as sends_simple and sends_fill
  double host_read;                     // us of a step more if the receiver reads host memory
  std::array<StepCost, 3> network;      // a step between nodes [protocol]
  std::array<double, 3> network_width;  // bytes at which `full` of it is reached [protocol]
  std::array<double, 3> ramp_width;     // the same in a node
  double cxi_simple;                    // us of a step of Simple more over libfabric's cxi, full at ramp_width
  double efa_share;                     // of EFA's rate that Simple reaches if all NICs send and receive
  double post_400, post, post_cxi, post_efa;  // us to post a message: InfiniBand or RoCE of 400 Gb/s and more, of less
  double tree_network;                        // us of a step between nodes more in trees
  double a_gpu_more;                          // us of launch for each GPU beyond one that a thread calls
  double a_peer;                              // us for each peer beyond one, of sends to all
  double nvls_width;                          // bytes by which most of nvls_fill is there
  double nvls_tree_fill, nvls_tree_level;     // us of NVLSTree on two nodes, and for each doubling of the nodes
  double nvls_tree_width;                     // bytes by which most of nvls_tree_fill is there
};

/// Fitted on open tables, by protocol and generation, none by table: cost_table() says on which.
const CostConstants& fitted_costs();

/// Calls `visit` with the name of every constant, "hopper.step.ll.fixed", and the constant.
void for_each_constant(CostConstants& costs, const std::function<void(const std::string&, double&)>& visit);

/// The fitted constants but for those that a file has otherwise: JSON, {"hopper.launch": 5.1}. Throws InputError at
/// `file` for an unknown name and for what no such constant can be.
CostConstants read_costs(std::string_view text, const std::string& file);

/// The fitted constants as text, with what they were fitted to. Several values: LL / LL128 / Simple.
struct CostLine {
  std::string generation, what, unit, value, fitted_to;
  std::vector<std::pair<std::string, double>> constants;  ///< by name, in the order of the values
};
std::vector<CostLine> cost_table();

}  // namespace ringsim::nccl
