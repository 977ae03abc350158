#include "algorithms/training/transformer_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "algorithms/training/ring_attention.hpp"
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
        shared_(real(plan.card.shared_ffn / plan.tensor)),
        words_(real(embedding_parameters(plan.card, plan.tensor) / plan.card.hidden)),
        element_(real(plan.element_bytes)),
        part_(plan.sequence_parallel ? real(plan.tensor) : 1) {}

  PlanLayer layer(std::int64_t number) const {
    const bool has_experts = plan_.card.has_experts(number);
    PlanLayer out{.name = fmt::format("layers.{}", number),
                  .parameters = layer_parameters(plan_.card, plan_.tensor),
                  .forward = {},
                  .recompute = {},
                  .backward = {}};
    if (has_experts) {
      out.parameters = routed_layer_parameters(plan_.card, plan_.tensor);
      (plan_.has_experts_apart() ? out.expert_parameters : out.parameters) += expert_parameters(plan_);
    }
    out.forward = forward(has_experts);
    if (plan_.recompute == Recompute::full) out.recompute = out.forward;
    if (plan_.recompute == Recompute::selective) out.recompute = recomputed_core();
    out.backward = backward(has_experts);
    if (plan_.shape.splits_backward()) out.weights = weights();
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
    const bool splits = plan_.shape.splits_backward();
    if (splits) out.weights = {kernel("", plan_.sequence_parallel ? 0 : scatter)};
    if (plan_.sequence_parallel)
      join(splits ? out.weights : out.backward, CollectiveOp::all_gather, "rest", scatter);
    else if (!splits)
      out.backward = {kernel("", drop + scatter)};
    return out;
  }

  PlanLayer head() const {
    PlanLayer out{.name = "head", .parameters = 0, .forward = {}, .recompute = {}, .backward = {}};
    out.parameters = plan_.card.hidden * (plan_.card.biases ? 2 : 1) +
                     (plan_.card.tied ? 0 : embedding_parameters(plan_.card, plan_.tensor));
    const double loss = moved(14 * tokens_ * words_), loss_back = moved(6 * tokens_ * words_);
    const double product = gemm(tokens_, words_, hidden_);
    const double n = products(true);
    if (plan_.shape.splits_backward()) out.weights = {kernel("", product)};
    if (plan_.tensor == 1) {
      out.forward = {kernel("", norm() + product + loss)};
      out.backward = {kernel("", loss_back + n * product + 2 * norm())};
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
      if (plan_.shape.splits_backward()) {
        append(out.backward, product);
        out.weights = {kernel("", 0)};
        join(out.weights, CollectiveOp::all_gather, "rest", product);
      } else {
        join(out.backward, CollectiveOp::all_gather, "", 2 * product);
      }
      join(out.backward, CollectiveOp::reduce_scatter, "norm", 2 * norm());
    } else {
      out.backward = {kernel("", loss_back + n * product)};
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

  /// How often a pass has each matrix product: backward for gradients of inputs and of weights, if these have no pass
  /// of their own.
  double products(bool is_backward) const { return is_backward && !plan_.shape.splits_backward() ? 2 : 1; }
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
    return products(is_backward) * products_of_attention() + transposes(is_backward) + core(is_backward);
  }
  double products_of_attention() const { return gemm(tokens_, inner_ + 2 * keys_, hidden_) + output(); }
  double transposes(bool is_backward) const { return (is_backward ? 2 : 1) * moved(6 * element_ * tokens_ * inner_); }
  double projections(bool is_backward) const {
    return products(is_backward) * gemm(tokens_, inner_ + 2 * keys_, hidden_) + transposes(is_backward);
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

  // A ring. Bytes of a rank's keys and values, or of their gradients.
  double block() const { return 2 * element_ * tokens_ * keys_; }
  /// Those of the rank that moves the most: the last one has steps with all queries and half of a block, the first one
  /// with half of the queries and all of a block.
  double step_core(int step, bool is_backward) const {
    const int n = plan_.context;
    const double operations = 4 * tokens_ * real(plan_.sequence) * inner_ / 2 / n;
    double bytes = 0;
    for (const int rank : {0, n - 1}) {
      const RingStepParts parts = ring_step_parts(n, rank, step);
      bytes = std::max(bytes, 2 * element_ * tokens_ * (parts.queries * inner_ + parts.keys * keys_));
    }
    return (is_backward ? 2.5 : 1) * std::max(operations / speeds_.attention, moved(bytes));
  }
  void hop(std::vector<PlanKernel>& list, PlanUse use, int blocks) const {
    const std::int64_t keys = plan_.card.kv_heads * plan_.card.head_dim / plan_.tensor;
    const Bytes bytes{plan_.element_bytes * plan_.tokens() * 2 * keys * blocks};
    list.push_back({.name = {}, .op = CollectiveOp::send_recv, .bytes = bytes, .use = use});
  }
  void of_ring(std::vector<PlanKernel>& list, PlanUse use, const std::string& name, double seconds) const {
    list.push_back(kernel(name, seconds));
    list.back().use = use;
  }
  /// The last kernel of the list copies keys and values into one buffer; the one after the ring sums up results.
  void ring_forward(std::vector<PlanKernel>& list, const char* name, double seconds) const {
    const int n = plan_.context;
    append(list, moved(2 * block()));
    for (int step = 0; step < n; ++step) {
      if (step + 1 < n) hop(list, PlanUse::ring, 1);
      of_ring(list, PlanUse::ring, fmt::format("core {}", step), step_core(step, false));
    }
    list.push_back(kernel(name, moved(element_ * tokens_ * inner_ * (3 * n - 1)) + seconds));
  }
  void ring_backward(std::vector<PlanKernel>& list, const char* name, double seconds) const {
    const int n = plan_.context;
    append(list, moved(2 * block()));
    for (int i = 0; i < n; ++i) {
      const int accesses = i == 0 ? 2 : 3;  // a copy, or a sum
      hop(list, PlanUse::ring_back, i == 0 || i + 1 == n ? 1 : 2);
      of_ring(list, PlanUse::ring_back, fmt::format("core {}", n - 1 - i),
              step_core(n - 1 - i, true) + moved(accesses * element_ * tokens_ * inner_));
      of_ring(list, PlanUse::ring_back, fmt::format("sum {}", n - 1 - i), moved(accesses * block()));
    }
    list.push_back(kernel(name, seconds));
  }

  /// The attention of ranks that share samples. Its first part belongs to the last kernel of the list.
  void attend(std::vector<PlanKernel>& list) const {
    list.back().time = add(list.back().time, kernel("", projections(false)).time);
    if (plan_.ring) return ring_forward(list, "output", output());
    exchange_keys(list, CollectiveOp::all_gather, "core", core(false) + output());
  }
  void attend_backward(std::vector<PlanKernel>& list) const {
    list.back().time = add(list.back().time, kernel("", products(true) * output()).time);
    if (plan_.ring) return ring_backward(list, "projections", projections(true));
    exchange_keys(list, CollectiveOp::all_gather, "core", core(true));
    exchange_keys(list, CollectiveOp::reduce_scatter, "projections", projections(true));
  }
  std::vector<PlanKernel> recomputed_core() const {
    if (plan_.context == 1) return {kernel("core", core(false))};
    std::vector<PlanKernel> list{kernel("keys", 0)};
    if (plan_.ring) {
      ring_forward(list, "result", 0);
      return list;
    }
    exchange_keys(list, CollectiveOp::all_gather, "core", core(false));
    return list;
  }

  double mlp(bool is_backward) const { return mlp_of(ffn_, is_backward); }
  double mlp_of(double inner, bool is_backward) const {
    const double up = plan_.card.gated ? 2 : 1;
    const double activation = (plan_.card.gated ? 3 : plan_.card.biases ? 4 : 2) * element_ * tokens_ * inner;
    return products(is_backward) * (gemm(tokens_, up * inner, hidden_) + gemm(tokens_, hidden_, inner)) +
           (is_backward ? 2 : 1) * moved(activation);
  }
  double products_of_mlp() const {
    return gemm(tokens_, (plan_.card.gated ? 2 : 1) * ffn_, hidden_) + gemm(tokens_, hidden_, ffn_);
  }

  // Experts. Copies of tokens: those that a rank sends, and those that its experts meet.

  double top_k() const { return real(plan_.card.top_k); }
  double met() const { return tokens_ * top_k() * plan_.imbalance * plan_.expert_tensor / plan_.tensor; }
  double router() const {
    const double scores = real(plan_.card.experts);
    return gemm(tokens_ / part_, scores, hidden_) + moved(8 * scores * tokens_ / part_);
  }
  /// Copies a token for each of its experts, or sums what they have made of it.
  double copies() const { return moved(element_ * hidden_ * tokens_ / part_ * (1 + top_k())); }
  double order() const { return plan_.card.experts > plan_.expert ? moved(2 * element_ * hidden_ * met()) : 0; }
  double grouped(double n, double k) const {
    const double weights = real(plan_.card.experts / plan_.expert) * k * n;
    return std::max(2 * met() * n * k / speeds_.gemm, moved(element_ * (met() * (k + n) + weights)));
  }
  double experts(bool is_backward) const {
    const double inner = real(plan_.card.expert_ffn / plan_.expert_tensor);
    return 2 * order() +
           (is_backward ? 2 : 1) * (grouped((plan_.card.gated ? 2 : 1) * inner, hidden_) + grouped(hidden_, inner) +
                                    moved((plan_.card.gated ? 3 : 2) * element_ * met() * inner));
  }

  static Bytes rounded(double bytes) { return Bytes{std::llround(bytes)}; }
  void exchange_tokens(std::vector<PlanKernel>& list, const char* name) const {
    if (plan_.expert == 1) return;
    list.push_back({.name = {},
                    .op = CollectiveOp::all_to_all,
                    .bytes = rounded(element_ * hidden_ * tokens_ / part_ * top_k() * plan_.imbalance),
                    .use = PlanUse::expert});
    list.push_back(kernel(name, 0));
  }
  void share_tokens(std::vector<PlanKernel>& list, CollectiveOp op, const char* name) const {
    if (plan_.expert_tensor == 1) return;
    list.push_back({.name = {}, .op = op, .bytes = rounded(element_ * hidden_ * met())});
    list.push_back(kernel(name, 0));
  }
  static void append(std::vector<PlanKernel>& list, double seconds) {
    list.back().time = add(list.back().time, kernel("", seconds).time);
  }

  /// Sends tokens, or gradients, to experts and brings back their results. Kernels before and after it take the copies.
  void meet_experts(std::vector<PlanKernel>& list, bool is_backward) const {
    append(list, copies());
    exchange_tokens(list, plan_.expert_tensor > 1 ? "tokens" : "experts");
    share_tokens(list, CollectiveOp::all_gather, "experts");
    append(list, experts(is_backward));
    share_tokens(list, CollectiveOp::reduce_scatter, "answers");
    exchange_tokens(list, !is_backward ? "residual" : plan_.tensor > 1 ? "router" : "attention");
    append(list, copies());
  }
  /// The expert that all tokens meet.
  void meet_shared(std::vector<PlanKernel>& list, bool is_backward) const {
    if (plan_.card.shared_ffn == 0) return;
    join(list, CollectiveOp::all_gather, "shared expert", mlp_of(shared_, is_backward), is_backward ? 2 : 1);
    join(list, CollectiveOp::reduce_scatter, "residual", 0);
  }
  void mix_experts(std::vector<PlanKernel>& list) const {
    append(list, router());
    meet_experts(list, false);
    meet_shared(list, false);
    append(list, residual());
  }
  std::vector<PlanKernel> unmix_experts() const {
    std::vector<PlanKernel> list{kernel(plan_.tensor * plan_.expert > 1 ? "residual" : "", 2 * residual())};
    meet_shared(list, true);
    meet_experts(list, true);
    append(list, 2 * (router() + residual() + norm()));
    return list;
  }

  std::vector<PlanKernel> forward(bool with_experts) const {
    std::vector<PlanKernel> list;
    const bool is_shared = plan_.context > 1;
    if (plan_.sequence_parallel) {
      list = {kernel("norm", norm())};
      join(list, CollectiveOp::all_gather, "attention", is_shared ? 0 : attention(false));
      if (is_shared) attend(list);
      join(list, CollectiveOp::reduce_scatter, "residual", residual() + norm());
      if (with_experts) {
        mix_experts(list);
        return list;
      }
      join(list, CollectiveOp::all_gather, "MLP", mlp(false));
      join(list, CollectiveOp::reduce_scatter, "residual", residual());
      return list;
    }
    const bool is_apart = plan_.tensor > 1 || is_shared || (with_experts && plan_.expert > 1);
    list = {kernel(is_apart ? "attention" : "", norm() + (is_shared ? 0 : attention(false)))};
    if (is_shared) attend(list);
    if (with_experts) {
      append(list, residual() + norm());
      mix_experts(list);
      return list;
    }
    join(list, CollectiveOp::all_reduce, "MLP", residual() + norm() + mlp(false));
    join(list, CollectiveOp::all_reduce, "residual", residual());
    return list;
  }

  std::vector<PlanKernel> backward(bool with_experts) const {
    std::vector<PlanKernel> list;
    const bool is_shared = plan_.context > 1;
    const int gathers = plan_.shape.splits_backward() ? 1 : 2;  // of gradients, and of the inputs of products
    if (with_experts) list = unmix_experts();
    if (plan_.sequence_parallel) {
      if (!with_experts) {
        list = {kernel("residual", 2 * residual())};
        join(list, CollectiveOp::all_gather, "MLP", mlp(true), gathers);
        join(list, CollectiveOp::reduce_scatter, "residual", 2 * (residual() + norm()));
      }
      join(list, CollectiveOp::all_gather, "attention", is_shared ? 0 : attention(true), gathers);
      if (is_shared) attend_backward(list);
      join(list, CollectiveOp::reduce_scatter, "norm", 2 * norm());
      return list;
    }
    if (with_experts) {
      append(list, is_shared ? 0 : attention(true));
    } else {
      list = {kernel(plan_.tensor > 1 ? "MLP" : "", 2 * residual() + mlp(true))};
      join(list, CollectiveOp::all_reduce, "attention", 2 * (residual() + norm()) + (is_shared ? 0 : attention(true)));
    }
    if (is_shared) attend_backward(list);
    join(list, CollectiveOp::all_reduce, "norm", 2 * norm());
    return list;
  }

  /// Gradients of weights apart: each product once more, with its inputs gathered again.
  std::vector<PlanKernel> weights() const {
    std::vector<PlanKernel> list{kernel("", 0)};
    if (!plan_.sequence_parallel) return {kernel("", products_of_mlp() + products_of_attention())};
    join(list, CollectiveOp::all_gather, "MLP", products_of_mlp());
    join(list, CollectiveOp::all_gather, "attention", products_of_attention());
    return list;
  }

  const TransformerPlan& plan_;
  const KernelSpeeds& speeds_;
  double tokens_, hidden_, inner_, keys_, ffn_, shared_, words_, element_;  // those over t where a rank has its part
  double part_;  // over how many ranks tokens are between products
};

}  // namespace

bool needs_embedding_and_loss(std::int64_t layers, std::int64_t chunks) {
  return chunks > 1 && layers % chunks != 0 && (layers + 2) % chunks == 0;
}

LayerRange layers_of(const TransformerPlan& plan, int stage, int chunk) {
  const std::int64_t places = std::int64_t{plan.shape.stages} * plan.shape.chunks,
                     place = std::int64_t{chunk} * plan.shape.stages + stage, each = plan.all_layers() / places;
  ensure(each * places == plan.all_layers(), "every chunk has equally many layers, embedding and loss counted or not");
  const std::int64_t before = plan.embedding_is_layer ? 1 : 0;  // in the place of the first layer
  return {.first = place == 0 ? 0 : place * each - before,
          .end = std::min((place + 1) * each - before, plan.card.layers)};
}

std::vector<std::vector<std::vector<PlanLayer>>> transformer_layers(const TransformerPlan& plan,
                                                                    const KernelSpeeds& speeds) {
  ensure(!plan.ring || (plan.context > 1 && plan.flash), "a ring has context ranks and flash kernels");
  const LayerWriter writer(plan, speeds);
  const int p = plan.shape.stages, v = plan.shape.chunks;
  std::vector<std::vector<std::vector<PlanLayer>>> all(static_cast<std::size_t>(p));
  for (int stage = 0; stage < p; ++stage)
    for (int chunk = 0; chunk < v; ++chunk) {
      std::vector<PlanLayer>& layers = all[static_cast<std::size_t>(stage)].emplace_back();
      const std::int64_t place = std::int64_t{chunk} * p + stage;
      if (place == 0) layers.push_back(writer.embedding());
      const LayerRange range = layers_of(plan, stage, chunk);
      for (std::int64_t l = range.first; l < range.end; ++l) layers.push_back(writer.layer(l));
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

std::int64_t routed_layer_parameters(const TransformerCard& card, int tensor) {
  TransformerCard rest = card;
  rest.ffn = card.shared_ffn;
  return layer_parameters(rest, tensor) + card.hidden * card.experts;
}

std::int64_t expert_parameters(const TransformerPlan& plan) {
  const TransformerCard& card = plan.card;
  return card.experts / plan.expert * card.hidden * (card.gated ? 3 : 2) * card.expert_ffn / plan.expert_tensor;
}

namespace {

/// Layers with experts, of a chunk of a stage.
std::int64_t routed_layers(const TransformerPlan& plan, int stage, int chunk) {
  if (plan.card.experts == 0) return 0;
  const LayerRange range = layers_of(plan, stage, chunk);
  return std::clamp<std::int64_t>(range.end - plan.card.dense_layers, 0, range.count());
}
std::int64_t routed_layers(const TransformerPlan& plan, int stage) {
  std::int64_t all = 0;
  for (int chunk = 0; chunk < plan.shape.chunks; ++chunk) all += routed_layers(plan, stage, chunk);
  return all;
}
std::int64_t stage_layers(const TransformerPlan& plan, int stage) {
  std::int64_t all = 0;
  for (int chunk = 0; chunk < plan.shape.chunks; ++chunk) all += layers_of(plan, stage, chunk).count();
  return all;
}

}  // namespace

std::int64_t embedding_parameters(const TransformerCard& card, int tensor) {
  return (card.vocabulary + tensor - 1) / tensor * card.hidden;
}

std::int64_t stage_parameters(const TransformerPlan& plan, int stage) {
  const std::int64_t routed = routed_layers(plan, stage);
  std::int64_t all = layer_parameters(plan.card, plan.tensor) * (stage_layers(plan, stage) - routed);
  if (routed > 0) all += (routed_layer_parameters(plan.card, plan.tensor) + expert_parameters(plan)) * routed;
  const std::int64_t words = embedding_parameters(plan.card, plan.tensor);
  const bool is_first = stage == 0, is_last = stage + 1 == plan.shape.stages;
  if (is_first) all += words + plan.card.positions * plan.card.hidden;
  if (is_last) all += plan.card.hidden * (plan.card.biases ? 2 : 1);
  if (is_last && !(is_first && plan.card.tied)) all += words;
  return all;
}

std::int64_t stage_expert_parameters(const TransformerPlan& plan, int stage) {
  return plan.has_experts_apart() ? expert_parameters(plan) * routed_layers(plan, stage) : 0;
}

namespace {

/// Bytes of a layer's experts that a rank keeps of a micro-batch.
std::int64_t expert_activations(const TransformerPlan& plan) {
  const TransformerCard& card = plan.card;
  const std::int64_t own = plan.tokens() / (plan.sequence_parallel ? plan.tensor : 1);
  const double copies = plan.imbalance * real(card.top_k * own * plan.expert_tensor);
  const std::int64_t inner = (card.gated ? 3 : 2) * card.expert_ffn / plan.expert_tensor;
  return 4 * card.experts * own + std::llround(copies * real(plan.element_bytes * (card.hidden + inner)));
}

}  // namespace

Bytes layer_activations(const TransformerPlan& plan, bool with_experts) {
  const TransformerCard& card = plan.card;
  const std::int64_t tokens = plan.tokens(), e = plan.element_bytes, t = plan.tensor;
  if (plan.recompute == Recompute::full) return {e * tokens * card.hidden / (plan.sequence_parallel ? t : 1)};
  const std::int64_t inner = card.heads * card.head_dim, keys = card.kv_heads * card.head_dim;
  // Inputs of both norms, of the first products and, with dropout, two masks; what a rank has its part of.
  const std::int64_t whole = (4 * e + (card.biases ? 2 : 0)) * card.hidden;
  const std::int64_t ffn = with_experts ? card.shared_ffn : card.ffn;
  const std::int64_t divided = e * (2 * inner + 2 * keys + (card.gated ? 3 : 2) * ffn);
  std::int64_t scores = 0;  // outputs of softmax and of dropout, and a mask
  if (!plan.flash && plan.recompute == Recompute::none) scores = (2 * e + 1) * card.heads * plan.sequence;
  return {tokens * whole / (plan.sequence_parallel ? t : 1) + tokens * (divided + scores) / t +
          (with_experts ? expert_activations(plan) : 0)};
}

Bytes context_buffers(const TransformerPlan& plan) {
  if (plan.context == 1) return {};
  const TransformerCard& card = plan.card;
  const std::int64_t inner = card.heads * card.head_dim / plan.tensor,
                     keys = card.kv_heads * card.head_dim / plan.tensor;
  const Bytes token{plan.element_bytes * plan.tokens()};  // an element of each token of the rank
  if (!plan.ring) return token * (std::int64_t{4} * plan.context * keys);
  return std::max(token * ((2 * keys + inner) * plan.context), token * (10 * keys));
}

PlanMemory plan_memory(const TransformerPlan& plan, int stage, const OptimizerBytes& optimizer,
                       const PlanSharding& sharding) {
  const Bytes parameters{stage_parameters(plan, stage)}, experts{stage_expert_parameters(plan, stage)};
  const auto part_of = [](Bytes what, int bytes, int of) { return Bytes{((what * bytes).count + of - 1) / of}; };
  const auto part = [&](int bytes, int of) { return part_of(parameters, bytes, of); };
  PlanMemory out{.weights = part(plan.element_bytes, sharding.weights) + sharding.whole_weights,
                 .gradients = part(plan.gradient_bytes, sharding.gradients) + sharding.whole_gradients,
                 .state = part_of(parameters - experts, optimizer.state, sharding.state) +
                          part_of(experts, optimizer.state, sharding.expert_state),
                 .activations = {}};
  const int p = plan.shape.stages, v = plan.shape.chunks;
  const auto of_chunk = [&](int chunk) {
    const std::int64_t routed = routed_layers(plan, stage, chunk);
    Bytes bytes = layer_activations(plan) * (layers_of(plan, stage, chunk).count() - routed);
    if (routed > 0) bytes += layer_activations(plan, true) * routed;
    if (stage + 1 == p && chunk + 1 == v)  // the input of its norm and product, and logits in fp32
      bytes += {std::int64_t{2} * plan.element_bytes * plan.tokens() * plan.card.hidden /
                    (plan.sequence_parallel ? plan.tensor : 1) +
                4 * plan.tokens() * (embedding_parameters(plan.card, plan.tensor) / plan.card.hidden)};
    return bytes;
  };
  Bytes now;
  int alive = 0;
  for (const PipelinePass& pass : pipeline_order(plan.shape, stage)) {
    const bool begins = !pass.backward && !pass.weights;
    if (pass.is_last_of(plan.shape)) now.count -= of_chunk(pass.chunk).count;
    if (begins) now += of_chunk(pass.chunk);
    alive += (begins ? 1 : 0) - (pass.is_last_of(plan.shape) ? 1 : 0);
    out.activations = std::max(out.activations, now);
    out.in_flight = std::max(out.in_flight, alive);
  }
  out.activations += context_buffers(plan);
  if (plan.recompute == Recompute::full) {
    TransformerPlan kept = plan;
    kept.recompute = Recompute::none;
    out.activations += layer_activations(kept, routed_layers(plan, stage) > 0);
  }
  return out;
}

}  // namespace ringsim
