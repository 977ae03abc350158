// --trace, --utilization and --picture: what happens in a run over time, in files of their own.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/predict/trace.hpp"
#include "tools/command_line/options.hpp"

namespace ringsim::tools {

/// What commands of one point take, `run` and `explain`.
struct RecordingArguments {
  std::string trace;  ///< a file; empty: none
  TraceFilter filter;
  std::string utilization;          ///< a file; empty: none
  Picoseconds utilization_step{0};  ///< 0: ringsim chooses
  std::string picture;              ///< a file; empty: none

  bool is_asked() const { return !trace.empty() || !utilization.empty() || !picture.empty(); }
};

void declare_recording(Options& options, RecordingArguments& arguments);

/// What the run is to keep; nothing if nothing is asked. Throws UsageError or InputError for files that it may not
/// write: those of `other_files`, each other, and those of a wrong name.
std::optional<Recording> recording_of(const RecordingArguments& arguments, const std::vector<std::string>& other_files);

/// Writes the files, and warns of what the trace had to leave out. `name`: of the scenario.
void write_recording(const RecordingArguments& arguments, const Recording& recording, const std::string& name);

}  // namespace ringsim::tools
