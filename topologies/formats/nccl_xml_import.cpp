#include "topologies/formats/nccl_xml_import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>

#include "sim/base/error.hpp"
#include "topologies/formats/nccl_rules.hpp"
#include "topologies/formats/nccl_xml_reader.hpp"

namespace ringsim {

namespace nccl {

namespace {

constexpr std::size_t most_warnings = 100;
constexpr std::size_t most_cpus = 256;  // of elements of any kind: what NCCL itself can hold

/// What NCCL compares bus ids by: their hex digits.
std::uint64_t number_of_busid(const std::string& busid) {
  std::uint64_t number = 0;
  for (const char c : busid) {
    const auto digit = std::string_view("0123456789abcdef").find(c);
    if (digit != std::string_view::npos) number = number << 4 | digit;
  }
  return number;
}

const XmlElement* child_of(const XmlElement& parent, std::string_view name) {
  const auto found = std::find_if(parent.children.begin(), parent.children.end(),
                                  [&](const XmlElement& child) { return child.name == name; });
  return found == parent.children.end() ? nullptr : &*found;
}

bool any_within(const XmlElement& root, std::string_view name) {
  return root.name == name || std::any_of(root.children.begin(), root.children.end(),
                                          [&](const XmlElement& child) { return any_within(child, name); });
}

/// Walks the file's tree of <pci>.
class TreeReader {
 public:
  TreeReader(XmlImport& import, const XmlElement& root)
      : import_(import), lists_gpus_(any_within(root, "gpu")), lists_nets_(any_within(root, "net")) {}

  void read_cpu(const XmlElement& cpu) {
    const int index = add({.kind = NodeKind::cpu, .element = &cpu});
    if (!whole(cpu, "numaid", 0, 1 << 20)) {
      import_.warn(cpu, fmt::format("numaid \"{}\" names no NUMA domain; CPUs are numbered in the order of the file",
                                    text_of(cpu, "numaid")));
    }
    for (const XmlElement& child : cpu.children) {
      if (child.name == "pci") {
        read_pci(child, index);
      } else if (child.name == "nic") {
        const int nic = add({.kind = NodeKind::nic, .element = &child, .nic = &child, .parent = index});
        import_.found[static_cast<std::size_t>(nic)].uplink = link(
            LinkKind::pcie, {5'000'000'000'000},
            fmt::format("{}: a <nic> directly below a <cpu>, at LOC_BW (NVIDIA/nccl 5067397c2676 src/graph/topo.h)",
                        import_.place(child)));
      } else {
        left_out(child, "<cpu>");
      }
    }
  }

 private:
  enum class What { bridge, gpu, nic, other };

  int add(Found found) {
    keep(*found.element, found);
    import_.found.push_back(std::move(found));
    return static_cast<int>(import_.found.size()) - 1;
  }

  /// What the file says and the simulation does not need; an attribute without text says nothing.
  static void keep(const XmlElement& element, Found& found) {
    for (const auto& [name, value] : element.attributes) {
      if (!value.empty()) found.attributes[name] = value;
    }
  }

  void left_out(const XmlElement& element, std::string_view where) {
    import_.warn(element, fmt::format("<{}> within {} is not understood; left out", element.name, where));
  }

  What what(const XmlElement& pci) {
    const std::string type = lower(text_of(pci, "class"));
    const bool has_pci = child_of(pci, "pci") != nullptr;
    const bool bridge = type.starts_with("0x0604");
    if (child_of(pci, "gpu") != nullptr) return What::gpu;
    if (child_of(pci, "nic") != nullptr) return What::nic;
    if (!bridge && !has_pci) {
      const bool gpu = type.starts_with("0x03") || type.starts_with("0x12"), nic = type.starts_with("0x02");
      if (gpu && !lists_gpus_) return What::gpu;
      if (nic && !lists_nets_) return What::nic;
      import_.warn(pci, gpu || nic ? "a device without <gpu> or <nic>, though others have one; left out, as NCCL does"
                        : type.empty() ? "a device without a class, so nobody knows what it is; left out"
                                       : fmt::format("a device of class {}; left out", type));
      return What::other;
    }
    return What::bridge;
  }

  void read_pci(const XmlElement& pci, int parent) {
    const What kind = what(pci);
    const std::string busid = check_busid(pci);
    if (kind == What::other) return;
    Found found;
    found.kind = kind == What::gpu ? NodeKind::gpu : kind == What::nic ? NodeKind::nic : NodeKind::pcie_switch;
    found.element = &pci;
    found.parent = parent;
    found.busid = busid;
    const auto index = static_cast<std::size_t>(add(std::move(found)));
    for (const XmlElement& child : pci.children) {
      if (child.name == "pci" && kind == What::bridge) {
        read_pci(child, static_cast<int>(index));
      } else if (child.name == "pci") {
        import_.fail(child, fmt::format("expected no <pci> below the <pci> of a device, found one below {}", busid));
      } else if (child.name == "gpu" && kind == What::gpu) {
        if (import_.found[index].gpu != nullptr) {
          import_.fail(child, fmt::format("expected one <gpu> in the <pci> {}, found another", busid),
                       "partitions of a GPU, which share its links, are not modelled");
        }
        read_gpu(child, import_.found[index]);
      } else if (child.name == "nic" && kind == What::nic && import_.found[index].nic == nullptr) {
        import_.found[index].nic = &child;
      } else if (child.name != "pcilink") {
        left_out(child, "<pci>");
      }
    }
    import_.found[index].uplink = uplink(pci, static_cast<int>(index));
  }

  void read_gpu(const XmlElement& gpu, Found& found) {
    found.gpu = &gpu;
    keep(gpu, found);
    if (const auto dev = whole(gpu, "dev", 0, 1 << 20)) found.dev = static_cast<int>(*dev);
  }

  std::string check_busid(const XmlElement& pci) {
    std::string busid = lower(text_of(pci, "busid"));
    if (busid.empty()) import_.fail(pci, "expected a bus id such as \"0000:07:00.0\" in <pci>, found none");
    const auto [first, is_new] = lines_.emplace(busid, pci.line);
    if (!is_new) {
      import_.warn(pci, fmt::format("bus id {} stands here again (first on line {}); taken as another device", busid,
                                    first->second));
    }
    return busid;
  }

  /// NCCL's rule, and what is taken where the file is odd.
  LinkSpec uplink(const XmlElement& pci, int index) {
    const PcieRate* rate = pcie_rate(pci);
    int width = pcie_width(pci);
    std::string rule = fmt::format("{} x{}", rate->text, width);
    Bandwidth own = pcie_bandwidth(*rate, width);
    if (rate->k < 60) {
      const Found* fastest = nullptr;
      for (auto i = static_cast<std::size_t>(index) + 1; i < import_.found.size(); ++i) {  // all that is below it
        const Found& child = import_.found[i];
        if (child.parent == index && (fastest == nullptr || child.uplink.bandwidth > fastest->uplink.bandwidth)) {
          fastest = &child;
        }
      }
      if (fastest != nullptr && fastest->uplink.bandwidth > own) {
        own = fastest->uplink.bandwidth;
        const PcieLink as = nearest_pcie(own);
        import_.warn(pci,
                     fmt::format("the uplink of switch {} says {}, below PCIe 3 and slower than a device below it, as "
                                 "virtual switches do; taken as fast as that device, {} x{}",
                                 text_of(pci, "busid"), rule, as.rate->text, as.width));
        rate = as.rate, width = as.width;
        rule = fmt::format("{} x{} (the file says {})", rate->text, width, rule);
      }
    }
    return link(LinkKind::pcie, own,
                fmt::format("{}: {}; NVIDIA/nccl 5067397c2676 src/graph/topo.cc: lanes * {} / 80", import_.place(pci),
                            rule, rate->k));
  }

  const PcieRate* pcie_rate(const XmlElement& pci) {
    const PcieRate* gen3 = &pcie_rates[2];
    const std::string* text = pci.find("link_speed");
    if (text == nullptr || text->empty()) {
      import_.warn(pci, "no link_speed; taken as 8 GT/s, as NCCL does");
      return gen3;
    }
    double number = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text->data() + text->size() - end));
    const auto known = std::find_if(pcie_rates.begin(), pcie_rates.end(),
                                    [&](const PcieRate& rate) { return rate.gigatransfers == number; });
    if (error != std::errc() || known == pcie_rates.end() || !unit.starts_with(" GT/s")) {
      import_.warn(pci, fmt::format("link_speed \"{}\" is unknown; taken as 8 GT/s, as NCCL does", *text));
      return gen3;
    }
    if (unit != " GT/s" && unit != " GT/s PCIe") {
      import_.warn(
          pci, fmt::format("link_speed \"{}\" is not how NCCL spells it, which would take it as 8 GT/s; taken as {}",
                           *text, known->text));
    }
    return &*known;
  }

  int pcie_width(const XmlElement& pci) {
    const auto width = whole(pci, "link_width", 1, 32);
    if (width) return static_cast<int>(*width);
    import_.warn(pci, fmt::format("link_width \"{}\"; taken as x16, as NCCL does", text_of(pci, "link_width")));
    return 16;
  }

  XmlImport& import_;
  bool lists_gpus_, lists_nets_;
  std::map<std::string, std::size_t> lines_;  // of bus ids
};

/// By number where each has one, else by bus id, as NVML counts; in the file's order where neither tells.
void sort_devices(std::vector<Found*>& devices) {
  const bool numbered = std::all_of(devices.begin(), devices.end(), [](const Found* f) { return f->dev.has_value(); });
  std::stable_sort(devices.begin(), devices.end(), [&](const Found* a, const Found* b) {
    return numbered ? *a->dev < *b->dev : number_of_busid(a->busid) < number_of_busid(b->busid);
  });
}

void name_devices(XmlImport& import) {
  const auto add = [&](const std::vector<Found*>& devices, std::string_view name) {
    for (std::size_t i = 0; i < devices.size(); ++i) {
      devices[i]->device = static_cast<std::uint32_t>(import.machine.devices.size());
      import.machine.devices.push_back(
          {fmt::format("{}{}", name, i), devices[i]->kind, devices[i]->port, devices[i]->attributes});
    }
  };
  for (const auto& [kind, name] : {std::pair{NodeKind::gpu, "gpu"}, std::pair{NodeKind::nic, "nic"}}) {
    std::vector<Found*> devices = import.all(kind);
    sort_devices(devices);
    add(devices, name);
  }
  add(import.all(NodeKind::pcie_switch), "pcie");
  add(import.all(NodeKind::cpu), "cpu");
}

CpuModel model_of(const XmlElement& cpu) {
  CpuModel model;
  if (const std::string* arch = cpu.find("arch")) model.arch = *arch;
  if (const std::string* vendor = cpu.find("vendor")) model.vendor = *vendor;
  model.family = static_cast<int>(whole(cpu, "familyid", 0, 1 << 20).value_or(0));
  model.model = static_cast<int>(whole(cpu, "modelid", 0, 1 << 20).value_or(0));
  return model;
}

/// Sockets fully joined, a memory each; what the CPUs say of the host.
void join_cpus(XmlImport& import) {
  const std::vector<Found*> cpus = import.all(NodeKind::cpu);
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const CpuModel model = model_of(*cpus[i]->element);
    const InterSocket own = inter_socket(model);
    for (std::size_t j = i + 1; j < cpus.size(); ++j) {
      const InterSocket other = inter_socket(model_of(*cpus[j]->element));
      const InterSocket& slower = other.bandwidth < own.bandwidth ? other : own;
      import.machine.cables.push_back(
          {cpus[i]->device, cpus[j]->device,
           link(LinkKind::socket, slower.bandwidth,
                fmt::format("{}: vendor {}, model {}; NVIDIA/nccl 5067397c2676 src/graph/topo.h: {}",
                            import.place(*cpus[i]->element), model.vendor.empty() ? "unknown" : model.vendor,
                            model.model, slower.rule))});
    }
    if (model.vendor == "GenuineIntel") import.machine.host = {.peer_access = PathType::phb, .peer_cost = 1.2};
  }
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const auto memory_id = static_cast<std::uint32_t>(import.machine.devices.size());
    import.machine.devices.push_back({fmt::format("mem{}", i), NodeKind::memory, std::nullopt, {}});
    import.machine.cables.push_back({memory_id, cpus[i]->device, memory(model_of(*cpus[i]->element), cpus.size())});
  }
}

[[noreturn]] void fail_other_file(const XmlImport& import, const XmlElement& root) {
  const std::string what = root.name == "graphs"
                               ? "an NCCL graph file: the rings and trees that NCCL chose, not the machine"
                           : root.name == "algo"     ? "an MSCCL algorithm"
                           : root.name == "topology" ? "another topology format, perhaps hwloc's"
                                                     : fmt::format("an XML file whose root is <{}>", root.name);
  import.fail(root, "expected NCCL's topology XML, whose root is <system>, found " + what,
              "NCCL writes it where NCCL_TOPO_DUMP_FILE says");
}

void check_one_host(const XmlImport& import) {
  const Found* first = nullptr;
  for (const Found& each : import.found) {
    if (each.kind != NodeKind::cpu) continue;
    if (first == nullptr) first = &each;
    if (text_of(*each.element, "host_hash") != text_of(*first->element, "host_hash")) {
      import.fail(
          *each.element,
          fmt::format("expected the CPUs of one host, found host_hash {} after {}",
                      text_of(*each.element, "host_hash", "none"), text_of(*first->element, "host_hash", "none")),
          "keep the <cpu> elements of one host in the file, and say in the scenario how many nodes there are");
    }
  }
}

void describe(XmlImport& import) {
  Machine& machine = import.machine;
  machine.name = std::filesystem::path(import.file).stem().string();
  if (machine.name.empty()) machine.name = "imported";
  machine.summary = fmt::format("imported from {}: {} GPUs, {} NICs, {} PCIe switches, {} NUMA domains",
                                std::filesystem::path(import.file).filename().string(), machine.n_gpus(),
                                import.all(NodeKind::nic).size(), import.all(NodeKind::pcie_switch).size(),
                                import.all(NodeKind::cpu).size());
  if (machine.warnings.size() > most_warnings) {
    const std::size_t more = machine.warnings.size() - most_warnings;
    machine.warnings.resize(most_warnings);
    machine.warnings.push_back(fmt::format("{}: {} more such lines", import.file, more));
  }
}

}  // namespace

std::string XmlImport::place(const XmlElement& at) const { return fmt::format("{}:{}", file, at.line); }
void XmlImport::fail(const XmlElement& at, const std::string& message, const std::string& hint) const {
  throw InputError(place(at), message, hint);
}
void XmlImport::warn(const XmlElement& at, const std::string& message) {
  machine.warnings.push_back(place(at) + ": " + message);
}
std::vector<Found*> XmlImport::all(NodeKind kind) {
  std::vector<Found*> out;
  for (Found& each : found) {
    if (each.kind == kind && !each.merged) out.push_back(&each);
  }
  return out;
}

std::optional<std::int64_t> whole(const XmlElement& at, std::string_view attribute, std::int64_t least,
                                  std::int64_t most) {
  const std::string* text = at.find(attribute);
  if (text == nullptr) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < least || value > most) return std::nullopt;
  return value;
}

std::string text_of(const XmlElement& at, std::string_view attribute, const std::string& fallback) {
  const std::string* text = at.find(attribute);
  return text == nullptr ? fallback : *text;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

}  // namespace nccl

Machine import_nccl_xml(std::string_view text, const std::string& file, const NcclXmlOptions& options) {
  using namespace nccl;
  const XmlElement root = parse_xml(text, file);
  XmlImport import{file, options};
  if (root.name != "system") fail_other_file(import, root);
  TreeReader tree(import, root);
  for (const XmlElement& child : root.children) {
    if (child.name == "cpu") {
      tree.read_cpu(child);
    } else {
      import.warn(child, fmt::format("<{}> within <system> is not understood; left out", child.name));
    }
  }
  check_one_host(import);
  if (import.all(NodeKind::cpu).size() > most_cpus) {
    import.fail(root, fmt::format("expected at most {} <cpu> elements", most_cpus));
  }
  if (import.all(NodeKind::gpu).empty()) {
    import.fail(root, "expected at least one GPU: a <gpu>, or a <pci> of class 0x03... or 0x12..., found none",
                "a file that leaves GPUs to the system that reads it cannot be used elsewhere; take a full dump");
  }
  read_nets(import);
  name_devices(import);
  for (const Found& each : import.found) {
    if (each.parent < 0 || (each.merged && each.same == nullptr)) continue;
    import.machine.cables.push_back({each.same != nullptr ? each.same->device : each.device,
                                     import.found[static_cast<std::size_t>(each.parent)].device, each.uplink});
  }
  read_links(import, root);
  join_cpus(import);
  describe(import);
  return std::move(import.machine);
}

}  // namespace ringsim
