#include "validate/score/unlike_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "topologies/machines/machine_gpus.hpp"

namespace ringsim {

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
  if (const auto* cluster = std::get_if<Cluster>(&scenario.topology))
    for (const Cluster::Part& part : cluster->parts)
      if (std::string own = machine_without(*part.machine, gpu); !own.empty()) return own;
  return "";
}

}  // namespace ringsim
