// A sweep's verdict as JUnit XML, which CI systems show test by test.
#pragma once

#include <string>

#include "validate/results/gates.hpp"

namespace ringsim::tools {

/// One test case a result, and one for each failure that belongs to none. An error is a point that could not be
/// simulated, a failure a gate that it does not pass. No times: those of a simulation are not those of a test.
std::string junit(const std::string& scenario_name, const GateReport& report);

}  // namespace ringsim::tools
