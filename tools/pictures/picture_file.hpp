// Pictures in files: SVG, or PNG in builds that have it.
#pragma once

#include <string>

namespace ringsim::tools {

/// Throws InputError if the name does not end in .svg, in .png, or in `also` (".html"); UsageError for .png in a build
/// that writes none.
void expect_picture_name(const std::string& path, const std::string& also = "");

/// Writes the picture, a file of its own; "-": as SVG to standard output. Throws as Output and png_of().
void write_picture(const std::string& path, const std::string& svg);

}  // namespace ringsim::tools
