// Factors that were fitted to measurements, as fields.
#include <utility>

#include "scenarios/fields/fields.hpp"

namespace ringsim::scenarios {

namespace {

Field factor_field(std::string name, std::string doc, std::string example) {
  return {.name = std::move(name),
          .type = Type::factor,
          .doc = std::move(doc),
          .min = 10'000,
          .max = 100'000'000,
          .examples = {std::move(example)}};
}

}  // namespace

Field calibration_field() {
  return {
      .name = "calibration",
      .type = Type::object,
      .doc = "Factors that were fitted to measurements, on top of published figures; default: none.",
      .members = {
          {.name = "file",
           .type = Type::file,
           .doc = "What `ringsim calibrate` wrote; then give no other factors but scale_*.",
           .min = 1,
           .examples = {R"("calibration.json")"}},
          {.name = "launch",
           .type = Type::time,
           .doc = "Added to the time of each collective, on top of what transport and protocol say.",
           .examples = {R"("5 us")"}},
          factor_field("latency_scale", "On the latency of every link.", "1.2"),
          factor_field("efficiency_inside", "On the bandwidth of links within a node.", "0.9"),
          factor_field("efficiency_between",
                       "On the bandwidth of adapters' ports and of the fabric's cables; of a topology "
                       "without nodes on all links.",
                       "0.85"),
          factor_field("scale_nvlink", "On the bandwidth of NVLinks. To ask what others would change.", "2"),
          factor_field("scale_xgmi", "On the bandwidth of xGMI links. To ask what others would change.", "2"),
          factor_field("scale_c2c", "On the bandwidth of NVLink-C2C. To ask what others would change.", "2"),
          factor_field("scale_pcie", "On the bandwidth of PCIe links. To ask what others would change.", "2"),
          factor_field("scale_socket",
                       "On the bandwidth of links between CPU sockets. To ask what others would change.", "2"),
          factor_field("scale_memory", "On the bandwidth of host memory. To ask what others would change.", "2"),
          factor_field("scale_nic",
                       "On the bandwidth of adapters' ports with their cables. To ask what others would change.", "2"),
          factor_field("scale_fabric", "On the bandwidth of cables between switches. To ask what others would change.",
                       "2"),
          factor_field("scale_link",
                       "On the bandwidth of links of a topology without nodes. To ask what others would change.", "2"),
          factor_field("scale_latency", "On the latency of every link. To ask what others would change.", "0.5"),
          factor_field("scale_compute",
                       "On the speed of the GPUs in a training step: layers, hooks, update. To ask what others would "
                       "change.",
                       "2")}};
}

}  // namespace ringsim::scenarios
