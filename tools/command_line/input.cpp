#include "tools/command_line/input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <iostream>

#include "scenarios/decoder/files.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/warnings.hpp"

namespace ringsim::tools {

ScenarioText read_input(const std::string& path, const std::string& what) {
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

void require_one_point(const ScenarioFile& file) {
  if (file.size() == 1) return;
  std::vector<std::string> varying;
  for (const auto& [path, value] : file.id(0).varied) varying.push_back(path);
  throw UsageError("SCENARIO",
                   fmt::format("expected one point, found {}: {} var{}", file.size(), fmt::join(varying, ", "),
                               varying.size() == 1 ? "ies" : "y"),
                   "choose one with --set PATH=VALUE");
}

Scenario first_point(const ScenarioFile& file) {
  if (file.size() > 1)
    say(fmt::format("ringsim: note: the first of {} points; choose another with --set\n", file.size()));
  Scenario scenario = file.point(0);
  Warnings().say(scenario.warnings);
  return scenario;
}

}  // namespace ringsim::tools
