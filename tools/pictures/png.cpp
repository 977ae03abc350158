#include "tools/pictures/png.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <string_view>

#include "sim/base/error.hpp"
#include "tools/exit.hpp"
#include "tools/formats/own_files.hpp"

#ifdef RINGSIM_PNG
#include <cairo.h>
#include <librsvg/rsvg.h>
#include <zlib.h>
#endif

namespace ringsim::tools {

#ifdef RINGSIM_PNG

namespace {

/// 4 bytes, the highest first.
std::string big_endian(std::size_t number) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(number >> shift & 0xFFU);
  return bytes;
}

std::string made_by_chunk() {
  const auto check =
      crc32(0, reinterpret_cast<const Bytef*>(png_made_by.data()), static_cast<uInt>(png_made_by.size()));
  return big_endian(png_made_by.size() - 4) + std::string(png_made_by) + big_endian(check);
}

cairo_status_t append(void* png, const unsigned char* data, unsigned int length) {
  static_cast<std::string*>(png)->append(reinterpret_cast<const char*>(data), length);
  return CAIRO_STATUS_SUCCESS;
}

}  // namespace

void expect_png_support(const std::string& /*path*/) {}

std::string png_of(const std::string& svg) {
  const std::unique_ptr<RsvgHandle, decltype(&g_object_unref)> picture(
      rsvg_handle_new_from_data(reinterpret_cast<const guint8*>(svg.data()), svg.size(), nullptr), &g_object_unref);
  // Not the width and height: the style says "auto", for browsers.
  gboolean has_view = 0;
  RsvgRectangle view{};
  if (picture != nullptr)
    rsvg_handle_get_intrinsic_dimensions(picture.get(), nullptr, nullptr, nullptr, nullptr, &has_view, &view);
  ensure(has_view != 0, "librsvg reads the pictures of ringsim");
  const double across = std::ceil(view.width) * png_scale, down = std::ceil(view.height) * png_scale;
  constexpr double most = 32767;  // of cairo's surfaces
  if (across > most || down > most)
    throw InputError(
        "",
        fmt::format("a PNG can have at most {} pixels in each direction, the picture has {} x {}", most, across, down),
        "SVG has no such limit");
  const std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)> surface(
      cairo_image_surface_create(CAIRO_FORMAT_RGB24, static_cast<int>(across), static_cast<int>(down)),
      &cairo_surface_destroy);
  const std::unique_ptr<cairo_t, decltype(&cairo_destroy)> cairo(cairo_create(surface.get()), &cairo_destroy);
  const RsvgRectangle all{0, 0, across, down};
  const bool is_drawn = rsvg_handle_render_document(picture.get(), cairo.get(), &all, nullptr) != 0;
  std::string png;
  if (!is_drawn || cairo_surface_write_to_png_stream(surface.get(), &append, &png) != CAIRO_STATUS_SUCCESS)
    throw EnvironmentError(fmt::format("a picture of {} x {} pixels cannot be drawn: {}", across, down,
                                       cairo_status_to_string(cairo_surface_status(surface.get()))));
  ensure(png.starts_with(png_signature) && png.size() > png_header_end, "cairo writes PNG");
  return png.insert(png_header_end, made_by_chunk());
}

#else

void expect_png_support(const std::string& path) {
  throw UsageError(
      "",
      fmt::format("expected a name that ends in .svg, found \"{}\"; this ringsim was built without PNG support", path),
      "write SVG, or install librsvg (Debian: librsvg2-dev pkg-config) and rebuild ringsim");
}

std::string png_of(const std::string& /*svg*/) { fail_invariant("a build without PNG writes none"); }

#endif

}  // namespace ringsim::tools
