#include "topologies/layout/text_width.hpp"

#include <array>

namespace ringsim::layout {

namespace {

/// Thousandths of the font's size, from the blank to the tilde.
constexpr std::array<int, 95> advances{
    318,  401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337,  //  !"#$%&'()*+,-./
    636,  636, 636, 636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531,  // 0 to ?
    1000, 684, 686, 698, 770, 632, 575, 775, 752, 295, 295, 656, 557, 863, 748, 787,  // @ to O
    603,  787, 695, 635, 611, 732, 684, 989, 685, 611, 685, 390, 337, 390, 838, 500,  // P to _
    500,  613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579, 278, 974, 634, 612,  // ` to o
    635,  635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838};      // p to ~
constexpr int widest = 1000;
constexpr double of_bold = 1.13;

}  // namespace

double width_of(const std::string& text, double size, Weight weight) {
  int sum = 0;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= ' ' && byte <= '~')
      sum += advances[static_cast<std::size_t>(byte - ' ')];
    else if ((byte & 0xC0U) != 0x80U)  // the first byte of a character
      sum += widest;
  }
  return size * sum / 1000 * (weight == Weight::bold ? of_bold : 1);
}

}  // namespace ringsim::layout
