// Reads PNG without the library that writes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ringsim::test {

struct Pixels {
  std::size_t width = 0, height = 0;
  std::vector<std::uint32_t> rgb;  ///< row by row: 0xRRGGBB

  std::uint32_t at(double x, double y) const;  ///< the pixel in which the point lies
  std::size_t count(std::uint32_t color) const;
};

/// Of a PNG with 8 bits a channel, RGB or RGBA (of which the transparency is left out), not interlaced. Throws
/// std::runtime_error for any other, and for wrong check sums.
Pixels read_png(const std::string& png);

}  // namespace ringsim::test
