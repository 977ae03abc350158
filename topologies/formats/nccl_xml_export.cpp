#include "topologies/formats/nccl_xml_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "topologies/formats/nccl_rules.hpp"
#include "topologies/formats/pci_tree.hpp"
#include "topologies/machines/device_words.hpp"

namespace ringsim {

namespace {

using namespace nccl;
using Attributes = std::map<std::string, std::string>;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
      case '\r':
      case '\t':
        out += ' ';
        break;
      default:
        out += c;
    }
  }
  return out;
}

bool is_xml_name(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

class Writer {
 public:
  explicit Writer(const Machine& machine) : machine_(machine), tree_(machine) {}

  std::string text() {
    line(0, "system", {{"version", has_xgmi() ? "2" : "1"}}, false);
    const auto& cpus = tree_.of_kind(NodeKind::cpu);
    for (std::size_t i = 0; i < cpus.size(); ++i) write_cpu(cpus[i], i);
    if (cpus.empty()) {
      open_cpu({}, 0);
      for (const std::uint32_t root : tree_.roots()) write_device(root, 2);
      out_ += "  </cpu>\n";
    }
    return out_ + "</system>\n";
  }

 private:
  using Pairs = std::vector<std::pair<std::string, std::string>>;

  const Machine::Device& device(std::uint32_t d) const { return machine_.devices[d]; }
  static std::uint32_t other(const Machine::Cable& cable, std::uint32_t end) { return PciTree::other_end(cable, end); }

  bool has_xgmi() const {
    return std::any_of(machine_.cables.begin(), machine_.cables.end(),
                       [](const Machine::Cable& cable) { return cable.link.kind == LinkKind::xgmi; });
  }

  void line(int depth, std::string_view name, const Pairs& attributes, bool closed) {
    out_.append(2 * static_cast<std::size_t>(depth), ' ').append("<").append(name);
    for (const auto& [key, value] : attributes) {
      if (is_xml_name(key)) out_ += fmt::format(" {}=\"{}\"", key, escaped(value));
    }
    out_ += closed ? "/>\n" : ">\n";
  }
  void close(int depth, std::string_view name) { out_ += fmt::format("{:{}}</{}>\n", "", 2 * depth, name); }

  void open_cpu(Attributes said, std::size_t index) {
    if (!said.contains("numaid")) said["numaid"] = std::to_string(index);
    if (!said.contains("arch")) {
      const CpuModel cpu = cpu_model(machine_, said);
      said["arch"] = cpu.arch;
      said["vendor"] = cpu.vendor;
      said["familyid"] = std::to_string(cpu.family);
      said["modelid"] = std::to_string(cpu.model);
    }
    line(1, "cpu", {said.begin(), said.end()}, false);
  }

  void write_cpu(std::uint32_t cpu, std::size_t index) {
    open_cpu(device(cpu).attributes, index);
    for (const std::uint32_t d : tree_.place(cpu).below) write_device(d, 2);
    close(1, "cpu");
  }

  void write_device(std::uint32_t d, int depth) {
    if (device(d).kind == NodeKind::pcie_slot) {  // what its functions' bus ids say
      for (const std::uint32_t below : tree_.place(d).below) write_device(below, depth);
      return;
    }
    const bool pci = tree_.has_pci(d);
    if (pci) line(depth, "pci", pci_attributes(d), false);
    const int inside = pci ? depth + 1 : depth;
    if (device(d).kind == NodeKind::gpu) write_gpu(d, inside);
    if (device(d).kind == NodeKind::nic) write_nic(d, inside);
    if (device(d).kind == NodeKind::pcie_switch) write_pcilinks(d, inside);
    for (const std::uint32_t below : tree_.place(d).below) write_device(below, inside);
    if (pci) close(depth, "pci");
  }

  static constexpr std::array pci_words{
      "busid", "class", "vendor", "device", "subsystem_vendor", "subsystem_device", "link_speed", "link_width"};

  Pairs pci_attributes(std::uint32_t d) const {
    Attributes own = device(d).attributes;
    own["busid"] = tree_.place(d).busid;
    own["class"] = class_of(d);
    const LinkSpec* up = tree_.place(d).uplink;
    const PcieLink link = up == nullptr ? PcieLink{&pcie_rates[4], 16} : nearest_pcie(up->bandwidth);
    own["link_speed"] = link.rate->text;
    own["link_width"] = std::to_string(link.width);
    Pairs out;
    for (const char* word : pci_words) {
      if (own.contains(word)) out.emplace_back(word, own[word]);
    }
    return out;
  }

  std::string class_of(std::uint32_t d) const {
    const auto own = device(d).attributes.find("class");
    const bool said = own != device(d).attributes.end();
    // A <pci> of any class is a switch while others lie below it. Without these only its class says so.
    if (device(d).kind == NodeKind::pcie_switch)
      return said && own->second.starts_with("0x0604") ? own->second : "0x060400";
    if (said) return own->second;
    if (device(d).kind == NodeKind::gpu) return "0x030200";
    return device(d).port && device(d).port->kind == LinkKind::infiniband ? "0x020700" : "0x020000";
  }

  void write_gpu(std::uint32_t d, int depth) {
    Attributes own = device(d).attributes;
    for (const char* word : pci_words) own.erase(word);
    const std::size_t ordinal = tree_.ordinal(d);
    if (!numbers_rise(NodeKind::gpu, "dev")) own["dev"] = std::to_string(ordinal);
    own.emplace("rank", std::to_string(ordinal));
    own.emplace("sm", std::to_string(likely_sm(d)));
    if (has_xgmi() && !own.contains("gcn")) own["gcn"] = likely_gcn();
    line(depth, "gpu", {own.begin(), own.end()}, false);
    std::vector<const Machine::Cable*> cables = tree_.cables(d);
    std::stable_sort(cables.begin(), cables.end(), [&](const Machine::Cable* a, const Machine::Cable* b) {
      const std::uint32_t x = other(*a, d), y = other(*b, d);
      return std::pair(device(x).kind, x) < std::pair(device(y).kind, y);
    });
    for (const Machine::Cable* cable : cables) write_peer(*cable, other(*cable, d), depth + 1);
    close(depth, "gpu");
  }

  void write_peer(const Machine::Cable& cable, std::uint32_t peer, int depth) {
    const std::string count = std::to_string(cable.link.joined);
    const NodeKind kind = device(peer).kind;
    if (cable.link.kind == LinkKind::c2c && kind == NodeKind::cpu) {
      const std::int64_t mbps = cable.link.bandwidth.bytes_per_second / cable.link.joined / 1'000'000;
      return line(depth, "c2c", {{"bw", std::to_string(mbps)}, {"count", count}}, true);
    }
    if (cable.link.kind != LinkKind::nvlink && cable.link.kind != LinkKind::xgmi) return;
    const bool to_switch = kind == NodeKind::nvswitch;
    line(depth, cable.link.kind == LinkKind::xgmi ? "xgmi" : "nvlink",
         {{"target", kind == NodeKind::gpu ? tree_.place(peer).busid : "fffffff:ff:ff.0"},
          {"count", count},
          {"tclass", to_switch               ? "0x068000"
                     : kind == NodeKind::cpu ? "0x068001"
                                             : class_of(peer)}},
         true);
  }

  void write_pcilinks(std::uint32_t d, int depth) {
    for (const Machine::Cable* cable : tree_.cables(d)) {
      const std::uint32_t peer = other(*cable, d);
      if (cable->link.kind == LinkKind::pcie && tree_.hangs(peer) && device(peer).kind == NodeKind::pcie_switch &&
          tree_.place(peer).uplink != &cable->link && tree_.place(d).uplink != &cable->link) {
        line(depth, "pcilink", {{"target", tree_.place(peer).busid}}, true);
      }
    }
  }

  void write_nic(std::uint32_t d, int depth) {
    const Machine::Device& nic = device(d);
    line(depth, "nic", {}, false);
    std::vector<Attributes> nets = nets_of(nic);
    if (nets.empty() && nic.port) {
      nets.push_back({{"name", nic.name},
                      {"dev", std::to_string(tree_.ordinal(d))},
                      {"speed", std::to_string((nic.port->bandwidth.bytes_per_second + 62'500) / 125'000)},
                      {"port", "1"},
                      {"latency", fmt::format("{:.6f}", static_cast<double>(nic.port->latency.count()) / 1e6)},
                      {"guid", fmt::format("0x{:x}", d + 1)},
                      {"maxconn", "65536"},
                      {"gdr", "1"}});
    }
    if (!has_gpudirect(nic))
      for (Attributes& net : nets) net["gdr"] = "0";
    if (!nets.empty() && !numbers_rise(NodeKind::nic, "net0.dev"))
      nets.front()["dev"] = std::to_string(tree_.ordinal(d));
    for (const Attributes& net : nets) line(depth + 1, "net", {net.begin(), net.end()}, true);
    close(depth, "nic");
  }

  /// What the attributes say of the NIC's nets: "net0.name", "net0.dev"...
  static std::vector<Attributes> nets_of(const Machine::Device& nic) {
    std::vector<Attributes> nets;
    for (std::size_t i = 0; nic.attributes.contains(fmt::format("net{}.speed", i)); ++i) {
      const std::string prefix = fmt::format("net{}.", i);
      Attributes net;
      for (auto at = nic.attributes.lower_bound(prefix); at != nic.attributes.end() && at->first.starts_with(prefix);
           ++at) {
        net[at->first.substr(prefix.size())] = at->second;
      }
      nets.push_back(std::move(net));
    }
    return nets;
  }

  /// True if the devices of a kind have numbers of their own, in their order.
  bool numbers_rise(NodeKind kind, const std::string& attribute) const {
    int last = -1;
    for (const std::uint32_t d : tree_.of_kind(kind)) {
      const std::optional<int> own = whole_attribute(device(d), attribute, last + 1, 999'999);
      if (!own) return false;
      last = *own;
    }
    return true;
  }

  /// The generation of GPUs that came with this generation of PCIe, unless the NVLinks are of another.
  int likely_sm(std::uint32_t gpu) const {
    const LinkSpec* up = tree_.place(gpu).uplink;
    const int k = up == nullptr ? 240 : nearest_pcie(up->bandwidth).rate->k;
    const int by_pcie = k >= 480 ? 100 : k >= 240 ? 90 : k >= 120 ? 80 : 70;
    for (const Machine::Cable* cable : tree_.cables(gpu)) {
      if (cable->link.kind != LinkKind::nvlink) continue;
      const std::int64_t each = cable->link.bandwidth.bytes_per_second / cable->link.joined;
      if (each == nvlink_bandwidth(107).bytes_per_second) return 107;
      if (each > 30'000'000'000) return 100;
      if (each < 16'000'000'000) return 86;
      if (by_pcie == 70 && each < 19'000'000'000) return 60;
    }
    return by_pcie;
  }

  std::string likely_gcn() const {
    for (const Machine::Cable& cable : machine_.cables) {
      if (cable.link.kind != LinkKind::xgmi) continue;
      const std::int64_t each = cable.link.bandwidth.bytes_per_second / cable.link.joined;
      if (each > 42'000'000'000) return "gfx942";
      if (each > 30'000'000'000) return "gfx90a";
    }
    return "gfx906";
  }

  const Machine& machine_;
  PciTree tree_;
  std::string out_;
};

}  // namespace

std::string to_nccl_xml(const Machine& machine) { return Writer(machine).text(); }

}  // namespace ringsim
