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
    host_ = host_of(cpu);
    const int index = add({.kind = NodeKind::cpu, .element = &cpu});
    if (!whole(cpu, "numaid", 0, 1 << 20)) {
      import_.warn(cpu, fmt::format("numaid \"{}\" is not a NUMA domain; CPUs are numbered in the order of the file",
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
      }
    }
  }

 private:
  enum class What { bridge, gpu, nic, other };

  /// NCCL compares the numbers; none is 0 (src/graph/topo.cc, ncclGetSystemId).
  int host_of(const XmlElement& cpu) {
    std::string hash = lower(text_of(cpu, "host_hash"));
    if (hash.starts_with("0x")) hash.erase(0, 2);
    hash.erase(0, std::min(hash.find_first_not_of('0'), hash.size()));
    const auto known = std::find(hashes_.begin(), hashes_.end(), hash);
    const auto host = static_cast<int>(known - hashes_.begin());
    if (known == hashes_.end()) {
      hashes_.push_back(hash);
      import_.hosts.push_back(text_of(cpu, "host_hash", "none"));
    }
    return host;
  }

  int add(Found found) {
    found.host = host_;
    keep(*found.element, found);
    import_.found.push_back(std::move(found));
    return static_cast<int>(import_.found.size()) - 1;
  }

  /// What the file says; an attribute without text says nothing.
  static void keep(const XmlElement& element, Found& found) {
    for (const auto& [name, value] : element.attributes) {
      if (!value.empty() && is_known_attribute(element.name, name)) found.attributes[name] = value;
    }
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
      import_.warn(pci, gpu || nic ? "a device without <gpu> or <nic>, although others have one; ignored, as NCCL does"
                        : type.empty() ? "a device without a class, so its kind is unknown; ignored"
                                       : fmt::format("a device of class {}; ignored", type));
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
        check_whole(child, busid);
        if (import_.found[index].gpu != nullptr) {
          import_.fail(child, fmt::format("expected one <gpu> in the <pci> {}, found another", busid),
                       "several ranks on one GPU, which share its links, are not modeled");
        }
        read_gpu(child, import_.found[index]);
      } else if (child.name == "nic" && kind == What::nic && import_.found[index].nic == nullptr) {
        import_.found[index].nic = &child;
      } else if (child.name == "nic" && kind == What::gpu) {
        import_.fail(child, fmt::format("expected a <gpu> or a <nic> in the <pci> {}, found both", busid),
                     "give each its own <pci>");
      } else if (child.name == "nic") {
        import_.warn(child, fmt::format("a second <nic> in the <pci> {}; ignored, as NCCL does", busid));
      }
    }
    import_.found[index].uplink = uplink(pci, static_cast<int>(index));
  }

  /// Each half of a GPU that MLOPart splits has half of its NVLinks, shares its PCIe and C2C links with the other, and
  /// reaches it within the chip (NVIDIA/nccl 5067397c2676 src/graph/topo.cc, ncclTopoAddGpuSub, ncclTopoAddC2c). NCCL
  /// writes mlopart="-1" of every GPU that is whole.
  void check_whole(const XmlElement& gpu, const std::string& busid) const {
    const std::string* part = gpu.find("mlopart");
    if (part == nullptr || part->empty() || part->starts_with('-')) return;
    import_.fail(gpu,
                 fmt::format("expected whole GPUs, found part {} of the GPU in the <pci> {} (mlopart)", *part, busid),
                 "GPUs split by MLOPart are not modeled: keep one <gpu> per <pci>, without mlopart");
  }

  void read_gpu(const XmlElement& gpu, Found& found) {
    found.gpu = &gpu;
    keep(gpu, found);
    if (gpu.find("dev") != nullptr) found.dev = whole_or_drop(gpu, "dev", found, "GPUs are numbered by their bus ids");
    whole_or_drop(gpu, "rank", found, "ranks are in the order of dev anyway");
    read_gdr(import_, gpu, found.attributes, "gdr");
    const std::string* sm = gpu.find("sm");
    if (sm == nullptr || sm->empty()) return;
    if (!whole(gpu, "sm", 1, 999))
      import_.fail(gpu, fmt::format("expected a compute capability in sm, such as \"90\", found \"{}\"", *sm),
                   "without sm, --gpu or topology.gpu states the model");
    found.attributes["sm"] = std::to_string(*whole(gpu, "sm", 1, 999));
  }

  std::optional<int> whole_or_drop(const XmlElement& at, const char* name, Found& found, std::string_view instead) {
    const std::string* text = at.find(name);
    if (text == nullptr || text->empty()) return std::nullopt;
    if (const auto number = whole(at, name, 0, 1 << 20)) {
      found.attributes[name] = std::to_string(*number);
      return static_cast<int>(*number);
    }
    import_.warn(at, fmt::format("{} \"{}\" is not a device number; {}", name, *text, instead));
    found.attributes.erase(name);
    return std::nullopt;
  }

  std::string check_busid(const XmlElement& pci) {
    std::string busid = lower(text_of(pci, "busid"));
    if (busid.empty()) import_.fail(pci, "expected a bus id such as \"0000:07:00.0\" in <pci>, found none");
    const auto [first, is_new] = lines_.emplace(std::pair{host_, busid}, pci.line);
    if (!is_new) {
      import_.warn(pci, fmt::format("bus id {} occurs here again (first on line {}); read as another device", busid,
                                    first->second));
    }
    return busid;
  }

  /// NCCL's rule, and what is taken if the file is odd.
  LinkSpec uplink(const XmlElement& pci, int index) {
    const std::string* speed = pci.find("link_speed");
    if (speed == nullptr || speed->empty()) {
      const Found& found = import_.found[static_cast<std::size_t>(index)];
      if (std::optional<LinkSpec> known = pcie_like(import_, found.kind)) {
        known->source = fmt::format("{}: no link_speed; as in {}: {}", import_.place(pci), import_.options.like->name,
                                    known->source);
        return *known;
      }
      import_.without_pcie_speed.push_back(&pci);
    }
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
        import_.warn(pci, fmt::format("the uplink of switch {} states {}, below PCIe 3 and slower than a device below "
                                      "it, as virtual switches do; assumed to be as fast as that device, {} x{}",
                                      text_of(pci, "busid"), rule, as.rate->text, as.width));
        rate = as.rate, width = as.width;
        rule = fmt::format("{} x{} (the file states {})", rate->text, width, rule);
      }
    }
    return link(LinkKind::pcie, own,
                fmt::format("{}: {}; NVIDIA/nccl 5067397c2676 src/graph/topo.cc: lanes * {} / 80", import_.place(pci),
                            rule, rate->k));
  }

  const PcieRate* pcie_rate(const XmlElement& pci) {
    const PcieRate* gen3 = &pcie_rates[2];
    const std::string* text = pci.find("link_speed");
    if (text == nullptr || text->empty()) return gen3;  // one warning names all: warn_of_pcie_speeds()
    double number = 0;
    const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
    const std::string_view unit(end, static_cast<std::size_t>(text->data() + text->size() - end));
    const auto known = std::find_if(pcie_rates.begin(), pcie_rates.end(),
                                    [&](const PcieRate& rate) { return rate.gigatransfers == number; });
    if (error != std::errc() || known == pcie_rates.end() || !unit.starts_with(" GT/s")) {
      import_.warn(pci, fmt::format("link_speed \"{}\" is unknown; assumed to be 8 GT/s, as NCCL does", *text));
      return gen3;
    }
    if (unit != " GT/s" && unit != " GT/s PCIe") {
      import_.warn(pci, fmt::format("link_speed \"{}\" is not NCCL's spelling, so NCCL would assume 8 GT/s; read as {}",
                                    *text, known->text));
    }
    return &*known;
  }

  int pcie_width(const XmlElement& pci) {
    const auto width = whole(pci, "link_width", 1, 32);
    if (width) return static_cast<int>(*width);
    if (!import_.without_pcie_speed.empty() && import_.without_pcie_speed.back() == &pci) return 16;
    import_.warn(pci, fmt::format("link_width \"{}\"; assumed to be x16, as NCCL does", text_of(pci, "link_width")));
    return 16;
  }

  XmlImport& import_;
  bool lists_gpus_, lists_nets_;
  int host_ = 0;                                              // of the <cpu> that is read
  std::vector<std::string> hashes_;                           // [host]
  std::map<std::pair<int, std::string>, std::size_t> lines_;  // of the bus ids of each host
};

[[noreturn]] void fail_other_file(const XmlImport& import, const XmlElement& root) {
  const std::string what = root.name == "graphs"
                               ? "an NCCL graph file: the rings and trees that NCCL chose, not the machine"
                           : root.name == "algo"     ? "an MSCCL algorithm"
                           : root.name == "topology" ? "another topology format, perhaps hwloc's"
                                                     : fmt::format("an XML file whose root is <{}>", root.name);
  import.fail(root, "expected NCCL's topology XML with the root <system>, found " + what,
              root.name == "graphs" ? "NCCL writes the topology if NCCL_TOPO_DUMP_FILE is set; a graph file belongs in "
                                      "library.env.NCCL_GRAPH_FILE of a scenario"
                                    : "NCCL writes this file if NCCL_TOPO_DUMP_FILE is set");
}

/// Virtual machines do not see the speeds of their PCIe links.
void warn_of_pcie_speeds(XmlImport& import) {
  const auto& silent = import.without_pcie_speed;
  if (silent.empty()) return;
  const auto is_before = [](const XmlElement* a, const XmlElement* b) { return a->line < b->line; };
  import.warn(
      **std::min_element(silent.begin(), silent.end(), is_before),
      fmt::format("no link_speed for {} PCI device{}{}; assumed to be 8 GT/s PCIe x16, as NCCL does; {}", silent.size(),
                  silent.size() == 1 ? "" : "s", silent.size() == 1 ? "" : ", of which this is the first",
                  import.options.like ? import.options.like->name + " has no PCIe link for such a device"
                                      : "for the speeds of a known machine, use " + how_to_say("like", "NODE")));
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
    machine.warnings.push_back(fmt::format("{}: {} more lines like this", import.file, more));
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
  const bool hex = text->starts_with("0x") || text->starts_with("0X");
  const char *begin = text->data() + (hex ? 2 : 0), *last = text->data() + text->size();
  if (hex && begin != last && *begin == '-') return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(begin, last, value, hex ? 16 : 10);
  if (error != std::errc() || end != last || value < least || value > most) return std::nullopt;
  return value;
}

std::optional<LinkSpec> pcie_like(XmlImport& import, NodeKind kind) {
  if (!import.options.like) return std::nullopt;
  const Machine& like = *import.options.like;
  const auto leads_up = [](NodeKind end) { return end != NodeKind::gpu && end != NodeKind::nic; };
  const auto found = std::find_if(like.cables.begin(), like.cables.end(), [&](const Machine::Cable& cable) {
    const NodeKind from = like.devices[cable.from].kind, to = like.devices[cable.to].kind;
    return cable.link.kind == LinkKind::pcie && ((from == kind && leads_up(to)) || (to == kind && leads_up(from)));
  });
  if (found == like.cables.end()) return std::nullopt;
  import.used_like = true;
  return each_of(found->link);
}

bool is_unseen_switch(std::string_view target) { return target.starts_with("fffffff:"); }

void read_gdr(XmlImport& import, const XmlElement& at, std::map<std::string, std::string>& attributes,
              const std::string& key) {
  const std::string* text = at.find("gdr");
  if (text == nullptr || text->empty()) return;
  const auto number = whole(at, "gdr", INT64_MIN, INT64_MAX);
  if (!number) import.warn(at, fmt::format("gdr \"{}\" is neither 0 nor 1; read as 0, as NCCL does", *text));
  attributes[key] = number.value_or(0) == 0 ? "0" : "1";
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
  check_words(import, root);
  if (const std::string* version = root.find("version"); version != nullptr && *version != "1" && *version != "2")
    import.warn(root, fmt::format("version \"{}\" of the format is unknown; read as 1, NCCL's (2: RCCL's)", *version));
  TreeReader tree(import, root);
  for (const XmlElement& child : root.children)
    if (child.name == "cpu") tree.read_cpu(child);
  if (import.all(NodeKind::cpu).size() > most_cpus) {
    import.fail(root, fmt::format("expected at most {} <cpu> elements", most_cpus));
  }
  if (import.all(NodeKind::gpu).empty()) {
    import.fail(root, "expected at least one GPU: a <gpu>, or a <pci> of class 0x03... or 0x12..., found none",
                "a file that omits the GPUs works only on its own system; use a full dump");
  }
  check_hosts(import);
  warn_of_pcie_speeds(import);
  read_nets(import);
  merge_pcie(import);
  name_devices(import);
  for (const Found& each : import.found) {
    if (each.parent < 0 || (each.merged && each.same == nullptr)) continue;
    import.machine.cables.push_back({each.same != nullptr ? each.same->device : each.device,
                                     import.found[static_cast<std::size_t>(each.parent)].device, each.uplink});
  }
  read_links(import, root);
  if (options.like && !import.used_like)
    import.machine.warnings.push_back(fmt::format(
        "{}: nothing is taken from {}, because the file states all that it could supply", file, options.like->name));
  join_cpus(import);
  describe(import);
  return std::move(import.machine);
}

}  // namespace ringsim
