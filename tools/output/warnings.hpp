// What was odd about the files that a command read, and which settings changed nothing.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scenarios/predict/no_effect.hpp"
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

/// The warnings of many points: each is said once, at the end, with where it holds if it does not everywhere.
class PointWarnings {
 public:
  /// `varied`: what tells the point from others, "collective.bytes=1 MiB".
  void add(const std::vector<std::string>& warnings, const std::string& varied) {
    ++points_;
    for (const std::string& warning : warnings) {
      const auto [known, is_new] = by_text_.try_emplace(warning, Where{0, points_, varied});
      if (is_new) in_order_.push_back(warning);
      if (is_new || known->second.last != points_) ++known->second.points;
      known->second.last = points_;
    }
  }

  void say() const {
    for (const std::string& warning : in_order_) {
      const Where& where = by_text_.at(warning);
      const std::string others = where.points == 2  ? " and at another point"
                                 : where.points > 2 ? fmt::format(" and at {} other points", where.points - 1)
                                                    : "";
      warn(where.points == points_ ? warning : fmt::format("{} (at {}{})", warning, where.first, others));
    }
  }

 private:
  struct Where {
    std::size_t points, last;
    std::string first;
  };
  std::map<std::string, Where> by_text_;
  std::vector<std::string> in_order_;
  std::size_t points_ = 0;
};

/// Settings that changed nothing at any point of a command that has them: each is said once, at the end. A sweep over
/// faults may have one per point, so only the first `most` are said, and the number of the others.
class IdleSettings {
 public:
  static constexpr std::size_t most = 20;

  /// The settings of one more point.
  void add(const std::vector<SettingEffect>& settings) {
    for (const SettingEffect& each : settings) {
      const auto [known, is_new] = idle_.try_emplace(each.setting, each.idle);
      if (is_new) in_order_.push_back(each.setting);
      if (each.idle.empty()) known->second.clear();
    }
  }

  void say() const {
    std::size_t n = 0;
    for (const std::string& setting : in_order_) {
      const std::string& idle = idle_.at(setting);
      if (!idle.empty() && n++ < most) warn(fmt::format("{}: it has no effect, because {}", setting, idle));
    }
    if (n > most) warn(fmt::format("{} other settings have no effect", n - most));
  }

 private:
  std::map<std::string, std::string> idle_;  // by setting: why; empty: it had an effect somewhere
  std::vector<std::string> in_order_;
};

}  // namespace ringsim::tools
