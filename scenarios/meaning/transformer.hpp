// Transformers by the figures of their model cards: the layers that a training step computes.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "algorithms/training/transformer_card.hpp"
#include "scenarios/meaning/meaning_training.hpp"

namespace ringsim::scenarios {

/// A card as the canonical form of a scenario or a file of scenarios/workloads has it, by the same keys. Throws
/// InputError if its figures do not fit together; `where`: the key, "/heads".
TransformerCard transformer_of(const nlohmann::json& card);

/// Its layers without times, one for each layer of the model, after the embedding and before the head. Tensors are in
/// the order in which HuggingFace's GPT-2 (biases) and Llama register them; of experts the router first, then each
/// expert's matrices, as its Mixtral. Multiply-adds of a sequence: tokens times the elements of all matrices that a
/// token meets (top_k of the experts), and 2 heads head_dim sequence^2 of attention, counted in full. Throws InputError
/// (`where` empty) if there are more parameters, or multiply-adds of a sequence, than can be counted.
Workload workload_of(const TransformerCard& card, std::int64_t sequence);

}  // namespace ringsim::scenarios
