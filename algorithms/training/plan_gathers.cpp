#include "algorithms/training/plan_gathers.hpp"

#include <algorithm>

#include "algorithms/training/plan_exchanges.hpp"

namespace ringsim {

using namespace plan_detail;

GatherOrder::GatherOrder(const PlanSpec& spec, int stage) : spec_(spec) {
  for (int chunk = 0; chunk < spec.chunks; ++chunk) whole_.emplace_back(plan_buckets(spec, stage, chunk).size());
  left_.assign(whole_.size(), spec.micro_batches);
}

std::vector<GatherTurn> GatherOrder::next(const PipelinePass& pass) {
  const auto chunk = static_cast<std::size_t>(pass.chunk);
  std::vector<bool>& whole = whole_[chunk];
  const std::size_t n = whole.size();
  const bool is_pipeline = spec_.grid.pipeline() > 1;
  const bool is_last = pass.backward && --left_[chunk] == 0;
  std::vector<GatherTurn> turns(n);
  std::size_t begun = 0;  // positions whose gathers have begun
  for (std::size_t i = 0; i < n; ++i) {
    for (; begun < std::min(n, i + static_cast<std::size_t>(spec_.prefetch) + 1); ++begun) {
      const std::size_t bucket = bucket_at(pass.backward, begun, n);
      if (whole[bucket]) continue;
      turns[i].gathers.push_back(bucket);
      whole[bucket] = true;
    }
    const std::size_t own = bucket_at(pass.backward, i, n);
    const bool is_root = keeps_embedding(spec_) && own + 1 == n;
    turns[i].drops = pass.backward ? !is_pipeline || is_last : spec_.reshards && !is_root;
    turns[i].reduces = pass.backward && (!is_pipeline || is_last);
    if (turns[i].drops) whole[own] = false;
  }
  return turns;
}

std::map<PlanExchange, std::int64_t> plan_data_uses(const PlanSpec& spec, int stage) {
  std::map<PlanExchange, std::int64_t> uses;
  if (spec.forward_only || (spec.grid.data() == 1 && spec.grid.expert_data() == 1)) return uses;
  GatherOrder order(spec, stage);
  std::vector<std::vector<PlanBucket>> buckets;
  for (int chunk = 0; chunk < spec.chunks; ++chunk) buckets.push_back(plan_buckets(spec, stage, chunk));
  const auto parameters = [&](int chunk, std::size_t b) {
    return parameters_of(spec, stage, chunk, buckets[static_cast<std::size_t>(chunk)][b]);
  };
  const auto reduce = [&](int chunk, std::size_t b) {
    const PlanBucket& bucket = buckets[static_cast<std::size_t>(chunk)][b];
    if (!is_reduced(spec, bucket)) return;
    ++uses[reduce_of(spec, stage, parameters(chunk, b), bucket.has_experts)];
    if (is_hybrid(spec)) ++uses[replica_sum_of(spec, stage, parameters(chunk, b))];
  };
  if (!is_full(spec)) {
    for (int chunk = 0; chunk < spec.chunks; ++chunk)
      for (std::size_t b = 0; b < buckets[static_cast<std::size_t>(chunk)].size(); ++b) {
        for (int m = 0; m < (reduces_each(spec) ? spec.micro_batches : 1); ++m) reduce(chunk, b);
        if (const PlanBucket& bucket = buckets[static_cast<std::size_t>(chunk)][b]; updates_parts(spec, bucket))
          ++uses[gather_of(spec, stage, parameters(chunk, b), bucket.has_experts)];
      }
    return uses;
  }
  for (const PipelinePass& pass : pipeline_order(spec.shape(), stage)) {
    const std::vector<GatherTurn> turns = order.next(pass);
    for (std::size_t i = 0; i < turns.size(); ++i) {
      for (const std::size_t b : turns[i].gathers) ++uses[gather_of(spec, stage, parameters(pass.chunk, b))];
      if (turns[i].reduces) reduce(pass.chunk, bucket_at(pass.backward, i, turns.size()));
    }
  }
  return uses;
}

namespace {

Bytes most_gathered(const PlanSpec& spec, int stage) {
  GatherOrder order(spec, stage);
  std::vector<std::vector<PlanBucket>> buckets;
  for (int chunk = 0; chunk < spec.chunks; ++chunk) buckets.push_back(plan_buckets(spec, stage, chunk));
  std::int64_t now = 0, most = 0;
  for (const PipelinePass& pass : pipeline_order(spec.shape(), stage)) {
    const std::vector<PlanBucket>& its = buckets[static_cast<std::size_t>(pass.chunk)];
    const std::vector<GatherTurn> turns = order.next(pass);
    for (std::size_t i = 0; i < turns.size(); ++i) {
      for (const std::size_t b : turns[i].gathers) now += its[b].parameters;
      most = std::max(most, now);
      if (turns[i].drops) now -= its[bucket_at(pass.backward, i, turns.size())].parameters;
    }
  }
  return Bytes{most} * spec.weight_bytes;
}

Bytes most_unreduced(const PlanSpec& spec, int stage, std::size_t buckets_at_a_time) {
  std::int64_t most = 0;
  for (int chunk = 0; chunk < spec.chunks; ++chunk) {
    const std::vector<PlanBucket> buckets = plan_buckets(spec, stage, chunk);
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      std::int64_t sum = 0;
      for (std::size_t i = b; i < std::min(buckets.size(), b + buckets_at_a_time); ++i) sum += buckets[i].parameters;
      most = std::max(most, sum);
    }
  }
  return Bytes{most} * spec.gradient_bytes;
}

}  // namespace

PlanSharding plan_sharding(const PlanSpec& spec, int stage) {
  PlanSharding out;
  if (spec.shard != PlanShard::none) out.expert_state = spec.grid.expert_data();
  if (!updates_parts(spec)) return out;
  out.state = shard_ranks(spec);
  if (reduces_each(spec)) {
    out.gradients = shard_ranks(spec);
    out.whole_gradients = most_unreduced(spec, stage, is_full(spec) || spec.overlaps_reduce ? 2 : 1);
  }
  if (!is_full(spec)) return out;
  out.weights = shard_ranks(spec);
  out.whole_weights = most_gathered(spec, stage);
  return out;
}

}  // namespace ringsim
