// Costs of a transformer on each rank of a plan: kernels, collectives of tensor groups, parameters, memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "algorithms/training/optimizer.hpp"
#include "algorithms/training/plan_gathers.hpp"
#include "algorithms/training/plan_program.hpp"
#include "algorithms/training/transformer_card.hpp"

namespace ringsim {

/// Rates that a GPU's kernels reach. A kernel takes the time of its operations or of its bytes, whichever is longer.
struct KernelSpeeds {
  double gemm = 0, attention = 0;  ///< operations per second, of matrix products and of the attention core
  double memory = 0;               ///< bytes per second; 0: bytes take no time
};

/// How a model lies on the ranks of a plan. Requires heads, kv_heads, ffn and shared_ffn divisible by tensor,
/// expert_ffn by expert_tensor, experts by expert, and all_layers() divisible by pipeline times chunks; with experts
/// and tensor above 1 sequence_parallel.
struct TransformerPlan {
  enum class Recompute : std::uint8_t { none, selective, full };

  TransformerCard card;
  std::int64_t sequence = 0, micro_batch = 1;
  int tensor = 1;
  int context = 1;        ///< ranks that share each sample, each with equally many of its tokens
  bool ring = false;      ///< context ranks hand keys and values round a ring, else they gather them; needs flash
  int expert = 1;         ///< ranks that have different experts
  int expert_tensor = 1;  ///< ranks that split each expert: 1 or tensor
  double imbalance = 1;   ///< tokens routed to the busiest rank, over the mean
  PipelineShape shape;
  /// The embedding, and head with loss, take the place of a layer when layers are divided among the chunks
  /// (Megatron-LM's
  /// --account-for-embedding-in-pipeline-split and --account-for-loss-in-pipeline-split).
  bool embedding_is_layer = false, loss_is_layer = false;
  bool sequence_parallel = false;
  Recompute recompute = Recompute::none;
  bool flash = true;      ///< the attention core is one kernel that keeps no scores; else three that do
  int element_bytes = 2;  ///< of weights and activations
  int gradient_bytes = 4;

  std::int64_t tokens() const { return sequence / context * micro_batch; }  ///< of a rank
  /// Those that are divided among the chunks.
  std::int64_t all_layers() const { return card.layers + (embedding_is_layer ? 1 : 0) + (loss_is_layer ? 1 : 0); }
  /// True if gradients of experts are reduced among other ranks than those of other layers.
  bool has_experts_apart() const { return card.experts > 0 && (expert > 1 || expert_tensor != tensor); }
};

/// Layers [first, end) of a chunk: equally many, but for the first chunk and the last if the embedding, or the loss,
/// takes the place of one.
struct LayerRange {
  std::int64_t first = 0, end = 0;

  std::int64_t count() const { return end - first; }
};
LayerRange layers_of(const TransformerPlan& plan, int stage, int chunk);
/// True if so many chunks have equally many layers only with embedding and loss counted, such as 8 chunks of 94 layers.
bool needs_embedding_and_loss(std::int64_t layers, std::int64_t chunks);

/// [stage][chunk][layer]: the embedding in the first, the head in the last. Forward operations of a layer and token,
/// over t: matrix products 2 (h (a + 2 k) d + a d h + 2 or 3 h f), attention core 4 s a d, of which flash kernels skip
/// the half that the causal mask hides. Backward: products twice, the core 2.5 times with flash (it computes the scores
/// again; Dao, FlashAttention-2, section 3.1) and twice without, bytes twice.
///
/// Zero bubble: gradients of weights in a pass of their own, each product of the backward pass once in either, the
/// scatter into the embedding's gradient in that for weights, and with sequence_parallel the gather of inputs.
///
/// Bytes of memory-bound kernels per token, e of an element: norms 2 e h each, residual with dropout 3 e h and a mask
/// of h, transposes around attention 6 e a d, activation 3 e f (gated), 4 e f (with biases: bias and GeLU apart) or
/// 2 e f, without flash softmax, mask and dropout 6.5 e s a; the loss 14 B forward and 6 B backward a word.
///
/// Tensor groups: all-reduces of b s h e after attention and MLP, forward, and before them, backward (Shoeybi et al.,
/// arXiv 1909.08053, figure 3). With sequence_parallel a reduce_scatter and an all_gather in each one's place, and one
/// more all_gather backward, which brings back what was not kept (Korthikanti et al., arXiv 2205.05198, section 4.2.2).
///
/// Context groups: each rank computes its queries with all keys and values, which an all_gather before the attention
/// core brings, again in the backward pass, where a reduce_scatter then sums their gradients (Llama 3, arXiv
/// 2407.21783, section 3.3.2; Megatron-LM's --cp-comm-type all_gather). A rank has two half chunks of a sample, one
/// from either end, so that a causal mask leaves all of them the same work (TransformerEngine, context_parallel.py).
///
/// ring (Megatron-LM's --cp-comm-type p2p, Transformer Engine's AttnFuncWithCPAndKVP2P, lines of context_parallel.py of
/// August 2026): c steps of 1/c of the core's operations each (ring_attention.hpp). Forward c - 1 hops of a rank's
/// keys and values; backward likewise, and as many of their gradients, in the precision of keys and values (2395 to
/// 2401; with fp8 they are summed in fp32, which is not modeled). Times of memory-bound steps are those of the
/// rank that moves the most. Bytes of kernels around the steps, k and a elements of keys and of queries per token: keys
/// and values are copied into the buffer that is sent, 8 e k B a token (read and written, in either pass: 1690, 2401);
/// results of steps are summed up, e a (3c - 1) (139 to 165, 1982 to 2017); backward each step adds to the gradients of
/// queries, 3 e a, and to those of keys and values, 6 e k, and the first step copies, 2 e a and 4 e k (2652 to 2698,
/// 2727 to 2809). Not counted: log-sum-exps of scores, 4 B a head.
///
/// Experts, k of them for a token (Megatron-LM's MoEAlltoAllTokenDispatcher,
/// megatron/core/transformer/moe/token_dispatcher.py): a router of 2 h experts operations, and 8 B a score for softmax
/// and choice; k copies of each token, sorted by expert (e h (1 + k) bytes); an all_to_all of b s k h e / t in the
/// expert group; with expert_tensor above 1 an all_gather in the tensor group; with several local experts another sort
/// (2 e h k); k MLPs of expert_ffn; then the same way back: sort, reduce_scatter, all_to_all, sum of a token's k
/// results. The backward pass has the same collectives for gradients; products, activation and router take twice the
/// time, sorts and copies the same. All products of a rank's experts are one grouped product, which reads all of their
/// weights. Not counted: the exchange of scores and of token counts, and the host's wait for these counts.
///
/// imbalance: all ranks take the time of the busiest, because they wait for it; so exchanges, products and sorts are
/// those of the mean times the imbalance. An expert that all tokens meet is an MLP after the others.
///
/// Embedding, head and loss: as Megatron-LM's vocabulary-parallel layers, the vocabulary rounded up to a multiple of t.
std::vector<std::vector<std::vector<PlanLayer>>> transformer_layers(const TransformerPlan& plan,
                                                                    const KernelSpeeds& speeds);

/// Parameters of a layer without experts on one rank: matrices over t, norms and the biases after an all-reduce whole.
std::int64_t layer_parameters(const TransformerCard& card, int tensor);
/// With experts in place of the MLP, but without counting them; the router is whole on each rank.
std::int64_t routed_layer_parameters(const TransformerCard& card, int tensor);
/// All experts that a rank has of a layer.
std::int64_t expert_parameters(const TransformerPlan& plan);
/// Parameters of the word embedding on one rank.
std::int64_t embedding_parameters(const TransformerCard& card, int tensor);
/// Parameters of a stage on one rank: all of them, and of experts that are reduced among other ranks.
std::int64_t stage_parameters(const TransformerPlan& plan, int stage);
std::int64_t stage_expert_parameters(const TransformerPlan& plan, int stage);

/// Bytes that a layer keeps of a micro-batch for its backward pass, s b h (10 + 24/t + 5 a s/(h t)) for GPT without
/// flash (Korthikanti et al., equations 2 to 6): the inputs of products, norms and activation, masks of dropout, and
/// without flash the scores. sequence_parallel: all of it over t. selective: without the core's scores and masks. full:
/// its input. With experts, in place of the MLP's: 4 B a score of the router, and of each copy of a token its vector
/// (where the tensor group has gathered copies, of all of them) and inner sizes, those of the busiest rank.
/// Outputs of experts are not kept: their weights enter at the activation (megatron/core/transformer/moe/experts.py).
Bytes layer_activations(const TransformerPlan& plan, bool with_experts = false);

/// Bytes that the attention of ranks that share samples has next to what it keeps, in the layer that runs. Gathers:
/// keys and values of whole samples, and their gradients. ring: forward the blocks of all ranks and the results of all
/// steps, because both lists live until the last step (context_parallel.py, 1672, 1685, 1706); backward two buffers of
/// a block and its gradient (2397 to 2400) and a step's own gradient; the larger of the two. 0 without context ranks.
Bytes context_buffers(const TransformerPlan& plan);

/// Memory of a rank of a stage.
struct PlanMemory {
  Bytes weights, gradients, state, activations;
  Bytes cache = {};   ///< of inference: keys and values
  int in_flight = 0;  ///< passes of chunks that the activations are those of, at most

  Bytes total() const { return weights + gradients + state + activations + cache; }
  bool operator==(const PlanMemory&) const = default;
};
/// `sharding`: what data ranks divide. Activations are those of the moment when the most are kept, in the order of the
/// schedule; if weights have passes of their own all of a micro-batch's until that pass has run (of a layer's 34 s b h
/// those for weights are 32: Qi et al., arXiv 2401.10241, table 1); with recompute full, one layer more in full; and
/// context_buffers().
PlanMemory plan_memory(const TransformerPlan& plan, int stage, const OptimizerBytes& optimizer,
                       const PlanSharding& sharding);

}  // namespace ringsim
