#include "algorithms/training/plan_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "algorithms/training/plan_exchanges.hpp"
#include "algorithms/training/plan_frame.hpp"
#include "algorithms/training/plan_gathers.hpp"
#include "algorithms/training/plan_ring.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

using namespace plan_detail;

/// What the ranks of one stage do.
class StageWriter {
 public:
  StageWriter(const PlanSpec& spec, PlanFrame& frame, int stage, WatchedWork* work)
      : spec_(spec),
        frame_(frame),
        stage_(stage),
        work_(work),
        data_(frame.streams().data),
        replica_(frame.streams().replica),
        context_(frame.streams().context) {
    role_.streams.resize(frame.n_streams());
  }

  Program::Role write() {
    if (spec_.forward_only) {
      // Nothing reads the result of the last kernel, and nothing is kept for a backward pass.
      for (const PlanLayer& layer : layers(0)) write_pass_of(layer.forward, "forward", layer, 0);
      return std::move(role_);
    }
    for (int chunk = 0; chunk < spec_.chunks; ++chunk) buckets_.push_back(plan_buckets(spec_, stage_, chunk));
    gathers_.resize(buckets_.size());
    if (!is_full(spec_)) plan_gathers();
    GatherOrder order(spec_, stage_);
    for (const std::vector<PlanBucket>& buckets : buckets_) gathered_.emplace_back(buckets.size());
    // All sends of the step before have ended and, without an overlap, all weights are gathered.
    for (Stream s = frame_.streams().first_cut; s < frame_.streams().first_cut + frame_.n_cut_streams(); ++s)
      next_after_.push_back({s, all_tasks, 1});
    if (data_ >= 0 && !(updates_parts(spec_) && spec_.overlaps_gather)) next_after_.push_back({data_, all_tasks, 1});
    begun_.resize(buckets_.size());
    added_.resize(buckets_.size());
    for (const PipelinePass& pass : pipeline_order(spec_.shape(), stage_)) {
      chunk_ = pass.chunk;
      turns_.clear();
      if (is_full(spec_)) turns_ = order.next(pass);
      if (pass.weights)
        write_weights(pass.chunk, pass.micro_batch);
      else if (pass.backward)
        write_backward(pass.chunk, pass.micro_batch);
      else
        write_forward(pass.chunk, pass.micro_batch);
    }
    const int n_passes = n_tasks(0);
    write_data();
    for (std::vector<Task>& tasks : role_.streams)
      for (Task& task : tasks)
        for (Program::After& after : task.after) {
          if (after.tasks == all_tasks) after.tasks = n_tasks(after.stream);
          if (after.tasks == all_passes) after.tasks = n_passes;
        }
    promise_alive();
    return std::move(role_);
  }

 private:
  using Task = Program::Task;
  using As = Program::Touch::As;
  using Pass = PlanFrame::Pass;
  using Weights = PlanFrame::Weights;

  // Placeholders for the number of tasks that an `after` waits for, until it is known.
  static constexpr int all_tasks = -1, all_passes = -2;

  // The memory of a stage has room for so many passes in flight.
  void promise_alive() {
    Program::Alive alive{.role = stage_, .variables = {}, .most = passes_in_flight(spec_.shape(), stage_)};
    for (int chunk = 0; chunk < spec_.chunks; ++chunk)
      for (int m = 0; m < spec_.micro_batches; ++m) alive.variables.push_back(frame_.saved(chunk, m));
    frame_.promise_alive(std::move(alive));
  }

  std::vector<Task>& stream(Stream number) { return role_.streams[static_cast<std::size_t>(number)]; }
  int n_tasks(Stream number) { return static_cast<int>(stream(number).size()); }

  Task& write_call(Stream number, int call) {
    done(work_);
    stream(number).push_back({.name = {}, .time = frame_.launch_of(call), .call = call, .after = {}, .touches = {}});
    return stream(number).back();
  }

  Task& write_kernel(std::string name, Picoseconds time) {
    done(work_);
    stream(0).push_back({.name = std::move(name), .time = time, .call = -1, .after = {}, .touches = {}});
    Task& task = stream(0).back();
    for (const Program::After& after : next_after_) task.after.push_back(after);
    for (const Program::Touch& touch : next_touches_) task.touches.push_back(touch);
    next_after_.clear();
    next_touches_.clear();
    return task;
  }

  void write_pass_of(const std::vector<PlanKernel>& kernels, const char* what, const PlanLayer& layer, int m) {
    ensure(kernels.empty() || (!kernels.front().is_call() && !kernels.back().is_call()), "kernels come first and last");
    bool sent = false;  // tokens are with their experts
    for (std::size_t i = 0; i < kernels.size(); ++i) {
      const PlanKernel& kernel = kernels[i];
      if (kernel.is_of_ring()) {
        i = write_ring(kernels, i, what, layer, m) - 1;
        continue;
      }
      if (!kernel.is_call()) {
        Task& task = write_kernel(name_of(kernel, what, layer, m), kernel.time);
        if (i + 1 < kernels.size() && kernels[i + 1].is_call() && !kernels[i + 1].is_of_ring())
          task.touches.push_back({kernels[i + 1].use == PlanUse::expert && sent ? As::answer : As::make,
                                  frame_.variable_of(kernels[i + 1]), -1});
        continue;
      }
      const bool is_expert = kernel.use == PlanUse::expert, is_dispatch = is_expert && !sent;
      if (is_expert) sent = !sent;
      const Stream its = frame_.stream_of(kernel.use);
      const int call = frame_.add_call(
          {kernel.use, stage_, kernel.op, kernel.bytes},
          is_expert ? is_dispatch ? "dispatch tokens" : "combine tokens"
                    : fmt::format("{} {}", kernel.use == PlanUse::context ? "context" : "tensor", to_string(kernel.op)),
          {frame_.variable_of(kernel)});
      write_call(its, call).after.push_back({0, n_tasks(0), 0});
      if (kernels[i + 1].is_call()) {
        ensure(kernels[i + 1].use == kernel.use, "a kernel comes between collectives of different groups");
        continue;
      }
      next_after_.push_back({its, n_tasks(its), 0});
      next_touches_.push_back({kernel.op == CollectiveOp::reduce_scatter || is_dispatch ? As::read : As::read_whole,
                               frame_.variable_of(kernel), -1});
    }
    ensure(!sent, "tokens come back from experts in the pass that has sent them");
  }

  std::string name_of(const PlanKernel& kernel, const char* what, const PlanLayer& layer, int m) const {
    const std::string part = kernel.name.empty() ? "" : " " + kernel.name;
    const std::string of = spec_.forward_only ? "" : fmt::format(" of micro-batch {}", m);
    return fmt::format("{} {}{}{}", what, layer.name, part, of);
  }

  /// The run of a ring from item `first` on; the number of the item after it.
  std::size_t write_ring(const std::vector<PlanKernel>& kernels, std::size_t first, const char* what,
                         const PlanLayer& layer, int m) {
    const bool is_backward = kernels[first].use == PlanUse::ring_back;
    const bool is_kept = kernels.data() == layer.recompute.data() || !has_ring(layer.recompute);
    auto place = &layer - layers(chunk_).data();
    for (int chunk = 0; chunk < chunk_; ++chunk) place += static_cast<std::ptrdiff_t>(layers(chunk).size());
    const int shelf = static_cast<int>(place) * spec_.micro_batches + m;
    const std::vector<RingItem> items =
        is_backward ? backward_ring(frame_.ring()) : forward_ring(frame_.ring(), is_kept ? shelf : -1);
    ensure(first > 0 && !kernels[first - 1].is_call() && first + items.size() < kernels.size(),
           "a kernel comes before a ring and after it");
    stream(0).back().touches.push_back(is_backward ? before_backward_ring(frame_.ring(), shelf)
                                                   : before_forward_ring(frame_.ring()));
    const int hops_before = n_tasks(context_);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const PlanKernel& kernel = kernels[first + i];
      const RingItem& item = items[i];
      ensure(kernel.use == kernels[first].use && kernel.is_call() == item.is_hop,
             "the items of a ring are its hops, steps and sums, in order");
      if (item.is_hop) {
        const int call =
            frame_.add_call({kernel.use, stage_, kernel.op, kernel.bytes},
                            is_backward ? "context send_recv back" : "context send_recv", item.from, 1, item.into);
        write_call(context_, call).after.push_back({0, n_tasks(0) - item.ignores, 0});
        continue;
      }
      if (item.hops > 0) next_after_.push_back({context_, hops_before + item.hops, 0});
      for (const Program::Touch& touch : item.touches) next_touches_.push_back(touch);
      write_kernel(name_of(kernel, what, layer, m), kernel.time);
    }
    ensure(!kernels[first + items.size()].is_of_ring(), "a ring has no further items");
    for (const Program::Touch& touch : after_ring(frame_.ring(), is_backward)) next_touches_.push_back(touch);
    return first + items.size();
  }

  const std::vector<PlanLayer>& layers(int chunk) const {
    return spec_.layers[static_cast<std::size_t>(stage_)][static_cast<std::size_t>(chunk)];
  }

  void receive(Pass pass, int cut, int m) {
    const Stream from = frame_.stream_of(pass, cut);
    const bool is_first = n_tasks(from) == 0;
    Task& task = write_call(from, frame_.cut_call(pass, cut, m));
    if (is_first) task.after.push_back({0, all_passes, 1});  // then what came in before has been read
    if (!spec_.scatters) {
      next_after_.push_back({from, n_tasks(from), 0});
      next_touches_.push_back({As::read, frame_.cut_variable(pass, cut, m), -1});
      return;
    }
    const int whole = frame_.gathered(pass);
    const int call =
        frame_.add_call(gather_of_cut(spec_, stage_), "gather parts", {frame_.cut_variable(pass, cut, m)}, 1, {whole});
    const Stream tensor = frame_.streams().tensor;
    Task& gather = write_call(tensor, call);
    gather.after.push_back({from, n_tasks(from), 0});
    gather.after.push_back(n_tasks(0) > 0 ? Program::After{0, n_tasks(0), 0} : Program::After{0, all_tasks, 1});
    next_after_.push_back({tensor, n_tasks(tensor), 0});
    next_touches_.push_back({As::read_whole, whole, -1});
  }
  // The next pass must gather its own.
  void end_pass(Pass pass, bool has_received) {
    if (spec_.scatters && has_received) stream(0).back().touches.push_back({As::drop, frame_.gathered(pass), -1});
  }
  void send(Pass pass, int cut, int m) {
    stream(0).back().touches.push_back({As::make, frame_.cut_variable(pass, cut, m), -1});
    write_call(frame_.stream_of(pass, cut), frame_.cut_call(pass, cut, m)).after.push_back({0, n_tasks(0), 0});
  }

  void write_forward(int chunk, int m) {
    const int place = chunk * frame_.stages() + stage_;
    if (place > 0) receive(Pass::forward, place - 1, m);
    const std::vector<PlanBucket>& buckets = buckets_[static_cast<std::size_t>(chunk)];
    const bool is_first = begun_[static_cast<std::size_t>(chunk)]++ == 0;
    if (reduces_each(spec_)) wait_for_reduces();
    for (std::size_t l = 0; l < layers(chunk).size(); ++l) {
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        if (buckets[b].first != l) continue;
        if (is_full(spec_)) {
          begin_turn(false, chunk, b);
          continue;
        }
        next_touches_.push_back({As::read, pair(chunk, b).weights, -1});
        if (has_tied(spec_, stage_, chunk, buckets[b])) next_touches_.push_back({As::read, frame_.tied().weights, -1});
        if (is_first && spec_.overlaps_gather && updates_parts(spec_, buckets[b]))
          next_after_.push_back({data_, gathers_[static_cast<std::size_t>(chunk)][b], 1});
      }
      write_pass_of(layers(chunk)[l].forward, "forward", layers(chunk)[l], m);
      for (std::size_t b = 0; b < turns_.size(); ++b)
        if (buckets[b].end == l + 1) end_turn(false, chunk, b);
    }
    end_pass(Pass::forward, place > 0);
    stream(0).back().touches.push_back({As::make, frame_.saved(chunk, m), -1});
    if (place + 1 < frame_.places()) send(Pass::forward, place, m);
  }

  void write_backward(int chunk, int m) {
    const int place = chunk * frame_.stages() + stage_;
    if (place + 1 < frame_.places()) receive(Pass::backward, place, m);
    const std::vector<PlanBucket>& buckets = buckets_[static_cast<std::size_t>(chunk)];
    const bool splits = spec_.shape().splits_backward();
    if (!splits) begin_gradients(chunk);
    for (std::size_t l = layers(chunk).size(); l-- > 0;) {
      const PlanLayer& layer = layers(chunk)[l];
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        if (buckets[b].end != l + 1) continue;
        if (is_full(spec_))
          begin_turn(true, chunk, b);
        else
          next_touches_.push_back({As::read, pair(chunk, b).weights, -1});
      }
      write_pass_of(layer.recompute, "recompute", layer, m);
      write_pass_of(layer.backward, "backward", layer, m);
      if (!splits) add_gradients(chunk, l);
    }
    end_pass(Pass::backward, place + 1 < frame_.places());
    Task& last = stream(0).back();
    last.touches.push_back({As::read, frame_.saved(chunk, m), -1});
    if (splits) last.touches.push_back({As::make, frame_.left(m), -1});
    if (place > 0) last.touches.push_back({As::read, frame_.cut_variable(Pass::forward, place - 1, m), -1});
    if (place > 0) send(Pass::backward, place - 1, m);
  }

  void write_weights(int chunk, int m) {
    begin_gradients(chunk);
    next_touches_.push_back({As::read, frame_.left(m), -1});
    for (std::size_t l = layers(chunk).size(); l-- > 0;) {
      write_pass_of(layers(chunk)[l].weights, "weights", layers(chunk)[l], m);
      add_gradients(chunk, l);
    }
    stream(0).back().touches.push_back({As::read, frame_.saved(chunk, m), -1});
    if (stage_ > 0)
      stream(0).back().touches.push_back({As::read, frame_.cut_variable(Pass::forward, stage_ - 1, m), -1});
  }

  // The gradients of the next micro-batch.
  void begin_gradients(int chunk) {
    ++added_[static_cast<std::size_t>(chunk)];
    reduced_.clear();
  }
  // Those of the buckets that layer l completes, made by the last task.
  void add_gradients(int chunk, std::size_t l) {
    const std::vector<PlanBucket>& buckets = buckets_[static_cast<std::size_t>(chunk)];
    const int n = added_[static_cast<std::size_t>(chunk)];
    const As how = n == 1 || reduces_each(spec_) ? As::make : As::add;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      if (buckets[b].first != l) continue;
      Task& task = stream(0).back();
      task.touches.push_back({how, pair(chunk, b).gradient, -1});
      if (has_tied(spec_, stage_, chunk, buckets[b])) task.touches.push_back({how, frame_.tied().gradient, -1});
      if (is_full(spec_))
        end_turn(true, chunk, b);
      else if (reduces_each(spec_) || (n == spec_.micro_batches && spec_.overlaps_reduce))
        write_reduce(chunk, b);
      if (!is_full(spec_) && reduces_each(spec_) && !spec_.overlaps_reduce) wait_for_reduces();
    }
  }

  // The turns of buckets whose weights are gathered.

  std::size_t position(bool backward, std::size_t b) const { return bucket_at(backward, b, turns_.size()); }
  int whole(int chunk, std::size_t b) const { return pair(chunk, b).whole; }

  void begin_turn(bool backward, int chunk, std::size_t b) {
    std::vector<int>& gathered = gathered_[static_cast<std::size_t>(chunk)];
    const std::size_t at = position(backward, b), n = turns_.size();
    for (const std::size_t other : turns_[at].gathers) {
      const std::int64_t parameters = buckets_[static_cast<std::size_t>(chunk)][other].parameters;
      const int call = frame_.add_call(gather_of(spec_, stage_, parameters), "gather " + name_of_bucket(chunk, other),
                                       {pair(chunk, other).weights}, 1, {whole(chunk, other)});
      Task& gather = write_call(data_, call);
      if (n_tasks(0) > 0)
        gather.after.push_back({0, n_tasks(0), 0});
      else
        gather.after.push_back({0, all_tasks, 1});
      gathered[other] = n_tasks(data_);
    }
    if (gathered[b] > 0) next_after_.push_back({data_, std::exchange(gathered[b], 0), 0});
    if (backward && at >= 2 && reduced_.size() == at) next_after_.push_back({data_, reduced_[at - 2], 0});
    next_touches_.push_back({As::read_whole, whole(chunk, b), -1});
    if (keeps_embedding(spec_) && b == 0 && n > 1) next_touches_.push_back({As::read_whole, whole(chunk, n - 1), -1});
  }

  void end_turn(bool backward, int chunk, std::size_t b) {
    const GatherTurn& turn = turns_[position(backward, b)];
    if (turn.drops) stream(0).back().touches.push_back({As::drop, whole(chunk, b), -1});
    if (!turn.reduces) return;
    write_reduce(chunk, b);
    reduced_.push_back(n_tasks(data_));
  }

  const Weights& pair(int chunk, std::size_t b) const {
    return frame_.weights(chunk, buckets_[static_cast<std::size_t>(chunk)][b]);
  }

  std::string name_of_bucket(int chunk, std::size_t b) const {
    return is_full(spec_) ? layers(chunk)[buckets_[static_cast<std::size_t>(chunk)][b].first].name
                          : named(buckets_[static_cast<std::size_t>(chunk)][b]);
  }
  static std::string named(const PlanBucket& bucket) {
    return fmt::format("{} {}", bucket.has_experts ? "expert bucket" : "bucket", bucket.number);
  }

  void wait_for_reduces() {
    for (const Stream stream : {data_, replica_})
      if (stream >= 0 && n_tasks(stream) > 0) next_after_.push_back({stream, n_tasks(stream), 0});
  }

  Program::Variables variables_of(int chunk, std::size_t b, bool gradient) const {
    const Weights& own = pair(chunk, b);
    Program::Variables variables{gradient ? own.gradient : own.weights};
    if (has_tied(spec_, stage_, chunk, buckets_[static_cast<std::size_t>(chunk)][b]))
      variables.push_back(gradient ? frame_.tied().gradient : frame_.tied().weights);
    return variables;
  }

  void write_reduce(int chunk, std::size_t b) {
    const PlanBucket& bucket = buckets_[static_cast<std::size_t>(chunk)][b];
    if (!is_reduced(spec_, bucket)) return;
    const std::int64_t parameters = parameters_of(spec_, stage_, chunk, bucket);
    const Program::Variables sum{pair(chunk, b).sum};
    const bool is_apart = frame_.sums_apart() && !is_hybrid(spec_);
    const int call =
        frame_.add_call(reduce_of(spec_, stage_, parameters, bucket.has_experts), "reduce " + name_of_bucket(chunk, b),
                        variables_of(chunk, b, true), spec_.grid.data(), is_apart ? sum : Program::Variables{});
    write_call(data_, call).after.push_back({0, n_tasks(0), 0});
    if (!is_hybrid(spec_)) return;
    const int over_replicas = frame_.add_call(replica_sum_of(spec_, stage_, parameters),
                                              "sum " + name_of_bucket(chunk, b), variables_of(chunk, b, true), 1, sum);
    write_call(replica_, over_replicas).after.push_back({data_, n_tasks(data_), 0});
  }

  // Gathers come last on their stream, in the order in which forward passes want them.
  void plan_gathers() {
    int n_before = 0;
    for (const std::vector<PlanBucket>& buckets : buckets_)
      for (const PlanBucket& bucket : buckets)
        if (is_reduced(spec_, bucket)) n_before += reduces_each(spec_) ? spec_.micro_batches : 1;
    if (is_tied(spec_) && (stage_ == 0 || stage_ + 1 == frame_.stages())) ++n_before;
    for (std::size_t chunk = 0; chunk < buckets_.size(); ++chunk) {
      gathers_[chunk].resize(buckets_[chunk].size());
      for (std::size_t b = buckets_[chunk].size(); b-- > 0;)
        if (updates_parts(spec_, buckets_[chunk][b])) gathers_[chunk][b] = ++n_before;
    }
  }

  void write_data() {
    const bool reduces_now = !spec_.overlaps_reduce && !frame_.sums_apart();
    for (std::size_t chunk = 0; chunk < buckets_.size() && reduces_now; ++chunk)
      for (std::size_t b = 0; b < buckets_[chunk].size(); ++b) write_reduce(static_cast<int>(chunk), b);
    if (is_tied(spec_) && (stage_ == 0 || stage_ + 1 == frame_.stages()))
      write_call(data_, frame_.embedding_call()).after.push_back({0, n_tasks(0), 0});
    wait_for_reduces();
    Task& update = write_kernel("update", spec_.update[static_cast<std::size_t>(stage_)]);
    for (std::size_t chunk = 0; chunk < buckets_.size(); ++chunk)
      for (std::size_t b = 0; b < buckets_[chunk].size(); ++b) {
        const Weights& its = pair(static_cast<int>(chunk), b);
        if (buckets_[chunk][b].has_experts && !is_reduced(spec_, buckets_[chunk][b]))
          update.touches.push_back({As::divide, its.gradient, -1, spec_.grid.data()});
        update.touches.push_back({As::apply, frame_.sums_apart() ? its.sum : its.gradient, its.weights});
      }
    if (is_tied(spec_) && (stage_ == 0 || stage_ + 1 == frame_.stages()))
      update.touches.push_back({As::apply, frame_.tied().gradient, frame_.tied().weights});
    if (is_full(spec_)) return;
    for (std::size_t chunk = 0; chunk < buckets_.size(); ++chunk)
      for (std::size_t b = buckets_[chunk].size(); b-- > 0;) {
        const PlanBucket& bucket = buckets_[chunk][b];
        if (!updates_parts(spec_, bucket)) continue;
        const std::int64_t parameters = parameters_of(spec_, stage_, static_cast<int>(chunk), bucket);
        const int call = frame_.add_call(gather_of(spec_, stage_, parameters, bucket.has_experts),
                                         "gather " + named(bucket), variables_of(static_cast<int>(chunk), b, false));
        write_call(data_, call).after.push_back({0, n_tasks(0), 0});
        ensure(n_tasks(data_) == gathers_[chunk][b], "gathers come where forward passes wait for them");
      }
  }

  const PlanSpec& spec_;
  PlanFrame& frame_;
  int stage_;
  WatchedWork* work_;
  Stream data_, replica_, context_;
  Program::Role role_;
  int chunk_ = 0;                                 // of the pass that is written
  std::vector<std::vector<PlanBucket>> buckets_;  // [chunk]
  std::vector<std::vector<int>> gathers_;         // [chunk][bucket] how many tasks of the data stream that is
  std::vector<GatherTurn> turns_;                 // of the pass that is written
  std::vector<std::vector<int>> gathered_;        // [chunk][bucket] likewise, until a kernel has waited for it; 0
  std::vector<int> reduced_;                      // [position] likewise, of the pass that is written
  std::vector<int> begun_, added_;                // [chunk] passes so far
  std::vector<Program::After> next_after_;        // of the next kernel, and so is this
  std::vector<Program::Touch> next_touches_;
};

}  // namespace

PlanProgram plan_program(const PlanSpec& spec, const std::function<PlanCall(const PlanExchange&)>& call,
                         WatchedWork* work) {
  ensure(
      spec.layers.size() == static_cast<std::size_t>(spec.grid.pipeline()) && spec.update.size() == spec.layers.size(),
      "every stage has layers and an update");
  for (const auto& chunks : spec.layers) {
    ensure(chunks.size() == static_cast<std::size_t>(spec.chunks), "every stage has its chunks");
    for (const auto& layers : chunks) ensure(!layers.empty(), "every chunk has a layer");
  }
  ensure(!spec.forward_only || (spec.grid.pipeline() == 1 && spec.grid.data() == spec.grid.expert() &&
                                spec.chunks == 1 && spec.micro_batches == 1),
         "a forward pass alone is that of one tensor group or one expert group");
  ensure(!spec.shares_cut_streams || spec.schedule == PipelineSchedule::gpipe,
         "activations and gradients share a stream with gpipe alone");
  if (spec.shape().splits_backward()) {
    ensure(spec.shard == PlanShard::none || spec.shard == PlanShard::optimizer,
           "gradients of weights in passes of their own are reduced once a step");
    for (const auto& chunks : spec.layers)
      for (const PlanLayer& layer : chunks.front())
        ensure(!layer.weights.empty(), "every layer has gradients of weights");
  }
  ensure(!is_full(spec) || !is_tied(spec), "weights that are gathered lie on one stage");
  ensure(spec.shard != PlanShard::optimizer_gradients || spec.grid.pipeline() == 1,
         "parts of gradients need one stage");
  ensure(!spec.scatters || (spec.grid.tensor() > 1 && spec.grid.pipeline() > 1),
         "parts of activations are those of tensor ranks of several stages");
  ensure(!has_rings(spec) || (spec.grid.context() > 1 && !spec.forward_only), "a ring has context ranks that train");
  ensure(!spec.grid.has_experts_apart() || spec.shard == PlanShard::none || spec.shard == PlanShard::optimizer,
         "experts on several ranks are reduced once a step");
  PlanFrame frame(spec, call, work);
  for (int stage = 0; stage < frame.stages(); ++stage) frame.add_role(StageWriter(spec, frame, stage, work).write());
  return frame.finish();
}

}  // namespace ringsim
