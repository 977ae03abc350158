#include "sim/program/program_stand_ins.hpp"

#include <cstddef>
#include <set>
#include <utility>
#include <vector>

#include "sim/program/alike_actors.hpp"
#include "sim/program/call_kinds.hpp"

namespace ringsim {

namespace {

/// One of each kind of call: those of a kind have the same steps, members and channels.
std::vector<std::function<CheckedSchedule()>> schedules_of(const LoweredProgram& lowered) {
  const Program& program = lowered.program();
  const std::vector<int> kind_of = kinds_of_calls(program);
  std::vector<std::function<CheckedSchedule()>> found;
  std::set<std::pair<int, int>> known;  // by the first channel
  for (const Program::Role& role : program.roles)
    for (std::size_t s = 0; s < role.streams.size(); ++s)
      for (const Program::Task& task : role.streams[s]) {
        if (task.call < 0) continue;
        const Program::Call& call = program.calls[static_cast<std::size_t>(task.call)];
        const auto stream = static_cast<Stream>(s);
        if (!known.emplace(kind_of[static_cast<std::size_t>(task.call)], lowered.first_channel(stream, call.plan))
                 .second)
          continue;
        const auto n_members = static_cast<std::size_t>(call.schedule.schedule().actors);
        found.emplace_back([&lowered, stream, number = task.call, n_members] {
          return lowered.alone(number, stream, std::vector<Picoseconds>(n_members, Picoseconds{0}));
        });
      }
  return found;
}

}  // namespace

std::shared_ptr<const StandIns> find_stand_ins(const Topology& topology, const RunOptions& options,
                                               const LoweredProgram& lowered) {
  const Program& program = lowered.program();
  if (!roles_say_all(program)) return nullptr;
  ToldApart actors{.ranks = program.ranks, .roles = {}, .schedules = schedules_of(lowered)};
  for (Actor actor = 0; actor < program.actors; ++actor) actors.roles.push_back(program.role_number(actor));
  return find_stand_ins(topology, options, actors);
}

}  // namespace ringsim
