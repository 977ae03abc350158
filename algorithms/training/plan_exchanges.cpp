#include "algorithms/training/plan_exchanges.hpp"

#include <algorithm>
#include <array>
#include <set>

#include "algorithms/training/plan_gathers.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

using namespace plan_detail;

std::int64_t default_plan_bucket(PlanShard shard, int data) {
  if (shard == PlanShard::optimizer_gradients) return 500'000'000;
  return std::max<std::int64_t>(40'000'000, std::int64_t{1'000'000} * data);
}

std::string_view to_string(PlanShard shard) {
  return shard == PlanShard::none                  ? "none"
         : shard == PlanShard::optimizer           ? "optimizer"
         : shard == PlanShard::optimizer_gradients ? "optimizer_gradients"
                                                   : "full";
}

namespace {

/// True if a bucket that has so many parameters takes no further layer.
bool is_closed(const PlanSpec& spec, std::int64_t parameters) {
  if (is_full(spec)) return parameters > 0;
  return (spec.overlaps_reduce || reduces_each(spec)) && parameters >= spec.bucket;
}

}  // namespace

std::vector<PlanBucket> plan_buckets(const PlanSpec& spec, int stage, int chunk) {
  const std::vector<PlanLayer>& layers = spec.layers[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)];
  std::vector<PlanBucket> buckets;
  for (const bool experts : {false, true}) {
    PlanBucket open{.first = layers.size(), .end = layers.size(), .has_experts = experts};
    const std::size_t n_before = buckets.size();
    for (std::size_t l = layers.size(); l-- > 0;) {
      open.first = l;
      open.parameters += experts ? layers[l].expert_parameters : layers[l].parameters;
      if (l > 0 && !is_closed(spec, open.parameters)) continue;
      open.number = buckets.size() - n_before;
      if (!experts || open.parameters > 0) buckets.push_back(open);
      open = {.first = l, .end = l, .has_experts = experts};
    }
  }
  std::stable_sort(buckets.begin(), buckets.end(),
                   [](const PlanBucket& a, const PlanBucket& b) { return a.first > b.first; });
  return buckets;
}

Program::Groups plan_groups(const PlanSpec& spec, PlanUse use, int stage) {
  const PlanGrid& grid = spec.grid;
  const int next = (stage + 1) % grid.pipeline();
  switch (use) {
    case PlanUse::tensor:
      return grid.tensor_groups(stage);
    case PlanUse::data:
      return grid.data_groups(stage);
    case PlanUse::context:
    case PlanUse::ring:
      return grid.context_groups(stage);
    case PlanUse::ring_back: {
      Program::Groups groups = grid.context_groups(stage);
      for (std::vector<Actor>& group : groups) std::reverse(group.begin(), group.end());
      return groups;
    }
    case PlanUse::expert:
      return grid.expert_groups(stage);
    case PlanUse::expert_data:
      return grid.expert_data_groups(stage);
    case PlanUse::shard:
      return grid.shard_groups(stage, shard_ranks(spec));
    case PlanUse::replica:
      return grid.replica_groups(stage, shard_ranks(spec));
    case PlanUse::forward:
      return grid.pairs(stage, next);
    case PlanUse::backward:
      return grid.pairs(next, stage);
    case PlanUse::embedding:
      return grid.pairs(0, grid.pipeline() - 1);
    case PlanUse::traced:
      break;
  }
  fail_invariant("a plan's call has one of twelve uses");
}

namespace {
constexpr std::array passes_of_layer{&PlanLayer::forward, &PlanLayer::recompute, &PlanLayer::backward,
                                     &PlanLayer::weights};
}  // namespace

namespace plan_detail {

bool has_ring(const std::vector<PlanKernel>& pass) {
  return std::any_of(pass.begin(), pass.end(), [](const PlanKernel& item) { return item.is_of_ring(); });
}
bool has_rings(const PlanSpec& spec) {
  for (const auto& chunks : spec.layers)
    for (const std::vector<PlanLayer>& layers : chunks)
      for (const PlanLayer& layer : layers)
        for (const auto pass : passes_of_layer)
          if (has_ring(layer.*pass)) return true;
  return false;
}

bool is_tied(const PlanSpec& spec) { return spec.tied > 0 && spec.grid.pipeline() > 1; }

/// True if the bucket has the embedding that two stages share.
bool has_tied(const PlanSpec& spec, int stage, int chunk, const PlanBucket& bucket) {
  if (!is_tied(spec) || bucket.has_experts) return false;
  const std::size_t n = spec.layers[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)].size();
  return (stage == 0 && chunk == 0 && bucket.first == 0) ||
         (stage + 1 == spec.grid.pipeline() && chunk + 1 == spec.chunks && bucket.end == n);
}

std::int64_t parameters_of(const PlanSpec& spec, int stage, int chunk, const PlanBucket& bucket) {
  return bucket.parameters + (has_tied(spec, stage, chunk, bucket) ? spec.tied : 0);
}

bool updates_parts(const PlanSpec& spec) { return spec.shard != PlanShard::none && spec.grid.data() > 1; }
bool is_full(const PlanSpec& spec) { return spec.shard == PlanShard::full && spec.grid.data() > 1; }
int shard_ranks(const PlanSpec& spec) {
  return is_full(spec) && spec.shard_group > 0 ? spec.shard_group : spec.grid.data();
}
bool is_hybrid(const PlanSpec& spec) { return is_full(spec) && shard_ranks(spec) < spec.grid.data(); }
bool reduces_each(const PlanSpec& spec) {
  return (updates_parts(spec) && spec.shard == PlanShard::optimizer_gradients) ||
         (is_full(spec) && spec.grid.pipeline() == 1);
}
bool keeps_embedding(const PlanSpec& spec) { return is_full(spec) && spec.tied > 0 && spec.grid.pipeline() == 1; }

int reducing_ranks(const PlanSpec& spec, bool experts) { return experts ? spec.grid.expert_data() : spec.grid.data(); }
bool is_reduced(const PlanSpec& spec, const PlanBucket& bucket) { return reducing_ranks(spec, bucket.has_experts) > 1; }
bool updates_parts(const PlanSpec& spec, const PlanBucket& bucket) {
  return spec.shard != PlanShard::none && is_reduced(spec, bucket);
}

namespace {
PlanUse use_of(const PlanSpec& spec, bool experts) {
  return experts ? PlanUse::expert_data : is_hybrid(spec) ? PlanUse::shard : PlanUse::data;
}
}  // namespace

PlanExchange reduce_of(const PlanSpec& spec, int stage, std::int64_t parameters, bool experts) {
  return {use_of(spec, experts), stage,
          spec.shard != PlanShard::none && reducing_ranks(spec, experts) > 1 ? CollectiveOp::reduce_scatter
                                                                             : CollectiveOp::all_reduce,
          Bytes{parameters} * spec.gradient_bytes};
}
PlanExchange gather_of(const PlanSpec& spec, int stage, std::int64_t parameters, bool experts) {
  return {use_of(spec, experts), stage, CollectiveOp::all_gather, Bytes{parameters} * spec.weight_bytes};
}
PlanExchange gather_of_cut(const PlanSpec& spec, int stage) {
  return {PlanUse::tensor, stage, CollectiveOp::all_gather, spec.activations * spec.grid.tensor()};
}
PlanExchange replica_sum_of(const PlanSpec& spec, int stage, std::int64_t parameters) {
  const std::int64_t all = (Bytes{parameters} * spec.gradient_bytes).count, n = shard_ranks(spec);
  return {PlanUse::replica, stage, CollectiveOp::all_reduce, Bytes{(all + n - 1) / n}};
}

}  // namespace plan_detail

std::vector<PlanExchange> plan_exchanges(const PlanSpec& spec) {
  std::set<PlanExchange> found;
  const int stages = spec.grid.pipeline();
  for (int stage = 0; stage < stages; ++stage)
    for (int chunk = 0; chunk < spec.chunks; ++chunk) {
      for (const PlanLayer& layer : spec.layers[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)])
        for (const auto pass : passes_of_layer)
          for (const PlanKernel& kernel : layer.*pass)
            if (kernel.is_call()) found.insert({kernel.use, stage, kernel.op, kernel.bytes});
      const bool is_last = stage + 1 == stages && chunk + 1 == spec.chunks;
      if (stages > 1 && !is_last)
        for (const PlanUse use : {PlanUse::forward, PlanUse::backward})
          found.insert({use, stage, CollectiveOp::send_recv, spec.activations});
    }
  for (int stage = 0; stage < stages && spec.scatters; ++stage) found.insert(gather_of_cut(spec, stage));
  for (int stage = 0; stage < stages; ++stage)
    for (const auto& [exchange, times] : plan_data_uses(spec, stage)) found.insert(exchange);
  if (is_tied(spec))
    found.insert({PlanUse::embedding, 0, CollectiveOp::all_reduce, Bytes{spec.tied} * spec.gradient_bytes});
  return {found.begin(), found.end()};
}

ProgramSize plan_program_size(const PlanSpec& spec) {
  const std::int64_t ranks = spec.grid.ranks(), stages = spec.grid.pipeline();
  const std::int64_t m = spec.micro_batches, each = ranks / stages;
  ProgramSize size{.actors = ranks};
  std::int64_t buckets = 0;
  for (int stage = 0; stage < spec.grid.pipeline(); ++stage) {
    std::int64_t kernels = 0, tensor = 0, data = 0, uses = 0;
    for (int chunk = 0; chunk < spec.chunks; ++chunk) {
      for (const PlanLayer& layer : spec.layers[static_cast<std::size_t>(stage)][static_cast<std::size_t>(chunk)])
        for (const auto pass : passes_of_layer)
          for (const PlanKernel& kernel : layer.*pass) ++(kernel.is_call() ? tensor : kernels);
      data += static_cast<std::int64_t>(plan_buckets(spec, stage, chunk).size());
    }
    if (spec.scatters) tensor += std::int64_t{2} * spec.chunks;
    buckets = std::max(buckets, data);
    for (const auto& [exchange, times] : plan_data_uses(spec, stage)) uses += times;
    uses = std::max(uses, 2 * data);
    const std::int64_t cuts = stages > 1 ? 4 * m * std::int64_t{spec.chunks} : 0;
    size.add_role(each, m * (kernels + tensor) + cuts + uses,
                  m * 2 * (tensor + std::int64_t{4} * spec.chunks) + 3 * uses / 2);
    size.add_calls(m * tensor + cuts / 2 + uses, each, 1);
  }
  size.variables = m * spec.chunks * (stages > 1 ? 5 : 1) + (spec.shard == PlanShard::none ? 2 : 4) * buckets;
  if (has_rings(spec)) size.variables += std::int64_t{2} * spec.grid.context();
  size.streams = 1 + (spec.grid.tensor() > 1 ? 1 : 0) + (spec.grid.expert() > 1 ? 1 : 0) + (stages > 1 ? 4 : 0) +
                 (spec.grid.data() > 1 ? 1 : 0);
  return size;
}

}  // namespace ringsim
