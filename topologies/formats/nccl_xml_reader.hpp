// The importer of NCCL's topology XML at work: first the words of the file (nccl_xml_words.cpp) and the PCIe tree
// (nccl_xml_import.cpp), then its hosts (nccl_xml_hosts.cpp), its NICs' ports (nccl_xml_nets.cpp), what is one device
// (nccl_xml_shape.cpp), what devices are called (nccl_xml_names.cpp), and what else joins them (nccl_xml_links.cpp).
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/text/xml_tree.hpp"
#include "topologies/formats/nccl_xml_import.hpp"
#include "topologies/machines/machine.hpp"

namespace ringsim::nccl {

/// A device as the tree holds it, before devices get their names.
struct Found {
  NodeKind kind = NodeKind::pcie_switch;
  const XmlElement* element = nullptr;  ///< its <cpu> or <pci>, or the <nic> directly below a <cpu>
  const XmlElement* gpu = nullptr;
  const XmlElement* nic = nullptr;
  int parent = -1;  ///< index of the device above; -1: none, a CPU
  int host = 0;     ///< by the host_hash of its CPU, in the order of the file
  LinkSpec uplink;  ///< to the parent
  std::optional<LinkSpec> port;
  std::map<std::string, std::string> attributes;
  std::string busid;            ///< lower case; empty: none
  std::optional<int> dev;       ///< NVML's number of a GPU, NCCL's of a NIC's first net
  bool merged = false;          ///< another NIC stands for it: it is a function of that one, or the same once more
  const Found* same = nullptr;  ///< of a NIC without a PCI device that another CPU also lists: which it is
  std::uint32_t device = 0;     ///< index into Machine::devices, once named
};

struct XmlImport {
  const std::string& file;
  const NcclXmlOptions& options;
  Machine machine{};
  std::deque<Found> found{};       ///< pointers to them stay
  std::vector<std::string> hosts;  ///< [host] its host_hash, as the file writes it first
  bool used_nic_option = false, used_like = false;
  std::vector<const XmlElement*> without_pcie_speed;  ///< PCI devices whose link NCCL takes for 8 GT/s or for x16

  std::string place(const XmlElement& at) const;  ///< FILE:LINE
  [[noreturn]] void fail(const XmlElement& at, const std::string& message, const std::string& hint = "") const;
  void warn(const XmlElement& at, const std::string& message);
  std::vector<Found*> all(NodeKind kind);  ///< in the order of the file
};

/// The attribute as a whole number from `least` to `most`, decimal or 0x...; nothing if it is missing or something
/// else.
std::optional<std::int64_t> whole(const XmlElement& at, std::string_view attribute, std::int64_t least,
                                  std::int64_t most);
/// The attribute's text, or `fallback`.
std::string text_of(const XmlElement& at, std::string_view attribute, const std::string& fallback = "");
std::string lower(std::string text);
/// What an <nvlink> has as the target of an NVSwitch that its host does not see on PCIe: "fffffff:ff:ff.0" (or
/// "fffffff:ffff:ff", src/graph/xml.cc).
bool is_unseen_switch(std::string_view target);
/// Keeps "gdr" of a <gpu> or a <net> as "0" or "1".
void read_gdr(XmlImport& import, const XmlElement& at, std::map<std::string, std::string>& attributes,
              const std::string& key);

/// The first PCIe link by which a device of that kind hangs on others in options.like; nothing without one.
std::optional<LinkSpec> pcie_like(XmlImport& import, NodeKind kind);

/// True if NCCL or RCCL writes that attribute of the element.
bool is_known_attribute(const std::string& element, const std::string& attribute);
/// Refuses elements in places where NCCL does not read them; warns of elements and attributes that nothing reads.
void check_words(XmlImport& import, const XmlElement& root);
/// Several hosts in a file are what NCCL fuses of a rack that NVLink joins (MNNVL): its trays are one machine. Refuses
/// hosts that NVLink does not join.
void check_hosts(XmlImport& import);
/// Gives NICs their ports, and makes one of the functions of one NIC.
void read_nets(XmlImport& import);
/// Makes one switch of each that Broadcom shows as two levels, and a slot of the functions of one PCI device.
void merge_pcie(XmlImport& import);
/// Puts GPUs, NICs, switches, slots and CPUs into the machine: gpu0, nic0 ...
void name_devices(XmlImport& import);
/// Sockets of a host fully joined, a memory each; what the CPUs say of the host.
void join_cpus(XmlImport& import);
/// NVLink, xGMI, C2C and <pcilink>; devices have their places in the machine.
void read_links(XmlImport& import, const XmlElement& root);

}  // namespace ringsim::nccl
