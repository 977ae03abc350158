// What hosts are in NCCL's topology XML, and their CPUs.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "topologies/formats/nccl_rules.hpp"
#include "topologies/formats/nccl_xml_reader.hpp"
#include "topologies/machines/device_words.hpp"

namespace ringsim::nccl {

namespace {

CpuModel model_of(const XmlElement& cpu) {
  CpuModel model;
  if (const std::string* arch = cpu.find("arch")) model.arch = *arch;
  if (const std::string* vendor = cpu.find("vendor")) model.vendor = *vendor;
  model.family = static_cast<int>(whole(cpu, "familyid", 0, 1 << 20).value_or(0));
  model.model = static_cast<int>(whole(cpu, "modelid", 0, 1 << 20).value_or(0));
  return model;
}

/// What decides by the CPU's model is off if the file has a word that NCCL does not know.
void warn_of_cpu(XmlImport& import, const XmlElement& cpu) {
  const auto known = [&](const char* name, std::initializer_list<std::string_view> all) {
    const std::string* text = cpu.find(name);
    if (text == nullptr || text->empty() || std::find(all.begin(), all.end(), *text) != all.end()) return;
    import.warn(cpu, fmt::format("{} \"{}\" of a <cpu> is unknown to NCCL; sockets are assumed to be connected at {}",
                                 name, *text, inter_socket(model_of(cpu)).rule));
  };
  known("arch", {"x86_64", "arm64", "ppc64"});
  if (text_of(cpu, "arch", "x86_64") == "x86_64")
    known("vendor", {"GenuineIntel", "AuthenticAMD", "CentaurHauls", "  Shanghai  "});
  for (const char* name : {"familyid", "modelid"}) {
    const std::string* text = cpu.find(name);
    if (text != nullptr && !text->empty() && !whole(cpu, name, 0, 1 << 20))
      import.warn(cpu, fmt::format("{} \"{}\" is not a number; read as 0, as NCCL does", name, *text));
  }
}

/// True if an <nvlink> leads to NVSwitches that are no PCI devices of the host: those of a rack. A host's own have bus
/// ids.
bool leads_to_rack(const XmlElement& gpu) {
  return std::any_of(gpu.children.begin(), gpu.children.end(), [](const XmlElement& link) {
    return link.name == "nvlink" && is_unseen_switch(lower(text_of(link, "target")));
  });
}

}  // namespace

void check_hosts(XmlImport& import) {
  if (import.hosts.size() < 2) return;
  const auto fail = [&](const XmlElement& at, const std::string& what) {
    import.fail(
        at,
        fmt::format("expected one host, or the trays of a rack connected by NVLink, found {} hosts (host_hash {} and "
                    "{}{}), and {}",
                    import.hosts.size(), import.hosts[0], import.hosts[1], import.hosts.size() > 2 ? " ..." : "", what),
        "keep only the <cpu> elements of one host in the file, and set the number of nodes in the scenario");
  };
  std::vector<bool> has_gpus(import.hosts.size());
  for (const Found* gpu : import.all(NodeKind::gpu)) {
    has_gpus[static_cast<std::size_t>(gpu->host)] = true;
    if (gpu->gpu == nullptr || !leads_to_rack(*gpu->gpu))
      fail(*gpu->element, fmt::format("{} has no NVLinks to NVSwitches outside its host", gpu->busid));
  }
  for (const Found* cpu : import.all(NodeKind::cpu))
    if (!has_gpus[static_cast<std::size_t>(cpu->host)])
      fail(*cpu->element, fmt::format("no GPU on {}", text_of(*cpu->element, "host_hash", "that without")));
  import.machine.warnings.push_back(
      fmt::format("{}: {} hosts (host_hash) with {} GPUs connected by NVLink, which is how NCCL describes a rack; read "
                  "as one machine, so \"nodes\" counts racks",
                  import.file, import.hosts.size(), import.all(NodeKind::gpu).size()));
}

void join_cpus(XmlImport& import) {
  const std::vector<Found*> cpus = import.all(NodeKind::cpu);
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    warn_of_cpu(import, *cpus[i]->element);
    const CpuModel model = model_of(*cpus[i]->element);
    const InterSocket own = inter_socket(model);
    for (std::size_t j = i + 1; j < cpus.size(); ++j) {
      if (cpus[i]->host != cpus[j]->host) continue;
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
    // Only AMD's sockets forward between GPUs everywhere (NVIDIA/nccl 5067397c2676 src/graph/paths.cc,
    // ncclTopoCheckP2p); two GH200 that only their CPUs join have no peer access
    // (dnhkng.github.io/posts/gh200-benchmarking).
    if (model.arch == "arm64") import.machine.host.peer_access = PathType::pxb;
  }
  for (const Found* gpu : import.all(NodeKind::gpu)) {
    const int sm = compute_capability({"", NodeKind::gpu, {}, gpu->attributes}).value_or(0);
    import.machine.host.gpudirect_cost = std::max(import.machine.host.gpudirect_cost, gpudirect_cost(sm));
  }
  for (std::size_t i = 0; i < cpus.size(); ++i) {
    const auto domains =
        std::count_if(cpus.begin(), cpus.end(), [&](const Found* each) { return each->host == cpus[i]->host; });
    const auto memory_id = static_cast<std::uint32_t>(import.machine.devices.size());
    import.machine.devices.push_back({fmt::format("mem{}", i), NodeKind::memory, std::nullopt, {}});
    import.machine.cables.push_back(
        {memory_id, cpus[i]->device, memory(model_of(*cpus[i]->element), static_cast<std::size_t>(domains))});
  }
}

}  // namespace ringsim::nccl
