// The place of each rank in a plan of tensor, pipeline, data, context and expert parallelism.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace ringsim {

/// The sizes of a plan, and how its ranks are numbered: Megatron-LM's `order` (megatron/core/parallel_state.py,
/// initialize_model_parallel with its two rank generators), whose first digit varies fastest.
class PlanGrid {
 public:
  struct Digits {
    int tensor = 0, stage = 0, data = 0;
    bool operator==(const Digits&) const = default;
  };

  PlanGrid() = default;
  /// `order`: "tp-cp-ep-dp-pp", any permutation of these five. Requires is_order(order) and sizes of at least 1.
  /// `data`: ranks that have the same part of the model, of which `context` at a time, a divisor, share each sample:
  /// rank i of them is context rank i mod context.
  /// Experts have digits of their own, in the same order but without context: `expert_tensor` ranks split each expert,
  /// `expert` ranks have different ones, and what is left of a stage has the same ones. Requires that
  /// expert_tensor times expert divides tensor times data, and that expert_tensor is 1 or tensor.
  PlanGrid(int tensor, int pipeline, int data, const std::string& order, int context = 1, int expert = 1,
           int expert_tensor = 0);  // 0: tensor
  static bool is_order(const std::string& order);

  int tensor() const { return tensor_; }
  int pipeline() const { return pipeline_; }
  int data() const { return data_; }
  int context() const { return context_; }
  int expert() const { return expert_; }
  int expert_tensor() const { return expert_tensor_; }
  int expert_data() const { return tensor_ * data_ / (expert_tensor_ * expert_); }
  /// True if weights of experts are reduced among other ranks than those of other layers.
  bool has_experts_apart() const { return expert_ > 1 || expert_tensor_ != tensor_; }
  /// True if a rank is on the same stage, and in the same tensor group if experts have some, by either digits.
  bool experts_fit() const;
  int ranks() const { return tensor_ * pipeline_ * data_; }

  Actor rank(const Digits& digits) const;
  Digits digits(Actor rank) const;

  /// Groups of a stage: those that split its layers, each of `tensor` ranks; and those that have the same part of its
  /// layers, each of `data` ranks.
  Program::Groups tensor_groups(int stage) const;
  Program::Groups data_groups(int stage) const;
  /// Those that share samples, each of `context` ranks of a data group.
  Program::Groups context_groups(int stage) const;
  /// Ranks that have different experts of a stage's layers, each of `expert` ranks; and those that have the same ones.
  /// Requires experts_fit().
  Program::Groups expert_groups(int stage) const;
  Program::Groups expert_data_groups(int stage) const;
  /// Parts of a stage's data groups, each of `size` neighbors; and the ranks that have the same place in each of them.
  /// Requires that `size` divides `data`.
  Program::Groups shard_groups(int stage, int size) const;
  Program::Groups replica_groups(int stage, int size) const;
  /// Pairs of ranks, one of each stage, that have the same other digits.
  Program::Groups pairs(int from_stage, int to_stage) const;

 private:
  struct ExpertDigits {
    int tensor = 0, expert = 0, data = 0, stage = 0;
  };
  int size_of(char digit) const;
  int expert_size_of(char digit) const;
  Actor expert_rank(const ExpertDigits& digits) const;

  int tensor_ = 1, pipeline_ = 1, data_ = 1, context_ = 1, expert_ = 1, expert_tensor_ = 1;
  std::array<char, 5> order_{'t', 'c', 'e', 'd', 'p'};  // the fastest first
};

}  // namespace ringsim
