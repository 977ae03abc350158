#include "algorithms/inference/inference_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

std::string_view to_string(InferencePhase phase) { return phase == InferencePhase::prefill ? "prefill" : "decode"; }

namespace {

double as_double(std::int64_t n) { return static_cast<double>(n); }

/// Lists of kernels and collectives of each layer. Times in seconds, sizes in bytes and elements as doubles: they
/// exceed 2^53 nowhere near a time that is accepted.
class ServedLayers {
 public:
  ServedLayers(const InferencePlan& plan, const KernelSpeeds& speeds)
      : plan_(plan),
        speeds_(speeds),
        m_(as_double(plan.tokens())),
        h_(as_double(plan.card.hidden)),
        q_(as_double(plan.card.heads * plan.card.head_dim / plan.tensor)),
        k_(as_double(plan.card.kv_heads * plan.card.head_dim / plan.tensor)),
        words_(as_double(embedding_parameters(plan.card, plan.tensor) / plan.card.hidden)),
        w_(plan.weight_bytes),
        e_(InferencePlan::element_bytes) {}

  PlanLayer embedding() const {
    PlanLayer out{.name = "embeddings", .parameters = 0, .forward = {}, .recompute = {}, .backward = {}};
    if (plan_.host.count() > 0) out.forward.push_back({.name = "host", .time = plan_.host, .bytes = {}});
    out.forward.push_back(kernel("", moved(2 * e_ * m_ * h_)));
    sum(out.forward);
    out.forward.push_back(kernel("norm", moved(2 * e_ * m_ * h_)));
    return out;
  }

  PlanLayer layer(std::int64_t number) const {
    PlanLayer out{
        .name = fmt::format("layers.{}", number), .parameters = 0, .forward = {}, .recompute = {}, .backward = {}};
    attend(out.forward);
    if (plan_.card.has_experts(number))
      mix_experts(out.forward);
    else
      mlp(out.forward, "MLP", as_double(plan_.card.ffn / plan_.tensor));
    sum(out.forward);
    out.forward.push_back(residual());
    return out;
  }

  PlanLayer head() const {
    PlanLayer out{.name = "head", .parameters = 0, .forward = {}, .recompute = {}, .backward = {}};
    const double n = as_double(plan_.sequences());
    out.forward.push_back(product("", n, h_, words_, e_));
    const auto logits = static_cast<std::int64_t>(words_) * plan_.tensor * plan_.sequences();
    if (plan_.tensor > 1)
      out.forward.push_back({.name = {}, .op = CollectiveOp::all_gather, .bytes = Bytes{logits} * e_int});
    out.forward.push_back(kernel("sampling", moved(e_ * as_double(logits))));
    return out;
  }

 private:
  static constexpr int e_int = InferencePlan::element_bytes;

  PlanKernel kernel(std::string name, double seconds) const {
    const double time = seconds * static_cast<double>(picoseconds_per_second);
    if (time > 9e18) fail_too_long();
    return {.name = std::move(name), .time = add(plan_.kernel_gap, Picoseconds{std::llround(time)}), .bytes = {}};
  }
  double moved(double bytes) const { return bytes / speeds_.memory; }

  /// Of `rows` tokens with a matrix of a x n elements of `weight` bytes.
  PlanKernel product(std::string name, double rows, double a, double n, double weight) const {
    return kernel(std::move(name),
                  std::max(2 * rows * a * n / speeds_.gemm, moved(weight * (rows * a + a * n) + e_ * rows * n)));
  }

  /// The all_reduce of all tokens' vectors.
  void sum(std::vector<PlanKernel>& list) const {
    if (plan_.tensor == 1) return;
    list.push_back(
        {.name = {}, .op = CollectiveOp::all_reduce, .bytes = Bytes{plan_.tokens() * plan_.card.hidden} * e_int});
  }

  PlanKernel residual() const { return kernel("residual", moved(4 * e_ * m_ * h_)); }

  void attend(std::vector<PlanKernel>& list) const {
    const double context = as_double(plan_.context), kv = plan_.kv_bytes;
    list.push_back(product("QKV", m_, h_, q_ + 2 * k_, w_));
    list.push_back(kernel("rotary", moved(e_ * m_ * (q_ + 2 * k_) + e_ * m_ * q_ + kv * 2 * m_ * k_)));
    const double operations = (plan_.phase == InferencePhase::prefill ? 2 : 4) * m_ * context * q_;
    const double bytes = kv * 2 * as_double(plan_.sequences()) * context * k_ + 2 * e_ * m_ * q_;
    list.push_back(kernel("attention", std::max(operations / speeds_.attention, moved(bytes))));
    list.push_back(product("output", m_, q_, h_, w_));
    sum(list);
    list.push_back(residual());
  }

  void mlp(std::vector<PlanKernel>& list, const std::string& name, double f) const {
    const double up = plan_.card.gated ? 2 : 1;
    list.push_back(product(name + " up", m_, h_, up * f, w_));
    list.push_back(kernel(name + " activation", moved(e_ * m_ * (up + 1) * f)));
    list.push_back(product(name + " down", m_, f, h_, w_));
  }

  /// One product of a rank's experts that tokens meet, top_k rows per token.
  PlanKernel grouped(std::string name, double a, double n) const {
    const double rows = m_ * as_double(plan_.card.top_k),
                 met = distinct_experts(plan_.card, plan_.all_tokens()) / plan_.expert;
    return kernel(std::move(name),
                  std::max(2 * rows * a * n / speeds_.gemm, moved(w_ * (rows * a + met * a * n) + e_ * rows * n)));
  }

  /// Copies of tokens to the ranks of their experts, or results back.
  void exchange_tokens(std::vector<PlanKernel>& list) const {
    if (plan_.expert == 1) return;
    list.push_back({.name = {},
                    .op = CollectiveOp::all_to_all,
                    .bytes = Bytes{plan_.tokens() * plan_.card.top_k * plan_.card.hidden} * e_int,
                    .use = PlanUse::expert});
  }

  void mix_experts(std::vector<PlanKernel>& list) const {
    const double experts = as_double(plan_.card.experts), rows = m_ * as_double(plan_.card.top_k);
    const double f = as_double(plan_.card.expert_ffn / plan_.tensor), up = plan_.card.gated ? 2 : 1;
    list.push_back(product("router", m_, h_, experts, e_));
    list.push_back(kernel("choice", moved(8 * experts * m_)));
    list.push_back(kernel("copies", moved(e_ * h_ * (m_ + rows))));
    exchange_tokens(list);
    list.push_back(grouped("experts up", h_, up * f));
    list.push_back(kernel("experts activation", moved(e_ * rows * (up + 1) * f)));
    list.push_back(grouped("experts down", f, h_));
    exchange_tokens(list);
    list.push_back(kernel("answers", moved(e_ * h_ * (m_ + rows))));
    if (plan_.card.shared_ffn > 0) mlp(list, "shared expert", as_double(plan_.card.shared_ffn / plan_.tensor));
  }

  const InferencePlan& plan_;
  const KernelSpeeds& speeds_;
  double m_, h_, q_, k_, words_, w_, e_;
};

/// Matrices of all layers on one rank, without norms, biases and routers.
std::int64_t matrix_elements(const TransformerCard& card, int tensor, int expert) {
  const std::int64_t inner = card.heads * card.head_dim, keys = card.kv_heads * card.head_dim;
  const std::int64_t attention = card.hidden * (2 * inner + 2 * keys), matrices = card.gated ? 3 : 2;
  const std::int64_t routed = card.experts == 0 ? 0 : card.layers - card.dense_layers;
  const std::int64_t dense = (card.layers - routed) * card.hidden * matrices * card.ffn;
  const std::int64_t experts =
      routed * card.hidden * matrices * (card.experts / expert * card.expert_ffn + card.shared_ffn);
  return (card.layers * attention + dense + experts) / tensor;
}

/// All parameters of the layers on one rank.
std::int64_t layer_elements(const TransformerCard& card, int tensor, int expert) {
  const std::int64_t routed = card.experts == 0 ? 0 : card.layers - card.dense_layers;
  std::int64_t all = layer_parameters(card, tensor) * (card.layers - routed);
  if (routed > 0)
    all += routed * (routed_layer_parameters(card, tensor) +
                     card.experts / expert * card.hidden * (card.gated ? 3 : 2) * card.expert_ffn / tensor);
  return all;
}

}  // namespace

double distinct_experts(const TransformerCard& card, std::int64_t tokens) {
  const double all = as_double(card.experts), each = as_double(card.top_k) / all;
  return all * (1 - std::pow(1 - each, as_double(tokens)));
}

std::vector<PlanLayer> inference_layers(const InferencePlan& plan, const KernelSpeeds& speeds) {
  ensure(speeds.gemm > 0 && speeds.attention > 0 && speeds.memory > 0, "kernels of inference have three rates");
  const ServedLayers served(plan, speeds);
  std::vector<PlanLayer> layers{served.embedding()};
  for (std::int64_t l = 0; l < plan.card.layers; ++l) layers.push_back(served.layer(l));
  layers.push_back(served.head());
  return layers;
}

InferenceMemory inference_memory(const InferencePlan& plan) {
  const TransformerCard& card = plan.card;
  const std::int64_t matrices = matrix_elements(card, plan.tensor, plan.expert);
  const std::int64_t words = embedding_parameters(card, plan.tensor);
  const std::int64_t others = layer_elements(card, plan.tensor, plan.expert) - matrices + words * (card.tied ? 1 : 2) +
                              card.positions * card.hidden + card.hidden * (card.biases ? 2 : 1);
  const std::int64_t keys = card.kv_heads * card.head_dim / plan.tensor;
  return {.weights = Bytes{matrices} * plan.weight_bytes + Bytes{others} * InferencePlan::element_bytes,
          .cache = Bytes{2 * plan.sequences() * plan.context * card.layers * keys} * plan.kv_bytes};
}

std::int64_t largest_batch(InferencePlan plan, Bytes memory) {
  plan.batch = plan.expert;
  const InferenceMemory one = inference_memory(plan);
  if (memory < one.total()) return 0;
  return (memory - one.weights).count / one.cache.count * plan.expert;
}

}  // namespace ringsim
