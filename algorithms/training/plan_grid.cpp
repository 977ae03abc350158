#include "algorithms/training/plan_grid.hpp"

#include <algorithm>

#include "sim/base/error.hpp"

namespace ringsim {

namespace {

std::vector<std::string> words_of(const std::string& order) {
  std::vector<std::string> words{""};
  for (const char c : order) {
    if (c == '-')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

}  // namespace

bool PlanGrid::is_order(const std::string& order) {
  std::vector<std::string> words = words_of(order);
  std::sort(words.begin(), words.end());
  return words == std::vector<std::string>{"cp", "dp", "ep", "pp", "tp"};
}

PlanGrid::PlanGrid(int tensor, int pipeline, int data, const std::string& order, int context, int expert,
                   int expert_tensor)
    : tensor_(tensor),
      pipeline_(pipeline),
      data_(data),
      context_(context),
      expert_(expert),
      expert_tensor_(expert_tensor == 0 ? tensor : expert_tensor) {
  ensure(tensor >= 1 && pipeline >= 1 && data >= 1 && is_order(order), "a plan has sizes and an order");
  ensure(context >= 1 && data % context == 0, "context ranks are a part of the data ranks");
  ensure(expert >= 1 && (expert_tensor_ == 1 || expert_tensor_ == tensor) &&
             tensor * data % (expert_tensor_ * expert) == 0,
         "experts divide the ranks of a stage");
  std::size_t next = 0;
  for (const std::string& word : words_of(order)) order_[next++] = word.front();
}

int PlanGrid::size_of(char digit) const {
  return digit == 't'   ? tensor_
         : digit == 'p' ? pipeline_
         : digit == 'c' ? context_
         : digit == 'e' ? 1
                        : data_ / context_;
}

int PlanGrid::expert_size_of(char digit) const {
  return digit == 't'   ? expert_tensor_
         : digit == 'p' ? pipeline_
         : digit == 'c' ? 1
         : digit == 'e' ? expert_
                        : expert_data();
}

Actor PlanGrid::rank(const Digits& digits) const {
  Actor rank = 0;
  int weight = 1;
  for (const char digit : order_) {
    if (digit == 'e') continue;
    rank += weight * (digit == 't'   ? digits.tensor
                      : digit == 'p' ? digits.stage
                      : digit == 'c' ? digits.data % context_
                                     : digits.data / context_);
    weight *= size_of(digit);
  }
  return rank;
}

PlanGrid::Digits PlanGrid::digits(Actor rank) const {
  Digits digits;
  for (const char digit : order_) {
    const int value = rank % size_of(digit);
    rank /= size_of(digit);
    if (digit == 'e') continue;
    if (digit == 't')
      digits.tensor = value;
    else if (digit == 'p')
      digits.stage = value;
    else
      digits.data += digit == 'c' ? value : value * context_;
  }
  return digits;
}

Program::Groups PlanGrid::tensor_groups(int stage) const {
  Program::Groups groups;
  for (int data = 0; data < data_; ++data) {
    groups.emplace_back();
    for (int tensor = 0; tensor < tensor_; ++tensor) groups.back().push_back(rank({tensor, stage, data}));
  }
  return groups;
}

Program::Groups PlanGrid::data_groups(int stage) const {
  Program::Groups groups;
  for (int tensor = 0; tensor < tensor_; ++tensor) {
    groups.emplace_back();
    for (int data = 0; data < data_; ++data) groups.back().push_back(rank({tensor, stage, data}));
  }
  return groups;
}

Program::Groups PlanGrid::context_groups(int stage) const { return shard_groups(stage, context_); }

Actor PlanGrid::expert_rank(const ExpertDigits& digits) const {
  Actor rank = 0;
  int weight = 1;
  for (const char digit : order_) {
    if (digit == 'c') continue;
    rank += weight * (digit == 't'   ? digits.tensor
                      : digit == 'p' ? digits.stage
                      : digit == 'e' ? digits.expert
                                     : digits.data);
    weight *= expert_size_of(digit);
  }
  return rank;
}

bool PlanGrid::experts_fit() const {
  for (int stage = 0; stage < pipeline_; ++stage)
    for (int data = 0; data < expert_data(); ++data)
      for (int expert = 0; expert < expert_; ++expert) {
        const Digits first = digits(expert_rank({0, expert, data, stage}));
        for (int tensor = 0; tensor < expert_tensor_; ++tensor) {
          const Digits own = digits(expert_rank({tensor, expert, data, stage}));
          if (own.stage != stage || (expert_tensor_ > 1 && (own.tensor != tensor || own.data != first.data)))
            return false;
        }
      }
  return true;
}

Program::Groups PlanGrid::expert_groups(int stage) const {
  Program::Groups groups;
  for (int data = 0; data < expert_data(); ++data)
    for (int tensor = 0; tensor < expert_tensor_; ++tensor) {
      groups.emplace_back();
      for (int expert = 0; expert < expert_; ++expert)
        groups.back().push_back(expert_rank({tensor, expert, data, stage}));
    }
  return groups;
}

Program::Groups PlanGrid::expert_data_groups(int stage) const {
  Program::Groups groups;
  for (int expert = 0; expert < expert_; ++expert)
    for (int tensor = 0; tensor < expert_tensor_; ++tensor) {
      groups.emplace_back();
      for (int data = 0; data < expert_data(); ++data)
        groups.back().push_back(expert_rank({tensor, expert, data, stage}));
    }
  return groups;
}

Program::Groups PlanGrid::shard_groups(int stage, int size) const {
  ensure(size >= 1 && data_ % size == 0, "shards divide the data parallel ranks");
  Program::Groups groups;
  for (const std::vector<Actor>& whole : data_groups(stage))
    for (auto first = whole.begin(); first != whole.end(); first += size) groups.emplace_back(first, first + size);
  return groups;
}

Program::Groups PlanGrid::replica_groups(int stage, int size) const {
  ensure(size >= 1 && data_ % size == 0, "shards divide the data parallel ranks");
  Program::Groups groups;
  for (const std::vector<Actor>& whole : data_groups(stage))
    for (int place = 0; place < size; ++place) {
      groups.emplace_back();
      for (int data = place; data < data_; data += size) groups.back().push_back(whole[static_cast<std::size_t>(data)]);
    }
  return groups;
}

Program::Groups PlanGrid::pairs(int from_stage, int to_stage) const {
  Program::Groups groups;
  for (int data = 0; data < data_; ++data)
    for (int tensor = 0; tensor < tensor_; ++tensor)
      groups.push_back({rank({tensor, from_stage, data}), rank({tensor, to_stage, data})});
  return groups;
}

}  // namespace ringsim
