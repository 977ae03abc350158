#include "validate/score/plan_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "algorithms/training/transformer_costs.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "validate/measured/measured_detail.hpp"

namespace ringsim {

namespace {

// Peaks: tensor cores without sparsity. Memory: data sheets' sizes count in GiB.
constexpr const char
    *a100 = "NVIDIA A100 data sheet: 312 TFLOP/s; 40 GB 1555 GB/s, 80 GB 2039 GB/s",
    *h100 = "NVIDIA H100 SXM data sheet: 989 TFLOP/s, 8 bit twice that, 3.35 TB/s",
    *blackwell =
        "NVIDIA HGX and GB200/GB300 NVL72 data sheets, dense: B200 2250 TFLOP/s, GB200 2500, 8 bit twice "
        "and 4 bit four times that, of B300 and GB300 six times; 8 TB/s";
constexpr std::array<PlanGpu, 12> gpus{{
    {"A100-40", "A100", "dgx-a100", 8, 8, 200, 312, 0, 0, 1555, 40, a100},
    {"A100", "A100", "dgx-a100", 8, 8, 200, 312, 0, 0, 2039, 80, a100},
    {"H100", "H100", "hgx-h100", 8, 8, 400, 989, 1979, 0, 3350, 80, h100},
    {"H100-500W", "H100-500W", "hgx-h100", 8, 8, 400, 989, 1979, 0, 2400, 96,
     "pytorch/torchtitan's description of its H100: 96 GB HBM2e, 2.4 TB/s, 500 W"},
    {"H200", "H100", "hgx-h200", 8, 8, 400, 989, 1979, 0, 4800, 141, "NVIDIA H200 data sheet: as H100, 4.8 TB/s"},
    {"H800", "H100", "hgx-h800-4nic", 8, 4, 400, 989, 1979, 0, 3350, 80, "as H100, with 400 GB/s of NVLink"},
    {"B200", "Blackwell", "hgx-b200", 8, 8, 400, 2250, 4500, 9000, 8000, 180, blackwell},
    {"B300", "Blackwell", "hgx-b300", 8, 8, 800, 2250, 4500, 13500, 8000, 288, blackwell},
    {"GB200", "Blackwell", "gb200-nvl72", 72, 72, 400, 2500, 5000, 10000, 8000, 186, blackwell},
    {"GB300", "Blackwell", "gb300-nvl72", 72, 72, 800, 2500, 5000, 15000, 8000, 288, blackwell},
    {"V100-16", "V100", "dgx-1v", 8, 4, 100, 125, 0, 0, 900, 16, "NVIDIA V100 data sheet: 125 TFLOP/s, 900 GB/s"},
    {"V100", "V100", "dgx-2", 16, 8, 100, 125, 0, 0, 900, 32, "NVIDIA V100 data sheet: 125 TFLOP/s, 900 GB/s"},
}};

/// On a rack that is one NVLink domain a node of fewer GPUs is a tray: the domain is what jobs of 64 GPUs use.
constexpr int rack = 72, most_of_tray = 8, used_of_rack = 64;

std::int64_t node_of(const PlanFigure& row, const PlanGpu& gpu) {
  if (row.node == 0) return gpu.node == rack ? used_of_rack : gpu.node;
  return gpu.node == rack && row.node <= most_of_tray ? used_of_rack : row.node;
}

bool overlaps(const PlanFigure& row, const std::string& what) {
  return std::find(row.overlap.begin(), row.overlap.end(), what) != row.overlap.end();
}

/// Data ranks that reduce gradients together.
std::int64_t data_of(const PlanFigure& row) {
  return std::max<std::int64_t>(1, row.gpus / (row.tensor * row.pipeline * row.context));
}

}  // namespace

std::span<const PlanGpu> plan_gpus() { return gpus; }

const PlanGpu* plan_gpu(const std::string& gpu) {
  const std::string name = measured::lower(gpu);
  const PlanGpu* best = nullptr;
  std::size_t longest = 0;
  for (const PlanGpu& each : gpus) {
    const std::string its = measured::lower(each.name);
    if (!name.starts_with(its) || its.size() <= longest) continue;
    best = &each;
    longest = its.size();
  }
  return best;
}

std::optional<int> product_bits(const std::string& precision) {
  const auto has = [&](const char* word) { return precision.find(word) != std::string::npos; };
  if (precision.empty() || has("bf16") || has("fp16")) return 16;
  if (has("fp4")) return 4;
  if (has("fp8")) return 8;
  if (has("fp32") || has("tf32")) return 32;
  return {};
}

double peak_of(const PlanFigure& row) {
  const PlanGpu* gpu = plan_gpu(row.gpu);
  ensure(gpu != nullptr, "the row is expressible");
  const int bits = product_bits(row.precision).value();
  const double peak = bits == 32 ? gpu->peak16 / 2 : bits == 16 ? gpu->peak16 : bits == 8 ? gpu->peak8 : gpu->peak4;
  return peak * 1e12;  // TF32 has half the rate of 16 bits (the same data sheets)
}

std::string inexpressible(const PlanFigure& row) {
  // A new kind of parallelism is switched on here; nothing else changes.
  constexpr bool has_full_shards = true, has_gradient_shards = true, has_context = true, has_experts = true;
  if (!row.flaw.empty()) return row.flaw;
  if (row.expert > 1 && !has_experts) return "expert parallelism (ep)";
  if (row.card->card.experts > 0 && !has_experts) return "a model with experts";
  if (!row.card->special.empty()) return row.card->special;
  if (row.context > 1 && !has_context) return "context parallelism (cp)";
  if (row.shard == "full" && !has_full_shards) return "shards of weights (zero3, fsdp)";
  if (row.shard == "optimizer_gradients" && !has_gradient_shards) return "shards of gradients (zero2)";
  if (row.recompute != "none" && row.recompute != "full" && row.recompute != "selective")
    return fmt::format("recomputation {}", in_quotes(row.recompute));
  const PlanGpu* gpu = plan_gpu(row.gpu);
  if (gpu == nullptr) return fmt::format("no machine for the GPU {}", in_quotes(row.gpu));
  if (node_of(row, *gpu) > gpu->node)
    return fmt::format("nodes of {} GPUs: {} has {}", row.node, gpu->machine, gpu->node);
  const auto bits = product_bits(row.precision);
  if (!bits) return fmt::format("precision {}", in_quotes(row.precision));
  if (peak_of(row) == 0) return fmt::format("precision {}: not supported by {}", row.precision, row.gpu);
  return "";
}

namespace {

/// Tables do not state it; Megatron-Bridge's recipes of models whose layers the stages do not divide, such as the 94 of
/// Qwen3 235B, count the embedding and the loss as a layer each (account_for_embedding_in_pipeline_split and
/// account_for_loss_in_pipeline_split).
bool counts_embedding_and_loss(const PlanFigure& row) {
  return row.pipeline > 1 && needs_embedding_and_loss(row.card->card.layers, row.pipeline * row.chunks);
}

}  // namespace

std::vector<std::string> left_out(const PlanFigure& row) {
  std::vector<std::string> out;
  if (counts_embedding_and_loss(row))
    out.emplace_back("how stages divide the layers: embedding and loss are assumed to count as a layer each");
  if (overlaps(row, "tp") && row.tensor > 1) out.emplace_back("overlap of tensor parallelism");
  if (product_bits(row.precision).value_or(16) < 16)
    out.emplace_back("8-bit and 4-bit weights and traffic: counted as 16 bits, without conversions");
  const PlanGpu* gpu = plan_gpu(row.gpu);
  if (gpu != nullptr && row.node > 0 && node_of(row, *gpu) != row.node)
    out.push_back(fmt::format("nodes of {}: assumed to be trays of a rack", row.node));
  return out;
}

namespace {

Json topology_json(const PlanFigure& row, const PlanGpu& gpu, Json& ranks) {
  const std::int64_t each = std::min(row.gpus, node_of(row, gpu)), nodes = (row.gpus + each - 1) / each;
  Json topology{{"kind", "cluster"}, {"node", row.machine.empty() ? gpu.machine : row.machine}, {"nodes", nodes}};
  if (nodes > 1)
    topology["fabric"] = {{"kind", "star"},
                          {"link",
                           {{"bandwidth", fmt::format("{} Gb/s", row.link_gbits > 0 ? row.link_gbits : gpu.link_gbits)},
                            {"latency", "1 us"}}}};
  if (row.gpus == nodes * gpu.node) return topology;
  for (std::int64_t rank = 0; rank < row.gpus; ++rank)
    ranks.push_back(fmt::format("node{}.gpu{}", rank / each, rank % each));
  return topology;
}

/// Tables do not state it; the default of Megatron-LM before sequence_parallel (arguments.py of v2.6,
/// --no-scatter-gather-tensors-in-pipeline) and of DeepSpeed (runtime/pipe/engine.py, pipe_partitioned).
bool scatters(const PlanFigure& row) {
  return row.tensor > 1 && row.pipeline > 1 && !row.sequence_parallel && row.card->card.experts == 0;
}

Json parallel_json(const PlanFigure& row) {
  Json parallel{{"tensor", row.tensor}, {"pipeline", row.pipeline}};
  if (row.chunks > 1) parallel["virtual_pipeline"] = row.chunks;
  if (counts_embedding_and_loss(row)) parallel["account_for_embedding"] = parallel["account_for_loss"] = true;
  if (row.context > 1) {
    parallel["context"] = row.context;
    parallel["cp_comm"] = row.card->flash ? "p2p" : "all_gather";  // tables do not state it; Megatron-LM's default
  }
  if (row.expert > 1) parallel["expert"] = row.expert;
  if (row.card->card.experts > 0 && row.tensor > 1) {
    parallel["expert_tensor"] = 1;         // tables do not state it; Megatron-Bridge's recipes of such models have 1
    parallel["sequence_parallel"] = true;  // Megatron-LM demands it of experts
  }
  if (row.data && row.expert == 1) parallel["data"] = *row.data;
  if (row.sequence_parallel && row.tensor > 1) parallel["sequence_parallel"] = true;
  if (scatters(row)) parallel["scatter_gather"] = true;
  if (row.recompute != "none") parallel["recompute"] = row.recompute;
  if (data_of(row) == 1 && row.context == 1) return parallel;
  if (row.shard != "none") parallel["shard"] = row.shard;
  if (!overlaps(row, "dp") || row.shard == "full") return parallel;  // FSDP overlaps by itself
  parallel["overlap"] = row.shard == "optimizer" ? Json{"grad_reduce", "param_gather"} : Json{"grad_reduce"};
  return parallel;
}

Json card_json(const PlanFigure& row) {
  const TransformerCard& card = row.card->card;
  Json out{{"layers", card.layers},         {"hidden", card.hidden},     {"heads", card.heads},
           {"kv_heads", card.kv_heads},     {"head_dim", card.head_dim}, {"ffn", card.ffn},
           {"vocabulary", card.vocabulary}, {"gated", card.gated},       {"tied", card.tied},
           {"biases", card.biases}};
  if (card.biases && card.kv_heads == card.heads) out.erase("kv_heads");
  if (card.biases) out["positions"] = card.positions > 0 ? card.positions : row.sequence;
  if (card.experts > 0) {
    out["experts"] = card.experts;
    out["top_k"] = card.top_k;
    out["expert_ffn"] = card.expert_ffn;
    if (card.shared_ffn > 0) out["shared_ffn"] = card.shared_ffn;
    if (card.dense_layers > 0) out["dense_layers"] = card.dense_layers;
  }
  return out;
}

std::string percent_text(double share) { return fmt::format("{:.4f}%", 100 * share); }

}  // namespace

std::string plan_scenario(const PlanFigure& row, const PlanShares& shares) {
  const PlanGpu& gpu = *plan_gpu(row.gpu);
  const int bits = product_bits(row.precision).value();
  Json ranks = Json::array();
  Json scenario{{"version", 1}, {"name", row.id}, {"topology", topology_json(row, gpu, ranks)}, {"library", "nccl"}};
  const Json parallel = parallel_json(row);
  // The core computes in 16 bits whatever products do; its share is of the 16-bit peak.
  const double core = shares.attention * gpu.peak16 * 1e12 / peak_of(row);
  scenario["training"] = {
      {"workload",
       {{"transformer", card_json(row)},
        {"sequence", row.sequence},
        {"micro_batch_size", row.micro_batch},
        {"global_batch_size", row.global_batch},
        {"precision", bits == 32                ? "fp32"
                      : row.precision == "fp16" ? "fp16"
                                                : "bf16"},
        {"attention", row.card->flash ? "flash" : "unfused"},
        {"compute",
         {{"gemm", percent_text(shares.gemm)},
          {"attention", percent_text(bits == 32 ? shares.gemm : core)},
          {"memory", percent_text(shares.memory)},
          {"peak", fmt::format("{:.0f} TFLOP/s", peak_of(row) / 1e12)},
          {"hbm", fmt::format("{:.0f} GB/s", gpu.hbm)},
          {"source", gpu.source}}}}},
      {"parallel", parallel},
      {"optimizer", "adam"},
      {"steps", 1},
      {"warmup", parallel.contains("overlap") ? 1 : 0},  // weights are gathered during the step after
      {"memory", "ignore"},                              // it ran
      {"gpu_memory", fmt::format("{} GiB", gpu.memory_gib)}};
  if (!ranks.empty()) scenario["training"]["ranks"] = ranks;
  return json_text(scenario);
}

double plan_operations(const PlanFigure& row) {
  const TransformerCard& card = row.card->card;
  const auto real = [](std::int64_t n) { return static_cast<double>(n); };
  const double hidden = real(card.hidden), inner = real(card.heads * card.head_dim),
               keys = real(card.kv_heads * card.head_dim), layers = real(card.layers);
  const double routed = card.experts > 0 ? real(card.layers - card.dense_layers) : 0;
  const double met = (layers - routed) / layers * real(card.ffn) +
                     routed / layers * real(card.top_k * card.expert_ffn + card.shared_ffn);
  const double layer = hidden * (2 * inner + 2 * keys) + (card.gated ? 3 : 2) * hidden * met;
  const double core = 4 * real(row.sequence) * inner * (row.card->flash ? 0.5 : 1);
  const double passes = row.recompute == "full" ? 4 : 3;
  const double token = passes * real(card.layers) * (2 * layer + core) + 6 * hidden * real(card.vocabulary);
  return token * real(row.global_batch) * real(row.sequence);
}

namespace {

/// gemm: the median of the shares that the inputs of --input group give; the others: the median over all rows.
constexpr std::array<FittedShares, 5> fitted{{
    {"A100", 16, 0.80, 0.397, 0.464, "GPT 3.6B to 1T",
     "6 inputs: GPT 22B, 175B, 530B, 1T on Selene (Korthikanti et al.), 3.6B and 39.1B (vTrain); models 0 and 1: 87 "
     "rows",
     // docs/results/plans.md; pytorch.org/blog/maximizing-training-throughput; torchtitan's docs/performance.md has 57
     // to 58 % for Llama 3 8B.
     "predicted steps of Megatron differ from 77 measured ones by a median of 6 %, and by more than 16 % in one row "
     "out "
     "of ten; PyTorch's FSDP is slower than predicted: it reached 57 % MFU with Llama 2 7B, and 68 % with "
     "torch.compile"},
    {"H100", 16, 0.65, 0.405, 0.405, "MPT 1B to 30B",
     "3 inputs: MPT 1B, 7B, 30B (mosaicml/llm-foundry 8c8dd48 scripts/train/benchmarking/README.md); models 0 and 1: "
     "32 rows",
     "predicted steps of MPT are a median of 11 % shorter than measured"},  // docs/guide/training.md
    {"H100", 8, 0.57, 0.361, 0.361, "Llama 2 7B and Llama 3 70B",
     "2 inputs: Llama 3 70B (Megatron-Bridge), Llama 2 7B (NeMo); models 0 and 1: 5 rows"},
    {"Blackwell", 8, 0.58, 0.431, 0.453, "Llama 3 70B",
     "1 input: Llama 3 70B on GB300 (Megatron-Bridge); models 0 and 1: 3 rows"},
    {"Blackwell", 4, 0.35, 0.219, 0.223, "Llama 3 70B",
     "1 input: Llama 3 70B on GB300 (Megatron-Bridge); models 0 and 1: 3 rows"},
}};

}  // namespace

std::span<const FittedShares> fitted_shares() { return fitted; }

const FittedShares* fitted_shares_of(const PlanFigure& row) {
  const PlanGpu* gpu = plan_gpu(row.gpu);
  const auto bits = product_bits(row.precision);
  for (const FittedShares& each : fitted_shares())
    if (gpu != nullptr && bits && std::string(each.family) == gpu->family && each.bits == *bits) return &each;
  return nullptr;
}

FlashShare flash_share(const std::string& family, FlashKernel kernel) {
  const bool is_cudnn = kernel == FlashKernel::cudnn;
  if (family == "A100") return {0.32, "like FlashAttention-2 on A100"};
  if (family.starts_with("H100"))
    return is_cudnn ? FlashShare{0.33, "like cuDNN's kernels on H100"}
                    : FlashShare{0.18, "like FlashAttention-2 on H100"};
  if (family == "Blackwell" && is_cudnn) return {0.45, "like cuDNN's kernels on Blackwell"};
  return {is_cudnn ? 0.45 : 0.5, "a guess"};
}

PlanShares stated_shares(const PlanFigure& row) {
  const PlanGpu* gpu = plan_gpu(row.gpu);
  const auto names = [&](const char* framework) { return row.source.find(framework) != std::string::npos; };
  const FlashKernel kernel = names("NeMo") || names("Megatron") ? FlashKernel::cudnn : FlashKernel::flash_attention_2;
  return {.gemm = 0,
          .attention = row.card->flash ? flash_share(gpu == nullptr ? "" : gpu->family, kernel).share : 0.45,
          .memory = 0.8};
}

}  // namespace ringsim
