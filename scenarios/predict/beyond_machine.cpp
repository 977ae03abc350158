#include "scenarios/predict/beyond_machine.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "topologies/machines/device_words.hpp"

namespace ringsim {

namespace {

/// True if an NVSwitch is among the switches that add.
bool adds_in_nvswitch(const PlacedCollective& placed, const Topology& topology) {
  return (placed.job.uses_fabric() &&
          std::any_of(placed.helpers.begin(), placed.helpers.end(),
                      [&](NodeId node) { return topology.node(node).kind == NodeKind::nvswitch; })) ||
         std::any_of(placed.exchanges.begin(), placed.exchanges.end(),
                     [&](const PlacedCollective& each) { return adds_in_nvswitch(each, topology); });
}

constexpr int first_that_adds = 90;  // compute capability of H100

bool cannot_add(const Machine& machine) {
  return std::any_of(machine.devices.begin(), machine.devices.end(), [](const Machine::Device& device) {
    return device.kind == NodeKind::gpu && compute_capability(device).value_or(first_that_adds) < first_that_adds;
  });
}

}  // namespace

std::vector<std::string> beyond_machine(const Scenario& scenario, const Setup& setup) {
  const auto* cluster = std::get_if<Cluster>(&scenario.topology);
  if (cluster == nullptr || scenario.library) return {};
  for (const PlacedCollective& placed : setup.collectives) {
    if (!adds_in_nvswitch(placed, setup.topology)) continue;
    for (const Cluster::Part& part : cluster->parts)
      if (cannot_add(*part.machine))
        return {
            fmt::format("{}: {}: in_switch lets NVSwitches add, but those of {} cannot: NVLink SHARP needs H100 or "
                        "later; the time is that of switches that could",
                        scenario.file, placed.job.pointer, part.machine->name)};
  }
  return {};
}

}  // namespace ringsim
