#include "sim/program/call_kinds.hpp"

#include <algorithm>
#include <cstddef>
#include <map>

namespace ringsim {

std::vector<int> kinds_of_calls(const Program& program) {
  std::map<const Schedule*, std::vector<int>> firsts;
  std::vector<int> kinds;
  for (std::size_t c = 0; c < program.calls.size(); ++c) {
    const Program::Call& call = program.calls[c];
    std::vector<int>& like = firsts[&call.schedule.schedule()];
    const auto same = std::find_if(like.begin(), like.end(), [&](int first) {
      return program.calls[static_cast<std::size_t>(first)].members == call.members;
    });
    kinds.push_back(same == like.end() ? static_cast<int>(c) : *same);
    if (same == like.end()) like.push_back(static_cast<int>(c));
  }
  return kinds;
}

}  // namespace ringsim
