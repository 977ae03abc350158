// The importer of NCCL's topology XML at work: first the PCIe tree (nccl_xml_import.cpp), then its NICs' ports
// (nccl_xml_nets.cpp) and what else joins its devices (nccl_xml_links.cpp).
#pragma once

#include <cstdint>
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
  LinkSpec uplink;  ///< to the parent
  std::optional<LinkSpec> port;
  std::map<std::string, std::string> attributes;
  std::string busid;            ///< lower case; empty: none
  std::optional<int> dev;       ///< NVML's number of a GPU, NCCL's of a NIC's first net
  bool merged = false;          ///< another NIC stands for it: it is a function of that one, or the same once more
  const Found* same = nullptr;  ///< of a NIC without a PCI device that another CPU lists, too: which it is
  std::uint32_t device = 0;     ///< index into Machine::devices, once named
};

struct XmlImport {
  const std::string& file;
  const NcclXmlOptions& options;
  Machine machine{};
  std::vector<Found> found{};
  bool used_nic_option = false;

  std::string place(const XmlElement& at) const;  ///< FILE:LINE
  [[noreturn]] void fail(const XmlElement& at, const std::string& message, const std::string& hint = "") const;
  void warn(const XmlElement& at, const std::string& message);
  std::vector<Found*> all(NodeKind kind);  ///< in the order of the file
};

/// The attribute as a whole number from `least` to `most`; nothing where it is missing or something else.
std::optional<std::int64_t> whole(const XmlElement& at, std::string_view attribute, std::int64_t least,
                                  std::int64_t most);
/// The attribute's text, or `fallback`.
std::string text_of(const XmlElement& at, std::string_view attribute, const std::string& fallback = "");
std::string lower(std::string text);

/// Gives NICs their ports, and makes one of the functions of one NIC.
void read_nets(XmlImport& import);
/// NVLink, xGMI, C2C and <pcilink>; devices have their places in the machine.
void read_links(XmlImport& import, const XmlElement& root);

}  // namespace ringsim::nccl
