#include "tests/support/training_scenario.hpp"

#include <fmt/format.h>

#include "sim/base/error.hpp"

namespace ringsim::test {

std::string star_scenario(int ranks, const std::string& training, const std::string& more) {
  return fmt::format(R"({{"version": 1, "topology": {{"kind": "star", "ranks": {},
    "link": {{"bandwidth": "100 Gb/s", "latency": "1 us"}}}}, "training": {}{}}})",
                     ranks, training, more);
}

ringsim::Result result_of(const std::string& text) {
  return results_of(ScenarioFile::parse(text, "t.json").point(0)).front();
}

std::string complaint_of(const std::string& text) {
  try {
    ScenarioFile::parse(text, "t.json").point(0);
    return "accepted";
  } catch (const InputError& error) {
    return error.where() + ": " + error.message();
  }
}

ringsim::Result resnet_by(const std::string& regime, int ranks, const std::string& more) {
  return result_of(star_scenario(ranks, fmt::format(R"({{{}, "regime": {}{}}})", resnet, regime, more)));
}

}  // namespace ringsim::test
