// The figures of a transformer's model card.
#pragma once

#include <cstdint>

namespace ringsim {

/// The figures of a decoder, in Megatron's and PyTorch's words.
struct TransformerCard {
  std::int64_t layers = 0, hidden = 0, heads = 0;
  std::int64_t kv_heads = 0;  ///< of keys and values; fewer than heads: grouped queries
  std::int64_t head_dim = 0;
  std::int64_t ffn = 0;  ///< inner size of the MLP
  std::int64_t vocabulary = 0;
  std::int64_t positions = 0;           ///< learned ones; 0: none (rotary embeddings have no parameters)
  std::int64_t experts = 0, top_k = 0;  ///< of a layer; how many of them a token meets
  std::int64_t expert_ffn = 0;          ///< inner size of one of them
  std::int64_t shared_ffn = 0;          ///< inner size of an expert that all tokens meet; 0: there is none
  std::int64_t dense_layers = 0;        ///< the first so many layers have an MLP in place of experts
  bool gated = true;                    ///< two matrices up to the inner size (SwiGLU), not one
  bool tied = false;                    ///< the head is the embedding
  bool biases = true;  ///< of every matrix, LayerNorm, and one matrix for Q, K and V, as GPT; else none, and RMSNorm

  bool has_experts(std::int64_t layer) const { return experts > 0 && layer >= dense_layers; }
};

}  // namespace ringsim
