// Plans of tensor, pipeline, data, context and expert parallelism as programs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "algorithms/training/pipeline_order.hpp"
#include "algorithms/training/plan_grid.hpp"
#include "sim/program/program.hpp"
#include "sim/program/program_size.hpp"

namespace ringsim {

/// Between which ranks. context: those that share samples; ring: from each of them to the next, the last one's being
/// the first, and ring_back: the other way round. shard and replica: parts of data groups, see PlanSpec::shard_group.
/// expert: those that have different experts; expert_data: those that have the same ones. traced: of an execution
/// trace; its `stage` says which of its groups.
enum class PlanUse : std::uint8_t {
  tensor,
  data,
  forward,
  backward,
  embedding,
  shard,
  replica,
  context,
  expert,
  expert_data,
  ring,
  ring_back,
  traced
};

inline bool is_ring(PlanUse use) { return use == PlanUse::ring || use == PlanUse::ring_back; }

/// One item of a layer's pass on a rank: a kernel, or a collective of its tensor, context or expert group. Items run in
/// order. Collectives of expert groups come in pairs: the first sends tokens to experts, the second brings back what
/// they have made of them.
///
/// Attention by a ring of n context ranks is a run of items of PlanUse::ring, kernels among them, which plan_program()
/// lets overlap. Forward a hop, a send_recv of keys and values, before each of n steps but the last. Backward
/// (ring_back) n times a hop, a step, and a kernel that adds the gradients of keys and values to those that the hop has
/// brought. A kernel comes before the run and after it.
struct PlanKernel {
  std::string name;     ///< of a collective: empty
  Picoseconds time{0};  ///< of a kernel
  /// all_reduce, reduce_scatter or all_gather; of experts all_to_all, of a ring send_recv
  CollectiveOp op = CollectiveOp::all_reduce;
  Bytes bytes;                    ///< of a collective; 0: a kernel
  PlanUse use = PlanUse::tensor;  ///< of a collective: or context, or expert; of a ring's items: its

  bool is_call() const { return bytes.count > 0; }
  bool is_of_ring() const { return is_ring(use); }
};

/// A layer on one rank, for one micro-batch.
struct PlanLayer {
  std::string name;
  std::int64_t parameters = 0;         ///< of the rank; without an embedding that the last stage shares
  std::int64_t expert_parameters = 0;  ///< of its experts, if they are reduced among other ranks; not in `parameters`
  /// Each begins and ends with a kernel. `recompute`: the forward pass, or a part of it, again, before the backward
  /// pass; empty: nothing. `weights`: the gradients of weights, if the schedule has passes for them, else empty and in
  /// `backward`.
  std::vector<PlanKernel> forward, recompute, backward, weights = {};
};

/// The data that is divided among data parallel ranks. optimizer: its state (ZeRO-1, Megatron-LM's distributed
/// optimizer). optimizer_gradients: gradients too (ZeRO-2). full: weights too (ZeRO-3, FSDP).
enum class PlanShard : std::uint8_t { none, optimizer, optimizer_gradients, full };
std::string_view to_string(PlanShard shard);  ///< as written here

/// One kind of call. Its groups are those of a stage: forward from it to the next one (of the last to the first),
/// backward to it from the next one.
struct PlanExchange {
  PlanUse use = PlanUse::tensor;
  int stage = 0;
  CollectiveOp op = CollectiveOp::all_reduce;  ///< of forward, backward and rings: send_recv
  Bytes bytes;

  auto operator<=>(const PlanExchange&) const = default;
};

/// The all-reduce of all ranks of a regime, of one size.
inline PlanExchange all_reduce_of(Bytes bytes) { return {PlanUse::data, 0, CollectiveOp::all_reduce, bytes}; }

/// Calls of a kind: the schedule in groups (sim/check/in_groups.hpp; of forward and backward a broadcast
/// of two ranks, the first being the sender; of rings a send_recv of all), how it moves, and how long it takes before
/// its first step.
struct PlanCall {
  CheckedSchedule schedule;
  int plan = 0;
  Picoseconds launch{0};
};

/// A plan for every rank.
struct PlanSpec {
  std::string name;
  int iterations = 1;
  /// Inference: one forward pass per iteration, of one stage, chunk and micro-batch. Weights do not change, so data
  /// ranks, if there are some the expert ranks, reduce nothing.
  bool forward_only = false;
  PlanGrid grid;
  PipelineSchedule schedule = PipelineSchedule::one_f_one_b;
  int chunks = 1;                                           ///< of each stage
  int micro_batches = 1;                                    ///< of each pipeline
  std::vector<std::vector<std::vector<PlanLayer>>> layers;  ///< [stage][chunk][layer]
  std::vector<Picoseconds> update;                          ///< [stage]
  Bytes activations;  ///< of a micro-batch, what a rank of a stage sends to its peer on the next one
  /// A tensor rank sends its part of the activations alone, and what has come is gathered before the pass that needs
  /// it: Megatron-LM's scatter_gather_tensors_in_pipeline, DeepSpeed's pipe_partitioned and grad_partitioned.
  bool scatters = false;
  /// Activations and their gradients share a stream at each cut. Of gpipe alone, whose first gradient crosses a cut
  /// when all activations have: with other schedules it would wait for them.
  bool shares_cut_streams = false;
  std::int64_t tied = 0;  ///< parameters of the embedding that first and last stage share; 0: none
  PlanShard shard = PlanShard::none;
  bool overlaps_reduce = false;  ///< buckets are reduced during the last micro-batch's backward pass
  bool overlaps_gather = false;  ///< ... and gathered during the next step's forward pass
  // Of full alone; see plan_gathers.hpp.
  bool reshards = true;     ///< weights are freed after a forward pass, and gathered again before the backward pass
  int prefetch = 1;         ///< layers gathered ahead
  int shard_group = 0;      ///< data ranks that divide a model, each such group having all of it; 0: all of them
  std::int64_t bucket = 0;  ///< parameters that close a bucket, if it overlaps; else a chunk is one
  int gradient_bytes = 4, weight_bytes = 2;

  PipelineShape shape() const { return {schedule, grid.pipeline(), chunks, micro_batches}; }
};

/// Layers whose gradients are reduced together: from `first` to before `end` of a chunk.
struct PlanBucket {
  std::size_t first = 0, end = 0;
  std::int64_t parameters = 0;
  bool has_experts = false;  ///< it is one of the layers' experts, else of all else that they have
  std::size_t number = 0;    ///< among those of its kind
};
/// In the order in which backward passes complete them. Megatron-LM closes a bucket when it has max(40 million, 1
/// million times d) parameters (megatron/core/distributed/distributed_data_parallel.py), DeepSpeed's ZeRO-2 when it has
/// 500 million (deepspeed/runtime/zero/config.py, reduce_bucket_size); here at the end of a layer. With `full` a layer
/// is one. Experts that are reduced among other ranks have buckets of their own.
std::vector<PlanBucket> plan_buckets(const PlanSpec& spec, int stage, int chunk);
std::int64_t default_plan_bucket(PlanShard shard, int data);

/// Every kind of call that the program makes, each once, in order.
std::vector<PlanExchange> plan_exchanges(const PlanSpec& spec);
/// [group][member]
Program::Groups plan_groups(const PlanSpec& spec, PlanUse use, int stage);

/// A helper of a collective, such as a switch that adds up.
struct PlanHelper {
  PlanUse use = PlanUse::tensor;
  int stage = 0, group = 0, number = 0;
};
struct PlanProgram {
  Program program;
  std::vector<PlanHelper> helpers;  ///< of actors from program.ranks on
  Stream tensor = -1, data = -1;    ///< of collectives of those groups; -1: none
  Stream replica = -1;              ///< of sums over replicas
  Stream context = -1, expert = -1;
};

/// Each rank runs the passes of its stage in the order of the schedule (pipeline_order.hpp) on a compute stream; the
/// collectives of its tensor group, on a stream of their own, come between its kernels, and so do those of its context
/// and expert groups. Stages send activations and their gradients while they compute, on a stream for each direction.
/// Each stage adds up the gradients of its micro-batches; then its data groups reduce them, bucket by bucket, and every
/// rank updates its part of the model; if the optimizer is sharded, its shard of that part, which is gathered then.
///
/// optimizer_gradients: each micro-batch's gradients are reduced, bucket by bucket, to the rank that keeps them and
/// adds them up; the next micro-batch begins when they are (DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py,
/// reduce_independent_p_g_buckets_and_remove_grads and overlapping_partition_gradients_reduce_epilogue). full: weights
/// come and go as plan_gathers.hpp says; gathers and reductions share a stream, as they share a communicator. A
/// backward pass waits for the reduction of the layer before the last one, and the next micro-batch for all of them
/// (post_backward and finalize_backward of FSDP2). With shard groups a reduce_scatter in the group is followed by an
/// all_reduce of the parts among the replicas, on a stream of its own. A tied embedding is on the first and the last
/// stage, which add up its gradients.
///
/// Passes for weights: a micro-batch's gradients are added up in that pass, which needs what the forward pass has kept.
/// `full` and optimizer_gradients have no such schedule.
///
/// Experts on several ranks: gradients of their weights are summed among the ranks that have the same experts, and
/// divided by the number of all data ranks, because each expert has seen the tokens of its whole group (Megatron-LM's
/// gradient_scaling_factor, megatron/core/distributed/distributed_data_parallel.py). Their calls share the stream of
/// the data groups' ones. `full` and optimizer_gradients have no such experts.
///
/// Attention by a ring, in the order of Transformer Engine's AttnFuncWithCPAndKVP2P (transformer_engine/pytorch/
/// attention/dot_product_attention/context_parallel.py of August 2026). Forward, hop j brings the block of step j. It
/// begins when hop j - 1 has come and step j - 3 is done, because it is posted on the stream of step j - 1, one of two
/// in turn (lines 1678, 1700 to 1715). Step j begins when its block has come. Backward, steps go the other way round,
/// from the block that the forward pass has received last and kept (2087). A hop carries the next step's block, but for
/// the last hop, and the gradient that the rank has so far of the block of the step before, but for the first hop
/// (2463 to 2495). It begins when the step before is done and its gradient added; the own step's part is added when the
/// hop has come (2717 to 2727). Assumption: two streams of attention kernels are one, each kernel having the GPU alone.
///
/// scatters: the tensor group gathers what has come from another stage when the pass before is done, because
/// Megatron-LM and DeepSpeed gather in the order of the kernels (megatron/p2p_communication.py, _communicate, of v2.6;
/// deepspeed/runtime/pipe/engine.py, _exec_forward_pass). Pass times of the pipeline's recurrence include it.
///
/// forward_only: the layers' forward passes one after the other, and nothing else. Partial sums and parts of logits are
/// proved as in training: each is made before its collective and read whole after it.
///
/// Memory: tasks of p roles, whatever t and d are; a call for each use of a stage, with all of its members.
/// `call`: asked once for each kind.
PlanProgram plan_program(const PlanSpec& spec, const std::function<PlanCall(const PlanExchange&)>& call,
                         WatchedWork* work = nullptr);
/// About: helpers are not counted.
ProgramSize plan_program_size(const PlanSpec& spec);

}  // namespace ringsim
