// The table of commands, and the program.
#include <fcntl.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "tools/command_line/command_line.hpp"
#include "tools/commands/commands.hpp"

namespace ringsim::tools {

const std::vector<Command>& command_table() {
  static const std::vector<Command> table{
      predict_command(),
      run_command(),
      sweep_command(),
      plan_command(),
      crossover_command(),
      bound_command(),
      synthesize_command(),
      explain_command(),
      diff_command(),

      check_command(),
      compare_command(),
      calibrate_command(),
      scorecard_command(),
      trace_command(),
      trace_show_command(),
      trace_compare_command(),
      trace_export_command(),

      replay_command(),
      lab_command(),
      lab_up_command(),
      lab_run_command(),
      lab_down_command(),
      probe_command(),

      list_command(),
      topology_command(),
      topology_show_command(),
      topology_paths_command(),
      topology_rings_command(),
      topology_picture_command(),
      topology_import_command(),
      topology_export_command(),
      schedule_command(),
      schedule_show_command(),
      schedule_picture_command(),
      schedule_check_command(),
      schedule_import_command(),
      schedule_export_command(),
      schema_command(),

      merge_command(),
      plot_command(),

      help_command(),
      version_command(),
      completion_command(),
      man_command(),
  };
  return table;
}

namespace {

/// A file that is opened later must not get the number of a closed stderr: messages would go into it.
void hold_stderr() {
  if (fcntl(STDERR_FILENO, F_GETFD) != -1) return;
  const int nowhere = open("/dev/null", O_WRONLY);
  if (nowhere != -1 && nowhere != STDERR_FILENO) {
    dup2(nowhere, STDERR_FILENO);
    close(nowhere);
  }
}

}  // namespace

}  // namespace ringsim::tools

int main(int argc, char** argv) {
  using namespace ringsim::tools;
  hold_stderr();
  return run_command_line(command_table(), {argv + (argc > 0 ? 1 : 0), argv + argc});
}
