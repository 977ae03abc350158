// What a result depends on besides its scenario.
#pragma once

namespace ringsim {

inline constexpr const char* version = "0.9.0";

/// Raise it when a golden time changes: it tells results of different models apart. tests/scenarios/golden_test.cpp
/// holds the goldens to it.
inline constexpr int model_version = 24;

}  // namespace ringsim
