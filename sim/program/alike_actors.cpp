#include "sim/program/alike_actors.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace ringsim {

namespace {

/// Chosen: a run is begun again after each split. Each split of a call's members by their places is one, so patterns of
/// a node, of a ring and of a tree take a few.
constexpr int most_splits = 12;
/// Chosen: with fewer than two actors a class, one run of all costs about as much as those that find the classes.
constexpr int least_size = 2;

bool are_few(const std::vector<Actor>& stand_ins) {
  std::size_t n = 0;
  for (std::size_t actor = 0; actor < stand_ins.size(); ++actor) n += stand_ins[actor] == static_cast<Actor>(actor);
  return n * least_size <= stand_ins.size();
}

}  // namespace

bool roles_say_all(const Program& program) {
  if (program.time || !program.process_of.empty()) return false;
  for (const Program::Role& role : program.roles)
    for (const std::vector<Program::Task>& tasks : role.streams)
      for (const Program::Task& task : tasks) {
        if (task.unit >= 0) return false;
        for (const Program::After& after : task.after)
          if (after.actor >= 0) return false;
      }
  return true;
}

AlikeActors::AlikeActors(const Program& program) : splits_left_(most_splits) {
  if (!roles_say_all(program)) return;
  std::vector<Actor> first(program.roles.size(), -1);
  for (Actor actor = 0; actor < program.actors; ++actor) {
    Actor& its = first[static_cast<std::size_t>(program.role_number(actor))];
    if (its < 0) its = actor;
    stand_ins_.push_back(its);
  }
  expect_few();
}

AlikeActors::AlikeActors(std::vector<Actor> stand_ins) : stand_ins_(std::move(stand_ins)), splits_left_(most_splits) {}

int AlikeActors::n_classes() const {
  int n = 0;
  for (std::size_t actor = 0; actor < stand_ins_.size(); ++actor)
    n += stand_ins_[actor] == static_cast<Actor>(actor) ? 1 : 0;
  return n;
}

bool AlikeActors::are_one(SimTime moment, SimTime other) {
  return moment - other <= rounding && other - moment <= rounding;
}

void AlikeActors::split(const std::vector<Actor>& members, const std::vector<SimTime>& ends) {
  std::map<Actor, std::vector<std::pair<SimTime, Actor>>> parts;  // by class: an end, and the first that has it
  std::vector<std::pair<Actor, SimTime>> in_order;
  for (std::size_t i = 0; i < members.size(); ++i) in_order.emplace_back(members[i], ends[i]);
  std::sort(in_order.begin(), in_order.end());
  std::vector<Actor> split = stand_ins_;
  for (const auto& [actor, end] : in_order) {
    std::vector<std::pair<SimTime, Actor>>& known = parts[stand_in(actor)];
    const auto found =
        std::find_if(known.begin(), known.end(), [end = end](const auto& each) { return are_one(each.first, end); });
    split[static_cast<std::size_t>(actor)] = found == known.end() ? actor : found->second;
    if (found == known.end()) known.emplace_back(end, actor);
  }
  stand_ins_ = std::move(split);
  if (--splits_left_ < 0) stand_ins_.clear();
  expect_few();
}

void AlikeActors::expect_few() {
  if (!are_few(stand_ins_)) stand_ins_.clear();
}

}  // namespace ringsim
