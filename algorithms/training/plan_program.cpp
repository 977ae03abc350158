#include "algorithms/training/plan_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "algorithms/training/plan_exchanges.hpp"
#include "algorithms/training/plan_gathers.hpp"
#include "algorithms/training/plan_ring.hpp"
#include "sim/base/error.hpp"

namespace ringsim {

namespace {

using namespace plan_detail;

class PlanWriter {
 public:
  PlanWriter(const PlanSpec& spec, const std::function<PlanCall(const PlanExchange&)>& call, WatchedWork* work)
      : spec_(spec), ask_(call), work_(work) {
    out_.program.name = spec.name;
    out_.program.iterations = spec.iterations;
    out_.program.ranks = out_.program.actors = spec.grid.ranks();
    out_.program.role_of.resize(static_cast<std::size_t>(spec.grid.ranks()));
    for (Actor rank = 0; rank < spec.grid.ranks(); ++rank)
      out_.program.role_of[static_cast<std::size_t>(rank)] = spec.grid.digits(rank).stage;
    add_streams();
    add_variables();
  }

  PlanProgram write() {
    for (int stage = 0; stage < stages(); ++stage) write_stage(stage);
    write_helpers();
    out_.tensor = tensor_;
    out_.data = data_;
    out_.replica = replica_;
    out_.context = context_;
    out_.expert = expert_;
    return std::move(out_);
  }

 private:
  using Task = Program::Task;
  using As = Program::Touch::As;
  enum class Pass : std::uint8_t { forward, backward };

  struct Pair {
    int gradient = -1, weights = -1;
    int sum = -1;    // the rank's part of the gradient, over all micro-batches
    int whole = -1;  // the weights of all ranks
  };

  // Placeholders for the number of tasks that an `after` waits for, until it is known.
  static constexpr int all_tasks = -1, all_passes = -2;

  int stages() const { return spec_.grid.pipeline(); }
  int places() const { return stages() * spec_.chunks; }

  // Edge e joins stage e and the next one. Edges that meet at a stage have streams of their own.
  int n_colors() const {
    if (stages() == 1) return 0;
    if (spec_.chunks == 1) return std::min(2, stages() - 1);
    return stages() % 2 == 0 ? 2 : 3;
  }
  int color(int edge) const { return stages() % 2 == 1 && edge == stages() - 1 ? 2 : edge % 2; }
  int n_cut_streams() const { return (spec_.shares_cut_streams ? 1 : 2) * n_colors(); }
  Stream stream_of(Pass pass, int cut) const {
    const bool is_forward = pass == Pass::forward || spec_.shares_cut_streams;
    return first_cut_stream_ + (is_forward ? 0 : n_colors()) + color(cut % stages());
  }

  void add_streams() {
    const auto add = [&](Program::StreamKind kind) {
      out_.program.streams.push_back(kind);
      return static_cast<Stream>(out_.program.streams.size()) - 1;
    };
    using enum Program::StreamKind;
    add(compute);
    if (spec_.grid.tensor() > 1) tensor_ = add(communication);
    first_cut_stream_ = static_cast<Stream>(out_.program.streams.size());
    for (int i = 0; i < n_cut_streams(); ++i) add(communication);
    if (!spec_.forward_only && (spec_.grid.data() > 1 || spec_.grid.expert_data() > 1 || is_tied(spec_)))
      data_ = add(communication);
    if (is_hybrid(spec_)) replica_ = add(communication);
    if (spec_.grid.context() > 1) context_ = add(communication);
    if (spec_.grid.expert() > 1) expert_ = add(communication);
  }

  int add_variable(std::string name) {
    done(work_);
    out_.program.variables.push_back(std::move(name));
    return static_cast<int>(out_.program.variables.size()) - 1;
  }

  void add_variables() {
    if (tensor_ >= 0) partial_ = add_variable("the partial sums of a layer");
    if (context_ >= 0 && has_rings(spec_))
      add_ring();
    else if (context_ >= 0)
      keys_ = add_variable("keys and values of a layer, or their gradients");
    if (expert_ >= 0) tokens_ = add_variable("tokens of a layer's experts, or their gradients");
    if (spec_.forward_only) return;
    first_cut_variable_ = static_cast<int>(out_.program.variables.size());
    for (const char* what : {"activations", "gradients of activations"})
      for (int chunk = 0; chunk < spec_.chunks; ++chunk)
        for (int c = 0; c < n_colors(); ++c)
          for (int m = 0; m < spec_.micro_batches; ++m)
            add_variable(fmt::format("the {} of micro-batch {} between stages, chunk {}", what, m, chunk));
    first_saved_ = static_cast<int>(out_.program.variables.size());
    for (int chunk = 0; chunk < spec_.chunks; ++chunk)
      for (int m = 0; m < spec_.micro_batches; ++m)
        add_variable(fmt::format("what the backward pass of micro-batch {} needs in chunk {}", m, chunk));
    first_left_ = static_cast<int>(out_.program.variables.size());
    if (spec_.shape().splits_backward())
      for (int m = 0; m < spec_.micro_batches; ++m)
        add_variable(fmt::format("what the backward pass of micro-batch {} leaves to that for weights", m));
    for (int chunk = 0; chunk < spec_.chunks; ++chunk) {
      add_weights(chunk, false);
      add_weights(chunk, true);
    }
    if (is_tied(spec_)) add_tied();
  }

  void add_ring() {
    for (const bool is_gradient : {false, true})
      for (int d = 0; d < spec_.grid.context(); ++d) {
        const std::string whose = d == 0 ? "the rank's own keys and values"
                                         : fmt::format("keys and values of the rank {} before in the ring", d);
        const int variable = add_variable((is_gradient ? "the gradient of " : "") + whose);
        (is_gradient ? ring_.gradients : ring_.blocks).push_back(variable);
      }
    Program::Groups groups;
    for (int stage = 0; stage < stages(); ++stage)
      for (std::vector<Actor>& group : spec_.grid.context_groups(stage)) groups.push_back(std::move(group));
    ring_.groups = number_of(std::move(groups));
    out_.program.rings.push_back(ring_);
  }

  // Bucket b of a chunk has the same variables at each stage that has such a bucket.
  void add_weights(int chunk, bool experts) {
    std::vector<std::vector<int>> having;  // [bucket] stages
    for (int stage = 0; stage < stages(); ++stage)
      for (const PlanBucket& bucket : plan_buckets(spec_, stage, chunk)) {
        if (bucket.has_experts != experts) continue;
        if (having.size() <= bucket.number) having.resize(bucket.number + 1);
        having[bucket.number].push_back(stage);
      }
    std::vector<Pair>& its = (experts ? expert_weights_ : weights_).emplace_back();
    for (std::size_t b = 0; b < having.size(); ++b) {
      const std::string of = fmt::format("{} {} of chunk {}", experts ? "expert bucket" : "bucket", b, chunk);
      const int gradient = add_variable("the gradient of " + of), weights = add_variable("the weights of " + of);
      its.push_back({gradient, weights});
      if (sums_apart()) its.back().sum = add_variable("the reduced gradient of " + of);
      if (is_full(spec_)) its.back().whole = add_variable("the gathered weights of " + of);
      Program::Groups groups;
      for (const int stage : having[b])
        for (std::vector<Actor>& group : experts ? spec_.grid.expert_data_groups(stage) : spec_.grid.data_groups(stage))
          groups.push_back(std::move(group));
      promise(gradient, weights, std::move(groups));
    }
  }

  void add_tied() {
    const int gradient = add_variable("the gradient of the embedding"),
              weights = add_variable("the weights of the embedding");
    tied_ = {gradient, weights};
    const Program::Groups first = spec_.grid.data_groups(0), last = spec_.grid.data_groups(stages() - 1);
    Program::Groups groups = first;
    for (std::size_t g = 0; g < groups.size(); ++g) groups[g].insert(groups[g].end(), last[g].begin(), last[g].end());
    promise(gradient, weights, std::move(groups));
  }

  int number_of(Program::Groups groups) {
    std::vector<Program::Groups>& known = out_.program.groups;
    auto at = std::find(known.begin(), known.end(), groups);
    if (at == known.end()) at = known.insert(known.end(), std::move(groups));
    return static_cast<int>(at - known.begin());
  }
  void promise(int gradient, int weights, Program::Groups groups) {
    out_.program.learns.push_back({.weights = weights,
                                   .gradient = gradient,
                                   .how = Program::Learns::How::group_mean,
                                   .groups = number_of(std::move(groups)),
                                   .divisor = spec_.grid.data(),
                                   .times = spec_.micro_batches,
                                   .parts = is_full(spec_)});
  }
  // A rank adds up its part of reduced gradients next to those that its passes make.
  bool sums_apart() const { return is_full(spec_) || reduces_each(spec_); }

  int cut_variable(Pass pass, int cut, int m) const {
    const int row = ((pass == Pass::forward ? 0 : spec_.chunks) + cut / stages()) * n_colors() + color(cut % stages());
    return first_cut_variable_ + row * spec_.micro_batches + m;
  }
  int saved(int chunk, int m) const { return first_saved_ + chunk * spec_.micro_batches + m; }
  int left(int m) const { return first_left_ + m; }

  // Calls.

  struct Known {
    PlanCall how;
    std::vector<Actor> members;
  };
  struct Set {  // the helpers of a use at a stage, and what they call, in order
    Actor first = -1;
    int each = 0;  // of a group
    std::vector<int> calls;
  };

  const Known& known(const PlanExchange& exchange) {
    const auto found = known_.find(exchange);
    if (found != known_.end()) return found->second;
    Known made{.how = ask_(exchange), .members = {}};
    const Schedule& schedule = made.how.schedule.schedule();
    const Program::Groups groups = plan_groups(spec_, exchange.use, exchange.stage);
    ensure(schedule.groups == static_cast<int>(groups.size()), "each group of a stage has a schedule");
    const int n = schedule.actors / schedule.groups, helpers = n - static_cast<int>(groups.front().size());
    Set& set = sets_[{exchange.use, exchange.stage}];
    if (helpers > 0 && set.first < 0) add_helpers(exchange, static_cast<int>(groups.size()), helpers, set);
    ensure(helpers == 0 || helpers == set.each, "all calls of a group have the same helpers");
    for (std::size_t g = 0; g < groups.size(); ++g) {
      made.members.insert(made.members.end(), groups[g].begin(), groups[g].end());
      for (int h = 0; h < helpers; ++h) made.members.push_back(set.first + static_cast<int>(g) * helpers + h);
    }
    return known_.emplace(exchange, std::move(made)).first->second;
  }

  void add_helpers(const PlanExchange& exchange, int groups, int each, Set& set) {
    set.first = out_.program.actors;
    set.each = each;
    out_.program.actors += groups * each;
    for (int group = 0; group < groups; ++group)
      for (int number = 0; number < each; ++number)
        out_.helpers.push_back({exchange.use, exchange.stage, group, number});
  }

  int add_call(const PlanExchange& exchange, std::string name, Program::Variables variables, int divisor = 1,
               Program::Variables into = {}) {
    const Known& its = known(exchange);
    const auto call = static_cast<int>(out_.program.calls.size());
    out_.program.calls.push_back({.name = std::move(name),
                                  .schedule = its.how.schedule,
                                  .members = its.members,
                                  .plan = its.how.plan,
                                  .variables = std::move(variables),
                                  .divisor = divisor,
                                  .into = std::move(into)});
    const int ranks_each = its.how.schedule.schedule().collective.ranks;
    if (its.how.schedule.schedule().actors > ranks_each * its.how.schedule.schedule().groups)
      sets_[{exchange.use, exchange.stage}].calls.push_back(call);
    launches_.push_back(its.how.launch);
    return call;
  }

  // A cut lies between two places; both of its stages make the same call.
  int cut_call(Pass pass, int cut, int m) {
    const auto [found, is_new] = cut_calls_.try_emplace({pass == Pass::backward, cut, m}, 0);
    if (is_new)
      found->second = add_call({pass == Pass::forward ? PlanUse::forward : PlanUse::backward, cut % stages(),
                                CollectiveOp::send_recv, spec_.activations},
                               fmt::format("send {} micro-batch {}", pass == Pass::forward ? "on" : "back", m),
                               {cut_variable(pass, cut, m)});
    return found->second;
  }

  // Tasks of the stage that is written.

  std::vector<Task>& stream(Stream number) { return role_.streams[static_cast<std::size_t>(number)]; }
  int n_tasks(Stream number) { return static_cast<int>(stream(number).size()); }

  Task& write_call(Stream number, int call) {
    done(work_);
    stream(number).push_back(
        {.name = {}, .time = launches_[static_cast<std::size_t>(call)], .call = call, .after = {}, .touches = {}});
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
          task.touches.push_back(
              {kernels[i + 1].use == PlanUse::expert && sent ? As::answer : As::make, variable_of(kernels[i + 1]), -1});
        continue;
      }
      const bool is_expert = kernel.use == PlanUse::expert, is_dispatch = is_expert && !sent;
      if (is_expert) sent = !sent;
      const Stream its = stream_of(kernel.use);
      const int call = add_call(
          {kernel.use, stage_, kernel.op, kernel.bytes},
          is_expert ? is_dispatch ? "dispatch tokens" : "combine tokens"
                    : fmt::format("{} {}", kernel.use == PlanUse::context ? "context" : "tensor", to_string(kernel.op)),
          {variable_of(kernel)});
      write_call(its, call).after.push_back({0, n_tasks(0), 0});
      if (kernels[i + 1].is_call()) {
        ensure(kernels[i + 1].use == kernel.use, "a kernel comes between collectives of different groups");
        continue;
      }
      next_after_.push_back({its, n_tasks(its), 0});
      next_touches_.push_back({kernel.op == CollectiveOp::reduce_scatter || is_dispatch ? As::read : As::read_whole,
                               variable_of(kernel), -1});
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
    const std::vector<RingItem> items = is_backward ? backward_ring(ring_) : forward_ring(ring_, is_kept ? shelf : -1);
    ensure(first > 0 && !kernels[first - 1].is_call() && first + items.size() < kernels.size(),
           "a kernel comes before a ring and after it");
    stream(0).back().touches.push_back(is_backward ? before_backward_ring(ring_, shelf) : before_forward_ring(ring_));
    const int hops_before = n_tasks(context_);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const PlanKernel& kernel = kernels[first + i];
      const RingItem& item = items[i];
      ensure(kernel.use == kernels[first].use && kernel.is_call() == item.is_hop,
             "the items of a ring are its hops, steps and sums, in order");
      if (item.is_hop) {
        const int call =
            add_call({kernel.use, stage_, kernel.op, kernel.bytes},
                     is_backward ? "context send_recv back" : "context send_recv", item.from, 1, item.into);
        write_call(context_, call).after.push_back({0, n_tasks(0) - item.ignores, 0});
        continue;
      }
      if (item.hops > 0) next_after_.push_back({context_, hops_before + item.hops, 0});
      for (const Program::Touch& touch : item.touches) next_touches_.push_back(touch);
      write_kernel(name_of(kernel, what, layer, m), kernel.time);
    }
    ensure(!kernels[first + items.size()].is_of_ring(), "a ring has no further items");
    for (const Program::Touch& touch : after_ring(ring_, is_backward)) next_touches_.push_back(touch);
    return first + items.size();
  }

  int variable_of(const PlanKernel& collective) const {
    return collective.use == PlanUse::context ? keys_ : collective.use == PlanUse::expert ? tokens_ : partial_;
  }
  Stream stream_of(PlanUse use) const {
    ensure(use != PlanUse::forward && use != PlanUse::backward, "what stages hand on is on streams of cuts");
    return use == PlanUse::tensor                                                         ? tensor_
           : use == PlanUse::context || use == PlanUse::ring || use == PlanUse::ring_back ? context_
           : use == PlanUse::expert                                                       ? expert_
           : use == PlanUse::replica                                                      ? replica_
                                                                                          : data_;
  }

  const std::vector<PlanLayer>& layers(int chunk) const {
    return spec_.layers[static_cast<std::size_t>(stage_)][static_cast<std::size_t>(chunk)];
  }

  // Nothing reads the result of the last kernel, and nothing is kept for a backward pass.
  void write_forward_alone() {
    for (const PlanLayer& layer : layers(0)) write_pass_of(layer.forward, "forward", layer, 0);
    out_.program.roles.push_back(std::move(role_));
  }

  void write_stage(int stage) {
    stage_ = stage;
    role_.streams.assign(out_.program.streams.size(), {});
    if (spec_.forward_only) return write_forward_alone();
    buckets_.clear();
    for (int chunk = 0; chunk < spec_.chunks; ++chunk) buckets_.push_back(plan_buckets(spec_, stage, chunk));
    gathers_.assign(buckets_.size(), {});
    if (!is_full(spec_)) plan_gathers();
    GatherOrder order(spec_, stage);
    gathered_.clear();
    for (const std::vector<PlanBucket>& buckets : buckets_) gathered_.emplace_back(buckets.size());
    next_after_.clear();
    next_touches_.clear();
    // All sends of the step before have ended and, without an overlap, all weights are gathered.
    for (Stream s = first_cut_stream_; s < first_cut_stream_ + n_cut_streams(); ++s)
      next_after_.push_back({s, all_tasks, 1});
    if (data_ >= 0 && !(updates_parts(spec_) && spec_.overlaps_gather)) next_after_.push_back({data_, all_tasks, 1});
    begun_.assign(buckets_.size(), 0);
    added_.assign(buckets_.size(), 0);
    for (const PipelinePass& pass : pipeline_order(spec_.shape(), stage)) {
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
    out_.program.roles.push_back(std::move(role_));
  }

  // The memory of a stage has room for so many passes in flight.
  void promise_alive() {
    Program::Alive alive{.role = stage_, .variables = {}, .most = passes_in_flight(spec_.shape(), stage_)};
    for (int chunk = 0; chunk < spec_.chunks; ++chunk)
      for (int m = 0; m < spec_.micro_batches; ++m) alive.variables.push_back(saved(chunk, m));
    out_.program.alive.push_back(std::move(alive));
  }

  void receive(Pass pass, int cut, int m) {
    const Stream from = stream_of(pass, cut);
    const bool is_first = n_tasks(from) == 0;
    Task& task = write_call(from, cut_call(pass, cut, m));
    if (is_first) task.after.push_back({0, all_passes, 1});  // then what came in before has been read
    next_after_.push_back({from, n_tasks(from), 0});
    next_touches_.push_back({As::read, cut_variable(pass, cut, m), -1});
  }
  void send(Pass pass, int cut, int m) {
    stream(0).back().touches.push_back({As::make, cut_variable(pass, cut, m), -1});
    write_call(stream_of(pass, cut), cut_call(pass, cut, m)).after.push_back({0, n_tasks(0), 0});
  }

  void write_forward(int chunk, int m) {
    const int place = chunk * stages() + stage_;
    chunk_ = chunk;
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
        if (has_tied(spec_, stage_, chunk, buckets[b])) next_touches_.push_back({As::read, tied_.weights, -1});
        if (is_first && spec_.overlaps_gather && updates_parts(spec_, buckets[b]))
          next_after_.push_back({data_, gathers_[static_cast<std::size_t>(chunk)][b], 1});
      }
      write_pass_of(layers(chunk)[l].forward, "forward", layers(chunk)[l], m);
      for (std::size_t b = 0; b < turns_.size(); ++b)
        if (buckets[b].end == l + 1) end_turn(false, chunk, b);
    }
    stream(0).back().touches.push_back({As::make, saved(chunk, m), -1});
    if (place + 1 < places()) send(Pass::forward, place, m);
  }

  void write_backward(int chunk, int m) {
    const int place = chunk * stages() + stage_;
    chunk_ = chunk;
    if (place + 1 < places()) receive(Pass::backward, place, m);
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
    Task& last = stream(0).back();
    last.touches.push_back({As::read, saved(chunk, m), -1});
    if (splits) last.touches.push_back({As::make, left(m), -1});
    if (place > 0) last.touches.push_back({As::read, cut_variable(Pass::forward, place - 1, m), -1});
    if (place > 0) send(Pass::backward, place - 1, m);
  }

  void write_weights(int chunk, int m) {
    chunk_ = chunk;
    begin_gradients(chunk);
    next_touches_.push_back({As::read, left(m), -1});
    for (std::size_t l = layers(chunk).size(); l-- > 0;) {
      write_pass_of(layers(chunk)[l].weights, "weights", layers(chunk)[l], m);
      add_gradients(chunk, l);
    }
    stream(0).back().touches.push_back({As::read, saved(chunk, m), -1});
    if (stage_ > 0) stream(0).back().touches.push_back({As::read, cut_variable(Pass::forward, stage_ - 1, m), -1});
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
      if (has_tied(spec_, stage_, chunk, buckets[b])) task.touches.push_back({how, tied_.gradient, -1});
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
      const int call = add_call(gather_of(spec_, stage_, parameters), "gather " + name_of_bucket(chunk, other),
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

  const Pair& pair(int chunk, std::size_t b) const {
    const PlanBucket& bucket = buckets_[static_cast<std::size_t>(chunk)][b];
    return (bucket.has_experts ? expert_weights_ : weights_)[static_cast<std::size_t>(chunk)][bucket.number];
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
    const Pair& own = pair(chunk, b);
    Program::Variables variables{gradient ? own.gradient : own.weights};
    if (has_tied(spec_, stage_, chunk, buckets_[static_cast<std::size_t>(chunk)][b]))
      variables.push_back(gradient ? tied_.gradient : tied_.weights);
    return variables;
  }

  void write_reduce(int chunk, std::size_t b) {
    const PlanBucket& bucket = buckets_[static_cast<std::size_t>(chunk)][b];
    if (!is_reduced(spec_, bucket)) return;
    const std::int64_t parameters = parameters_of(spec_, stage_, chunk, bucket);
    const Program::Variables sum{pair(chunk, b).sum};
    const bool is_apart = sums_apart() && !is_hybrid(spec_);
    const int call =
        add_call(reduce_of(spec_, stage_, parameters, bucket.has_experts), "reduce " + name_of_bucket(chunk, b),
                 variables_of(chunk, b, true), spec_.grid.data(), is_apart ? sum : Program::Variables{});
    write_call(data_, call).after.push_back({0, n_tasks(0), 0});
    if (!is_hybrid(spec_)) return;
    const int over_replicas = add_call(replica_sum_of(spec_, stage_, parameters), "sum " + name_of_bucket(chunk, b),
                                       variables_of(chunk, b, true), 1, sum);
    write_call(replica_, over_replicas).after.push_back({data_, n_tasks(data_), 0});
  }

  // Gathers come last on their stream, in the order in which forward passes want them.
  void plan_gathers() {
    int n_before = 0;
    for (const std::vector<PlanBucket>& buckets : buckets_)
      for (const PlanBucket& bucket : buckets)
        if (is_reduced(spec_, bucket)) n_before += reduces_each(spec_) ? spec_.micro_batches : 1;
    if (is_tied(spec_) && (stage_ == 0 || stage_ + 1 == stages())) ++n_before;
    for (std::size_t chunk = 0; chunk < buckets_.size(); ++chunk) {
      gathers_[chunk].resize(buckets_[chunk].size());
      for (std::size_t b = buckets_[chunk].size(); b-- > 0;)
        if (updates_parts(spec_, buckets_[chunk][b])) gathers_[chunk][b] = ++n_before;
    }
  }

  void write_data() {
    const bool reduces_now = !spec_.overlaps_reduce && !sums_apart();
    for (std::size_t chunk = 0; chunk < buckets_.size() && reduces_now; ++chunk)
      for (std::size_t b = 0; b < buckets_[chunk].size(); ++b) write_reduce(static_cast<int>(chunk), b);
    if (is_tied(spec_) && (stage_ == 0 || stage_ + 1 == stages())) {
      if (stage_ == 0)
        tied_call_ =
            add_call({PlanUse::embedding, 0, CollectiveOp::all_reduce, Bytes{spec_.tied} * spec_.gradient_bytes},
                     "sum the embedding", {tied_.gradient});
      write_call(data_, tied_call_).after.push_back({0, n_tasks(0), 0});
    }
    wait_for_reduces();
    Task& update = write_kernel("update", spec_.update[static_cast<std::size_t>(stage_)]);
    for (std::size_t chunk = 0; chunk < buckets_.size(); ++chunk)
      for (std::size_t b = 0; b < buckets_[chunk].size(); ++b) {
        const Pair& its = pair(static_cast<int>(chunk), b);
        if (buckets_[chunk][b].has_experts && !is_reduced(spec_, buckets_[chunk][b]))
          update.touches.push_back({As::divide, its.gradient, -1, spec_.grid.data()});
        update.touches.push_back({As::apply, sums_apart() ? its.sum : its.gradient, its.weights});
      }
    if (is_tied(spec_) && (stage_ == 0 || stage_ + 1 == stages()))
      update.touches.push_back({As::apply, tied_.gradient, tied_.weights});
    if (is_full(spec_)) return;
    for (std::size_t chunk = 0; chunk < buckets_.size(); ++chunk)
      for (std::size_t b = buckets_[chunk].size(); b-- > 0;) {
        const PlanBucket& bucket = buckets_[chunk][b];
        if (!updates_parts(spec_, bucket)) continue;
        const std::int64_t parameters = parameters_of(spec_, stage_, static_cast<int>(chunk), bucket);
        const int call = add_call(gather_of(spec_, stage_, parameters, bucket.has_experts), "gather " + named(bucket),
                                  variables_of(static_cast<int>(chunk), b, false));
        write_call(data_, call).after.push_back({0, n_tasks(0), 0});
        ensure(n_tasks(data_) == gathers_[chunk][b], "gathers come where forward passes wait for them");
      }
  }

  // Helpers call what their group calls, in its order.
  void write_helpers() {
    out_.program.role_of.resize(static_cast<std::size_t>(out_.program.actors));
    for (const auto& [key, set] : sets_) {
      if (set.first < 0) continue;
      Program::Role role;
      role.streams.resize(out_.program.streams.size());
      const Stream its = stream_of(key.first);
      for (const int call : set.calls)
        role.streams[static_cast<std::size_t>(its)].push_back(
            {.name = {}, .time = Picoseconds{0}, .call = call, .after = {}, .touches = {}});
      const auto n = plan_groups(spec_, key.first, key.second).size() * static_cast<std::size_t>(set.each);
      for (std::size_t h = 0; h < n; ++h)
        out_.program.role_of[static_cast<std::size_t>(set.first) + h] = static_cast<int>(out_.program.roles.size());
      out_.program.roles.push_back(std::move(role));
    }
  }

  const PlanSpec& spec_;
  const std::function<PlanCall(const PlanExchange&)>& ask_;
  WatchedWork* work_;
  PlanProgram out_;
  Stream tensor_ = -1, first_cut_stream_ = 1, data_ = -1, replica_ = -1, context_ = -1, expert_ = -1;
  int partial_ = -1, keys_ = -1, tokens_ = -1, first_cut_variable_ = 0, first_saved_ = 0, first_left_ = 0;
  std::vector<std::vector<Pair>> weights_, expert_weights_;  // [chunk][number of the bucket]
  Pair tied_;
  int tied_call_ = -1;
  Program::Ring ring_;  // of context ranks
  std::map<PlanExchange, Known> known_;
  std::map<std::pair<PlanUse, int>, Set> sets_;
  std::map<std::array<int, 3>, int> cut_calls_;  // by direction, cut and micro-batch
  std::vector<Picoseconds> launches_;            // [call]
  // Of the stage that is written:
  int stage_ = 0;
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
  ensure(!has_rings(spec) || (spec.grid.context() > 1 && !spec.forward_only), "a ring has context ranks that train");
  ensure(!spec.grid.has_experts_apart() || spec.shard == PlanShard::none || spec.shard == PlanShard::optimizer,
         "experts on several ranks are reduced once a step");
  return PlanWriter(spec, call, work).write();
}

}  // namespace ringsim
