// The closed forms of plans: steps of pipelines and of sharded layers, bytes that each rank sends, memory.
#pragma once

#include "algorithms/training/pipeline_order.hpp"
#include "scenarios/scenario.hpp"
#include "validate/closed_forms/closed_form.hpp"

namespace ringsim {

/// The passes of equal stages: p stages of v chunks, m micro-batches, F and B of a chunk, `hop` = c from a stage to the
/// next. Exact, if c <= min(F, B); longer hops would wait for each other.
///
/// gpipe: m(F+B) + (p-1)(F+B+2c) (Huang et al., NeurIPS 2019: the bubble is (p-1)/(m+p-1) of it with c = 0). 1f1b:
/// (m+p-1)(F+B) + 2c((p-1)k + p-2 + [r>0] max(1, r-1)), m = k p + r: the same bubble (Narayanan et al., SC 2021,
/// section 2.2.1), and each group of p micro-batches waits for its hops. Interleaved, p | m: m v(F+B) + (p-1)(F+B) +
/// 2c(pv-1): the bubble of section 2.2.2, and the hops of one micro-batch alone, there and back. zero_bubble_h1 with W
/// for weights, m >= p, W <= min(F, B), 2c <= W: m(F+B+W) + (p-1)(F+B-W) + 2c(2(p-1) - [m=p]) (Qi et al., arXiv
/// 2401.10241, section 2.1: the bubble (p-1)(F+B-W)). zero_bubble_h2, m >= 2p-1, W <= min(F, B): a step alone
/// takes m(F+B+W) + (p-1) max(F+c, F+B-2W+2c), where the last stage begins (p-1)(F+c) after the first one. The terms
/// with c and the maximum were found by evaluating the recurrence pipeline_time(), which they equal in all cases tried
/// (tests/algorithms/training_plan_test.cpp); no proof is known.
ClosedForm pipeline_form(const PipelineShape& shape, Picoseconds forward, Picoseconds backward, Picoseconds hop,
                         Picoseconds weights = Picoseconds{0});
/// A step among others, as pipeline_period() says: that of pipeline_form(), but with zero_bubble_h2 and p > 1 m(F+B+W)
/// + max(c, (p-1)(F+B-2W+2c)), under the same conditions (Qi et al., section 2.2, table 1: the bubble (p-1)(F+B-2W));
/// c, because a stage receives nothing for a step before it has ended the one before.
ClosedForm pipeline_period_form(const PipelineShape& shape, Picoseconds forward, Picoseconds backward, Picoseconds hop,
                                Picoseconds weights = Picoseconds{0});

/// Equal layers on data parallel ranks without stages, with times of one layer. Requires at least two.
struct DataLayers {
  int layers = 2, micro_batches = 1;
  Picoseconds forward{0}, backward{0};
  Picoseconds gather{0};  ///< of its weights: of a fully sharded one
  Picoseconds reduce{0};  ///< of its gradients: a reduce_scatter if it is sharded, else an all-reduce
  Picoseconds update{0};  ///< of all layers
};

/// A step of fully sharded layers (FSDP, ZeRO-3), m micro-batches, L layers of f, b, gather a and reduction r, whose
/// calls share a stream. Exact.
///
/// prefetch 1, as FSDP2 does: forward a + (L-1) max(f, a) + f, because a gather begins when the pass of the layer
/// before does. Backward, if weights are gathered again: a + max(b, a) + (L-2) max(b, a+r) + max(b, r) + r, because
/// pass k+1 waits for the gather that follows the reduction of layer k-1; if they are kept: b + (L-1) max(b, r) + r.
/// prefetch 0: nothing overlaps with gathers, forward L(a+f), backward L(a+b+r), and if weights are kept as above.
/// Derived here; the order of calls is that of algorithms/training/plan_gathers.hpp. Other values of prefetch have no
/// form.
ClosedForm fully_sharded_form(const DataLayers& layers, bool reshards, int prefetch);

/// A step of layers whose gradients are reduced once per step, layer by layer during the last backward pass (DDP):
/// mL(f+b) + r + (L-1) max(0, r-b) + u. Exact: reductions follow each other, the first when the last layer has its
/// gradients, and the last at the end of the passes at the earliest.
ClosedForm overlapped_reduction_form(const DataLayers& layers);

/// Attention by a ring of n context ranks whose steps take equally long, and so do their hops.
struct RingLayer {
  int ranks = 2;
  Picoseconds forward{0}, backward{0};  ///< of a step
  Picoseconds sum{0};                   ///< backward: adds a step's gradients of keys and values to those that came
  Picoseconds hop{0};                   ///< of a block of keys and values, or of its gradient
  Picoseconds double_hop{0};            ///< of both
};
/// The two passes of one layer: forward (n-1) max(f, c) + f, because a step and the hop that brings the next one's
/// block begin together, or steps wait for one hop after the other; backward 2 max(b, c) + (n-2) max(b, c2) + n s,
/// because each step and its hop begin when the step before and its sum are done. Exact, if no other transfers share
/// the ports of the ring's ranks, the ring's neighbors send one way each, and all ranks begin together. With unequal
/// steps or hops the forward pass has no such form, the backward pass has: each max() of its own step and hop. Derived
/// here; the order of tasks is that of plan_program.hpp.
ClosedForm ring_attention_form(const RingLayer& layer);

/// Bytes that a rank sends in a step.
struct PlanVolumes {
  Bytes tensor, pipeline, data, context, expert;

  Bytes total() const { return tensor + pipeline + data + context + expert; }
};

/// The bytes that each rank of a stage sends, with (n-1)/n of a buffer for a reduce_scatter, an all_gather or an
/// all_to_all of n ranks, and twice that for an all-reduce: what rings and direct exchanges send. E = e b s h / c are
/// the bytes of a micro-batch's vectors, e bytes per element; w and g bytes of a weight and a gradient. Exact.
///
/// tensor, per layer and micro-batch: 4 all-reduces of E, 6 with full recomputation (Narayanan et al., SC 2021, section
/// 3.2); sequence_parallel: as many pairs of a reduce_scatter and an all_gather, and two more all_gathers (Korthikanti
/// et al., arXiv 2205.05198, section 4.2.2). With experts in place of the MLP half of it, and if they are split 4
/// collectives of the copies of tokens, 6 with full recomputation. Embedding, head and loss have theirs: 2 all-reduces
/// of E, or their pairs and one all_gather, and 3 all-reduces of 4 B per token.
///
/// pipeline: E per cut, chunk, micro-batch and direction; over t with sequence_parallel. data, P parameters of the
/// rank: 2(d-1)/d gP; sharded optimizer (d-1)/d (g+w)P, gradients too (d-1)/d (mg+w)P, weights too m(d-1)/d (g+2w)P,
/// or m(d-1)/d (g+w)P if they are kept until the backward pass (Rajbhandari et al., ZeRO, SC 2020, section 7); in a
/// pipeline that keeps them (d-1)/d (g+w)P. Experts on several ranks: their part is reduced among t d / (et ep) ranks.
/// context: (c-1)/c of keys and values of whole samples forward, twice that backward, once more with recomputation
/// (Llama 3, arXiv 2407.21783, section 3.3.2), by gathers as by a ring, whose c-1 hops carry 1/c each. expert: 4 times
/// (ep-1)/ep of k copies of each token per layer with experts and micro-batch, 6 times with full recomputation
/// (Megatron-LM's all_to_all dispatcher).
///
/// Requires sizes that divide evenly; an untied embedding if there are stages; no groups of replicas (`hybrid`); no
/// imbalance and no shared expert; with `full` and stages weights that are kept.
PlanVolumes plan_volumes(const PlanTraining& plan, int stage);

/// The memory of a rank of a stage, P its parameters.
///
/// Weights e, gradients g and optimizer state o bytes of each, state over d with a sharded optimizer, gradients too
/// with `optimizer_gradients`, weights too with `full` (ZeRO, section 5: 16 P = (2 + 2 + 12) P). `full` has the weights
/// and gradients of two layers whole, and optimizer_gradients the gradients of all layers before they are reduced.
///
/// Activations of a GPT's layer: s b h (10 + 24/t + 5as/(ht)); sequence_parallel s b h (34 + 5as/h)/t; selective
/// recomputation without the term with s; full 2 s b h, over t with sequence_parallel (Korthikanti et al., equations 1
/// to 6); flash has no such term. In flight: 1f1b min(p - i, m) at stage i, gpipe m, interleaved min(2(p-i-1) + (v-1)p
/// + 1, mv) chunks, zero_bubble_h1 min(p, m) micro-batches, zero_bubble_h2 min(2p-1, m) (section 4.2.3: L(1 +
/// (p-1)/(pv)) layers at stage 0). The last stage has 4 sbh/t' and the logits of 4 B, sbV 4/t, t' = t with
/// sequence_parallel, else 1, of each micro-batch whose last chunk is in flight. Full recomputation: one layer whole.
/// Context ranks: s/c in place of s, and keys and values of a whole sample with their gradients, 8 s b h / t; of a ring
/// the blocks of all c ranks and results of as many steps, 6 s b h / t, or two buffers and a gradient, 20 s b h / (c
/// t), if that is more.
///
/// Requires what plan_volumes() does, a GPT's card (biases, ffn = 4h, as many key heads as heads) without experts, all
/// of a chunk in one bucket with optimizer_gradients, and with `full` prefetch 1, no stages, weights that are gathered
/// again and layers with more parameters than the embedding.
PlanMemory plan_memory_form(const PlanTraining& plan, int optimizer_state, int stage);

}  // namespace ringsim
