#include "sim/program/program_size.hpp"

#include <algorithm>
#include <vector>

namespace ringsim {

void ProgramSize::add_role(std::int64_t n_actors, std::int64_t n_tasks, std::int64_t n_touches) {
  tasks += n_tasks;
  touches += n_touches;
  largest_role = std::max(largest_role, n_tasks);
  looks += n_actors * n_touches;
}

void ProgramSize::add_calls(std::int64_t n, std::int64_t members_each, std::int64_t n_variables) {
  calls += n;
  members += n * members_each;
  looks += n_variables * members_each;
}

Bytes ProgramSize::memory() const {
  // Bytes of what is allocated for each, about: a task with its name, its waits and its places in the proof, and so on.
  constexpr double a_process = 25e6, a_task = 280, a_touch = 28, a_variable = 260, a_value = 17, a_call = 400,
                   a_member = 8, an_actor = 500, a_lane = 220, a_connection = 550, an_entry_of_a_clock = 2 * 4;
  const auto of = [](std::int64_t n) { return static_cast<double>(n); };
  const double sum = a_process + a_task * of(tasks) + a_touch * of(touches) + a_variable * of(variables) +
                     a_value * of(variables) * of(actors) + an_entry_of_a_clock * of(largest_role) * of(streams) +
                     a_call * of(calls) + a_member * of(members) + an_actor * of(actors) +
                     a_lane * of(actors) * of(streams) + a_connection * of(pairs);
  return {sum < 9e18 ? static_cast<std::int64_t>(sum) : INT64_MAX};
}

double ProgramSize::parts() const {
  return 12.0 * static_cast<double>(tasks) + 2.0 * static_cast<double>(looks) + static_cast<double>(members) +
         static_cast<double>(actors * streams);
}

ProgramSize size_of(const Program& program) {
  ProgramSize size{.actors = program.actors,
                   .streams = static_cast<std::int64_t>(program.streams.size()),
                   .variables = static_cast<std::int64_t>(program.variables.size())};
  std::vector<std::int64_t> actors(program.roles.size());
  for (Actor actor = 0; actor < program.actors; ++actor) ++actors[static_cast<std::size_t>(program.role_number(actor))];
  for (std::size_t r = 0; r < program.roles.size(); ++r) {
    std::int64_t tasks = 0, touches = 0;
    for (const std::vector<Program::Task>& stream : program.roles[r].streams)
      for (const Program::Task& task : stream) {
        ++tasks;
        touches += static_cast<std::int64_t>(task.touches.size());
      }
    size.add_role(actors[r], tasks, touches);
  }
  for (const Program::Call& call : program.calls)
    size.add_calls(1, call.schedule.schedule().actors, static_cast<std::int64_t>(call.variables.size()));
  return size;
}

}  // namespace ringsim
