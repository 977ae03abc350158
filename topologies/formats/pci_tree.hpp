// Where the devices of a machine hang in the tree that NCCL's topology XML is.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "topologies/formats/nccl_rules.hpp"
#include "topologies/machines/machine.hpp"

namespace ringsim::nccl {

/// A machine's GPUs, NICs, PCIe switches and slots below its CPUs. A device that PCIe joins to none hangs below the CPU
/// that another link joins it to, or below the first. Host bridges are not part of the tree: what they join hangs below
/// their CPU. Indices are those of Machine::devices. The machine has to outlive the tree.
class PciTree {
 public:
  struct Place {
    std::vector<std::uint32_t> below;    ///< in the order of devices
    std::optional<std::uint32_t> above;  ///< none if there is no CPU
    const LinkSpec* uplink = nullptr;    ///< to what is above; null if it is made up
    std::string busid;                   ///< its own, else made up; of a slot empty
  };

  explicit PciTree(const Machine& machine);

  const Place& place(std::uint32_t device) const { return places_[device]; }
  /// Devices of a kind, in the order of the machine.
  const std::vector<std::uint32_t>& of_kind(NodeKind kind) const;
  const std::vector<const Machine::Cable*>& cables(std::uint32_t device) const { return cables_[device]; }
  /// Below no PCIe device: in the XML of a machine without CPUs the first level.
  std::vector<std::uint32_t> roots() const;
  /// GPU, NIC, PCIe switch or slot.
  bool hangs(std::uint32_t device) const;
  /// True if the XML has a <pci> for it: not for a slot, nor for a NIC at no cost below its CPU.
  bool has_pci(std::uint32_t device) const;
  /// How many devices of its kind come before it.
  std::size_t ordinal(std::uint32_t device) const;

  static std::uint32_t other_end(const Machine::Cable& cable, std::uint32_t end) {
    return cable.from == end ? cable.to : cable.from;
  }

 private:
  void hang();
  void give_busids();
  bool joins_others(std::uint32_t device) const;
  bool is_placed(std::uint32_t device) const;
  std::optional<std::uint32_t> joined_cpu(std::uint32_t device) const;

  const Machine& machine_;
  std::vector<Place> places_;
  std::vector<std::vector<const Machine::Cable*>> cables_;
  std::map<NodeKind, std::vector<std::uint32_t>> by_kind_;
  std::vector<bool> is_root_;
};

/// The CPU that attributes tell: "arch", "vendor", "familyid", "modelid". Without "arch" the one whose link between
/// sockets is, by NCCL, nearest to that of the machine. Its texts are those of `said`, which has to outlive it.
CpuModel cpu_model(const Machine& machine, const std::map<std::string, std::string>& said);

}  // namespace ringsim::nccl
