// Stands in for the commands that RINGSIM_REPLAY=OFF leaves out.
#include <fmt/format.h>

#include "sim/base/error.hpp"
#include "tools/commands/commands.hpp"

namespace ringsim::tools {

namespace {

[[noreturn]] void refuse(const char* command) {
  throw EnvironmentError(
      fmt::format("ringsim {} was left out of this build (RINGSIM_REPLAY=OFF)\n"
                  "  hint: tools/build.sh builds all of it",
                  command));
}

}  // namespace

int replay_command(const ReplayArguments&) { refuse("replay"); }
int lab_command(const LabArguments&) { refuse("lab"); }
int probe_command(const ProbeArguments&) { refuse("probe"); }

}  // namespace ringsim::tools
