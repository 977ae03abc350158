// Factors that were fitted to measurements, as fields.
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "scenarios/fields/fields.hpp"
#include "scenarios/scenario.hpp"

namespace ringsim::scenarios {

namespace {

/// A factor at at(Calibration&), a double.
template <class At>
Field factor_field(const std::string& name, const std::string& doc, const std::string& example, At at) {
  return {.name = name,
          .type = Type::factor,
          .doc = doc,
          .min = 10'000,
          .max = 100'000'000,
          .examples = {example},
          .into = Member::through<Calibration>(at)};
}

/// scale_NAME of a class of links, whose bandwidth it multiplies.
Field scale_field(LinkClass which, const std::string& links) {
  return factor_field(
      fmt::format("scale_{}", to_string(which)),
      fmt::format("Multiplies the bandwidth of {}, for what-if studies.", links), "2",
      [which](Calibration& to) -> double& { return to.classes.bandwidth[static_cast<std::size_t>(which)]; });
}

}  // namespace

Field calibration_field() {
  Field field{
      .name = "calibration",
      .type = Type::object,
      .doc = "Factors fitted to measurements, which correct the published figures. Default: none.",
      .members = {
          {.name = "file",
           .type = Type::file,
           .doc = "A file written by `ringsim calibrate`. It can be combined only with the scale_* factors.",
           .min = 1,
           .examples = {R"("calibration.json")"}},
          {.name = "launch",
           .type = Type::time,
           .doc = "Time added to each collective, on top of transport and protocol.",
           .examples = {R"("5 us")"},
           .into = &Calibration::launch},
          factor_field("latency_scale", "Multiplies the latency of every link.", "1.2",
                       [](Calibration& to) -> double& { return to.links.latency; }),
          factor_field("efficiency_inside", "Multiplies the bandwidth of links within a node.", "0.9",
                       [](Calibration& to) -> double& { return to.links.inside; }),
          factor_field(
              "efficiency_between",
              "Multiplies the bandwidth of adapter ports and fabric cables; in a topology without nodes, of all links.",
              "0.85", [](Calibration& to) -> double& { return to.links.between; })}};
  for (auto& [which, links] :
       std::vector<std::pair<LinkClass, std::string>>{{LinkClass::nvlink, "NVLinks"},
                                                      {LinkClass::xgmi, "xGMI links"},
                                                      {LinkClass::c2c, "NVLink-C2C"},
                                                      {LinkClass::pcie, "PCIe links"},
                                                      {LinkClass::socket, "links between CPU sockets"},
                                                      {LinkClass::memory, "host memory"},
                                                      {LinkClass::nic, "adapter ports and their cables"},
                                                      {LinkClass::fabric, "cables between switches"},
                                                      {LinkClass::other, "links of a topology without nodes"}})
    field.members.push_back(scale_field(which, links));
  field.members.push_back(factor_field("scale_latency", "Multiplies the latency of every link, for what-if studies.",
                                       "0.5", [](Calibration& to) -> double& { return to.classes.latency; }));
  field.members.push_back(
      factor_field("scale_compute",
                   "Multiplies the speed of the GPUs in a training step (layers, hooks, update), for what-if studies.",
                   "2", [](Calibration& to) -> double& { return to.compute; }));
  return field;
}

}  // namespace ringsim::scenarios
