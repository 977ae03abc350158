#include "tests/support/naive/naive_program.hpp"

#include <algorithm>
#include <optional>

#include "sim/base/error.hpp"

namespace ringsim::naive {

std::vector<std::vector<std::vector<std::vector<SimTime>>>> ends_of(const Program& program,
                                                                    const std::vector<Picoseconds>& call_times) {
  using Ends = std::vector<std::vector<std::optional<SimTime>>>;  // [stream][task]
  const auto n_actors = static_cast<std::size_t>(program.actors);
  const auto n_iterations = static_cast<std::size_t>(program.iterations);
  std::vector<std::vector<Ends>> ends(n_actors, std::vector<Ends>(n_iterations));
  std::vector<std::vector<std::vector<std::optional<SimTime>>>> launched(
      program.calls.size(),
      std::vector<std::vector<std::optional<SimTime>>>(n_iterations, std::vector<std::optional<SimTime>>(n_actors)));
  std::size_t unknown = 0;
  for (std::size_t a = 0; a < n_actors; ++a)
    for (std::size_t i = 0; i < n_iterations; ++i)
      for (const auto& stream : program.role(static_cast<Actor>(a)).streams) {
        ends[a][i].emplace_back(stream.size());
        unknown += stream.size();
      }
  // When the task may begin, if that is known.
  const auto begin_of = [&](std::size_t a, std::size_t i, std::size_t s, std::size_t t) -> std::optional<SimTime> {
    SimTime begin{};
    bool is_known = true;
    const auto take = [&](const std::optional<SimTime>& end) {
      is_known = is_known && end.has_value();
      if (end) begin = std::max(begin, *end);
    };
    const auto& streams = program.role(static_cast<Actor>(a)).streams;
    if (t > 0) take(ends[a][i][s][t - 1]);
    if (t == 0 && i > 0) take(ends[a][i - 1][s].back());
    for (const Program::After& after : streams[s][t].after)
      if (after.tasks > 0 && static_cast<int>(i) >= after.back)
        take(ends[after.actor < 0 ? a : static_cast<std::size_t>(after.actor)][i - static_cast<std::size_t>(after.back)]
                 [static_cast<std::size_t>(after.stream)][static_cast<std::size_t>(after.tasks - 1)]);
    return is_known ? std::optional(begin) : std::nullopt;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t a = 0; a < n_actors; ++a)
      for (std::size_t i = 0; i < n_iterations; ++i)
        for (std::size_t s = 0; s < program.streams.size(); ++s)
          for (std::size_t t = 0; t < ends[a][i][s].size(); ++t) {
            std::optional<SimTime>& end = ends[a][i][s][t];
            const Program::Task& task = program.role(static_cast<Actor>(a)).streams[s][t];
            if (end) continue;
            const auto begin = begin_of(a, i, s, t);
            if (!begin) continue;
            if (task.call < 0) {
              end = *begin + task.time;
            } else {
              const auto call = static_cast<std::size_t>(task.call);
              const Program::Call& it = program.calls[call];
              launched[call][i][a] = *begin + task.time;
              SimTime last{};
              bool all = true;
              for (int m = 0; m < it.schedule.schedule().actors; ++m) {
                const Actor member = it.members.empty() ? m : it.members[static_cast<std::size_t>(m)];
                const auto& when = launched[call][i][static_cast<std::size_t>(member)];
                all = all && when.has_value();
                if (when) last = std::max(last, *when);
              }
              if (!all) continue;
              end = last + call_times[call];
            }
            --unknown;
            changed = true;
          }
  }
  ensure(unknown == 0, "every task ends");
  std::vector<std::vector<std::vector<std::vector<SimTime>>>> out(n_actors);
  for (std::size_t a = 0; a < n_actors; ++a)
    for (std::size_t i = 0; i < n_iterations; ++i) {
      out[a].emplace_back();
      for (const auto& stream : ends[a][i]) {
        out[a].back().emplace_back();
        for (const auto& end : stream) out[a].back().back().push_back(*end);
      }
    }
  return out;
}

}  // namespace ringsim::naive
