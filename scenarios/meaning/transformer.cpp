#include "scenarios/meaning/transformer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"

namespace ringsim::scenarios {

TransformerCard transformer_of(const nlohmann::json& card) {
  TransformerCard out;
  const auto figure = [&](const char* key, std::int64_t otherwise) {
    return card.contains(key) ? card[key].get<std::int64_t>() : otherwise;
  };
  out.layers = card["layers"].get<std::int64_t>();
  out.hidden = card["hidden"].get<std::int64_t>();
  out.heads = card["heads"].get<std::int64_t>();
  out.ffn = card["ffn"].get<std::int64_t>();
  out.vocabulary = card["vocabulary"].get<std::int64_t>();
  out.kv_heads = figure("kv_heads", out.heads);
  if (!card.contains("head_dim") && out.hidden % out.heads != 0)
    throw InputError("/heads",
                     fmt::format("expected a number that divides hidden, {}, found {}", out.hidden, out.heads),
                     "set the head size with head_dim");
  out.head_dim = figure("head_dim", out.hidden / out.heads);
  if (out.heads % out.kv_heads != 0)
    throw InputError("/kv_heads",
                     fmt::format("expected a number that divides heads, {}, found {}", out.heads, out.kv_heads),
                     "each key-value head must serve the same number of heads");
  out.positions = figure("positions", 0);
  out.experts = figure("experts", 0);
  out.top_k = figure("top_k", 0);
  if ((out.experts > 0) != (out.top_k > 0) || out.top_k > out.experts)
    throw InputError(card.contains("top_k") ? "/top_k" : "/experts",
                     fmt::format("expected experts and a top_k from 1 to the number of experts, found {} and {}",
                                 out.experts, out.top_k),
                     "top_k is the number of experts that process each token");
  if (out.experts > 0) out.expert_ffn = figure("expert_ffn", out.ffn);
  out.shared_ffn = figure("shared_ffn", 0);
  out.dense_layers = figure("dense_layers", 0);
  for (const char* key : {"expert_ffn", "shared_ffn", "dense_layers"})
    if (out.experts == 0 && card.contains(key) && card[key] != 0)
      throw InputError(
          fmt::format("/{}", key), fmt::format("expected {} only with experts, found none", key),
          "experts is the number of experts per layer; top_k is the number of experts that process each token");
  if (out.experts > 0 && out.dense_layers >= out.layers)
    throw InputError(
        "/dense_layers",
        fmt::format("expected fewer layers without experts than layers, {}, found {}", out.layers, out.dense_layers),
        "dense_layers is the number of leading layers that have an MLP instead of experts");
  out.gated = card.value("gated", true);
  out.tied = card.value("tied", false);
  out.biases = card.value("biases", false);
  if (out.biases && (out.experts > 0 || out.gated || out.kv_heads != out.heads))
    throw InputError("/biases", "expected biases only without gated, kv_heads and experts",
                     R"(for example GPT: {"gated": false, "biases": true})");
  return out;
}

namespace {

/// The tensors of a layer, and the elements of those matrices that a token is multiplied with.
struct Layer {
  std::vector<std::int64_t> tensors;
  std::int64_t multiplied = 0;

  void matrix(std::int64_t rows, std::int64_t columns, bool is_met = true) {
    tensors.push_back(rows * columns);
    if (is_met) multiplied += rows * columns;
  }
};

Layer layer_with_biases(const TransformerCard& card) {
  Layer out;
  const std::int64_t inner = card.heads * card.head_dim;
  const auto norm = [&] { out.tensors.insert(out.tensors.end(), 2, card.hidden); };
  norm();
  out.matrix(card.hidden, 3 * inner);
  out.tensors.push_back(3 * inner);
  out.matrix(inner, card.hidden);
  out.tensors.push_back(card.hidden);
  norm();
  out.matrix(card.hidden, card.ffn);
  out.tensors.push_back(card.ffn);
  out.matrix(card.ffn, card.hidden);
  out.tensors.push_back(card.hidden);
  return out;
}

Layer layer_without_biases(const TransformerCard& card, bool has_experts) {
  Layer out;
  const std::int64_t inner = card.heads * card.head_dim, of_keys = card.kv_heads * card.head_dim;
  out.matrix(card.hidden, inner);
  out.matrix(card.hidden, of_keys);
  out.matrix(card.hidden, of_keys);
  out.matrix(inner, card.hidden);
  const auto mlp = [&](std::int64_t ffn, bool is_met) {
    for (int matrix = 0; matrix < (card.gated ? 3 : 2); ++matrix) out.matrix(card.hidden, ffn, is_met);
  };
  if (has_experts) {
    out.matrix(card.hidden, card.experts);
    for (std::int64_t expert = 0; expert < card.experts; ++expert) mlp(card.expert_ffn, expert < card.top_k);
    if (card.shared_ffn > 0) mlp(card.shared_ffn, true);
  } else {
    mlp(card.ffn, true);
  }
  out.tensors.insert(out.tensors.end(), 2, card.hidden);
  return out;
}

void expect_countable(const TransformerCard& card, const Layer& layer, std::int64_t sequence) {
  constexpr double most = 4e18;  // of 63 bits, with room for rounding
  const double attention = 2.0 * static_cast<double>(card.heads * card.head_dim) * static_cast<double>(sequence) *
                           static_cast<double>(sequence);
  const double words = static_cast<double>(card.vocabulary) * static_cast<double>(card.hidden);
  double parameters = 2 * words;
  for (const std::int64_t tensor : layer.tensors)
    parameters += static_cast<double>(tensor) * static_cast<double>(card.layers);
  const double macs = static_cast<double>(sequence) * words +
                      static_cast<double>(card.layers) *
                          (static_cast<double>(sequence) * static_cast<double>(layer.multiplied) + attention);
  if (parameters > most || macs > most)
    throw InputError(
        "",
        fmt::format("expected at most 4e18 parameters and multiply-adds of a sequence, found {:.2g} and {:.2g}",
                    parameters, macs),
        "use fewer layers or a shorter sequence");
}

}  // namespace

Workload workload_of(const TransformerCard& card, std::int64_t sequence) {
  Workload out;
  const auto add = [&](std::string name, std::vector<std::int64_t> tensors, std::int64_t macs) {
    out.layers.push_back({.name = std::move(name), .tensors = std::move(tensors)});
    out.macs.push_back(macs);
  };
  std::vector<std::int64_t> embeddings{card.vocabulary * card.hidden};
  if (card.positions > 0) embeddings.push_back(card.positions * card.hidden);
  add("embeddings", std::move(embeddings), 0);
  const auto layer_of = [&](bool has_experts) {
    Layer layer = card.biases ? layer_with_biases(card) : layer_without_biases(card, has_experts);
    expect_countable(card, layer, sequence);
    return layer;
  };
  const Layer dense = layer_of(false), routed = layer_of(card.experts > 0);
  const std::int64_t attention = 2 * card.heads * card.head_dim * sequence * sequence;
  for (std::int64_t i = 0; i < card.layers; ++i) {
    const Layer& layer = card.has_experts(i) ? routed : dense;
    add(fmt::format("layers.{}", i), layer.tensors, sequence * layer.multiplied + attention);
  }
  std::vector<std::int64_t> head(card.biases ? 2 : 1, card.hidden);  // its norm
  if (!card.tied) head.push_back(card.vocabulary * card.hidden);
  add("head", std::move(head), sequence * card.vocabulary * card.hidden);
  out.sequence = sequence;
  out.sample = fmt::format("sequence of {} tokens", sequence);
  return out;
}

}  // namespace ringsim::scenarios
