// What was odd about the files that a command read, and which settings changed nothing.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tools/output/output.hpp"

namespace ringsim::tools {

/// Says each warning once, on stderr: the points of a scenario that read one file share its warnings.
class Warnings {
 public:
  void say(const std::vector<std::string>& warnings) {
    for (const std::string& warning : warnings) {
      if (said_.insert(warning).second) warn(warning);
    }
  }

 private:
  std::set<std::string> said_;
};

/// Settings that changed nothing (Prediction::no_effect), over all points of a command: each is said once, at the end,
/// with the number of points if there are several. A sweep over faults may have one per point, so only the first `most`
/// are said, and the number of the others.
class IdleSettings {
 public:
  static constexpr std::size_t most = 20;

  /// The settings of one more point.
  void add(const std::vector<std::string>& texts) {
    ++n_points_;
    for (const std::string& text : texts)
      if (++points_of_[text] == 1) in_order_.push_back(text);
  }

  void say() const {
    for (std::size_t i = 0; i < in_order_.size() && i < most; ++i) {
      const std::size_t n = points_of_.at(in_order_[i]);
      warn(in_order_[i] + (n_points_ == 1 ? "" : fmt::format(" ({} of {} points)", n, n_points_)));
    }
    if (in_order_.size() > most) warn(fmt::format("{} other settings change nothing", in_order_.size() - most));
  }

 private:
  std::size_t n_points_ = 0;
  std::map<std::string, std::size_t> points_of_;
  std::vector<std::string> in_order_;
};

}  // namespace ringsim::tools
