// The proof of a program: what it names exists, calls meet, and nothing waits in a circle.
#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <map>

#include "sim/base/error.hpp"
#include "sim/program/program_detail.hpp"

namespace ringsim {

namespace program_detail {

const Program::Task& at(const Program& program, const TaskPlace& place) {
  return program.roles[static_cast<std::size_t>(place.role)]
      .streams[static_cast<std::size_t>(place.stream)][static_cast<std::size_t>(place.task)];
}

std::string first_of(const Program& program, int role) {
  Actor first = 0;
  while (!program.role_of.empty() && program.role_of[static_cast<std::size_t>(first)] != role) ++first;
  return first < program.ranks ? fmt::format("rank {}", first) : fmt::format("helper {}", first - program.ranks);
}

std::string describe(const Program& program, const TaskPlace& place) {
  return fmt::format("{}, stream {}, task {} ({})", first_of(program, place.role), place.stream, place.task,
                     at(program, place).name);
}

void refuse_program(const Program& program, const std::string& message, const std::string& hint) {
  throw ScheduleError("program " + program.name, message, hint);
}

}  // namespace program_detail

using namespace program_detail;

namespace {

bool is_index(int i, std::size_t n) { return i >= 0 && static_cast<std::size_t>(i) < n; }

void check_task(const Program& program, const TaskPlace& place) {
  const Program::Task& task = at(program, place);
  const auto fail = [&](const std::string& what) { refuse_program(program, describe(program, place) + ": " + what); };
  if (task.time.count() < 0) fail("it takes less than no time");
  if (task.call != -1 && !is_index(task.call, program.calls.size()))
    fail(fmt::format("there is no call {}", task.call));
  for (const Program::After& after : task.after) {
    if (!is_index(after.stream, program.streams.size())) fail(fmt::format("there is no stream {}", after.stream));
    if (after.actor >= program.actors || after.actor < -1) fail(fmt::format("there is no actor {}", after.actor));
    for (Actor actor = 0; after.actor >= 0 && actor < program.actors; ++actor)
      if (program.role_number(actor) == place.role && program.process(actor) != program.process(after.actor))
        fail(fmt::format("it waits for actor {}, which is of another process", after.actor));
    const Program::Role& role =
        after.actor < 0 ? program.roles[static_cast<std::size_t>(place.role)] : program.role(after.actor);
    const std::size_t n = role.streams[static_cast<std::size_t>(after.stream)].size();
    if (after.tasks < 0 || static_cast<std::size_t>(after.tasks) > n)
      fail(fmt::format("it waits for {} tasks of stream {}, which has {}", after.tasks, after.stream, n));
    if (after.back < 0 || after.back > 1)
      fail(fmt::format("it waits for an iteration {} before; expected 0 or 1", after.back));
  }
  for (const Program::Touch& touch : task.touches)
    if (!is_index(touch.variable, program.variables.size()) ||
        (touch.as == Program::Touch::As::apply && !is_index(touch.to, program.variables.size())))
      fail("it touches a variable that does not exist");
  for (const Program::Touch& touch : task.touches)
    if (touch.as == Program::Touch::As::divide && touch.divisor < 1) fail("it divides by less than 1");
}

/// The actors of the program that take part in a call, by number.
std::vector<Actor> members_of(const Program& program, const Program::Call& call) {
  std::vector<Actor> members = call.members;
  const auto n = static_cast<std::size_t>(call.schedule.schedule().actors);
  if (members.empty())
    for (Actor actor = 0; actor < call.schedule.schedule().actors; ++actor) members.push_back(actor);
  if (members.size() != n)
    refuse_program(program,
                   fmt::format("call {} has {} members, its schedule {} actors", call.name, members.size(), n));
  std::sort(members.begin(), members.end());
  if (members.front() < 0 || members.back() >= program.actors ||
      std::adjacent_find(members.begin(), members.end()) != members.end())
    refuse_program(program, fmt::format("the members of call {} are not different actors of 0 to {}", call.name,
                                        program.actors - 1));
  return members;
}

bool can_name_variables(CollectiveOp op) {
  using enum CollectiveOp;
  return op == all_reduce || op == reduce || op == gather || op == broadcast || op == scatter || op == send_recv;
}

void check_structure_of(const Program& program) {
  ensure(program.ranks >= 1 && program.actors >= program.ranks, "a program has its ranks");
  ensure(program.role_of.empty() ? program.roles.size() == 1
                                 : program.role_of.size() == static_cast<std::size_t>(program.actors),
         "every actor has a role");
  ensure(program.iterations >= 1, "a program has iterations");
  ensure(program.process_of.empty() || program.process_of.size() == static_cast<std::size_t>(program.actors),
         "every actor is of a process");
  std::vector<bool> has_actor(program.roles.size(), program.role_of.empty());
  for (const int role : program.role_of) {
    ensure(is_index(role, program.roles.size()), "an actor's role exists");
    has_actor[static_cast<std::size_t>(role)] = true;
  }
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    ensure(has_actor[r], "every role has an actor");
    ensure(program.roles[r].streams.size() == program.streams.size(), "a role has all streams of the program");
    for (std::size_t s = 0; s < program.streams.size(); ++s)
      for (std::size_t t = 0; t < program.roles[r].streams[s].size(); ++t)
        check_task(program, {static_cast<int>(r), static_cast<Stream>(s), static_cast<int>(t)});
  }
  for (const Program::Call& call : program.calls) {
    for (const int variable : call.variables)
      if (!is_index(variable, program.variables.size()))
        refuse_program(program, fmt::format("call {} names a variable that does not exist", call.name));
    for (const int variable : call.into)
      if (!is_index(variable, program.variables.size()))
        refuse_program(program, fmt::format("call {} names a variable that does not exist", call.name));
    if (!call.variables.empty() && !can_name_variables(call.schedule.schedule().collective.op))
      refuse_program(program,
                     fmt::format("call {} is a {}, whose data the proof cannot follow", call.name,
                                 to_string(call.schedule.schedule().collective.op)),
                     "variables are for all_reduce, reduce, gather, broadcast, scatter and send_recv");
    const bool is_shift = call.schedule.schedule().collective.op == CollectiveOp::send_recv;
    if (call.into.size() != (is_shift ? call.variables.size() : 0))
      refuse_program(program,
                     fmt::format("call {} has {} variables and {} places for what comes in", call.name,
                                 call.variables.size(), call.into.size()),
                     "a send_recv has one for each variable, no other collective has any");
    if (call.divisor < 1) refuse_program(program, fmt::format("call {} divides by {}", call.name, call.divisor));
  }
}

/// 1. [call] its places, one for each role that calls it.
std::vector<std::vector<TaskPlace>> check_calls(const Program& program) {
  std::vector<std::vector<TaskPlace>> places(program.calls.size());
  for (std::size_t r = 0; r < program.roles.size(); ++r)
    for (std::size_t s = 0; s < program.streams.size(); ++s)
      for (std::size_t t = 0; t < program.roles[r].streams[s].size(); ++t) {
        const TaskPlace place{static_cast<int>(r), static_cast<Stream>(s), static_cast<int>(t)};
        const int call = at(program, place).call;
        if (call < 0) continue;
        auto& known = places[static_cast<std::size_t>(call)];
        for (const TaskPlace& other : known) {
          if (other.role == place.role)
            refuse_program(program, fmt::format("{} calls {} a second time in one iteration", describe(program, place),
                                                program.calls[static_cast<std::size_t>(call)].name));
          if (other.stream != place.stream)
            refuse_program(
                program,
                fmt::format("{} and {}: one call on two streams", describe(program, other), describe(program, place)),
                "calls on different streams use different channels: call it on the same stream everywhere");
        }
        known.push_back(place);
      }
  for (std::size_t c = 0; c < program.calls.size(); ++c) {
    std::vector<bool> calls(program.roles.size());
    for (const TaskPlace& place : places[c]) calls[static_cast<std::size_t>(place.role)] = true;
    const std::vector<Actor> members = members_of(program, program.calls[c]);
    for (Actor actor = 0; actor < program.actors; ++actor) {
      const int role = program.role_of.empty() ? 0 : program.role_of[static_cast<std::size_t>(actor)];
      const bool is_member = std::binary_search(members.begin(), members.end(), actor);
      if (is_member == calls[static_cast<std::size_t>(role)]) continue;
      refuse_program(program, fmt::format("{} {} {}, {}",
                                          actor < program.ranks ? fmt::format("rank {}", actor)
                                                                : fmt::format("helper {}", actor - program.ranks),
                                          is_member ? "never calls" : "calls", program.calls[c].name,
                                          is_member ? "though it is a member" : "of which it is no member"));
    }
  }
  return places;
}

/// 2. Kahn's algorithm over the tasks of one iteration, those of a call being one. Roles stand for their actors: all
/// actors of a role are members of what it calls, so a circle of roles is one of actors, and the other way round.
class OrderSearch {
 public:
  OrderSearch(const Program& program, const std::vector<std::vector<TaskPlace>>& calls) : program_(program) {
    for (const std::vector<TaskPlace>& places : calls) nodes_.push_back({places, {}, 0});
    for (std::size_t r = 0; r < program.roles.size(); ++r) {
      first_.emplace_back();
      for (std::size_t s = 0; s < program.streams.size(); ++s) {
        first_.back().emplace_back();
        for (std::size_t t = 0; t < program.roles[r].streams[s].size(); ++t) {
          const TaskPlace place{static_cast<int>(r), static_cast<Stream>(s), static_cast<int>(t)};
          const int call = at(program, place).call;
          first_.back().back().push_back(call >= 0 ? static_cast<std::size_t>(call) : nodes_.size());
          if (call < 0) nodes_.push_back({{place}, {}, 0});
        }
      }
    }
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      for (const TaskPlace& place : nodes_[node].places) link(node, place);
  }

  Order go() {
    Order order;
    std::vector<std::size_t> ready;
    for (std::size_t node = 0; node < nodes_.size(); ++node)
      if (nodes_[node].before == 0) ready.push_back(node);
    for (std::size_t i = 0; i < ready.size(); ++i) {
      order.push_back(nodes_[ready[i]].places);
      for (const std::size_t next : nodes_[ready[i]].next)
        if (--nodes_[next].before == 0) ready.push_back(next);
    }
    if (ready.size() < nodes_.size()) refuse_circle();
    return order;
  }

 private:
  struct Node {
    std::vector<TaskPlace> places;
    std::vector<std::size_t> next;
    int before = 0;  // how many have not come yet
  };

  std::size_t node_of(const TaskPlace& place) const {
    return first_[static_cast<std::size_t>(place.role)][static_cast<std::size_t>(place.stream)]
                 [static_cast<std::size_t>(place.task)];
  }

  // visit(place) for what must come before the task, of the same iteration.
  template <class Visit>
  void each_before(const TaskPlace& place, Visit visit) const {
    if (place.task > 0) visit(TaskPlace{place.role, place.stream, place.task - 1});
    for (const Program::After& after : at(program_, place).after)
      if (after.back == 0 && after.tasks > 0)
        visit(
            TaskPlace{after.actor < 0 ? place.role : program_.role_number(after.actor), after.stream, after.tasks - 1});
  }

  void link(std::size_t node, const TaskPlace& place) {
    each_before(place, [&](const TaskPlace& before) {
      nodes_[node_of(before)].next.push_back(node);
      ++nodes_[node].before;
    });
  }

  // From a task that never comes back over one that it waits for, until one comes up again.
  [[noreturn]] void refuse_circle() const {
    std::size_t node = 0;
    while (nodes_[node].before == 0) ++node;
    std::vector<std::size_t> chain;
    std::vector<std::string> text;  // [chain] why it waits for the next one
    while (std::find(chain.begin(), chain.end(), node) == chain.end()) {
      chain.push_back(node);
      bool found = false;
      for (const TaskPlace& place : nodes_[node].places)
        each_before(place, [&](const TaskPlace& before) {
          if (found || nodes_[node_of(before)].before == 0) return;
          found = true;
          text.push_back(fmt::format("{} comes after {}", describe(program_, place), at(program_, before).name));
          node = node_of(before);
        });
      ensure(found, "a task that never comes waits for one that never comes");
    }
    const auto begin = static_cast<std::size_t>(std::find(chain.begin(), chain.end(), node) - chain.begin());
    std::string all;
    for (std::size_t i = begin; i < text.size(); ++i) all += (all.empty() ? "" : "; ") + text[i];
    refuse_program(program_, all + ": a circle of waits",
                   "calls must come in the same order on every rank, and no task may wait for what comes after it");
  }

  const Program& program_;
  std::vector<Node> nodes_;                                   // calls first
  std::vector<std::vector<std::vector<std::size_t>>> first_;  // [role][stream][task] its node
};

std::int64_t operations_of(const Program& program) {
  std::int64_t operations = 0;
  for (const Program::Call& call : program.calls) operations += call.schedule.proof().operations;
  return operations;
}

}  // namespace

CheckedProgram check(Program program) {
  check_structure_of(program);
  const std::vector<std::vector<TaskPlace>> calls = check_calls(program);
  const Order order = OrderSearch(program, calls).go();
  check_races(program, order);
  check_contributions(program, order);
  const std::int64_t operations = operations_of(program);
  return CheckedProgram(std::move(program), operations);
}

}  // namespace ringsim
