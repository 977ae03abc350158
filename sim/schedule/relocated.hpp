// A schedule run in other buffers than it is written for, after a copy of what each rank contributes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>

#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// Each rank begins with a step in lane 0, for which its other lanes wait: it copies its contribution from `source` to
/// where the plain schedule's buffer `input` is now. Then the plain schedule runs. Helpers copy nothing.
struct Relocated {
  struct Place {
    Buffer buffer = Buffer::data;
    std::uint32_t first = 0;
  };
  Schedule plain;
  std::array<Place, n_buffers> place{};  ///< [buffer of the plain schedule] chunk c is chunk first + c of that buffer
  Buffer input = Buffer::data;           ///< of the plain schedule: the only one that ranks bring something in
  Buffer source = Buffer::input;         ///< chunk c of `input` is copied from chunk c of this buffer
  std::function<Region(Actor)> contributed;  ///< the run of chunks that a rank copies; count 0: none

  Region moved(Region region) const {
    const Place& to = place[static_cast<std::size_t>(region.buffer)];
    return {to.buffer, to.first + region.first, region.count};
  }
};

/// Steps and promise as above: a rank has in `source` what the plain schedule has in `input`. It must have it at the
/// end as well, if nothing is placed there. The caller sets the layout and the name. It claims no symmetry of its own:
/// check() finds out what it inherits (sim/check/check.hpp), and relies on none of the fields without looking.
Schedule run_relocated(Relocated made);

/// How the schedule was made, if it still is what run_relocated() returned: nullptr if any of its functions was
/// replaced since.
const Relocated* relocated(const Schedule& schedule);

}  // namespace ringsim
