#include "tools/pictures/picture_file.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "tools/output/output.hpp"
#include "tools/pictures/png.hpp"

namespace ringsim::tools {

void expect_picture_name(const std::string& path, const std::string& also) {
  if (path.ends_with(".png")) return expect_png_support(path);
  if (path.ends_with(".svg") || (!also.empty() && path.ends_with(also))) return;
  throw InputError("", fmt::format("expected a name that ends in .svg{} .png{}, found \"{}\"",
                                   also.empty() ? " or" : ",", also.empty() ? "" : " or " + also, path));
}

void write_picture(const std::string& path, const std::string& svg) {
  Output output(path);
  path.ends_with(".png") ? output.write_styled(png_of(svg)) : output.write(svg);
  output.finish();
}

}  // namespace ringsim::tools
