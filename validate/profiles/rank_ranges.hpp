// Lists of ranks as people write them.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ringsim::profiles {

/// "0 to 7, 16". Requires ranks in order.
inline std::string rank_ranges(const std::vector<std::uint32_t>& ranks) {
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1] == ranks[j] + 1) ++j;
    out += out.empty() ? "" : ", ";
    out += j == i ? fmt::to_string(ranks[i]) : fmt::format("{}{}{}", ranks[i], j == i + 1 ? ", " : " to ", ranks[j]);
    i = j + 1;
  }
  return out;
}

}  // namespace ringsim::profiles
