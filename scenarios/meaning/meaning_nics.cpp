#include "scenarios/meaning/meaning_nics.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "topologies/nccl/nic_selection.hpp"

namespace ringsim::scenarios {

namespace {

constexpr const char* ib_hca = "/library/env/NCCL_IB_HCA";

/// A machine's NICs by what the list says of them, each by name.
struct Selection {
  std::vector<std::string> used, idle, in_part;
};

Selection choose(const nccl::NicSelection& selection, Machine& machine) {
  Selection found;
  for (Machine::Device& device : machine.devices) {
    if (!device.port) continue;
    const nccl::Selected how = selected(selection, device);
    device.idle = how == nccl::Selected::no;
    (device.idle ? found.idle : found.used).push_back(device.name);
    if (how == nccl::Selected::in_part) found.in_part.push_back(device.name);
  }
  return found;
}

nccl::NicSelection selection_of(const std::string& text, const Blame& blame) {
  try {
    return nccl::read_ib_hca(text);
  } catch (const InputError& error) {
    blame.fail(ib_hca, error.message(), error.hint());
  }
}

/// Entries that select no NIC on any of the machines, which NCCL passes over: names that no NIC has, and NICs without a
/// port for the fabric.
struct Strangers {
  std::vector<std::string> unknown, uncabled;
};
Strangers strangers(const nccl::NicSelection& selection, const Cluster& cluster) {
  Strangers found;
  for (const nccl::NicSelection::Entry& entry : selection.entries) {
    const auto names_one = [&](bool cabled) {
      return std::any_of(cluster.parts.begin(), cluster.parts.end(), [&](const Cluster::Part& part) {
        const auto& devices = part.machine->devices;
        return std::any_of(devices.begin(), devices.end(), [&](const Machine::Device& device) {
          return device.kind == NodeKind::nic && device.port.has_value() == cabled &&
                 nccl::names(selection, entry, device);
        });
      });
    };
    if (names_one(true)) continue;
    (names_one(false) ? found.uncabled : found.unknown).push_back(in_quotes(entry.name));
  }
  return found;
}

}  // namespace

void select_nics(const nlohmann::json& canonical, TopologySpec& topology, const Blame& blame,
                 std::vector<std::string>& warnings) {
  const auto& env = canonical["library"]["env"];
  auto* cluster = std::get_if<Cluster>(&topology);
  if (!env.contains("NCCL_IB_HCA") || cluster == nullptr) return;
  const auto text = env["NCCL_IB_HCA"].get<std::string>();
  const nccl::NicSelection selection = selection_of(text, blame);
  const auto no_effect = [&](const std::string& because) {
    warnings.push_back(fmt::format("{}: it has no effect, because {}", blame.where(ib_hca), because));
  };
  if (!cluster->fabric) return no_effect("no data leaves the node");
  const Strangers others = strangers(selection, *cluster);
  for (Cluster::Part& part : cluster->parts) {
    Machine machine = *part.machine;
    const Selection found = choose(selection, machine);
    if (found.used.empty())
      blame.fail(ib_hca,
                 fmt::format("expected a list that selects a NIC of {}, found {}, which selects none", machine.name,
                             in_quotes(text)),
                 fmt::format("its NICs are {}; {}", fmt::join(found.idle, ", "),
                             "adapter names (mlx5_0) are known only if the machine file contains them"));
    if (!found.in_part.empty())
      warnings.push_back(
          fmt::format("{}: it selects only some ports of {}, but the simulated NIC has the rate of all of them",
                      blame.where(ib_hca), fmt::join(found.in_part, ", ")));
    if (found.idle.empty())
      no_effect(fmt::format("it selects all NICs of {}", machine.name));
    else
      part.machine = std::make_shared<const Machine>(std::move(machine));
  }
  if (!others.unknown.empty())
    warnings.push_back(
        fmt::format("{}: no NIC has the name {}, so this selects nothing; `ringsim topology show` lists the NICs",
                    blame.where(ib_hca), fmt::join(others.unknown, ", ")));
  if (!others.uncabled.empty())
    warnings.push_back(fmt::format("{}: {} {} not connected to the fabric between nodes, so this selects nothing",
                                   blame.where(ib_hca), fmt::join(others.uncabled, ", "),
                                   others.uncabled.size() == 1 ? "is" : "are"));
}

}  // namespace ringsim::scenarios
