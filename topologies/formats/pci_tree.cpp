#include "topologies/formats/pci_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string_view>
#include <utility>

namespace ringsim::nccl {

namespace {

constexpr std::int64_t no_cost = 5'000'000'000'000;  // LOC_BW: what the importer gives a <nic> directly below a <cpu>

}  // namespace

PciTree::PciTree(const Machine& machine)
    : machine_(machine),
      places_(machine.devices.size()),
      cables_(machine.devices.size()),
      is_root_(machine.devices.size()) {
  for (std::uint32_t d = 0; d < machine.devices.size(); ++d) by_kind_[machine.devices[d].kind].push_back(d);
  for (const Machine::Cable& cable : machine.cables) {
    cables_[cable.from].push_back(&cable);
    cables_[cable.to].push_back(&cable);
  }
  hang();
  give_busids();
}

const std::vector<std::uint32_t>& PciTree::of_kind(NodeKind kind) const {
  static const std::vector<std::uint32_t> none;
  const auto found = by_kind_.find(kind);
  return found == by_kind_.end() ? none : found->second;
}

std::vector<std::uint32_t> PciTree::roots() const {
  std::vector<std::uint32_t> out;
  for (std::uint32_t d = 0; d < is_root_.size(); ++d)
    if (is_root_[d]) out.push_back(d);
  return out;
}

bool PciTree::hangs(std::uint32_t d) const {
  const NodeKind kind = machine_.devices[d].kind;
  return kind == NodeKind::gpu || kind == NodeKind::nic || joins_others(d);
}

bool PciTree::joins_others(std::uint32_t d) const {
  const NodeKind kind = machine_.devices[d].kind;
  return kind == NodeKind::pcie_switch || kind == NodeKind::pcie_slot;
}

bool PciTree::is_placed(std::uint32_t d) const { return places_[d].above.has_value() || is_root_[d]; }

bool PciTree::has_pci(std::uint32_t d) const {
  const NodeKind kind = machine_.devices[d].kind;
  if (kind == NodeKind::pcie_slot) return false;
  const LinkSpec* up = places_[d].uplink;
  return kind != NodeKind::nic || (up != nullptr && up->bandwidth.bytes_per_second < no_cost);
}

std::size_t PciTree::ordinal(std::uint32_t d) const {
  const auto& same = by_kind_.at(machine_.devices[d].kind);
  return static_cast<std::size_t>(std::find(same.begin(), same.end(), d) - same.begin());
}

std::optional<std::uint32_t> PciTree::joined_cpu(std::uint32_t d) const {
  for (const Machine::Cable* cable : cables_[d])
    if (machine_.devices[other_end(*cable, d)].kind == NodeKind::cpu) return other_end(*cable, d);
  const auto& cpus = of_kind(NodeKind::cpu);
  return cpus.empty() ? std::nullopt : std::optional(cpus.front());
}

// From the CPUs down over PCIe, nearest first; what is left over hangs below the CPU it is joined to, or the first.
void PciTree::hang() {
  std::vector<std::uint32_t> next = of_kind(NodeKind::cpu);
  std::map<std::uint32_t, std::uint32_t> cpu_of;  // of CPUs and of host bridges
  for (const std::uint32_t cpu : next) cpu_of[cpu] = cpu;
  for (const std::uint32_t bridge : of_kind(NodeKind::host_bridge)) {
    for (const Machine::Cable* cable : cables_[bridge]) {
      const std::uint32_t cpu = other_end(*cable, bridge);
      if (machine_.devices[cpu].kind == NodeKind::cpu && cpu_of.emplace(bridge, cpu).second) next.push_back(bridge);
    }
  }
  const auto spread = [&] {
    for (std::size_t i = 0; i < next.size(); ++i) {
      const auto above = cpu_of.contains(next[i]) ? cpu_of[next[i]] : next[i];
      for (const Machine::Cable* cable : cables_[next[i]]) {
        const std::uint32_t below = other_end(*cable, next[i]);
        if (cable->link.kind != LinkKind::pcie || !hangs(below) || is_placed(below)) continue;
        places_[below].above = above;
        places_[below].uplink = &cable->link;
        if (joins_others(below)) next.push_back(below);
      }
    }
    next.clear();
  };
  spread();
  for (const NodeKind kind : {NodeKind::pcie_switch, NodeKind::pcie_slot, NodeKind::gpu, NodeKind::nic}) {
    for (const std::uint32_t d : of_kind(kind)) {
      if (is_placed(d)) continue;
      if (const auto cpu = joined_cpu(d)) places_[d].above = *cpu;
      is_root_[d] = true;
      if (joins_others(d)) next.push_back(d), spread();
    }
  }
  for (std::uint32_t d = 0; d < places_.size(); ++d)
    if (places_[d].above) places_[*places_[d].above].below.push_back(d);
}

void PciTree::give_busids() {
  std::set<std::string> taken;
  bool all_have = true;
  for (std::uint32_t d = 0; d < places_.size(); ++d) {
    if (!hangs(d) || !has_pci(d)) continue;  // a slot has none: its functions have
    const auto own = machine_.devices[d].attributes.find("busid");
    all_have = all_have && own != machine_.devices[d].attributes.end() && taken.insert(own->second).second;
  }
  int next = 0;
  std::map<std::uint32_t, std::pair<int, int>> slots;  // number, functions so far
  for (const NodeKind kind : {NodeKind::pcie_slot, NodeKind::pcie_switch, NodeKind::gpu, NodeKind::nic}) {
    for (const std::uint32_t d : of_kind(kind)) {
      if (kind == NodeKind::pcie_slot) {
        slots[d] = {++next, 0};
        continue;
      }
      const auto slot = places_[d].above ? slots.find(*places_[d].above) : slots.end();
      const int function = slot == slots.end() ? 0 : slot->second.second++;
      const int number = slot == slots.end() ? ++next : slot->second.first;
      places_[d].busid = all_have && has_pci(d)
                             ? machine_.devices[d].attributes.at("busid")
                             : fmt::format("{:04x}:{:02x}:00.{:x}", number / 256, number % 256, function);
    }
  }
}

CpuModel cpu_model(const Machine& machine, const std::map<std::string, std::string>& said) {
  const auto word = [&](const char* key) -> std::string_view {
    const auto found = said.find(key);
    return found == said.end() ? std::string_view() : found->second;
  };
  const auto number = [&](const char* key) {
    const std::string_view text = word(key);
    int value = 0;
    std::from_chars(text.data(), text.data() + text.size(), value);
    return value;
  };
  if (said.contains("arch")) return {word("arch"), word("vendor"), number("familyid"), number("modelid")};
  Bandwidth socket;
  for (const Machine::Cable& cable : machine.cables)
    if (cable.link.kind == LinkKind::socket) socket = cable.link.nccl_bandwidth.value_or(cable.link.bandwidth);
  return nearest_cpu(socket.bytes_per_second > 0 ? socket : Bandwidth{16'000'000'000}, machine.host.peer_cost > 1);
}

}  // namespace ringsim::nccl
