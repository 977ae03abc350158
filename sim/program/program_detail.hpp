// The parts of the proof of programs that check_program.cpp puts together.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "sim/base/watch.hpp"

#include "sim/program/program.hpp"

namespace ringsim::program_detail {

/// A task of a role.
struct TaskPlace {
  int role = 0;
  Stream stream = 0;
  int task = 0;
};

const Program::Task& at(const Program& program, const TaskPlace& place);
/// "rank 3": the first actor of a role.
std::string first_of(const Program& program, int role);
/// "rank 3, stream 1, task 4 (bucket 2)"
std::string describe(const Program& program, const TaskPlace& place);
[[noreturn]] void refuse_program(const Program& program, const std::string& message, const std::string& hint = "");

/// Tasks of all roles in an order that obeys 2; the places of a call (one a role that calls it) come together, as one
/// entry.
class Order {
 public:
  void add(std::span<const TaskPlace> entry) {
    places_.insert(places_.end(), entry.begin(), entry.end());
    ends_.push_back(places_.size());
  }
  const std::vector<TaskPlace>& places() const { return places_; }
  /// visit(entry)
  template <class Visit>
  void each_entry(Visit visit) const {
    std::size_t begin = 0;
    for (const std::size_t end : ends_) {
      visit(std::span<const TaskPlace>(places_.data() + begin, end - begin));
      begin = end;
    }
  }

 private:
  std::vector<TaskPlace> places_;
  std::vector<std::size_t> ends_;  // [entry] where the next one begins
};

/// [role] its actors, in order.
std::vector<std::vector<Actor>> actors_of_roles(const Program& program);

/// The place of a variable in one of `rings`.
struct RingPlace {
  int ring = -1;  ///< -1: of none
  bool is_gradient = false;
  std::size_t d = 0;  ///< whose block: of the member so many places before
};

/// [variable] Refuses a variable that has two places.
std::vector<RingPlace> ring_places(const Program& program);
/// [variable] true if it is one of `rings`.
std::vector<bool> ring_variables(const Program& program);

/// `work`: done() of each part, as CheckedProgram's check() counts them.
void check_races(const Program& program, const Order& order, WatchedWork* work);
void check_contributions(const Program& program, const Order& order, WatchedWork* work);
void check_alive(const Program& program, WatchedWork* work);
void check_rings(const Program& program, const Order& order, WatchedWork* work);

}  // namespace ringsim::program_detail
