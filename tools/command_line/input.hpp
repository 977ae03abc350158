// The SCENARIO of the command line: a file, or standard input.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"

namespace ringsim::tools {

struct ScenarioText {
  std::string name;  ///< what errors call it: the path, or "<stdin>"
  std::string text;
};

/// Reads the file, or standard input for "-"; the files that a scenario from there names are relative to the working
/// directory. `what`: what is expected, for errors. Throws InputError.
ScenarioText read_input(const std::string& path, const std::string& what = "a scenario file");

/// The scenario with the changes of --set. Throws InputError as ScenarioFile::load().
ScenarioFile load_scenario(const std::string& path, const std::vector<std::string>& set);

/// For processes that MPI started: it gives standard input to one of them alone. Throws UsageError for "-".
void refuse_standard_input(const std::string& path);

/// For commands that look at one point. Throws UsageError that names the keys that vary.
void require_one_point(const ScenarioFile& file);

/// The first point of a scenario, its warnings said; says that there are others.
Scenario first_point(const ScenarioFile& file);

}  // namespace ringsim::tools
