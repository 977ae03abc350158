// What the tree of <pci> shows as several devices, and is one.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "topologies/formats/nccl_rules.hpp"
#include "topologies/formats/nccl_xml_reader.hpp"

namespace ringsim::nccl {

namespace {

/// Vendor, device, vendor and device of the subsystem; 0 if the file does not say.
std::array<std::int64_t, 4> ids_of(const Found& device) {
  std::array<std::int64_t, 4> ids{};
  const std::array names{"vendor", "device", "subsystem_vendor", "subsystem_device"};
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = whole(*device.element, names[i], 0, 0xFFFF).value_or(0);
  return ids;
}

/// The generation of a Broadcom PEX switch in base mode, by its ids; `level`: 0 its upper level, 1 its lower one. 0: it
/// is no such switch. NVIDIA/nccl 5067397c2676 src/graph/topo.cc, getBcmGen.
int broadcom_generation(const Found& device, int level) {
  const auto [vendor, product, of_subsystem, subsystem] = ids_of(device);
  if (device.kind != NodeKind::pcie_switch || vendor != 0x1000 || of_subsystem != 0x1000) return 0;
  const std::int64_t kind = subsystem & 0xF000;
  if (product == 0xC010 && kind == 0xA000) return 4;
  if (product == 0xC030 && kind == (level == 0 ? 0 : 0x1000)) return 5;
  return 0;
}

/// Such a switch shows two levels, and forwards between all its ports at full rate: what hangs on the lower level hangs
/// on the upper one, and no link is between them (ncclTopoFlattenBcmSwitches).
void flatten_switches(XmlImport& import) {
  for (std::size_t above = 0; above < import.found.size(); ++above) {
    const int generation = import.found[above].merged ? 0 : broadcom_generation(import.found[above], 0);
    if (generation == 0) continue;
    for (std::size_t below = above + 1; below < import.found.size(); ++below) {
      Found& lower = import.found[below];
      if (lower.parent != static_cast<int>(above) || broadcom_generation(lower, 1) != generation) continue;
      lower.merged = true;
      // Two levels are one switch: what was a third is not merged with them, here and when it is read again.
      import.found[above].attributes["subsystem_device"] = "0xffff";
      for (Found& each : import.found)
        if (each.parent == static_cast<int>(below)) each.parent = static_cast<int>(above);
    }
  }
}

/// "0000:12:00" of the function "0000:12:00.1"; empty if the bus id has no function.
std::string device_of(const Found& function) {
  const std::size_t dot = function.busid.rfind('.');
  return dot == std::string::npos ? "" : function.busid.substr(0, dot);
}

/// Functions that are devices at the ends of PCIe. Ports of a switch are also functions, with links of their own.
std::map<std::pair<int, std::string>, std::vector<std::size_t>> functions_by_device(const XmlImport& import) {
  std::map<std::pair<int, std::string>, std::vector<std::size_t>> found;
  for (std::size_t i = 0; i < import.found.size(); ++i) {
    const Found& each = import.found[i];
    const bool ends = each.kind == NodeKind::gpu || each.kind == NodeKind::nic;
    if (ends && !each.merged && !device_of(each).empty()) found[{each.parent, device_of(each)}].push_back(i);
  }
  return found;
}

void add_slots(XmlImport& import) {
  std::string first;
  int slots = 0;
  for (const auto& [device, functions] : functions_by_device(import)) {
    const Found& function = import.found[functions.front()];
    const auto is_other = [&](std::size_t i) { return import.found[i].busid != function.busid; };
    if (!std::any_of(functions.begin(), functions.end(), is_other)) continue;  // a bus id twice: two devices
    const std::size_t widest = *std::max_element(functions.begin(), functions.end(), [&](std::size_t a, std::size_t b) {
      return import.found[a].uplink.bandwidth < import.found[b].uplink.bandwidth;
    });
    Found slot{.kind = NodeKind::pcie_slot, .element = function.element, .parent = device.first, .host = function.host};
    slot.uplink = import.found[widest].uplink;
    slot.uplink.latency = Picoseconds{0};
    slot.uplink.source = fmt::format(
        "bandwidth: {}: the link of {}, shared by its functions; latency: none: counted in the links of the functions",
        import.place(*function.element), device.second);
    import.found.push_back(std::move(slot));
    for (const std::size_t i : functions) import.found[i].parent = static_cast<int>(import.found.size()) - 1;
    if (++slots == 1)
      first = fmt::format("{}: {} functions of the PCI device {} share its link, {:g} GB/s",
                          import.place(*function.element), functions.size(), device.second,
                          static_cast<double>(import.found.back().uplink.bandwidth.bytes_per_second) / 1e9);
  }
  if (slots > 0)
    import.machine.warnings.push_back(
        slots == 1 ? first : fmt::format("{}; the same applies to {} more devices in this file", first, slots - 1));
}

}  // namespace

void merge_pcie(XmlImport& import) {
  flatten_switches(import);
  add_slots(import);
}

}  // namespace ringsim::nccl
