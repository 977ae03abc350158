#include "tests/support/paths.hpp"

namespace ringsim::test {

std::string source_dir() { return RINGSIM_SOURCE_DIR; }
std::string command_file() { return RINGSIM_COMMAND; }

}  // namespace ringsim::test
