// The proof of a program: no more variables are alive at a time than it promises.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sim/program/program_detail.hpp"

namespace ringsim::program_detail {

void check_alive(const Program& program, WatchedWork* work) {
  for (const Program::Alive& alive : program.alive) {
    const std::vector<Program::Task>& tasks = program.roles[static_cast<std::size_t>(alive.role)].streams.front();
    std::vector<bool> counts(program.variables.size());
    for (const int variable : alive.variables) counts[static_cast<std::size_t>(variable)] = true;
    std::vector<std::size_t> last_read(program.variables.size());
    for (std::size_t t = 0; t < tasks.size(); ++t)
      for (const Program::Touch& touch : tasks[t].touches)
        if (touch.as == Program::Touch::As::read && counts[static_cast<std::size_t>(touch.variable)])
          last_read[static_cast<std::size_t>(touch.variable)] = t;
    int now = 0, most = 0;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      done(work);
      for (const Program::Touch& touch : tasks[t].touches) {
        if (!counts[static_cast<std::size_t>(touch.variable)]) continue;
        if (touch.as == Program::Touch::As::make) most = std::max(most, ++now);
        if (touch.as == Program::Touch::As::read && last_read[static_cast<std::size_t>(touch.variable)] == t) --now;
      }
    }
    if (most != alive.most)
      refuse_program(
          program,
          fmt::format("{} keeps the activations of {} passes at the same time, expected {}",
                      first_of(program, alive.role), most, alive.most),
          "the memory is computed for the expected number; the order of the passes determines the actual number");
  }
}

}  // namespace ringsim::program_detail
