// The SCENARIO of the command line: a file, or standard input.
#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "tools/command_line/machine_scenario.hpp"

namespace ringsim::tools {

struct ScenarioText {
  std::string name;  ///< what errors call it: the path, or "<stdin>"
  std::string text;
  bool of_machine = false;  ///< made for a machine, by name or file; its files are relative to the working directory
};

/// Reads the file, or standard input for "-"; the files that a scenario from there names are relative to the working
/// directory. For a machine, its file (.json, or NCCL's .xml) or its name ("dgx-a100", if there is no such file), gives
/// scenario_of() that machine, and says so on stderr. `what`: what is expected, for errors. Throws InputError.
ScenarioText read_input(const std::string& path, const std::string& what = "a scenario file");
/// The same; --nodes and --fabric make one machine several, and `collective` is what runs on them. Throws UsageError if
/// --nodes or --fabric is given for a scenario.
ScenarioText read_input(const std::string& path, const MachineWords& cluster, const CollectiveWords& collective = {});

/// The scenario with the changes of --set. Throws InputError as ScenarioFile::load().
ScenarioFile load_scenario(const std::string& path, const std::vector<std::string>& set,
                           const MachineWords& cluster = {});

/// The scenario with the changes of --set, for commands whose output does not depend on the algorithm. Neither the
/// algorithm nor the collective has to be given. Throws InputError as ScenarioFile::parse(), of the scenario as it is.
ScenarioFile parse_with_any_algorithm(const ScenarioText& input, const std::vector<std::string>& set);
/// parse_with_any_algorithm() of a file or of a machine name.
ScenarioFile load_topology(const std::string& path, const std::vector<std::string>& set,
                           const MachineWords& cluster = {});

/// For processes that MPI started: it gives standard input to one of them alone. Throws UsageError for "-".
void refuse_standard_input(const std::string& path);

/// For commands that look at one point. Throws UsageError that names the keys that vary, and the command line for the
/// first point: `command`, such as "ringsim explain star.json", with `set`, then what chooses the point. `option`: the
/// one that does.
void require_one_point(const ScenarioFile& file, const std::string& command, const std::vector<std::string>& set,
                       const std::string& option = "--set");

/// The first point of a scenario, its warnings said; says that there are others.
Scenario first_point(const ScenarioFile& file);

}  // namespace ringsim::tools
