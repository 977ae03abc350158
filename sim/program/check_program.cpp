// The proof of a program: what it names exists, calls meet, and nothing waits in a circle.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>

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
                     program.name_of(at(program, place)));
}

std::vector<std::vector<Actor>> actors_of_roles(const Program& program) {
  std::vector<std::vector<Actor>> actors(program.roles.size());
  for (Actor actor = 0; actor < program.actors; ++actor)
    actors[static_cast<std::size_t>(program.role_number(actor))].push_back(actor);
  return actors;
}

void refuse_program(const Program& program, const std::string& message, const std::string& hint) {
  throw ScheduleError("program " + program.name, message, hint);
}

}  // namespace program_detail

using namespace program_detail;

namespace {

bool is_index(int i, std::size_t n) { return i >= 0 && static_cast<std::size_t>(i) < n; }

void check_task(const Program& program, const TaskPlace& place, const std::vector<Actor>& its_actors) {
  const Program::Task& task = at(program, place);
  const auto fail = [&](const std::string& what) { refuse_program(program, describe(program, place) + ": " + what); };
  if (task.time.count() < 0) fail("it takes a negative time");
  if (task.call != -1 && !is_index(task.call, program.calls.size()))
    fail(fmt::format("there is no call {}", task.call));
  for (const Program::After& after : task.after) {
    if (!is_index(after.stream, program.streams.size())) fail(fmt::format("there is no stream {}", after.stream));
    if (after.actor >= program.actors || after.actor < -1) fail(fmt::format("there is no actor {}", after.actor));
    for (const Actor actor : its_actors)
      if (after.actor >= 0 && program.process(actor) != program.process(after.actor))
        fail(fmt::format("it waits for actor {}, which belongs to another process", after.actor));
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
      fail("it accesses a variable that does not exist");
  for (const Program::Touch& touch : task.touches)
    if (touch.as == Program::Touch::As::divide && touch.divisor < 1) fail("it divides by less than 1");
}

void check_ring_promises(const Program& program) {
  const std::vector<RingPlace> places = ring_places(program);
  const auto place_of = [&](int variable) -> const RingPlace& { return places[static_cast<std::size_t>(variable)]; };
  for (const Program::Ring& ring : program.rings) {
    ensure(is_index(ring.groups, program.groups.size()), "a ring has groups");
    std::vector<bool> is_member(static_cast<std::size_t>(program.actors));
    for (const std::vector<Actor>& group : program.groups[static_cast<std::size_t>(ring.groups)]) {
      ensure(group.size() == ring.blocks.size() && group.size() == ring.gradients.size(),
             "a ring has a block and a gradient for each member of a group");
      for (const Actor member : group) {
        ensure(program.role_number(member) == program.role_number(group.front()), "members of a ring have one role");
        ensure(!is_member[static_cast<std::size_t>(member)], "a rank is in one group of a ring, once");
        is_member[static_cast<std::size_t>(member)] = true;
      }
    }
  }
  for (const Program::Call& call : program.calls)
    for (std::size_t i = 0; i < call.variables.size(); ++i) {
      const auto is_one = [&](int variable) { return place_of(variable).ring >= 0; };
      const bool is_moved = call.schedule.schedule().collective.op == CollectiveOp::send_recv;
      if (is_one(call.variables[i]) ? !is_moved || !is_one(call.into[i]) : i < call.into.size() && is_one(call.into[i]))
        refuse_program(program,
                       fmt::format("call {} moves a variable of a ring by {}", call.name,
                                   to_string(call.schedule.schedule().collective.op)),
                       "a send_recv hands one variable of a ring on as another one of it");
      if (!is_one(call.variables[i])) continue;
      const RingPlace &from = place_of(call.variables[i]), &to = place_of(call.into[i]);
      const auto name = [&](int variable) { return program.variables[static_cast<std::size_t>(variable)]; };
      if (from.ring != to.ring || from.is_gradient != to.is_gradient)
        refuse_program(
            program,
            fmt::format("call {} hands {} on as {}, which is no {} of that ring", call.name, name(call.variables[i]),
                        name(call.into[i]), from.is_gradient ? "gradient" : "block"),
            "a send_recv hands blocks of a ring on as blocks of it, and gradients as gradients");
    }
  for (const Program::Role& role : program.roles)
    for (const std::vector<Program::Task>& tasks : role.streams)
      for (const Program::Task& task : tasks)
        for (const Program::Touch& touch : task.touches)
          ensure((touch.as != Program::Touch::As::keep && touch.as != Program::Touch::As::take) ||
                     place_of(touch.variable).ring >= 0,
                 "variables of rings alone are kept and taken");
}

/// The actors of the program that take part in a call, by number.
std::vector<Actor> members_of(const Program& program, const Program::Call& call) {
  std::vector<Actor> members = call.all_members();
  const auto n = static_cast<std::size_t>(call.schedule.schedule().actors);
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
  return op == all_reduce || op == reduce || op == gather || op == broadcast || op == scatter || op == send_recv ||
         op == reduce_scatter || op == all_gather || op == all_to_all;
}

void check_structure_of(const Program& program, WatchedWork* work) {
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
  const std::vector<std::vector<Actor>> actors_of = actors_of_roles(program);
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    ensure(has_actor[r], "every role has an actor");
    ensure(program.roles[r].streams.size() == program.streams.size(), "a role has all streams of the program");
    for (std::size_t s = 0; s < program.streams.size(); ++s)
      for (std::size_t t = 0; t < program.roles[r].streams[s].size(); ++t) {
        done(work);
        check_task(program, {static_cast<int>(r), static_cast<Stream>(s), static_cast<int>(t)}, actors_of[r]);
      }
  }
  for (const Program::Call& call : program.calls) {
    done(work);
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
                     "variables are for all_reduce, reduce, gather, broadcast, scatter, send_recv, reduce_scatter, "
                     "all_gather and all_to_all");
    const bool is_shift = call.schedule.schedule().collective.op == CollectiveOp::send_recv;
    const CollectiveOp op = call.schedule.schedule().collective.op;
    const bool may_keep_apart =
        op == CollectiveOp::all_reduce || op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_gather;
    if (call.into.size() != call.variables.size() && (is_shift || !call.into.empty()))
      refuse_program(program,
                     fmt::format("call {} has {} variables and {} places for what comes in", call.name,
                                 call.variables.size(), call.into.size()),
                     "a send_recv has one for each variable");
    if (!is_shift && !call.into.empty() && !may_keep_apart)
      refuse_program(program,
                     fmt::format("call {} is a {}, which leaves its result where it was", call.name, to_string(op)),
                     "places for what comes in are for send_recv, all_reduce, reduce_scatter and all_gather");
    if (call.divisor < 1) refuse_program(program, fmt::format("call {} divides by {}", call.name, call.divisor));
  }
  for (const Program::Learns& learns : program.learns)
    ensure(learns.how != Program::Learns::How::group_mean || is_index(learns.groups, program.groups.size()),
           "a mean of groups has groups");
  for (const Program::Groups& groups : program.groups)
    for (const std::vector<Actor>& group : groups)
      for (const Actor member : group)
        ensure(member >= 0 && member < program.ranks && !groups.empty(), "members of groups are ranks");
  check_ring_promises(program);
}

/// Refuses a call that an actor makes without being a member, or does not make though it is one.
void check_members(const Program& program, const Program::Call& call, const std::vector<TaskPlace>& places,
                   const std::vector<std::vector<Actor>>& actors_of) {
  const std::vector<Actor> members = members_of(program, call);
  std::vector<Actor> callers;
  for (const TaskPlace& place : places) {
    const std::vector<Actor>& its = actors_of[static_cast<std::size_t>(place.role)];
    callers.insert(callers.end(), its.begin(), its.end());
  }
  std::sort(callers.begin(), callers.end());
  if (callers == members) return;
  std::vector<Actor> unlike;
  std::set_symmetric_difference(members.begin(), members.end(), callers.begin(), callers.end(),
                                std::back_inserter(unlike));
  const Actor actor = unlike.front();
  const bool is_member = std::binary_search(members.begin(), members.end(), actor);
  refuse_program(program, fmt::format("{} {} {}, {}",
                                      actor < program.ranks ? fmt::format("rank {}", actor)
                                                            : fmt::format("helper {}", actor - program.ranks),
                                      is_member ? "never calls" : "calls", call.name,
                                      is_member ? "although it is a member" : "although it is not a member"));
}

/// 1. [call] its places, one for each role that calls it.
std::vector<std::vector<TaskPlace>> check_calls(const Program& program, WatchedWork* work) {
  std::vector<std::vector<TaskPlace>> places(program.calls.size());
  for (std::size_t r = 0; r < program.roles.size(); ++r)
    for (std::size_t s = 0; s < program.streams.size(); ++s)
      for (std::size_t t = 0; t < program.roles[r].streams[s].size(); ++t) {
        done(work);
        const TaskPlace place{static_cast<int>(r), static_cast<Stream>(s), static_cast<int>(t)};
        const int call = at(program, place).call;
        if (call < 0) continue;
        auto& known = places[static_cast<std::size_t>(call)];
        if (!known.empty() && known.back().role == place.role)  // roles come in order
          refuse_program(program, fmt::format("{} calls {} a second time in one iteration", describe(program, place),
                                              program.calls[static_cast<std::size_t>(call)].name));
        if (!known.empty() && known.front().stream != place.stream)
          refuse_program(
              program,
              fmt::format("{} and {}: one call on two streams", describe(program, known.front()),
                          describe(program, place)),
              "calls on different streams use different channels; issue the call on the same stream on all ranks");
        known.push_back(place);
      }
  const std::vector<std::vector<Actor>> actors_of = actors_of_roles(program);
  for (std::size_t c = 0; c < program.calls.size(); ++c) {
    done(work, program.calls[c].schedule.schedule().actors);
    check_members(program, program.calls[c], places[c], actors_of);
  }
  return places;
}

/// 2. Kahn's algorithm over the tasks of one iteration, those of a call being one. Roles stand for their actors: all
/// actors of a role are members of what it calls, so a circle of roles is one of actors, and the other way round.
class OrderSearch {
 public:
  /// `calls` must outlive it.
  OrderSearch(const Program& program, const std::vector<std::vector<TaskPlace>>& calls, WatchedWork* work)
      : program_(program), calls_(calls), work_(work) {
    for (std::size_t r = 0; r < program.roles.size(); ++r) {
      first_.emplace_back();
      for (std::size_t s = 0; s < program.streams.size(); ++s) {
        first_.back().emplace_back();
        for (std::size_t t = 0; t < program.roles[r].streams[s].size(); ++t) {
          const TaskPlace place{static_cast<int>(r), static_cast<Stream>(s), static_cast<int>(t)};
          const int call = at(program, place).call;
          first_.back().back().push_back(
              static_cast<std::uint32_t>(call >= 0 ? static_cast<std::size_t>(call) : n_nodes()));
          if (call < 0) others_.push_back(place);
        }
      }
    }
    before_.resize(n_nodes());
    next_.resize(n_nodes() + 1);
    each_edge([&](std::size_t before, std::size_t node) {
      ++next_[before];
      ++before_[node];
    });
    std::size_t sum = 0;  // next_[node]: where its followers end; filled from there
    for (std::size_t& each : next_) each = sum += each;
    follower_.resize(sum);
    each_edge(
        [&](std::size_t before, std::size_t node) { follower_[--next_[before]] = static_cast<std::uint32_t>(node); });
  }

  Order go() {
    Order order;
    std::vector<std::size_t> ready;
    for (std::size_t node = 0; node < n_nodes(); ++node)
      if (before_[node] == 0) ready.push_back(node);
    for (std::size_t i = 0; i < ready.size(); ++i) {
      const std::size_t node = ready[i];
      order.add(places_of(node));
      // In the order in which they were found.
      for (std::size_t f = next_[node + 1]; f-- > next_[node];)
        if (--before_[follower_[f]] == 0) ready.push_back(follower_[f]);
    }
    if (ready.size() < n_nodes()) refuse_circle();
    return order;
  }

 private:
  // Calls come first, then all other tasks.
  std::size_t n_nodes() const { return calls_.size() + others_.size(); }
  std::span<const TaskPlace> places_of(std::size_t node) const {
    if (node < calls_.size()) return calls_[node];
    return {&others_[node - calls_.size()], 1};
  }

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

  // visit(before, node)
  template <class Visit>
  void each_edge(Visit visit) const {
    for (std::size_t node = 0; node < n_nodes(); ++node)
      for (const TaskPlace& place : places_of(node)) {
        done(work_);
        each_before(place, [&](const TaskPlace& before) { visit(node_of(before), node); });
      }
  }

  // From a task that never comes back over one that it waits for, until one comes up again.
  [[noreturn]] void refuse_circle() const {
    std::size_t node = 0;
    while (before_[node] == 0) ++node;
    std::vector<std::size_t> chain;
    std::vector<std::string> text;  // [chain] why it waits for the next one
    while (std::find(chain.begin(), chain.end(), node) == chain.end()) {
      chain.push_back(node);
      bool found = false;
      for (const TaskPlace& place : places_of(chain.back()))
        each_before(place, [&](const TaskPlace& before) {
          if (found || before_[node_of(before)] == 0) return;
          found = true;
          text.push_back(
              fmt::format("{} comes after {}", describe(program_, place), program_.name_of(at(program_, before))));
          node = node_of(before);
        });
      ensure(found, "a task that never runs waits for a task that never runs");
    }
    const auto begin = static_cast<std::size_t>(std::find(chain.begin(), chain.end(), node) - chain.begin());
    std::string all;
    for (std::size_t i = begin; i < text.size(); ++i) all += (all.empty() ? "" : "; ") + text[i];
    refuse_program(program_, all + ": a cycle of waits",
                   "calls must be in the same order on every rank, and no task may wait for a later one");
  }

  const Program& program_;
  const std::vector<std::vector<TaskPlace>>& calls_;
  WatchedWork* work_;
  std::vector<TaskPlace> others_;                               // tasks that are no calls
  std::vector<std::vector<std::vector<std::uint32_t>>> first_;  // [role][stream][task] its node
  std::vector<int> before_;                                     // [node] how many have not come yet
  std::vector<std::size_t> next_;                               // [node] its first follower
  std::vector<std::uint32_t> follower_;                         // of all nodes; of each the last that was found first
};

std::int64_t operations_of(const Program& program) {
  std::int64_t operations = 0;
  for (const Program::Call& call : program.calls) operations += call.schedule.proof().operations;
  return operations;
}

}  // namespace

CheckedProgram check(Program program, WatchedWork* work) {
  check_structure_of(program, work);
  {
    const std::vector<std::vector<TaskPlace>> calls = check_calls(program, work);
    const Order order = OrderSearch(program, calls, work).go();
    check_races(program, order, work);
    check_contributions(program, order, work);
    check_alive(program, work);
    check_rings(program, order, work);
  }
  const std::int64_t operations = operations_of(program);
  return CheckedProgram(std::move(program), operations);
}

}  // namespace ringsim
