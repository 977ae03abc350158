// What was odd about the files that a command read.
#pragma once

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

}  // namespace ringsim::tools
