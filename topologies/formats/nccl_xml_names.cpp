// The order and the names of the devices of NCCL's topology XML.
#include <fmt/format.h>

#include <algorithm>

#include "topologies/formats/nccl_xml_reader.hpp"

namespace ringsim::nccl {

namespace {

/// What NCCL compares bus ids by: their hex digits.
std::uint64_t number_of_busid(const std::string& busid) {
  std::uint64_t number = 0;
  for (const char c : busid) {
    const auto digit = std::string_view("0123456789abcdef").find(c);
    if (digit != std::string_view::npos) number = number << 4 | digit;
  }
  return number;
}

/// Orders devices host by host; within a host by number if each has one, else by bus id, as NVML counts; in the file's
/// order if neither tells.
void sort_devices(std::vector<Found*>& devices) {
  const bool numbered = std::all_of(devices.begin(), devices.end(), [](const Found* f) { return f->dev.has_value(); });
  std::stable_sort(devices.begin(), devices.end(), [&](const Found* a, const Found* b) {
    if (a->host != b->host) return a->host < b->host;
    return numbered ? *a->dev < *b->dev : number_of_busid(a->busid) < number_of_busid(b->busid);
  });
}

/// Ranks are the GPUs in order. NCCL's were where the file was written, perhaps in another order.
void warn_of_ranks(XmlImport& import, const std::vector<Found*>& gpus) {
  std::optional<std::int64_t> last;
  for (const Found* gpu : gpus) {
    const auto rank = gpu->gpu == nullptr ? std::nullopt : whole(*gpu->gpu, "rank", 0, 1 << 20);
    if (!rank) return;
    if (last && *rank < *last)
      return import.warn(
          *gpu->gpu, fmt::format("rank {} is after rank {} in the order of dev; the GPUs are named gpu0, gpu1 ... in "
                                 "the order of dev; to set another order of ranks, use \"ranks\" of a collective",
                                 *rank, *last));
    last = rank;
  }
}

/// A fabric of kind rail joins NICs by their numbers; NCCL by "rail", if the file has it.
void warn_of_rails(XmlImport& import, const std::vector<Found*>& nics) {
  bool by_number = true, one_plane = true;
  std::string plane;
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const auto& said = nics[i]->attributes;
    if (const auto rail = said.find("net0.rail"); rail != said.end() && rail->second != "-1")
      by_number = by_number && rail->second == std::to_string(i);
    if (const auto at = said.find("net0.plane"); at != said.end() && at->second != "-1") {
      one_plane = one_plane && (plane.empty() || plane == at->second);
      plane = at->second;
    }
  }
  if (!by_number)
    import.machine.warnings.push_back(
        import.file +
        ": the \"rail\" of the NICs differs from their position; a fabric of kind rail uses the position");
  if (!one_plane)
    import.machine.warnings.push_back(import.file +
                                      ": the NICs belong to several planes (\"plane\"); a fabric connects them as one");
}

}  // namespace

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
    kind == NodeKind::gpu ? warn_of_ranks(import, devices) : warn_of_rails(import, devices);
    add(devices, name);
  }
  add(import.all(NodeKind::pcie_switch), "pcie");
  add(import.all(NodeKind::pcie_slot), "slot");
  add(import.all(NodeKind::cpu), "cpu");
}

}  // namespace ringsim::nccl
