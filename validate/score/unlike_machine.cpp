#include "validate/score/unlike_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "topologies/machines/machine.hpp"
#include "topologies/machines/preset_names.hpp"

namespace ringsim {

namespace {

/// The architectures of a machine's GPUs.
std::set<std::string> architectures_of(const Machine& machine) {
  std::set<std::string> found;
  for (const Machine::Device& device : machine.devices)
    if (const auto sm = device.attributes.find("sm"); device.kind == NodeKind::gpu && sm != device.attributes.end())
      found.insert(sm->second);
  return found;
}

/// True if the machine has one of these GPUs of presets. Of a machine that is no preset only the architecture is known.
bool has_gpu(const Machine& machine, const std::vector<std::string>& gpus) {
  const auto is_named = [&](const PresetNames& preset) {
    return std::find(gpus.begin(), gpus.end(), preset.gpu) != gpus.end();
  };
  if (const PresetNames* own = preset_named(machine.name)) return is_named(*own);
  const std::set<std::string> architectures = architectures_of(machine);
  return architectures.empty() ||
         std::any_of(preset_names().begin(), preset_names().end(), [&](const PresetNames& preset) {
           return is_named(preset) && architectures_of(node_preset(preset.name)) == architectures;
         });
}

std::string own_gpu(const Machine& machine) {
  if (const PresetNames* own = preset_named(machine.name)) return fmt::format("{} with {}", own->name, own->gpu);
  return fmt::format("a machine with GPUs of another architecture (sm {})", *architectures_of(machine).begin());
}

}  // namespace

std::vector<std::string> unlike_machine(const std::map<std::string, std::string>& about, const Scenario& scenario) {
  std::vector<std::string> out;
  const auto* cluster = std::get_if<Cluster>(&scenario.topology);
  if (cluster == nullptr) return out;
  // A node of a preset may be a rack of many hosts (NVL72), so that numbers of nodes do not compare.
  constexpr std::size_t most_gpus_of_a_host = 16;  // DGX-2
  const bool has_racks = std::any_of(cluster->parts.begin(), cluster->parts.end(), [](const Cluster::Part& part) {
    return part.machine->n_gpus() > most_gpus_of_a_host;
  });
  if (const auto said = about.find("nodes"); said != about.end() && !has_racks && scenario.main().ranks.empty()) {
    int nodes = 0;
    for (const Cluster::Part& part : cluster->parts) nodes += part.nodes;
    if (said->second != fmt::to_string(nodes) && said->second.find_first_not_of("0123456789") == std::string::npos)
      out.push_back(
          fmt::format("the rows were measured on {} node{}, but the scenario has {}; to change it, set "
                      "topology.nodes (of a machine given by name: --nodes and --fabric)",
                      said->second, said->second == "1" ? "" : "s", nodes));
  }
  if (const auto said = about.find("gpu"); said != about.end())
    if (const std::string own = machine_without(said->second, scenario); !own.empty())
      out.push_back(
          fmt::format("the rows were measured on {}, but the scenario has {}; `ringsim list nodes` shows "
                      "other machines",
                      in_quotes(said->second), own));
  return out;
}

std::string machine_without(const std::string& gpu, const Scenario& scenario) {
  const auto* cluster = std::get_if<Cluster>(&scenario.topology);
  const std::vector<std::string> gpus = preset_gpus_in(gpu);
  if (cluster == nullptr || gpus.empty()) return "";
  for (const Cluster::Part& part : cluster->parts)
    if (!has_gpu(*part.machine, gpus)) return own_gpu(*part.machine);
  return "";
}

}  // namespace ringsim
