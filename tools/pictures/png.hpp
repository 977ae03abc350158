// Pictures as PNG, by librsvg, in builds that have it.
#pragma once

#include <string>

namespace ringsim::tools {

/// Pixels of a PNG for one of the SVG, across and down: letters of 11 px are read on a slide as well.
inline constexpr int png_scale = 2;

/// Throws UsageError in a build without librsvg. `path`: where the PNG is to go.
void expect_png_support(const std::string& path);

/// A PNG that refuse_to_replace() knows again. `svg`: a picture of ringsim's, a file of its own. Throws
/// InputError for one of more than 32767 pixels across or down. Requires expect_png_support().
std::string png_of(const std::string& svg);

}  // namespace ringsim::tools
