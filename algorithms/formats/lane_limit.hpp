// How many lanes a file may ask for. For the importers alone.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>

namespace ringsim {

/// Over all ranks, which have as many lanes each as the one that has most: a small file can ask for very many.
inline constexpr std::size_t most_lanes_in_all = std::size_t{1} << 24;

/// What is wrong with so many, or empty. `what`: how the format calls its lanes.
inline std::string too_many_lanes(std::size_t ranks, std::size_t lanes, const std::string& what) {
  if (lanes <= most_lanes_in_all / ranks) return "";
  return fmt::format(
      "expected at most {} {} over all ranks, found {} in one of {} ranks, and all ranks get the same number",
      most_lanes_in_all, what, lanes, ranks);
}

}  // namespace ringsim
