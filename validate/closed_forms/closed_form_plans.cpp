#include "validate/closed_forms/closed_form_plans.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

using Recompute = TransformerPlan::Recompute;

ClosedForm exact(std::string formula, Picoseconds time) {
  return {.formula = std::move(formula), .time = time, .low = time};
}

}  // namespace

namespace {

void expect_short_weights(ClosedForm& form, Picoseconds forward, Picoseconds backward, Picoseconds weights) {
  if (weights > std::min(forward, backward)) form.because.emplace_back("a pass for weights takes longer than another");
}

void expect_short_hops(ClosedForm& form, Picoseconds forward, Picoseconds backward, Picoseconds hop) {
  if (hop > std::min(forward, backward)) form.because.emplace_back("a hop takes longer than a pass");
}

void expect_conditions_of_h2(ClosedForm& form, const PipelineShape& shape, Picoseconds forward, Picoseconds backward,
                             Picoseconds hop, Picoseconds weights) {
  if (shape.micro_batches < 2 * shape.stages - 1) form.because.emplace_back("there are fewer micro-batches than 2p-1");
  expect_short_weights(form, forward, backward, weights);
  expect_short_hops(form, forward, backward, hop);
}

/// How much longer a stage of zero_bubble_h2 waits than the next stage does; negative if it does not wait.
Picoseconds gap_of_h2(Picoseconds both, Picoseconds hop, Picoseconds weights) { return both - 2 * weights + 2 * hop; }

}  // namespace

ClosedForm pipeline_form(const PipelineShape& shape, Picoseconds forward, Picoseconds backward, Picoseconds hop,
                         Picoseconds weights) {
  const int p = shape.stages, m = shape.micro_batches, v = shape.chunks;
  const Picoseconds both = add(forward, backward);
  ClosedForm form;
  if (shape.schedule == PipelineSchedule::zero_bubble_h1) {
    const int hops = p == 1 ? 0 : 2 * (p - 1) - (m == p ? 1 : 0);
    form = exact("m(F+B+W) + (p-1)(F+B-W) + 2c(2(p-1) - [m=p])",
                 m * (both + weights) + (p - 1) * (both - weights) + 2 * hops * hop);
    if (m < p) form.because.emplace_back("there are fewer micro-batches than stages");
    expect_short_weights(form, forward, backward, weights);
    if (2 * hop > weights) form.because.emplace_back("two hops take longer than a pass for weights");
    return form;
  }
  if (shape.schedule == PipelineSchedule::zero_bubble_h2) {
    form = exact("m(F+B+W) + (p-1) max(F+c, F+B-2W+2c)",
                 m * (both + weights) + (p - 1) * std::max(forward + hop, gap_of_h2(both, hop, weights)));
    expect_conditions_of_h2(form, shape, forward, backward, hop, weights);
    return form;
  }
  if (p == 1) return exact("m v(F+B)", m * v * both);
  if (shape.schedule == PipelineSchedule::gpipe) {
    form = exact("m(F+B) + (p-1)(F+B+2c)", m * both + (p - 1) * (both + 2 * hop));
  } else if (shape.schedule == PipelineSchedule::one_f_one_b) {
    const int k = m / p, r = m % p;
    const int hops = (p - 1) * k + p - 2 + (r > 0 ? std::max(1, r - 1) : 0);
    form =
        exact("(m+p-1)(F+B) + 2c((p-1)k + p-2 + [r>0] max(1, r-1)), m = k p + r", (m + p - 1) * both + 2 * hops * hop);
  } else {
    form = exact("m v(F+B) + (p-1)(F+B) + 2c(pv-1)", (m * v + p - 1) * both + 2 * (p * v - 1) * hop);
  }
  expect_short_hops(form, forward, backward, hop);
  return form;
}

ClosedForm pipeline_period_form(const PipelineShape& shape, Picoseconds forward, Picoseconds backward, Picoseconds hop,
                                Picoseconds weights) {
  if (shape.schedule != PipelineSchedule::zero_bubble_h2) return pipeline_form(shape, forward, backward, hop, weights);
  const Picoseconds both = forward + backward, gaps = (shape.stages - 1) * gap_of_h2(both, hop, weights);
  ClosedForm form = exact("m(F+B+W) + max(c, (p-1)(F+B-2W+2c))",
                          shape.micro_batches * (both + weights) + (shape.stages > 1 ? std::max(hop, gaps) : gaps));
  expect_conditions_of_h2(form, shape, forward, backward, hop, weights);
  return form;
}

ClosedForm fully_sharded_form(const DataLayers& layers, bool reshards, int prefetch) {
  const int m = layers.micro_batches, n = layers.layers;
  ensure(n >= 2, "sharded layers are two or more");
  const Picoseconds f = layers.forward, b = layers.backward, a = layers.gather, r = layers.reduce;
  const bool is_ahead = prefetch == 1;
  const Picoseconds forward = is_ahead ? a + (n - 1) * std::max(f, a) + f : n * (a + f);
  const Picoseconds backward = !reshards  ? b + (n - 1) * std::max(b, r) + r
                               : is_ahead ? a + std::max(b, a) + (n - 2) * std::max(b, a + r) + std::max(b, r) + r
                                          : n * (a + b + r);
  ClosedForm form = exact(std::string(is_ahead ? "m(a + (L-1) max(f,a) + f + " : "m(L(a+f) + ") +
                              (!reshards  ? "b + (L-1) max(b,r) + r) + u"
                               : is_ahead ? "a + max(b,a) + (L-2) max(b,a+r) + max(b,r) + r) + u"
                                          : "L(a+b+r)) + u"),
                          m * (forward + backward) + layers.update);
  if (prefetch < 0 || prefetch > 1) form.because.emplace_back("layers are gathered more than one ahead");
  return form;
}

ClosedForm overlapped_reduction_form(const DataLayers& layers) {
  const int m = layers.micro_batches, n = layers.layers;
  ensure(n >= 2, "layers of a step are two or more");
  const Picoseconds passes = m * n * (layers.forward + layers.backward);
  const Picoseconds behind = (n - 1) * std::max(Picoseconds{0}, layers.reduce - layers.backward);
  return exact("m L(f+b) + r + (L-1) max(0,r-b) + u", passes + layers.reduce + behind + layers.update);
}

ClosedForm ring_attention_form(const RingLayer& layer) {
  ensure(layer.ranks >= 2, "a ring has two ranks");
  const int n = layer.ranks;
  const Picoseconds f = layer.forward, b = layer.backward;
  return exact("(n-1) max(f,c) + f + 2 max(b,c) + (n-2) max(b,c2) + n s",
               (n - 1) * std::max(f, layer.hop) + f + 2 * std::max(b, layer.hop) +
                   (n - 2) * std::max(b, layer.double_hop) + n * layer.sum);
}

namespace {

/// (n-1)/n of a buffer.
Bytes part_sent(int n, std::int64_t bytes) {
  ensure(bytes % n == 0, "buffers of a plan's form divide evenly");
  return Bytes{bytes / n * (n - 1)};
}

/// Parameters of a rank of a stage: all but experts that are reduced among other ranks; those experts.
struct Parameters {
  std::int64_t all = 0, experts = 0;
};

/// A layer's parameters: over t the matrices of Q, K, V and O, h(2 a d + 2 k d), and of the MLP, 2 h f or, gated, 3 h
/// f, with their biases but for those of the two reduced outputs; whole these two and both norms.
std::int64_t parameters_of_layer(const TransformerCard& card, int tensor, std::int64_t ffn) {
  const std::int64_t h = card.hidden, inner = card.heads * card.head_dim, keys = card.kv_heads * card.head_dim;
  const std::int64_t matrices = h * (2 * inner + 2 * keys + (card.gated ? 3 : 2) * ffn);
  if (!card.biases) return matrices / tensor + 2 * h;
  return (matrices + inner + 2 * keys + ffn) / tensor + 6 * h;
}

/// Layers of a stage, and those of them with experts. Counted by dealing out embedding, layers and loss, those that
/// count, in equal hands.
struct StageLayers {
  std::int64_t all = 0, routed = 0;
};

StageLayers layers_in(const TransformerPlan& model, int stage) {
  const std::int64_t before = model.embedding_is_layer ? 1 : 0, behind = model.loss_is_layer ? 1 : 0;
  const std::int64_t dealt = before + model.card.layers + behind;
  const std::int64_t each = dealt / (std::int64_t{model.shape.stages} * model.shape.chunks);
  StageLayers out;
  for (std::int64_t i = before; i < dealt - behind; ++i) {
    if (i / each % model.shape.stages != stage) continue;
    ++out.all;
    if (model.card.experts > 0 && i - before >= model.card.dense_layers) ++out.routed;
  }
  return out;
}

Parameters parameters_of(const TransformerPlan& model, int stage) {
  const TransformerCard& card = model.card;
  const int t = model.tensor, p = model.shape.stages;
  const auto [layers, routed] = layers_in(model, stage);
  const std::int64_t dense = layers - routed;
  const std::int64_t experts = routed * (card.experts / model.expert) * card.hidden * (card.gated ? 3 : 2) *
                               card.expert_ffn / model.expert_tensor;
  const std::int64_t words = (card.vocabulary + t - 1) / t * card.hidden;
  const bool is_first = stage == 0, is_last = stage + 1 == p;
  Parameters out;
  out.all = dense * parameters_of_layer(card, t, card.ffn) +
            routed * (parameters_of_layer(card, t, 0) + card.hidden * card.experts);
  if (is_first) out.all += words + card.positions * card.hidden;
  if (is_last) out.all += (is_first && card.tied ? 0 : words) + card.hidden * (card.biases ? 2 : 1);
  const bool are_apart = model.expert > 1 || model.expert_tensor != t;
  (are_apart ? out.experts : out.all) += experts;
  return out;
}

Bytes tensor_volume(const TransformerPlan& model, int stage, std::int64_t whole) {
  const int t = model.tensor, p = model.shape.stages;
  const auto [layers, routed] = layers_in(model, stage);
  const std::int64_t m = model.shape.micro_batches;
  const Bytes part = part_sent(t, whole);  // of a reduce_scatter or an all_gather
  const bool again = model.recompute == Recompute::full, is_split = model.sequence_parallel;
  // Half of a layer: attention, or the MLP.
  const std::int64_t half = 4 + (again ? 2 : 0) + (is_split ? 1 : 0);
  Bytes sent = part * (half * (2 * layers - routed));
  if (model.expert_tensor > 1) {
    const std::int64_t tokens = model.sequence / model.context * model.micro_batch;
    const std::int64_t copies = model.element_bytes * tokens * model.card.top_k * model.card.hidden;
    sent += part_sent(t, copies) * ((again ? 6 : 4) * routed);
  }
  if (stage == 0) sent += part * 2;
  if (stage + 1 == p)
    sent += part * (is_split ? 3 : 2) + part_sent(t, 4 * model.sequence / model.context * model.micro_batch) * 6;
  return sent * m;
}

Bytes data_volume(const PlanTraining& plan, int stage) {
  const PlanSpec& program = plan.program;
  const TransformerPlan& model = plan.model;
  const int d = program.grid.data(), experts_on = model.tensor * d / (model.expert_tensor * model.expert);
  const Parameters its = parameters_of(model, stage);
  const std::int64_t g = model.gradient_bytes, w = model.element_bytes, m = model.shape.micro_batches;
  const bool is_staged = model.shape.stages > 1;
  std::int64_t each = 0;  // bytes of a parameter that are gathered or reduce_scattered
  switch (program.shard) {
    case PlanShard::none:
      each = 2 * g;
      break;
    case PlanShard::optimizer:
      each = g + w;
      break;
    case PlanShard::optimizer_gradients:
      each = m * g + w;
      break;
    case PlanShard::full:
      each = is_staged ? g + w : m * (g + (program.reshards ? 2 : 1) * w);
      break;
  }
  return part_sent(d, its.all * each) + part_sent(experts_on, its.experts * each);
}

void expect_plain(const PlanTraining& plan) {
  const TransformerPlan& model = plan.model;
  ensure(model.shape.stages == 1 || !model.card.tied, "the form of a plan has an embedding on each of two stages");
  ensure(plan.program.shard_group == 0 && model.imbalance == 1 && model.card.shared_ffn == 0,
         "the form of a plan has no replicas, imbalance or shared expert");
  ensure(plan.program.shard != PlanShard::full || model.shape.stages == 1 || !plan.program.reshards,
         "the form of a sharded pipeline keeps its weights");
}

}  // namespace

PlanVolumes plan_volumes(const PlanTraining& plan, int stage) {
  expect_plain(plan);
  const TransformerPlan& model = plan.model;
  const TransformerCard& card = model.card;
  const int p = model.shape.stages, v = model.shape.chunks, t = model.tensor, c = model.context;
  const std::int64_t m = model.shape.micro_batches;
  const std::int64_t tokens = model.sequence / c * model.micro_batch, e = model.element_bytes;
  const std::int64_t whole = e * tokens * card.hidden, own = model.sequence_parallel ? whole / t : whole;
  const int again = model.recompute == Recompute::full ? 1 : 0;
  PlanVolumes out;
  if (t > 1) out.tensor = tensor_volume(model, stage, whole);
  if (p > 1) {
    const std::int64_t passes = m * (2 * v - (stage == 0 ? 1 : 0) - (stage + 1 == p ? 1 : 0));
    const bool is_scattered = plan.program.scatters;
    out.pipeline = Bytes{is_scattered ? whole / t : own} * passes;
    if (is_scattered) out.tensor += part_sent(t, whole) * passes;
  }
  out.data = data_volume(plan, stage);
  const std::int64_t keys_and_values = 2 * e * tokens * c * card.kv_heads * card.head_dim / t;
  const int key_uses = model.recompute == Recompute::none ? 3 : 4;
  out.context = part_sent(c, keys_and_values) * (m * key_uses * layers_in(model, stage).all);
  if (model.expert > 1)
    out.expert = part_sent(model.expert, own * card.top_k) * (m * (4 + 2 * again) * layers_in(model, stage).routed);
  return out;
}

namespace {

/// s b h times what the published equations have in brackets.
Bytes layer_memory(const TransformerPlan& model, Recompute recompute) {
  const std::int64_t s = model.sequence / model.context, h = model.card.hidden, t = model.tensor;
  const std::int64_t sbh = s * model.micro_batch * h;
  const bool is_split = model.sequence_parallel;
  if (recompute == Recompute::full) return Bytes{2 * sbh / (is_split ? t : 1)};
  const std::int64_t scores = model.flash || recompute == Recompute::selective
                                  ? 0
                                  : 5 * model.card.heads * model.sequence * s * model.micro_batch / t;
  return Bytes{(is_split ? 10 * sbh / t : 10 * sbh) + 24 * sbh / t + scores};
}

/// Chunks in flight at a stage.
std::int64_t chunks_in_flight(const PipelineShape& shape, int stage) {
  const int p = shape.stages, v = shape.chunks, m = shape.micro_batches, left = p - stage - 1;
  if (shape.schedule == PipelineSchedule::gpipe) return m;
  if (shape.schedule == PipelineSchedule::one_f_one_b) return std::min(left + 1, m);
  if (shape.schedule == PipelineSchedule::zero_bubble_h1) return std::min(p, m);
  if (shape.schedule == PipelineSchedule::zero_bubble_h2) return std::min(2 * p - 1, m);
  return std::min(2 * left + (v - 1) * p + 1, m * v);
}

}  // namespace

PlanMemory plan_memory_form(const PlanTraining& plan, int optimizer_state, int stage) {
  expect_plain(plan);
  const TransformerPlan& model = plan.model;
  const TransformerCard& card = model.card;
  const PlanShard shard = plan.program.shard;
  const int p = model.shape.stages, v = model.shape.chunks, d = plan.program.grid.data(), t = model.tensor;
  const std::int64_t e = model.element_bytes, g = model.gradient_bytes;
  ensure(card.biases && card.ffn == 4 * card.hidden && card.heads * card.head_dim == card.hidden &&
             card.kv_heads == card.heads && card.experts == 0 && e == 2,
         "the form of a plan's memory is that of a GPT in 16 bits");
  ensure(!model.embedding_is_layer && !model.loss_is_layer, "the form of a plan's memory has equal chunks");
  ensure(shard != PlanShard::full || (p == 1 && plan.program.reshards && plan.program.prefetch == 1),
         "the form of fully sharded memory has one stage and gathers again");
  const std::int64_t parameters = parameters_of(model, stage).all;
  const auto part = [&](std::int64_t bytes, bool is_divided) {
    const int of = is_divided ? d : 1;
    return Bytes{(bytes * parameters + of - 1) / of};
  };
  const std::int64_t two_layers = 2 * parameters_of_layer(card, t, card.ffn);
  PlanMemory out;
  out.weights = part(e, shard == PlanShard::full);
  out.gradients = part(g, shard >= PlanShard::optimizer_gradients);
  out.state = part(optimizer_state, shard != PlanShard::none);
  if (shard == PlanShard::optimizer_gradients && d > 1) out.gradients += Bytes{g * parameters};
  if (shard == PlanShard::full && d > 1) {
    out.weights += Bytes{e * two_layers};
    out.gradients += Bytes{g * two_layers};
  }

  const std::int64_t tokens = model.sequence / model.context * model.micro_batch;
  const std::int64_t n = chunks_in_flight(model.shape, stage);
  out.in_flight = static_cast<int>(n);
  out.activations = layer_memory(model, model.recompute) * (n * card.layers / (std::int64_t{p} * v));
  if (stage + 1 == p) {  // whose last chunk is in flight: of several chunks, and in turns, one
    const bool are_kept = model.shape.schedule == PipelineSchedule::gpipe || model.shape.splits_backward();
    const std::int64_t last = are_kept ? n : 1;
    const std::int64_t vectors = 4 * tokens * card.hidden / (model.sequence_parallel ? t : 1);
    out.activations += Bytes{vectors + 4 * tokens * ((card.vocabulary + t - 1) / t)} * last;
  }
  if (model.context > 1 && model.ring)
    out.activations += Bytes{std::max(std::int64_t{6} * model.context, std::int64_t{20}) * tokens * card.hidden / t};
  if (model.context > 1 && !model.ring) out.activations += Bytes{8 * tokens * model.context * card.hidden / t};
  if (model.recompute == Recompute::full) out.activations += layer_memory(model, Recompute::none);
  return out;
}

}  // namespace ringsim
