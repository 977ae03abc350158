#include "algorithms/training/transformer_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

using Recompute = TransformerPlan::Recompute;

double real(std::int64_t n) { return static_cast<double>(n); }

/// Times of kernels, in seconds, and the lists that layers are made of.
class LayerWriter {
 public:
  LayerWriter(const TransformerPlan& plan, const KernelSpeeds& speeds)
      : plan_(plan),
        speeds_(speeds),
        tokens_(real(plan.tokens())),
        hidden_(real(plan.card.hidden)),
        inner_(real(plan.card.heads * plan.card.head_dim / plan.tensor)),
        keys_(real(plan.card.kv_heads * plan.card.head_dim / plan.tensor)),
        ffn_(real(plan.card.ffn / plan.tensor)),
        words_(real(embedding_parameters(plan.card, plan.tensor) / plan.card.hidden)),
        element_(real(plan.element_bytes)),
        part_(plan.sequence_parallel ? real(plan.tensor) : 1) {}

  PlanLayer layer(std::int64_t number) const {
    PlanLayer out{.name = fmt::format("layers.{}", number),
                  .parameters = layer_parameters(plan_.card, plan_.tensor),
                  .forward = {},
                  .recompute = {},
                  .backward = {}};
    out.forward = forward();
    if (plan_.recompute == Recompute::full) out.recompute = out.forward;
    if (plan_.recompute == Recompute::selective) out.recompute = recomputed_core();
    out.backward = backward();
    return out;
  }

  /// In a tied model with several stages the shared matrix is not counted here.
  PlanLayer embedding() const {
    const bool shared = plan_.card.tied && plan_.shape.stages > 1;
    PlanLayer out{.name = "embeddings", .parameters = 0, .forward = {}, .recompute = {}, .backward = {}};
    out.parameters =
        plan_.card.positions * plan_.card.hidden + (shared ? 0 : embedding_parameters(plan_.card, plan_.tensor));
    const double look_up = moved(2 * element_ * tokens_ * hidden_),
                 drop = moved(2 * element_ * tokens_ * hidden_ / part_);
    out.forward = {kernel("", look_up)};
    join(out.forward, plan_.sequence_parallel ? CollectiveOp::reduce_scatter : CollectiveOp::all_reduce, "rest", drop);
    out.backward = {kernel("", drop)};
    const double scatter = moved(3 * element_ * tokens_ * hidden_);
    if (plan_.sequence_parallel)
      join(out.backward, CollectiveOp::all_gather, "rest", scatter);
    else
      out.backward = {kernel("", drop + scatter)};
    return out;
  }

  PlanLayer head() const {
    PlanLayer out{.name = "head", .parameters = 0, .forward = {}, .recompute = {}, .backward = {}};
    out.parameters = plan_.card.hidden * (plan_.card.biases ? 2 : 1) +
                     (plan_.card.tied ? 0 : embedding_parameters(plan_.card, plan_.tensor));
    const double loss = moved(14 * tokens_ * words_), loss_back = moved(6 * tokens_ * words_);
    const double product = gemm(tokens_, words_, hidden_);
    if (plan_.tensor == 1) {
      out.forward = {kernel("", norm() + product + loss)};
      out.backward = {kernel("", loss_back + 2 * product + 2 * norm())};
      return out;
    }
    if (plan_.sequence_parallel) {
      out.forward = {kernel("norm", norm())};
      join(out.forward, CollectiveOp::all_gather, "", product);
    } else {
      out.forward = {kernel("", norm() + product)};
    }
    // Of the loss, three figures a token in fp32 (megatron/core/tensor_parallel/cross_entropy.py): its greatest logit,
    // that of the right word, and the sum of exponentials.
    for (int i = 0; i < 3; ++i) out.forward.push_back(call(CollectiveOp::all_reduce, Bytes{4 * plan_.tokens()}));
    out.forward.push_back(kernel("loss", loss));
    if (plan_.sequence_parallel) {
      out.backward = {kernel("loss", loss_back)};
      join(out.backward, CollectiveOp::all_gather, "", 2 * product);
      join(out.backward, CollectiveOp::reduce_scatter, "norm", 2 * norm());
    } else {
      out.backward = {kernel("", loss_back + 2 * product)};
      join(out.backward, CollectiveOp::all_reduce, "norm", 2 * norm());
    }
    return out;
  }

 private:
  static PlanKernel kernel(std::string name, double seconds) {
    const double time = seconds * static_cast<double>(picoseconds_per_second);
    if (time > 9e18) fail_too_long();
    return {.name = std::move(name), .time = Picoseconds{std::llround(time)}, .bytes = {}};
  }
  static PlanKernel call(CollectiveOp op, Bytes bytes) { return {.name = {}, .op = op, .bytes = bytes}; }
  Bytes whole() const { return Bytes{plan_.tokens() * plan_.card.hidden * plan_.element_bytes}; }

  /// A collective of the tensor group and the kernel after it; of one rank that kernel belongs to the one before.
  void join(std::vector<PlanKernel>& list, CollectiveOp op, const char* name, double seconds, int times = 1) const {
    PlanKernel next = kernel(name, seconds);
    if (plan_.tensor == 1) {
      list.back().time = add(list.back().time, next.time);
      return;
    }
    for (int i = 0; i < times; ++i) list.push_back(call(op, whole()));
    list.push_back(std::move(next));
  }

  double moved(double bytes) const { return speeds_.memory > 0 ? bytes / speeds_.memory : 0; }
  double gemm(double m, double n, double k) const {
    return std::max(2 * m * n * k / speeds_.gemm, moved(element_ * (m * k + k * n + m * n)));
  }
  double norm() const { return moved(2 * element_ * tokens_ * hidden_ / part_); }
  double residual() const { return moved((3 * element_ + (plan_.card.biases ? 1 : 0)) * tokens_ * hidden_ / part_); }
  double core(bool is_backward) const {
    const double length = real(plan_.sequence), operations = 4 * tokens_ * length * inner_;
    const double bytes = element_ * tokens_ * 2 * (inner_ + keys_ * real(plan_.context));
    if (plan_.flash) {
      const double more = is_backward ? 2.5 : 1;
      return more * std::max(operations / 2 / speeds_.attention, moved(bytes));
    }
    const double heads = inner_ / real(plan_.card.head_dim);
    return (is_backward ? 2 : 1) *
           (std::max(operations / speeds_.attention, moved(bytes)) + moved(6.5 * element_ * tokens_ * length * heads));
  }
  double attention(bool is_backward) const {
    const double times = is_backward ? 2 : 1;
    return times * (gemm(tokens_, inner_ + 2 * keys_, hidden_) + gemm(tokens_, hidden_, inner_) +
                    moved(6 * element_ * tokens_ * inner_)) +
           core(is_backward);
  }
  double projections() const {
    return gemm(tokens_, inner_ + 2 * keys_, hidden_) + moved(6 * element_ * tokens_ * inner_);
  }
  double output() const { return gemm(tokens_, hidden_, inner_); }

  /// A collective of the context group on keys and values, or their gradients, and the kernel after it.
  void exchange_keys(std::vector<PlanKernel>& list, CollectiveOp op, const char* name, double seconds) const {
    const std::int64_t keys = plan_.card.kv_heads * plan_.card.head_dim / plan_.tensor;
    const std::int64_t tokens = plan_.tokens() * plan_.context;
    list.push_back(
        {.name = {}, .op = op, .bytes = Bytes{plan_.element_bytes * tokens * 2 * keys}, .use = PlanUse::context});
    list.push_back(kernel(name, seconds));
  }

  /// The attention of ranks that share samples. Its first part belongs to the last kernel of the list.
  void attend(std::vector<PlanKernel>& list) const {
    list.back().time = add(list.back().time, kernel("", projections()).time);
    exchange_keys(list, CollectiveOp::all_gather, "core", core(false) + output());
  }
  void attend_backward(std::vector<PlanKernel>& list) const {
    list.back().time = add(list.back().time, kernel("", 2 * output()).time);
    exchange_keys(list, CollectiveOp::all_gather, "core", core(true));
    exchange_keys(list, CollectiveOp::reduce_scatter, "projections", 2 * projections());
  }
  std::vector<PlanKernel> recomputed_core() const {
    if (plan_.context == 1) return {kernel("core", core(false))};
    std::vector<PlanKernel> list{kernel("keys", 0)};
    exchange_keys(list, CollectiveOp::all_gather, "core", core(false));
    return list;
  }

  double mlp(bool is_backward) const {
    const double up = plan_.card.gated ? 2 : 1;
    const double activation = (plan_.card.gated ? 3 : plan_.card.biases ? 4 : 2) * element_ * tokens_ * ffn_;
    return (is_backward ? 2 : 1) *
           (gemm(tokens_, up * ffn_, hidden_) + gemm(tokens_, hidden_, ffn_) + moved(activation));
  }

  std::vector<PlanKernel> forward() const {
    std::vector<PlanKernel> list;
    const bool is_shared = plan_.context > 1;
    if (plan_.sequence_parallel) {
      list = {kernel("norm", norm())};
      join(list, CollectiveOp::all_gather, "attention", is_shared ? 0 : attention(false));
      if (is_shared) attend(list);
      join(list, CollectiveOp::reduce_scatter, "residual", residual() + norm());
      join(list, CollectiveOp::all_gather, "MLP", mlp(false));
      join(list, CollectiveOp::reduce_scatter, "residual", residual());
      return list;
    }
    list = {kernel(plan_.tensor > 1 || is_shared ? "attention" : "", norm() + (is_shared ? 0 : attention(false)))};
    if (is_shared) attend(list);
    join(list, CollectiveOp::all_reduce, "MLP", residual() + norm() + mlp(false));
    join(list, CollectiveOp::all_reduce, "residual", residual());
    return list;
  }

  std::vector<PlanKernel> backward() const {
    std::vector<PlanKernel> list;
    const bool is_shared = plan_.context > 1;
    if (plan_.sequence_parallel) {
      list = {kernel("residual", 2 * residual())};
      join(list, CollectiveOp::all_gather, "MLP", mlp(true), 2);
      join(list, CollectiveOp::reduce_scatter, "residual", 2 * (residual() + norm()));
      join(list, CollectiveOp::all_gather, "attention", is_shared ? 0 : attention(true), 2);
      if (is_shared) attend_backward(list);
      join(list, CollectiveOp::reduce_scatter, "norm", 2 * norm());
      return list;
    }
    list = {kernel(plan_.tensor > 1 ? "MLP" : "", 2 * residual() + mlp(true))};
    join(list, CollectiveOp::all_reduce, "attention", 2 * (residual() + norm()) + (is_shared ? 0 : attention(true)));
    if (is_shared) attend_backward(list);
    join(list, CollectiveOp::all_reduce, "norm", 2 * norm());
    return list;
  }

  const TransformerPlan& plan_;
  const KernelSpeeds& speeds_;
  double tokens_, hidden_, inner_, keys_, ffn_, words_, element_;  // those over t where a rank has its part
  double part_;                                                    // over how many ranks tokens are between products
};

}  // namespace

std::vector<std::vector<std::vector<PlanLayer>>> transformer_layers(const TransformerPlan& plan,
                                                                    const KernelSpeeds& speeds) {
  const LayerWriter writer(plan, speeds);
  const int p = plan.shape.stages, v = plan.shape.chunks;
  const std::int64_t each = plan.card.layers / (std::int64_t{p} * v);
  ensure(each * p * v == plan.card.layers, "every chunk has equally many layers");
  std::vector<std::vector<std::vector<PlanLayer>>> all(static_cast<std::size_t>(p));
  for (int stage = 0; stage < p; ++stage)
    for (int chunk = 0; chunk < v; ++chunk) {
      std::vector<PlanLayer>& layers = all[static_cast<std::size_t>(stage)].emplace_back();
      const std::int64_t place = std::int64_t{chunk} * p + stage;
      if (place == 0) layers.push_back(writer.embedding());
      for (std::int64_t l = place * each; l < (place + 1) * each; ++l) layers.push_back(writer.layer(l));
      if (place + 1 == std::int64_t{p} * v) layers.push_back(writer.head());
    }
  return all;
}

std::int64_t layer_parameters(const TransformerCard& card, int tensor) {
  const std::int64_t inner = card.heads * card.head_dim, keys = card.kv_heads * card.head_dim;
  const std::int64_t products = card.hidden * (2 * inner + 2 * keys + (card.gated ? 3 : 2) * card.ffn) / tensor;
  if (!card.biases) return products + 2 * card.hidden;
  return products + (inner + 2 * keys + card.ffn) / tensor + 2 * card.hidden + 4 * card.hidden;
}

std::int64_t embedding_parameters(const TransformerCard& card, int tensor) {
  return (card.vocabulary + tensor - 1) / tensor * card.hidden;
}

std::int64_t stage_parameters(const TransformerPlan& plan, int stage) {
  std::int64_t all = layer_parameters(plan.card, plan.tensor) * (plan.card.layers / plan.shape.stages);
  const std::int64_t words = embedding_parameters(plan.card, plan.tensor);
  const bool is_first = stage == 0, is_last = stage + 1 == plan.shape.stages;
  if (is_first) all += words + plan.card.positions * plan.card.hidden;
  if (is_last) all += plan.card.hidden * (plan.card.biases ? 2 : 1);
  if (is_last && !(is_first && plan.card.tied)) all += words;
  return all;
}

Bytes layer_activations(const TransformerPlan& plan) {
  const TransformerCard& card = plan.card;
  const std::int64_t tokens = plan.tokens(), e = plan.element_bytes, t = plan.tensor;
  if (plan.recompute == Recompute::full) return {e * tokens * card.hidden / (plan.sequence_parallel ? t : 1)};
  const std::int64_t inner = card.heads * card.head_dim, keys = card.kv_heads * card.head_dim;
  // Inputs of both norms, of the first products and, with dropout, two masks; what a rank has its part of.
  const std::int64_t whole = (4 * e + (card.biases ? 2 : 0)) * card.hidden;
  const std::int64_t divided = e * (2 * inner + 2 * keys + (card.gated ? 3 : 2) * card.ffn);
  std::int64_t scores = 0;  // outputs of softmax and of dropout, and a mask
  if (!plan.flash && plan.recompute == Recompute::none) scores = (2 * e + 1) * card.heads * plan.sequence;
  return {tokens * whole / (plan.sequence_parallel ? t : 1) + tokens * (divided + scores) / t};
}

PlanMemory plan_memory(const TransformerPlan& plan, int stage, const OptimizerBytes& optimizer,
                       const PlanSharding& sharding) {
  const Bytes parameters{stage_parameters(plan, stage)};
  const auto part = [&](int bytes, int of) { return Bytes{((parameters * bytes).count + of - 1) / of}; };
  PlanMemory out{.weights = part(plan.element_bytes, sharding.weights) + sharding.whole_weights,
                 .gradients = part(plan.gradient_bytes, sharding.gradients) + sharding.whole_gradients,
                 .state = part(optimizer.state, sharding.state),
                 .activations = {}};
  const int p = plan.shape.stages, v = plan.shape.chunks;
  const std::int64_t each = plan.card.layers / (std::int64_t{p} * v);
  const auto of_chunk = [&](int chunk) {
    Bytes bytes = layer_activations(plan) * each;
    if (stage + 1 == p && chunk + 1 == v)  // the input of its norm and product, and logits in fp32
      bytes += {std::int64_t{2} * plan.element_bytes * plan.tokens() * plan.card.hidden /
                    (plan.sequence_parallel ? plan.tensor : 1) +
                4 * plan.tokens() * (embedding_parameters(plan.card, plan.tensor) / plan.card.hidden)};
    return bytes;
  };
  Bytes now;
  int alive = 0;
  for (const PipelinePass& pass : pipeline_order(plan.shape, stage)) {
    if (pass.backward)
      now.count -= of_chunk(pass.chunk).count;
    else
      now += of_chunk(pass.chunk);
    alive += pass.backward ? -1 : 1;
    out.activations = std::max(out.activations, now);
    out.in_flight = std::max(out.in_flight, alive);
  }
  if (plan.context > 1) {  // keys and values of whole samples, and their gradients, of the layer that runs
    const std::int64_t keys = plan.card.kv_heads * plan.card.head_dim / plan.tensor;
    out.activations += {std::int64_t{4} * plan.element_bytes * plan.tokens() * plan.context * keys};
  }
  if (plan.recompute == Recompute::full) {
    TransformerPlan kept = plan;
    kept.recompute = Recompute::none;
    out.activations += layer_activations(kept);
  }
  return out;
}

}  // namespace ringsim
