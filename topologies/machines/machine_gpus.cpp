#include "topologies/machines/machine_gpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "topologies/catalog.hpp"
#include "topologies/machines/device_words.hpp"
#include "topologies/machines/preset_names.hpp"

namespace ringsim {

namespace {

/// The architectures of a machine's GPUs.
std::set<std::string> architectures_of(const Machine& machine) {
  std::set<std::string> found;
  for (const Machine::Device& device : machine.devices)
    if (const auto sm = device.attributes.find("sm"); device.kind == NodeKind::gpu && sm != device.attributes.end())
      found.insert(sm->second);
  return found;
}

/// True if the machine has one of these GPUs of presets. Of a machine that is no preset only the architecture is known.
bool has_gpu(const Machine& machine, const std::vector<std::string>& gpus) {
  const auto is_named = [&](const PresetNames& preset) {
    return std::find(gpus.begin(), gpus.end(), preset.gpu) != gpus.end();
  };
  if (const PresetNames* own = preset_named(machine.name)) return is_named(*own);
  const std::set<std::string> architectures = architectures_of(machine);
  return architectures.empty() ||
         std::any_of(preset_names().begin(), preset_names().end(), [&](const PresetNames& preset) {
           return is_named(preset) && architectures_of(node_preset(preset.name)) == architectures;
         });
}

std::string own_gpu(const Machine& machine) {
  if (const PresetNames* own = preset_named(machine.name)) return fmt::format("{} with {}", own->name, own->gpu);
  return fmt::format("a machine with GPUs of another architecture (sm {})", *architectures_of(machine).begin());
}

/// The figure of the machine's newest GPU, by its compute capability.
std::optional<double> of_newest(const Machine& machine, const std::map<int, double>& figures) {
  std::optional<int> newest;
  for (const Machine::Device& device : machine.devices)
    if (device.kind == NodeKind::gpu)
      if (const std::optional<int> its = compute_capability(device)) newest = std::max(newest.value_or(0), *its);
  const auto found = newest ? figures.find(*newest) : figures.end();
  return found == figures.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

std::optional<double> most_flops_of(const Machine& machine) {
  // NVIDIA's data sheets of V100 (fp16), A100 (bf16), L40S (fp8), H100 SXM (fp8), GB200 NVL72 and GB300 NVL72 (fp4: 720
  // and 1,080 PFLOP/s of 72 GPUs). A test compares them with plan_gpus(), which has GPUs one by one.
  static const std::map<int, double> most{{70, 125e12},  {80, 312e12},     {89, 733e12},
                                          {90, 1979e12}, {100, 10'000e12}, {103, 15'000e12}};
  return of_newest(machine, most);
}

std::optional<double> most_fp32_flops_of(const Machine& machine) {
  // The same data sheets: V100 SXM has no TF32 (fp32: 15.7 TFLOP/s); TF32 has half the rate of 16 bits on A100 (156),
  // L40S (183), H100 SXM (989, of which half without sparsity), and GB200 and GB300 NVL72 (180 PFLOP/s of 72, with
  // sparsity).
  static const std::map<int, double> most{{70, 15.7e12}, {80, 156e12},   {89, 183e12},
                                          {90, 495e12},  {100, 1250e12}, {103, 1250e12}};
  return of_newest(machine, most);
}

std::string machine_without(const Machine& machine, std::string_view text) {
  const std::vector<std::string> gpus = preset_gpus_in(text);
  return gpus.empty() || has_gpu(machine, gpus) ? "" : own_gpu(machine);
}

}  // namespace ringsim
