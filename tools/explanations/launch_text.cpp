#include "tools/explanations/launch_text.hpp"

#include <fmt/format.h>

#include "sim/base/quantity.hpp"

namespace ringsim::tools {

namespace {

/// A launch that is less than this share of the smallest time is not worth a sentence.
constexpr double worth_saying = 0.05;

}  // namespace

std::string launch_share_text(const Prediction& smallest, const std::string& text, const std::string& name,
                              const std::vector<std::string>& set) {
  const Bytes bytes = smallest.request.bytes;
  std::vector<std::string> at = set;
  at.push_back(fmt::format("collective.bytes={} B", bytes.count));
  const double launch = microseconds(own_launch(text, name, at)), all = microseconds(smallest.time);
  if (launch <= 0 || launch > all || launch < worth_saying * all) return "";
  return fmt::format(
      "The launch takes {:.2f} of {:.2f} us at {}. It depends on the GPU, the driver and the harness; --launch-from "
      "derives it from a measured table.",
      launch, all, format(bytes));
}

std::string given_launch_text(const GivenLaunch& given, const std::string& file) {
  return fmt::format("The launch is {:.2f} us instead of {:.2f} ({}), {}{} of {}.", microseconds(given.launch()),
                     microseconds(given.own), given.key,
                     given.rows.size() > 1 ? "the median of the fits to " : "fitted to ", sizes_text(given.rows), file);
}

}  // namespace ringsim::tools
