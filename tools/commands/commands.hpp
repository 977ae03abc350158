// All commands. Each cmd_*.cpp makes its own entries of the table: arguments, options and the function that runs.
#pragma once

#include <vector>

#include "tools/command_line/command.hpp"

namespace ringsim::tools {

/// The table of main.cpp, in the order in which help shows it.
const std::vector<Command>& command_table();

Command predict_command();
Command run_command();
Command sweep_command();
Command plan_command();
Command crossover_command();
Command bound_command();
Command synthesize_command();
Command explain_command();
Command diff_command();

Command check_command();
Command compare_command();
Command calibrate_command();
Command scorecard_command();
Command trace_command();
Command trace_show_command();
Command trace_compare_command();
Command trace_export_command();

Command replay_command();
Command lab_command();
Command lab_up_command();
Command lab_run_command();
Command lab_down_command();
Command probe_command();

Command list_command();
Command topology_command();
Command topology_show_command();
Command topology_paths_command();
Command topology_rings_command();
Command topology_picture_command();
Command topology_import_command();
Command topology_export_command();
Command schedule_command();
Command schedule_show_command();
Command schedule_picture_command();
Command schedule_check_command();
Command schedule_import_command();
Command schedule_export_command();
Command schema_command();

Command merge_command();
Command plot_command();

Command help_command();
Command version_command();
Command completion_command();
Command man_command();

}  // namespace ringsim::tools
