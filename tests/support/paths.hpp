// Where the repository and the built command are. Only paths.cpp is compiled with these paths: so one compiler cache
// serves several checkouts.
#pragma once

#include <string>

namespace ringsim::test {

std::string source_dir();
std::string command_file();
std::string fake_gpu_command_file();

}  // namespace ringsim::test
