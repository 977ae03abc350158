// A schedule as a picture: which rank sends which chunk to which, step by step.
#pragma once

#include <string>

#include "sim/schedule/schedule.hpp"

namespace ringsim::tools {

inline constexpr int most_actors_drawn = 16, most_steps_drawn = 32;

/// A panel for each step, at most most_steps_drawn of them, with the ranks on a circle and an arrow for each message,
/// labeled with its chunks if there is room. A step is what may happen at the same time: if every message took
/// equally long, the messages of one step would. Requires a schedule that was proved, of at most most_actors_drawn
/// ranks and helpers. The picture is a file of its own.
std::string schedule_svg(const Schedule& schedule, const std::string& title);

}  // namespace ringsim::tools
