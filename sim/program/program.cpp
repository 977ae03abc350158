#include "sim/program/program.hpp"

#include <numeric>

namespace ringsim {

std::vector<Actor> Program::Call::all_members() const {
  std::vector<Actor> all(members.begin(), members.end());
  if (!all.empty()) return all;
  all.resize(static_cast<std::size_t>(schedule.schedule().actors));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace ringsim
