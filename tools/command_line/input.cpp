#include "tools/command_line/input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <system_error>

#include "scenarios/decoder/files.hpp"
#include "sim/base/error.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/machines/preset_names.hpp"

namespace ringsim::tools {

namespace {

/// True if a path without a file may be the name of a machine: names have no folders, and no ending of a format.
bool may_be_machine(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  return path.find('/') == std::string::npos && ending != ".json" && ending != ".jsonl" && ending != ".xml";
}

}  // namespace

std::string preset_scenario(const std::string& preset) {
  const Machine machine = node_preset(preset);
  const bool amd = std::any_of(machine.devices.begin(), machine.devices.end(),
                               [](const Machine::Device& device) { return device.attributes.contains("gcn"); });
  return fmt::format(
      R"({{"version": 1, "name": "{0}", "topology": {{"kind": "cluster", "node": "{0}", "nodes": 1}}, {1}}})",
      machine.name,
      amd ? R"("collective": {"op": "all_reduce", "algorithm": "direct", "bytes": "1 GiB"})"
          : R"("library": "nccl", "collective": {"op": "all_reduce", "bytes": "1 GiB"})");
}

ScenarioText read_input(const std::string& path, const std::string& what) {
  std::error_code error;  // such as a folder that may not be searched: the reader says so
  if (path != "-" && !std::filesystem::exists(std::filesystem::path(path), error) && !error) {
    if (const PresetNames* preset = preset_named(path); preset != nullptr) {
      const std::string text = preset_scenario(preset->name);
      if (const std::string note = preset_note(path); !note.empty())
        say(fmt::format("ringsim: note: {} is {}\n", path, note));
      say(fmt::format(
          "ringsim: note: {} is a machine, not a file; taken as this scenario, which --set changes:\n  {}\n", path,
          text));
      return {preset->name, text};
    }
    try {
      return {path, scenarios::read_text(path, what)};
    } catch (const InputError& missing) {
      if (!missing.hint().empty() || !may_be_machine(path)) throw;
      throw InputError(path, fmt::format("expected {} or the name of a machine, found neither", what),
                       preset_hint(path));
    }
  }
  if (path != "-") return {path, scenarios::read_text(path, what)};
  const std::string name = "<stdin>";
  return {name, scenarios::read_text(std::cin, name, what)};
}

ScenarioFile load_scenario(const std::string& path, const std::vector<std::string>& set) {
  const ScenarioText input = read_input(path);
  return ScenarioFile::parse(input.text, input.name, set);
}

void refuse_standard_input(const std::string& path) {
  if (path == "-")
    throw UsageError("SCENARIO", "expected a file, found -",
                     "MPI gives standard input to one process, and each of them reads the scenario");
}

void require_one_point(const ScenarioFile& file, const std::string& command, const std::vector<std::string>& set,
                       const std::string& option) {
  if (file.size() == 1) return;
  std::vector<std::string> varying;
  const auto varied = file.id(0).varied;
  for (const auto& [path, value] : varied) varying.push_back(path);
  throw UsageError("SCENARIO",
                   fmt::format("expected one point, found {}: {} var{}", file.size(), fmt::join(varying, ", "),
                               varying.size() == 1 ? "ies" : "y"),
                   fmt::format("choose one, such as {}{}{}", command, set_words("--set", set),
                               set_words(option, changes_of(varied))));
}

Scenario first_point(const ScenarioFile& file) {
  if (file.size() > 1)
    say(fmt::format("ringsim: note: the first of {} points; choose another with --set\n", file.size()));
  Scenario scenario = file.point(0);
  Warnings().say(scenario.warnings);
  return scenario;
}

}  // namespace ringsim::tools
