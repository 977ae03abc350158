// Scenarios in which NCCL decides, and what becomes of them with other settings.
#pragma once

#include <string>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "tests/support/complaint.hpp"

namespace ringsim::test {

inline const std::string two_dgx_a100 = R"({"version": 1,
  "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 2,
               "fabric": {"kind": "star", "link": {"bandwidth": "200 Gb/s", "latency": "150 ns"}}},
  "library": {"name": "nccl", "version": "2.22.3"},
  "collective": {"op": "all_reduce", "bytes": "256 MiB"}})";
inline const std::string one_dgx_a100 =
    R"({"version": 1, "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 1},
  "library": "nccl", "collective": {"op": "all_reduce", "bytes": "64 MiB"}})";

using Overrides = std::vector<std::string>;  ///< as options of --set

/// The first point of the scenario.
inline Scenario point(const std::string& text, const Overrides& overrides = {}) {
  return ScenarioFile::parse(text, "s.json", overrides).point(0);
}
/// With its explanation.
inline Prediction predicted(const std::string& text, const Overrides& overrides = {}) {
  return predict(point(text, overrides), {.explain = true});
}
/// With which words it is refused.
inline std::string refusal(const std::string& text, const Overrides& overrides) {
  return complaint([&] { point(text, overrides); });
}

}  // namespace ringsim::test
