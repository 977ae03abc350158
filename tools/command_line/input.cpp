#include "tools/command_line/input.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "scenarios/decoder/files.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "tools/command_line/machine_scenario.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/shell_words.hpp"
#include "tools/output/warnings.hpp"
#include "topologies/machines/preset_names.hpp"

namespace ringsim::tools {

namespace {

/// True if a path without a file may be the name of a machine: names have no folders, and no ending of a format.
bool may_be_machine(const std::string& path) {
  const std::string ending = std::filesystem::path(path).extension().string();
  return path.find('/') == std::string::npos && ending != ".json" && ending != ".jsonl" && ending != ".xml";
}

/// The scenario of a machine. `typed`: its name or its file; `what`: which of them.
ScenarioText machine_input(const std::string& typed, const char* what, const std::string& name, MachineWords cluster,
                           const CollectiveWords& collective) {
  const std::string text =
      json_in_lines(scenario_of(settled(std::move(cluster)), collective).document, std::string::npos);
  if (const std::string note = preset_note(typed); !note.empty())
    say(fmt::format("ringsim: note: {} is {}\n", typed, note));
  say(fmt::format("ringsim: note: {} is {}; using this scenario, which you can change with --set:\n  {}\n", typed, what,
                  text));
  return {.name = name, .text = text, .of_machine = true};
}

/// The preset that a path names, if there is no such file; else nullptr.
const PresetNames* machine_at(const std::string& path) {
  std::error_code error;  // such as a folder that may not be searched: the reader says so
  if (path == "-" || std::filesystem::exists(std::filesystem::path(path), error) || error) return nullptr;
  return preset_named(path);
}

/// True for the text of a machine file, of NCCL's topology XML or of nvidia-smi's matrix.
bool describes_machine(const std::string& text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return false;
  if (text[first] == '<') return text.find("<system") != std::string::npos || text.find("<graphs") != std::string::npos;
  if (is_smi_matrix(text)) return true;
  if (text.find("\"devices\"") == std::string::npos) return false;
  const Json document = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return document.is_object() && document.contains("devices") && document.contains("links") &&
         !document.contains("topology");
}

ScenarioText read_text_of(const std::string& path, const std::string& what) {
  if (path == "-") {
    const std::string name = "<stdin>";
    return {.name = name, .text = scenarios::read_text(std::cin, name, what)};
  }
  try {
    return {.name = path, .text = scenarios::read_text(path, what)};
  } catch (const InputError& failed) {
    std::error_code error;
    const bool is_missing = !std::filesystem::exists(std::filesystem::path(path), error) && !error;
    if (!is_missing || !failed.hint().empty() || !may_be_machine(path)) throw;
    throw InputError(path, fmt::format("expected {} or the name of a machine, found neither", what), preset_hint(path));
  }
}

ScenarioText read_any(const std::string& path, const std::string& what, MachineWords cluster,
                      const CollectiveWords& collective) {
  if (const PresetNames* preset = machine_at(path)) {
    cluster.node = preset->name;
    return machine_input(path, "a machine, not a file", preset->name, std::move(cluster), collective);
  }
  ScenarioText input = read_text_of(path, what);
  if (path != "-" && describes_machine(input.text)) {
    cluster.node = path;
    return machine_input(path, "a machine file", std::filesystem::path(path).stem().string(), std::move(cluster),
                         collective);
  }
  for (const auto& [option, change] : given_words(cluster))
    throw UsageError(option, fmt::format("expected a machine as SCENARIO, found {}", path),
                     "to change a scenario, use --set " + change);
  return input;
}

}  // namespace

ScenarioText read_input(const std::string& path, const std::string& what) { return read_any(path, what, {}, {}); }

ScenarioText read_input(const std::string& path, const MachineWords& cluster, const CollectiveWords& collective) {
  return read_any(path, "a scenario file", cluster, collective);
}

ScenarioFile load_scenario(const std::string& path, const std::vector<std::string>& set, const MachineWords& cluster) {
  const ScenarioText input = read_input(path, cluster);
  return ScenarioFile::parse(input.text, input.name, set);
}

ScenarioFile parse_with_any_algorithm(const ScenarioText& input, const std::vector<std::string>& set) {
  const Json scenario = parse_json(input.text, input.name);
  const auto has = [&](const char* pointer) {
    return scenario.is_object() && scenario.contains(Json::json_pointer(pointer));
  };
  const auto is_set = [&](std::string_view key) {
    return std::any_of(set.begin(), set.end(), [&](const std::string& each) { return each.starts_with(key); });
  };
  std::vector<std::string> attempts{""};
  const bool has_collective = has("/collective") && scenario["collective"].is_object();
  if (has_collective && !has("/collective/algorithm") && !has("/sweep/collective.algorithm") &&
      !is_set("collective.algorithm") && !is_set("collective="))
    for (const char* algorithm : {"ring", "direct", "dissemination"})  // one of them does each operation
      attempts.push_back(fmt::format("collective.algorithm={}", algorithm));
  const auto says = [&](const char* key) { return has(fmt::format("/{}", key).c_str()) || is_set(key); };
  if (has("/topology") && !says("collective") && !says("training") && !says("inference") && !says("trace"))
    attempts.emplace_back(says("library")
                              ? R"(collective={"op": "all_reduce", "bytes": "1 MiB"})"
                              : R"(collective={"op": "all_reduce", "bytes": "1 MiB", "algorithm": "ring"})");
  if (attempts.size() == 1) return ScenarioFile::parse(input.text, input.name, set);
  std::exception_ptr refused;  // the error of the scenario as it is
  for (const std::string& attempt : attempts) {
    std::vector<std::string> changes = set;
    if (!attempt.empty()) changes.insert(changes.begin(), attempt);
    try {
      ScenarioFile file = ScenarioFile::parse(input.text, input.name, changes);
      (void)file.point(0);
      return file;
    } catch (const InputError&) {
      if (!refused) refused = std::current_exception();
    }
  }
  std::rethrow_exception(refused);
}

ScenarioFile load_topology(const std::string& path, const std::vector<std::string>& set, const MachineWords& cluster) {
  return parse_with_any_algorithm(read_input(path, cluster), set);
}

void refuse_standard_input(const std::string& path) {
  if (path == "-")
    throw UsageError("SCENARIO", "expected a file, found -",
                     "MPI passes standard input to only one process, but every process reads the scenario");
}

void require_one_point(const ScenarioFile& file, const std::string& command, const std::vector<std::string>& set,
                       const std::string& option) {
  if (file.size() == 1) return;
  std::vector<std::string> varying;
  const auto varied = file.id(0).varied;
  for (const auto& [path, value] : varied) varying.push_back(path);
  throw UsageError("SCENARIO",
                   fmt::format("expected a scenario with one point, found {}: {} var{}", file.size(),
                               fmt::join(varying, ", "), varying.size() == 1 ? "ies" : "y"),
                   fmt::format("choose one, for example with {}{}{}", command, set_words("--set", set),
                               set_words(option, changes_of(varied))));
}

Scenario first_point(const ScenarioFile& file) {
  if (file.size() > 1)
    say(fmt::format("ringsim: note: this is the first of {} points; choose another with --set\n", file.size()));
  Scenario scenario = file.point(0);
  Warnings().say(scenario.warnings);
  return scenario;
}

}  // namespace ringsim::tools
