// A mistake of the user's in a setting that is known where it is found, in the midst of a run.
#pragma once

#include <string>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

/// Scenarios name the setting's place (scenarios/predict/predict.cpp); other InputErrors of a run are the topology's.
class SettingError : public InputError {
 public:
  enum class Setting {
    scale,     ///< sizes, ranks, latencies and rates together: no single place
    protocol,  ///< it cannot carry the schedule
    packets    ///< the network model packet's own
  };

  /// `where()` is empty; the others as InputError's.
  SettingError(Setting setting, std::string message, std::string hint = "")
      : InputError("", std::move(message), std::move(hint)), setting_(setting) {}

  Setting setting() const { return setting_; }

 private:
  Setting setting_;
};

}  // namespace ringsim
