// Machines as lines of text, so that a test can list what it expects and two machines can be compared.
#pragma once

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "sim/base/quantity.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/machine.hpp"

namespace ringsim::test {

/// "gpu0 - pcie0: pcie 12 GB/s", with " x2" where links are joined.
inline std::vector<std::string> cables_of(const Machine& machine) {
  std::vector<std::string> lines;
  for (const Machine::Cable& cable : machine.cables) {
    lines.push_back(fmt::format("{} - {}: {} {}{}", machine.devices[cable.from].name, machine.devices[cable.to].name,
                                to_string(cable.link.kind), format(cable.link.bandwidth),
                                cable.link.joined > 1 ? fmt::format(" x{}", cable.link.joined) : std::string()));
  }
  return lines;
}

inline const Machine::Device& device(const Machine& machine, const std::string& name) {
  const auto found = std::find_if(machine.devices.begin(), machine.devices.end(),
                                  [&](const Machine::Device& each) { return each.name == name; });
  REQUIRE_MESSAGE(found != machine.devices.end(), name);
  return *found;
}

/// What NCCL's XML can hold of a machine, with devices called after kind and order: which GPUs and NICs each switch and
/// CPU has below it, links between GPUs with their count, NICs' speed in Mb/s, devices without GPUDirect. Host bridges
/// count as their CPU; a GPU without PCIe sits below the CPU that it has C2C to.
class Shape {
 public:
  explicit Shape(const Machine& machine) : machine_(machine), below_(machine.devices.size()) {
    std::map<NodeKind, int> counts;
    for (const Machine::Device& d : machine.devices)
      names_.push_back(fmt::format("{}{}", to_string(d.kind), counts[d.kind]++));
    for (std::uint32_t d = 0; d < machine.devices.size(); ++d) {
      const NodeKind kind = machine.devices[d].kind;
      if (kind != NodeKind::gpu && kind != NodeKind::nic) continue;
      std::set<std::uint32_t> seen;
      climb(d, d, seen);
      if (!has_gpudirect(machine.devices[d])) lines_.insert(names_[d] + ": no GPUDirect");
      if (machine.devices[d].port) {
        lines_.insert(
            fmt::format("{}: {} Mb/s", names_[d], machine.devices[d].port->bandwidth.bytes_per_second / 125'000));
      }
    }
    for (std::uint32_t d = 0; d < machine.devices.size(); ++d) add(d);
    for (const Machine::Cable& cable : machine.cables) {
      if (cable.link.kind != LinkKind::nvlink && cable.link.kind != LinkKind::xgmi && cable.link.kind != LinkKind::c2c)
        continue;
      std::string a = end(cable.from), b = end(cable.to);
      if (b < a) std::swap(a, b);
      lines_.insert(fmt::format("{} - {}: {} x{}", a, b, to_string(cable.link.kind), cable.link.joined));
    }
  }
  const std::multiset<std::string>& lines() const { return lines_; }

 private:
  // CPUs go by what is below them: their order is that of the file.
  std::string end(std::uint32_t d) const {
    return machine_.devices[d].kind == NodeKind::cpu ? fmt::format("cpu of {}", list(d)) : names_[d];
  }
  std::string list(std::uint32_t d) const {
    std::string text;
    for (const std::string& name : below_[d]) text += " " + name;
    return text;
  }
  void add(std::uint32_t d) {
    const NodeKind kind = machine_.devices[d].kind;
    if (kind == NodeKind::pcie_switch) lines_.insert("switch of" + list(d));
    if (kind == NodeKind::pcie_slot) lines_.insert("slot of" + list(d));
    if (kind == NodeKind::cpu) lines_.insert("cpu of" + list(d));
  }
  /// Up from `at`, PCIe switch by PCIe switch to the CPU.
  void climb(std::uint32_t endpoint, std::uint32_t at, std::set<std::uint32_t>& seen) {
    if (!seen.insert(at).second) return;
    if (at != endpoint) below_[at].insert(names_[endpoint]);
    if (machine_.devices[at].kind == NodeKind::cpu) return;
    for (const Machine::Cable& cable : machine_.cables) {
      if (cable.from != at && cable.to != at) continue;
      const std::uint32_t up = cable.from == at ? cable.to : cable.from;
      const NodeKind kind = machine_.devices[up].kind;
      const bool bridge = kind == NodeKind::host_bridge || machine_.devices[at].kind == NodeKind::host_bridge;
      const bool by_c2c = cable.link.kind == LinkKind::c2c && !has_pcie(at);
      if (!bridge && !by_c2c && cable.link.kind != LinkKind::pcie) continue;
      // A switch above: its own way up is not back. Trees are drawn from the device to the root.
      if (kind == NodeKind::cpu || kind == NodeKind::host_bridge ||
          ((kind == NodeKind::pcie_switch || kind == NodeKind::pcie_slot) && leads_up(at, up))) {
        climb(endpoint, up, seen);
      }
    }
  }
  bool has_pcie(std::uint32_t d) const {
    return std::any_of(machine_.cables.begin(), machine_.cables.end(), [&](const Machine::Cable& cable) {
      return cable.link.kind == LinkKind::pcie && (cable.from == d || cable.to == d);
    });
  }
  /// From a device every switch leads up; from a switch only the one that is nearer to a CPU.
  bool leads_up(std::uint32_t from, std::uint32_t to) const {
    const NodeKind kind = machine_.devices[from].kind;
    if (kind != NodeKind::pcie_switch && kind != NodeKind::pcie_slot) return true;
    return hops_to_cpu(to) < hops_to_cpu(from);
  }
  int hops_to_cpu(std::uint32_t d) const {
    std::set<std::uint32_t> reached{d};
    for (int hops = 0; hops < 16; ++hops) {
      std::set<std::uint32_t> next;
      for (const std::uint32_t at : reached) {
        const NodeKind kind = machine_.devices[at].kind;
        if (kind == NodeKind::cpu || kind == NodeKind::host_bridge) return hops;
        for (const Machine::Cable& cable : machine_.cables) {
          if (cable.link.kind != LinkKind::pcie) continue;
          if (cable.from == at) next.insert(cable.to);
          if (cable.to == at) next.insert(cable.from);
        }
      }
      reached = std::move(next);
    }
    return 99;
  }

  const Machine& machine_;
  std::vector<std::set<std::string>> below_;
  std::vector<std::string> names_;
  std::multiset<std::string> lines_;
};

inline std::multiset<std::string> shape_of(const Machine& machine) { return Shape(machine).lines(); }

}  // namespace ringsim::test
