#include "algorithms/training/plan_frame.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"

namespace ringsim::plan_detail {

PlanFrame::PlanFrame(const PlanSpec& spec, const std::function<PlanCall(const PlanExchange&)>& call, WatchedWork* work)
    : spec_(spec), ask_(call), work_(work) {
  out_.program.name = spec.name;
  out_.program.iterations = spec.iterations;
  out_.program.overlaps_next = spec.overlaps_gather && updates_parts(spec) && spec.shard != PlanShard::full;
  out_.program.ranks = out_.program.actors = spec.grid.ranks();
  out_.program.role_of.resize(static_cast<std::size_t>(spec.grid.ranks()));
  for (Actor rank = 0; rank < spec.grid.ranks(); ++rank)
    out_.program.role_of[static_cast<std::size_t>(rank)] = spec.grid.digits(rank).stage;
  add_streams();
  add_variables();
}

PlanProgram PlanFrame::finish() {
  write_helpers();
  out_.tensor = streams_.tensor;
  out_.data = streams_.data;
  out_.replica = streams_.replica;
  out_.context = streams_.context;
  out_.expert = streams_.expert;
  return std::move(out_);
}

// Streams.

// Edge e joins stage e and the next one. Edges that meet at a stage have streams of their own.
int PlanFrame::n_colors() const {
  if (stages() == 1) return 0;
  if (spec_.chunks == 1) return std::min(2, stages() - 1);
  return stages() % 2 == 0 ? 2 : 3;
}

Stream PlanFrame::stream_of(Pass pass, int cut) const {
  const bool is_forward = pass == Pass::forward || spec_.shares_cut_streams;
  return streams_.first_cut + (is_forward ? 0 : n_colors()) + color(cut % stages());
}

Stream PlanFrame::stream_of(PlanUse use) const {
  ensure(use != PlanUse::forward && use != PlanUse::backward, "what stages hand on is on streams of cuts");
  return use == PlanUse::tensor                                                         ? streams_.tensor
         : use == PlanUse::context || use == PlanUse::ring || use == PlanUse::ring_back ? streams_.context
         : use == PlanUse::expert                                                       ? streams_.expert
         : use == PlanUse::replica                                                      ? streams_.replica
                                                                                        : streams_.data;
}

void PlanFrame::add_streams() {
  const auto add = [&](Program::StreamKind kind) {
    out_.program.streams.push_back(kind);
    return static_cast<Stream>(out_.program.streams.size()) - 1;
  };
  using enum Program::StreamKind;
  add(compute);
  if (spec_.grid.tensor() > 1) streams_.tensor = add(communication);
  streams_.first_cut = static_cast<Stream>(out_.program.streams.size());
  for (int i = 0; i < n_cut_streams(); ++i) add(communication);
  if (!spec_.forward_only && (spec_.grid.data() > 1 || spec_.grid.expert_data() > 1 || is_tied(spec_)))
    streams_.data = add(communication);
  if (is_hybrid(spec_)) streams_.replica = add(communication);
  if (spec_.grid.context() > 1) streams_.context = add(communication);
  if (spec_.grid.expert() > 1) streams_.expert = add(communication);
}

// Variables, and what the program promises of them.

int PlanFrame::add_variable(std::string name) {
  done(work_);
  out_.program.variables.push_back(std::move(name));
  return static_cast<int>(out_.program.variables.size()) - 1;
}

void PlanFrame::add_variables() {
  if (streams_.tensor >= 0) partial_ = add_variable("the partial sums of a layer");
  if (streams_.context >= 0 && has_rings(spec_))
    add_ring();
  else if (streams_.context >= 0)
    keys_ = add_variable("keys and values of a layer, or their gradients");
  if (streams_.expert >= 0) tokens_ = add_variable("tokens of a layer's experts, or their gradients");
  if (spec_.forward_only) return;
  first_cut_variable_ = static_cast<int>(out_.program.variables.size());
  for (const char* what : {"activations", "gradients of activations"})
    for (int chunk = 0; chunk < spec_.chunks; ++chunk)
      for (int c = 0; c < n_colors(); ++c)
        for (int m = 0; m < spec_.micro_batches; ++m)
          add_variable(fmt::format("the {} of micro-batch {} between stages, chunk {}", what, m, chunk));
  if (spec_.scatters)
    gathered_ = {add_variable("activations from the stage before, gathered"),
                 add_variable("gradients of activations from the stage after, gathered")};
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

void PlanFrame::add_ring() {
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
void PlanFrame::add_weights(int chunk, bool experts) {
  std::vector<std::vector<int>> having;  // [bucket] stages
  for (int stage = 0; stage < stages(); ++stage)
    for (const PlanBucket& bucket : plan_buckets(spec_, stage, chunk)) {
      if (bucket.has_experts != experts) continue;
      if (having.size() <= bucket.number) having.resize(bucket.number + 1);
      having[bucket.number].push_back(stage);
    }
  std::vector<Weights>& its = (experts ? expert_weights_ : weights_).emplace_back();
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

void PlanFrame::add_tied() {
  const int gradient = add_variable("the gradient of the embedding"),
            weights = add_variable("the weights of the embedding");
  tied_ = {gradient, weights};
  const Program::Groups first = spec_.grid.data_groups(0), last = spec_.grid.data_groups(stages() - 1);
  Program::Groups groups = first;
  for (std::size_t g = 0; g < groups.size(); ++g) groups[g].insert(groups[g].end(), last[g].begin(), last[g].end());
  promise(gradient, weights, std::move(groups));
}

int PlanFrame::number_of(Program::Groups groups) {
  std::vector<Program::Groups>& known = out_.program.groups;
  auto at = std::find(known.begin(), known.end(), groups);
  if (at == known.end()) at = known.insert(known.end(), std::move(groups));
  return static_cast<int>(at - known.begin());
}
void PlanFrame::promise(int gradient, int weights, Program::Groups groups) {
  out_.program.learns.push_back({.weights = weights,
                                 .gradient = gradient,
                                 .how = Program::Learns::How::group_mean,
                                 .groups = number_of(std::move(groups)),
                                 .divisor = spec_.grid.data(),
                                 .times = spec_.micro_batches,
                                 .parts = is_full(spec_)});
}

int PlanFrame::cut_variable(Pass pass, int cut, int m) const {
  const int row = ((pass == Pass::forward ? 0 : spec_.chunks) + cut / stages()) * n_colors() + color(cut % stages());
  return first_cut_variable_ + row * spec_.micro_batches + m;
}

int PlanFrame::variable_of(const PlanKernel& collective) const {
  return collective.use == PlanUse::context ? keys_ : collective.use == PlanUse::expert ? tokens_ : partial_;
}

// Calls.

const PlanFrame::Known& PlanFrame::known(const PlanExchange& exchange) {
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

void PlanFrame::add_helpers(const PlanExchange& exchange, int groups, int each, Set& set) {
  set.first = out_.program.actors;
  set.each = each;
  out_.program.actors += groups * each;
  for (int group = 0; group < groups; ++group)
    for (int number = 0; number < each; ++number) out_.helpers.push_back({exchange.use, exchange.stage, group, number});
}

int PlanFrame::add_call(const PlanExchange& exchange, std::string name, Program::Variables variables, int divisor,
                        Program::Variables into) {
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

int PlanFrame::cut_call(Pass pass, int cut, int m) {
  const auto [found, is_new] = cut_calls_.try_emplace({pass == Pass::backward, cut, m}, 0);
  if (is_new)
    found->second = add_call({pass == Pass::forward ? PlanUse::forward : PlanUse::backward, cut % stages(),
                              CollectiveOp::send_recv, spec_.activations},
                             fmt::format("send {} micro-batch {}", pass == Pass::forward ? "on" : "back", m),
                             {cut_variable(pass, cut, m)});
  return found->second;
}

int PlanFrame::embedding_call() {
  if (embedding_call_ < 0)
    embedding_call_ =
        add_call({PlanUse::embedding, 0, CollectiveOp::all_reduce, Bytes{spec_.tied} * spec_.gradient_bytes},
                 "sum the embedding", {tied_.gradient});
  return embedding_call_;
}

// Helpers call what their group calls, in its order.
void PlanFrame::write_helpers() {
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

}  // namespace ringsim::plan_detail
