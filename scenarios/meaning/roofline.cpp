#include "scenarios/meaning/roofline.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "scenarios/fields/workload_files.hpp"
#include "scenarios/meaning/meaning_training.hpp"
#include "scenarios/meaning/transformer.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"

namespace ringsim::scenarios {

using Canonical = nlohmann::json;

TransformerCard card_of(const Canonical& workload, const RooflinePlace& place, const Blame& blame) {
  if (workload.contains("transformer")) {
    try {
      return transformer_of(workload["transformer"]);
    } catch (const InputError& error) {
      blame.fail(place.workload + "/transformer" + error.where(), error.message(), error.hint());
    }
  }
  const auto name = workload["model"].get<std::string>();
  const auto& files = workload_files();
  const auto found = std::find_if(files.begin(), files.end(), [&](const auto& file) { return file.first == name; });
  ensure(found != files.end(), "the table of fields names the workloads");
  const Json file = parse_json(found->second, "scenarios/workloads/" + name + ".json");
  if (!file.contains("transformer")) {
    std::vector<std::string> cards;
    for (const auto& [other, text] : files)
      if (parse_json(text, other).contains("transformer")) cards.push_back(other);
    blame.fail(place.workload + "/model", fmt::format("expected a transformer {}, found {}", place.user, name),
               fmt::format("models with a card: {}", fmt::join(cards, ", ")));
  }
  return transformer_of(Canonical(file["transformer"]));
}

double share_of(const Canonical& compute, const char* key, const RooflinePlace& place, const Blame& blame) {
  const std::string at = fmt::format("{}/{}", place.compute(), key);
  if (!compute.contains(key))
    blame.fail(
        place.compute(), fmt::format("expected the key \"{}\" {}, found none", key, place.user),
        R"(write {"gemm": "72%", "attention": "35%", "memory": "80%", "peak": "312 TFLOP/s", "hbm": "2039 GB/s"}; )"
        "no share fits all software, so you must set them" +
            place.otherwise);
  if (!compute[key].is_object()) blame.fail(at, "expected a share such as \"72%\", found a rate");
  const double share = static_cast<double>(compute[key]["millionths"].get<std::int64_t>()) / 1e6;
  if (share <= 0) blame.fail(at, "expected a share above 0%, found 0%");
  return share;
}

double flops_of(const Canonical& compute, const char* key, const RooflinePlace& place, const Blame& blame) {
  try {
    return static_cast<double>(parse_flops(compute[key].get<std::string>()));
  } catch (const InputError& error) {
    blame.fail(fmt::format("{}/{}", place.compute(), key), error.message(), error.hint());
  }
}

KernelSpeeds roofline_of(const Canonical& compute, double speed, const RooflinePlace& place, const Blame& blame) {
  const double gemm = share_of(compute, "gemm", place, blame), attention = share_of(compute, "attention", place, blame),
               memory = share_of(compute, "memory", place, blame);
  for (const char* key : {"peak", "hbm"})
    if (!compute.contains(key))
      blame.fail(
          place.compute(), fmt::format("expected the key \"{}\" in addition to shares, found none", key),
          R"(peak is the rate of the GPU's tensor cores, "312 TFLOP/s"; hbm is the bandwidth of its memory, "2039 GB/s")");
  const double peak = flops_of(compute, "peak", place, blame);
  return {.gemm = speed * peak * gemm,
          .attention = speed * peak * attention,
          .memory = speed * static_cast<double>(compute["hbm"].get<std::int64_t>()) * memory};
}

}  // namespace ringsim::scenarios
