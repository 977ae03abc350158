// Schedules as people read them: a table of all steps, and a picture of a small one.
#pragma once

#include <string>

#include "sim/schedule/schedule.hpp"
#include "sim/text/wrap.hpp"

namespace ringsim::tools {

/// "3"; of helpers "h0".
std::string actor_name(const Schedule& schedule, Actor actor);

/// "3", "4-7"; of other buffers than data with their letter: "i3". If a format names no chunks, their size.
std::string chunks_text(const Schedule& schedule, const Region& region);

/// A row for each step.
std::string schedule_table(const Schedule& schedule);

/// A row for each rank (and lane, if there are several), a column for each step, broken into blocks that fit `width`
/// characters; a line on top says how to read it.
std::string schedule_picture(const Schedule& schedule, std::size_t width = text_width);

}  // namespace ringsim::tools
