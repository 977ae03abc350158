// The commands that a build with RINGSIM_REPLAY=OFF leaves out: they are listed, and say so when they are called.
#include "tools/commands/commands.hpp"

namespace ringsim::tools {

namespace {

Command left_out(const char* name, const char* summary) {
  return {.name = name,
          .group = Group::replay,
          .summary = summary,
          .example = std::string("ringsim ") + name + " --help",
          .details = "",
          .left_out = "RINGSIM_REPLAY=OFF",
          .prepare = {}};
}

}  // namespace

Command replay_command() {
  return left_out("replay", "Execute schedules on real hardware, check every value, and measure the time");
}
Command lab_command() { return left_out("lab", "Replay a scenario in a network of Linux namespaces"); }
Command lab_up_command() {
  return left_out("lab up", "Build the network and leave it up, so you can inspect it and run programs in it");
}
Command lab_run_command() {
  return left_out("lab run", "Replay over TCP in the network built by `lab up`, or in a temporary one");
}
Command lab_down_command() {
  return left_out("lab down", "Remove a scenario's network, or all networks and leftovers of ended processes");
}
Command probe_command() { return left_out("probe", "Measure the links of this machine's GPUs"); }

}  // namespace ringsim::tools
