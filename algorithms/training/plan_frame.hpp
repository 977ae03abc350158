// What the stages of a plan's program share: its streams, variables, promises and calls.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "algorithms/training/plan_exchanges.hpp"
#include "algorithms/training/plan_program.hpp"

namespace ringsim::plan_detail {

/// The program while stages are written into it, one after the other.
class PlanFrame {
 public:
  enum class Pass : std::uint8_t { forward, backward };

  /// The variables of a bucket of weights; -1: the plan has none of this kind.
  struct Weights {
    int gradient = -1, weights = -1;
    int sum = -1;    ///< the rank's part of the gradient, over all micro-batches
    int whole = -1;  ///< the weights of all ranks
  };

  /// -1: the plan has no such stream.
  struct Streams {
    Stream tensor = -1, first_cut = 1, data = -1, replica = -1, context = -1, expert = -1;
  };

  /// All must outlive it. `call`: as plan_program() has it.
  PlanFrame(const PlanSpec& spec, const std::function<PlanCall(const PlanExchange&)>& call, WatchedWork* work);

  int stages() const { return spec_.grid.pipeline(); }
  /// Chunks of all stages: activations pass through them in order. Cut i lies between places i and i + 1.
  int places() const { return stages() * spec_.chunks; }

  std::size_t n_streams() const { return out_.program.streams.size(); }
  const Streams& streams() const { return streams_; }
  int n_cut_streams() const { return (spec_.shares_cut_streams ? 1 : 2) * n_colors(); }
  Stream stream_of(Pass pass, int cut) const;
  Stream stream_of(PlanUse use) const;

  int cut_variable(Pass pass, int cut, int m) const;
  /// The variable of the activations, or of their gradients, that tensor ranks gathered last; -1: without `scatters`.
  int gathered(Pass pass) const { return gathered_[pass == Pass::forward ? 0 : 1]; }
  int saved(int chunk, int m) const { return first_saved_ + chunk * spec_.micro_batches + m; }
  int left(int m) const { return first_left_ + m; }
  /// The variable that a collective moves, and that the kernel before it makes.
  int variable_of(const PlanKernel& collective) const;
  const Weights& weights(int chunk, const PlanBucket& bucket) const {
    return (bucket.has_experts ? expert_weights_ : weights_)[static_cast<std::size_t>(chunk)][bucket.number];
  }
  const Weights& tied() const { return tied_; }
  const Program::Ring& ring() const { return ring_; }
  /// A rank adds up its part of reduced gradients next to those that its passes make.
  bool sums_apart() const { return is_full(spec_) || reduces_each(spec_); }

  int add_call(const PlanExchange& exchange, std::string name, Program::Variables variables, int divisor = 1,
               Program::Variables into = {});
  /// Both stages at a cut make the same call.
  int cut_call(Pass pass, int cut, int m);
  /// That of the first and of the last stage, which share an embedding.
  int embedding_call();
  Picoseconds launch_of(int call) const { return launches_[static_cast<std::size_t>(call)]; }

  void promise_alive(Program::Alive alive) { out_.program.alive.push_back(std::move(alive)); }
  /// The role of the next stage.
  void add_role(Program::Role role) { out_.program.roles.push_back(std::move(role)); }
  /// When all stages have their roles; adds those of helpers.
  PlanProgram finish();

 private:
  struct Known {
    PlanCall how;
    std::vector<Actor> members;
  };
  struct Set {  // the helpers of a use at a stage, and what they call, in order
    Actor first = -1;
    int each = 0;  // of a group
    std::vector<int> calls;
  };

  int n_colors() const;
  int color(int edge) const { return stages() % 2 == 1 && edge == stages() - 1 ? 2 : edge % 2; }
  void add_streams();
  int add_variable(std::string name);
  void add_variables();
  void add_ring();
  void add_weights(int chunk, bool experts);
  void add_tied();
  int number_of(Program::Groups groups);
  void promise(int gradient, int weights, Program::Groups groups);
  const Known& known(const PlanExchange& exchange);
  void add_helpers(const PlanExchange& exchange, int groups, int each, Set& set);
  void write_helpers();

  const PlanSpec& spec_;
  const std::function<PlanCall(const PlanExchange&)>& ask_;
  WatchedWork* work_;
  PlanProgram out_;
  Streams streams_;
  std::array<int, 2> gathered_{-1, -1};  // [pass]
  int partial_ = -1, keys_ = -1, tokens_ = -1, first_cut_variable_ = 0, first_saved_ = 0, first_left_ = 0;
  std::vector<std::vector<Weights>> weights_, expert_weights_;  // [chunk][number of the bucket]
  Weights tied_;
  int embedding_call_ = -1;
  Program::Ring ring_;  // of context ranks
  std::map<PlanExchange, Known> known_;
  std::map<std::pair<PlanUse, int>, Set> sets_;
  std::map<std::array<int, 3>, int> cut_calls_;  // by direction, cut and micro-batch
  std::vector<Picoseconds> launches_;            // [call]
};

}  // namespace ringsim::plan_detail
