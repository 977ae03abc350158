#include "tests/support/paths.hpp"

namespace ringsim::test {

std::string source_dir() { return RINGSIM_SOURCE_DIR; }
std::string command_file() { return RINGSIM_COMMAND; }
std::string fake_gpu_command_file() { return RINGSIM_FAKE_GPU_COMMAND; }

}  // namespace ringsim::test
