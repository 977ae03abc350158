// The proof of a program: no two tasks touch a variable unordered.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/program/program_detail.hpp"

namespace ringsim::program_detail {

namespace {

using Touch = Program::Touch;

struct Access {
  int variable = 0;
  bool writes = false;
};

std::vector<Access> accesses_of(const Program& program, const Program::Task& task) {
  std::vector<Access> accesses;
  for (const Touch& touch : task.touches) {
    const bool writes = touch.as != Touch::As::read && touch.as != Touch::As::read_whole &&
                        touch.as != Touch::As::apply && touch.as != Touch::As::keep;
    accesses.push_back({touch.variable, writes});
    if (touch.as == Touch::As::apply) accesses.push_back({touch.to, true});
  }
  if (task.call >= 0) {
    const Program::Call& call = program.calls[static_cast<std::size_t>(task.call)];
    for (const int variable : call.variables) accesses.push_back({variable, call.into.empty()});
    for (const int variable : call.into) accesses.push_back({variable, true});
  }
  return accesses;
}

/// What one role does to each variable, with clocks, in two iterations.
///
/// A race is found when its later task is taken: tasks come in an order that obeys all waits, so what was taken before
/// either is done when a task begins, or races with it. The accesses of one stream to a variable follow one another, so
/// the last of them stands for all: one look per stream, whatever the number of accesses.
class RoleClocks {
 public:
  RoleClocks(const Program& program, int role)
      : program_(program), streams_(program.roles[static_cast<std::size_t>(role)].streams) {
    for (const std::vector<Program::Task>& tasks : streams_) done_.emplace_back(2 * tasks.size() * n_streams());
    row_of_.resize(program.variables.size(), -1);
  }

  void take(const TaskPlace& place, int iteration) {
    const Program::Task& task = at(program_, place);
    const int number = number_of(place.stream, place.task, iteration);
    const std::span<int> clock = clock_of(place.stream, number);
    if (number > 0) join(clock, place.stream, number - 1);
    for (const Program::After& after : task.after) {
      if (after.actor >= 0) continue;
      const int before = number_of(after.stream, after.tasks, iteration - after.back) - 1;
      if (after.tasks > 0 && before >= 0) join(clock, after.stream, before);
    }
    const std::vector<Access> accesses = accesses_of(program_, task);
    for (const Access& access : accesses)
      if (is_race(access, clock)) first_racy_ = std::min(first_racy_, access.variable);
    for (const Access& access : accesses) note(access, place.stream, number);
    clock[static_cast<std::size_t>(place.stream)] = number + 1;
  }

  /// `places`: those that were taken, in each of two iterations.
  void refuse_races(const std::vector<TaskPlace>& places) const {
    if (first_racy_ != none) explain(first_racy_, places);
  }

 private:
  static constexpr int none = INT_MAX;
  /// A task in one of the two iterations.
  struct Instance {
    TaskPlace place;
    int iteration = 0;
    bool writes = false;
  };
  struct Last {  // of a stream's accesses to a variable, their tasks by number over both iterations; -1: none
    int access = -1, write = -1;
  };

  std::size_t n_streams() const { return streams_.size(); }
  int number_of(Stream stream, int task, int iteration) const {
    return iteration * static_cast<int>(streams_[static_cast<std::size_t>(stream)].size()) + task;
  }
  // [stream] how many of its tasks are done when that task is done; while it is taken: when it begins.
  std::span<int> clock_of(Stream stream, int number) {
    return std::span(done_[static_cast<std::size_t>(stream)])
        .subspan(static_cast<std::size_t>(number) * n_streams(), n_streams());
  }
  void join(std::span<int> clock, Stream stream, int number) {
    const std::span<const int> other = clock_of(stream, number);
    for (std::size_t s = 0; s < clock.size(); ++s) clock[s] = std::max(clock[s], other[s]);
  }

  Last* last_of(int variable) {
    const int row = row_of_[static_cast<std::size_t>(variable)];
    return row < 0 ? nullptr : &last_[static_cast<std::size_t>(row) * n_streams()];
  }
  // `clock`: when the task begins.
  bool is_race(const Access& access, std::span<const int> clock) {
    const Last* last = last_of(access.variable);
    for (std::size_t s = 0; last != nullptr && s < n_streams(); ++s)
      if (last[s].write >= clock[s] || (access.writes && last[s].access >= clock[s])) return true;
    return false;
  }
  void note(const Access& access, Stream stream, int number) {
    int& row = row_of_[static_cast<std::size_t>(access.variable)];
    if (row < 0) {
      row = static_cast<int>(last_.size() / n_streams());
      last_.resize(last_.size() + n_streams());
    }
    Last& last = last_of(access.variable)[static_cast<std::size_t>(stream)];
    last.access = number;
    if (access.writes) last.write = number;
  }

  bool is_before(const Instance& one, const Instance& other) const {
    const int number = number_of(one.place.stream, one.place.task, one.iteration);
    const int later = number_of(other.place.stream, other.place.task, other.iteration);
    if (one.place.stream == other.place.stream) return number <= later;
    return done_[static_cast<std::size_t>(other.place.stream)]
                [static_cast<std::size_t>(later) * n_streams() + static_cast<std::size_t>(one.place.stream)] > number;
  }

  // The first two tasks that race for it.
  [[noreturn]] void explain(int variable, const std::vector<TaskPlace>& places) const {
    std::vector<Instance> instances;
    for (int iteration = 0; iteration < 2; ++iteration)
      for (const TaskPlace& place : places)
        for (const Access& access : accesses_of(program_, at(program_, place)))
          if (access.variable == variable) instances.push_back({place, iteration, access.writes});
    for (std::size_t b = 0; b < instances.size(); ++b)
      for (std::size_t a = 0; a < b; ++a) {
        const Instance &one = instances[a], &other = instances[b];
        if ((one.writes || other.writes) && !is_before(one, other) && !is_before(other, one))
          refuse_program(program_,
                         fmt::format("{} and {}{}: both touch {}, one of them writes it, and nothing orders them",
                                     describe(program_, one.place), describe(program_, other.place),
                                     one.iteration == other.iteration ? "" : " of the next iteration",
                                     program_.variables[static_cast<std::size_t>(variable)]),
                         "one of them needs an `after`");
      }
    fail_invariant("a variable with a race has two tasks that race");
  }

  const Program& program_;
  const std::vector<std::vector<Program::Task>>& streams_;
  std::vector<std::vector<int>> done_;  // [stream][task over both iterations * streams + stream]
  std::vector<int> row_of_;             // [variable] in last_; -1: no task has touched it
  std::vector<Last> last_;              // [row * streams + stream]
  int first_racy_ = none;               // the least variable with a race
};

}  // namespace

void check_races(const Program& program, const Order& order, WatchedWork* work) {
  std::vector<std::vector<TaskPlace>> of(program.roles.size());  // [role] in order
  for (const TaskPlace& place : order.places()) of[static_cast<std::size_t>(place.role)].push_back(place);
  for (int role = 0; role < static_cast<int>(program.roles.size()); ++role) {
    const std::vector<TaskPlace>& places = of[static_cast<std::size_t>(role)];
    RoleClocks clocks(program, role);
    for (int iteration = 0; iteration < 2; ++iteration)
      for (const TaskPlace& place : places) {
        done(work);
        clocks.take(place, iteration);
      }
    clocks.refuse_races(places);
  }
}

}  // namespace ringsim::program_detail
