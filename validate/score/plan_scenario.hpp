// The scenario of a measured plan: its machine, its model, its plan, and the shares of the peak that are taken.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "validate/measured/plan_figures.hpp"

namespace ringsim {

/// A GPU as tables name it, with the machine that stands for it.
struct PlanGpu {
  const char* name;             ///< a table's name begins with it, without regard to capitals
  const char* family;           ///< those that share fitted shares
  const char* machine;          ///< a preset
  int node;                     ///< GPUs of the preset
  int nics;                     ///< of a node
  int link_gbits;               ///< default of the fabric's cables
  double peak16, peak8, peak4;  ///< dense TFLOP/s; 0: the GPU has no such products
  double hbm;                   ///< GB/s
  int memory_gib;
  const char* source;
};
std::span<const PlanGpu> plan_gpus();
/// The entry with the longest name that `gpu` begins with; nullptr: none.
const PlanGpu* plan_gpu(const std::string& gpu);

/// Bits of the products' operands: 32, 16, 8 or 4; nothing for a word without a meaning.
std::optional<int> product_bits(const std::string& precision);
/// Operations per second of a row's products.
double peak_of(const PlanFigure& row);

/// Shares of the peak: of matrix products, of the attention core (of the 16-bit peak), and of the memory's bandwidth.
struct PlanShares {
  double gemm = 0, attention = 0, memory = 0;
};
enum class FlashKernel : std::uint8_t { flash_attention_2, cudnn };
struct FlashShare {
  double share;
  const char* like;  ///< "like cuDNN's kernels on H100"
};
/// The share of the 16-bit peak that flash attention reaches with the causal half counted, by GPU and kernel.
///
/// - FlashAttention-2: A100 0.32, H100 0.18, fitted to 59 rows of MosaicML's llm-foundry on 8 and 16 GPUs with 2,048 to
///   65,536 tokens. docs/results/gpu-compute.md has 0.11 to 0.34 for it on an H200.
/// - cuDNN's kernels, which Transformer Engine runs for Megatron-LM and NeMo, by NeMo's page
///   docs/source/performance/performance_long_sequence.md: H100 0.33, fitted to the eight rows of NeMo 24.03 with 8,192
///   to 1,048,576 tokens. Blackwell 0.45, by that of NeMo 25.04: Llama 3 8B with 1,048,576 tokens, nearly all
///   attention, reaches 1,608 TFLOP/s on B200, counted in full. With the causal half and seven passes for six (the
///   backward pass computes scores again) that is 938, 0.42 of the peak of 2,250; the kernels are somewhat faster than
///   the step.
/// - Others: a guess.
FlashShare flash_share(const std::string& family, FlashKernel kernel);
/// Shares for rows of a GPU family, used with --input none.
struct FittedShares {
  const char* family;
  int bits;
  double gemm;  ///< fitted
  double one;   ///< fitted: model FLOPs over the peak, of models 0 and 1
  double one_bubble;
  const char* models;  ///< of the measured steps: "GPT 3.6B to 1T"
  const char* fitted_to;
  const char* near =
      "";  ///< of 16 bits: how near predicted steps are to measured ones, a sentence without its full stop
};
std::span<const FittedShares> fitted_shares();
const FittedShares* fitted_shares_of(const PlanFigure& row);
/// The shares of the attention core and of memory, stated for all rows.
PlanShares stated_shares(const PlanFigure& row);

/// Why ringsim cannot simulate the row's plan; empty: it can.
std::string inexpressible(const PlanFigure& row);
/// Parts of a plan that its scenario does not model, such as "overlap of tensor parallelism".
std::vector<std::string> left_out(const PlanFigure& row);
/// As JSON text. Requires that the row is expressible.
std::string plan_scenario(const PlanFigure& row, const PlanShares& shares);

/// Operations of a step of all GPUs, by the formula that needs no simulation: products of forward and backward pass
/// (recomputation full: a pass more), attention (of flash the causal half), the head.
double plan_operations(const PlanFigure& row);

}  // namespace ringsim
