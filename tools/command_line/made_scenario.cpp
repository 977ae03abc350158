#include "tools/command_line/made_scenario.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/text/wrap.hpp"
#include "tools/exit.hpp"
#include "tools/formats/own_files.hpp"
#include "tools/output/ending.hpp"

namespace ringsim::tools {

namespace {

/// File names in a scenario are relative to its folder, those on the command line to the working directory.
std::string from_folder_of(const std::string& scenario, const std::string& file) {
  const std::filesystem::path folder = std::filesystem::absolute(scenario).parent_path();
  return std::filesystem::absolute(file).lexically_relative(folder).string();
}

}  // namespace

std::string assumed_text(const std::vector<Assumption>& assumed) {
  if (assumed.empty()) return "";
  std::string text =
      "\nAssumptions (no option sets these values; to change one, use --set with the path in parentheses):\n";
  for (const Assumption& each : assumed) text += "  " + wrapped(fmt::format("{} ({})", each.text, each.path), 4) + '\n';
  return text;
}

void note_assumed(const std::vector<Assumption>& assumed) {
  for (const Assumption& each : assumed) say(fmt::format("ringsim: note: assumed: {} ({})\n", each.text, each.path));
}

std::string shown_scenario(const Json& document, const std::string& save, const std::string& commands) {
  return fmt::format("\nThe equivalent scenario for {}; {}:\n", commands,
                     save.empty() ? "to save it, add --save FILE.json" : "it was saved to " + save) +
         json_in_lines(document, text_width) + '\n';
}

void require_json_name(const std::string& save) {
  if (!save.empty() && ending_of(save) != ".json")
    throw UsageError("--save", fmt::format("expected a name that ends in .json, found \"{}\"", save));
}

std::optional<Output> open_saved(const std::string& save, bool force, const std::vector<std::string>& others) {
  if (save.empty()) return std::nullopt;
  for (const std::string& other : others) refuse_as_output(save, other);
  if (!force && std::filesystem::exists(save))
    throw UsageError("--save", fmt::format("expected the name of a new file, found the existing file {}", save),
                     "add --force or choose another name");
  return std::optional<Output>(std::in_place, save);
}

void write_saved(Output& file, const Json& document, const std::string& save) {
  Json saved = document;
  Json& topology = saved["topology"];
  for (const char* key : {"node_file", "file"})
    if (topology.is_object() && topology.contains(key) && topology[key].is_string() &&
        !std::filesystem::path(topology[key].get<std::string>()).is_absolute())
      topology[key] = from_folder_of(save, topology[key].get<std::string>());
  file.write(json_in_lines(saved, text_width) + '\n');
  file.finish();
}

}  // namespace ringsim::tools
