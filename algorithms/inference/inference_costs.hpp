// Costs of a transformer's forward pass when it serves: prefill of prompts, decode of one token per sequence.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "algorithms/training/plan_program.hpp"
#include "algorithms/training/transformer_card.hpp"
#include "algorithms/training/transformer_costs.hpp"

namespace ringsim {

/// prefill: all tokens of the prompts at once. decode: one new token per sequence.
enum class InferencePhase : std::uint8_t { prefill, decode };
std::string_view to_string(InferencePhase phase);  ///< as written here

/// How a model lies on its ranks, and what one step computes. Requires heads, kv_heads, ffn, expert_ffn and shared_ffn
/// divisible by tensor. With expert above 1: tensor 1, and experts and batch divisible by expert.
struct InferencePlan {
  TransformerCard card;
  InferencePhase phase = InferencePhase::decode;
  std::int64_t batch = 1;  ///< sequences, of all ranks
  /// Tokens per sequence: of decode those whose keys and values the new token meets, its own included; of prefill those
  /// of the prompt.
  std::int64_t context = 1;
  int tensor = 1;
  int expert = 1;        ///< ranks with different experts; each has its own sequences and a copy of all other weights
  int weight_bytes = 2;  ///< per element of the layers' matrices and of their inputs
  int kv_bytes = 2;      ///< per element of the KV cache
  Picoseconds kernel_gap{0};  ///< from the end of what comes before a kernel to its start
  Picoseconds host{0};        ///< once a step, before its first kernel

  static constexpr int element_bytes = 2;  ///< of activations, logits, embedding, head, norms and router: bf16 or fp16
  int ranks() const { return tensor * expert; }
  std::int64_t sequences() const { return batch / expert; }  ///< of a rank
  /// That the step computes: of a rank, and of all of them.
  std::int64_t tokens() const { return phase == InferencePhase::prefill ? sequences() * context : sequences(); }
  std::int64_t all_tokens() const { return tokens() * expert; }
};

/// The layers of a forward pass on each rank: embedding, the model's layers, head. Each kernel takes kernel_gap and
/// then the longer time of its operations and its bytes.
///
/// Kernels of a layer, m tokens, q = heads head_dim / t, k = kv_heads head_dim / t, f = ffn / t, w and e bytes per
/// weight and activation; a product of m x a and a x n has 2 m a n operations and moves w (m a + a n) + e m n bytes:
///   - product to queries, keys and values: h to q + 2 k;
///   - rotary embedding, and storing keys and values in the cache: reads e m (q + 2 k), writes e m q + kv_bytes 2 m k;
///   - attention: 4 m c q operations (prefill: half, the causal mask hides the rest), all keys and values of the batch,
///     kv_bytes 2 batch c k, queries in and results out, 2 e m q;
///   - product q to h, all_reduce of e m h, residual with norm (reads two vectors, writes two: 4 e m h);
///   - product h to f (2 f if gated), activation (e m f, 2 of them read if gated), product f to h, all_reduce, residual
///     with norm.
/// This is Megatron-LM's split (Shoeybi et al., arXiv 1909.08053, figure 3), as vLLM's and TensorRT-LLM's layers have
/// it.
///
/// Embedding: each rank has its part of the vocabulary, all_reduce of e m h (vLLM, VocabParallelEmbedding). Head: the
/// last token of each sequence alone; all_gather of e batch vocabulary logits (vLLM, LogitsProcessor); then sampling
/// reads them once. The vocabulary is rounded up to a multiple of t.
///
/// Experts, in place of the MLP: a router (2 B per weight, 8 B per score for softmax and choice), top_k copies of each
/// token, products with expert_ffn / t columns in one grouped kernel each, which reads the weights of
/// distinct_experts(); then the sum of a token's results, and the same all_reduce. Every rank has a part of all
/// experts.
///
/// With expert above 1 attention is data parallel, and nothing is summed, as in DeepSeek-V3's decoding (arXiv
/// 2412.19437, section 3.4.2), but with one rank where that has four tensor ranks: an all_to_all of e m top_k h brings
/// copies of tokens to their experts, another one the results back, as in training (transformer_costs.hpp). A rank
/// reads the weights of its share of the distinct_experts() of all tokens, and computes as many rows as it sends:
/// routing is even. Copies have 2 B both ways (DeepSeek's dispatch in fp8 half of that).
///
/// Not counted: fusions other than these, split-K partial sums, quantization as kernels of its own.
std::vector<PlanLayer> inference_layers(const InferencePlan& plan, const KernelSpeeds& speeds);

/// The expected number of experts that at least one token meets, E (1 - (1 - k/E)^tokens): each token chooses k of E
/// experts, all equally likely and independent of other tokens. Real routers are less even, so they hit fewer.
double distinct_experts(const TransformerCard& card, std::int64_t tokens);

/// Bytes on each rank. Activations, buffers of the library and fragments of pages are not counted.
struct InferenceMemory {
  Bytes weights;  ///< matrices of layers at weight_bytes, all others at element_bytes
  Bytes cache;    ///< keys and values: kv_bytes 2 sequences() context layers kv_heads head_dim / t

  Bytes total() const { return weights + cache; }
  bool operator==(const InferenceMemory&) const = default;
};
InferenceMemory inference_memory(const InferencePlan& plan);

/// The largest batch, a multiple of expert, whose cache fits next to the weights; 0: the weights alone do not fit, or
/// one sequence does not.
std::int64_t largest_batch(InferencePlan plan, Bytes memory);

}  // namespace ringsim
