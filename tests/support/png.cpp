#include "tests/support/png.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <stdexcept>

namespace ringsim::test {

namespace {

void require(bool condition, const char* expected) {
  if (!condition) throw std::runtime_error(std::string("PNG: expected ") + expected);
}

std::size_t byte(const std::string& text, std::size_t at) { return static_cast<unsigned char>(text.at(at)); }

std::size_t number(const std::string& text, std::size_t at) {
  return byte(text, at) << 24 | byte(text, at + 1) << 16 | byte(text, at + 2) << 8 | byte(text, at + 3);
}

/// PNG, 9.4: of left, above, and left above, the one that is nearest to left + above - left above.
std::size_t paeth(std::size_t left, std::size_t above, std::size_t corner) {
  const auto a = static_cast<int>(left), b = static_cast<int>(above), c = static_cast<int>(corner);
  const int to_left = std::abs(b - c), to_above = std::abs(a - c), to_corner = std::abs(a + b - 2 * c);
  if (to_left <= to_above && to_left <= to_corner) return left;
  return to_above <= to_corner ? above : corner;
}

std::string inflated(const std::string& data, std::size_t size) {
  std::string rows(size, '\0');
  uLongf length = size;
  const int done = uncompress(reinterpret_cast<Bytef*>(rows.data()), &length,
                              reinterpret_cast<const Bytef*>(data.data()), data.size());
  require(done == Z_OK && length == size, "as much data as its size says");
  return rows;
}

/// Undoes the filter of each row; PNG, 9.2.
void unfilter(std::string& rows, std::size_t stride, std::size_t channels) {
  for (std::size_t row = 0; row * (stride + 1) < rows.size(); ++row) {
    const std::size_t first = row * (stride + 1) + 1, filter = byte(rows, first - 1);
    require(filter <= 4, "a filter from 0 to 4");
    for (std::size_t i = 0; i < stride; ++i) {
      const std::size_t left = i < channels ? 0 : byte(rows, first + i - channels);
      const std::size_t above = row == 0 ? 0 : byte(rows, first + i - stride - 1);
      const std::size_t corner = row == 0 || i < channels ? 0 : byte(rows, first + i - stride - 1 - channels);
      const std::size_t added[] = {0, left, above, (left + above) / 2, paeth(left, above, corner)};
      rows[first + i] = static_cast<char>((byte(rows, first + i) + added[filter]) & 0xFF);
    }
  }
}

}  // namespace

std::uint32_t Pixels::at(double x, double y) const {
  return rgb.at(static_cast<std::size_t>(y) * width + static_cast<std::size_t>(x));
}

std::size_t Pixels::count(std::uint32_t color) const {
  return static_cast<std::size_t>(std::count(rgb.begin(), rgb.end(), color));
}

Pixels read_png(const std::string& png) {
  require(png.starts_with("\x89PNG\r\n\x1a\n"), "its signature");
  Pixels pixels;
  std::size_t channels = 0;
  std::string data, name;
  for (std::size_t at = 8; name != "IEND"; at += 12 + number(png, at)) {
    const std::size_t length = number(png, at);
    name = png.substr(at + 4, 4);
    const std::string body = png.substr(at + 8, length);
    const std::string checked = name + body;
    require(crc32(0, reinterpret_cast<const Bytef*>(checked.data()), static_cast<uInt>(checked.size())) ==
                number(png, at + 8 + length),
            "the check sum of each chunk");
    if (name == "IDAT") data += body;
    if (name != "IHDR") continue;
    pixels.width = number(body, 0);
    pixels.height = number(body, 4);
    require(byte(body, 8) == 8 && (byte(body, 9) == 2 || byte(body, 9) == 6) && byte(body, 12) == 0,
            "8 bits of RGB or RGBA, not interlaced");
    channels = byte(body, 9) == 2 ? 3 : 4;
  }
  const std::size_t stride = pixels.width * channels;
  std::string rows = inflated(data, pixels.height * (stride + 1));
  unfilter(rows, stride, channels);
  for (std::size_t row = 0; row < pixels.height; ++row)
    for (std::size_t i = row * (stride + 1) + 1; i <= row * (stride + 1) + stride; i += channels)
      pixels.rgb.push_back(
          static_cast<std::uint32_t>(byte(rows, i) << 16 | byte(rows, i + 1) << 8 | byte(rows, i + 2)));
  return pixels;
}

}  // namespace ringsim::test
