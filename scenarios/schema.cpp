#include <string>

#include "scenarios/scenario.hpp"
namespace ringsim {
std::string scenario_schema() { return ""; }
}  // namespace ringsim
