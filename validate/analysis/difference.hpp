// Two explained runs next to each other: what was asked, what came out, and which causes account for the difference.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/predict/explain.hpp"
#include "sim/base/units.hpp"
#include "validate/results/result.hpp"

namespace ringsim {

/// One side of a comparison.
struct ExplainedRun {
  struct Part {
    std::string cause, kind, links;
    Picoseconds time{0};
    std::string task;  ///< of a training step
  };
  std::string name;                          ///< the file
  std::map<std::string, std::string> input;  ///< dotted path to JSON text: the canonical scenario, or what rows tell
  Picoseconds time{0};
  double busbw = 0;                        ///< GB/s
  std::string bottleneck;                  ///< a link; may be empty
  std::optional<std::vector<Part>> parts;  ///< sum to `time`; nothing: the file does not tell
};

/// Requires a prediction with an explanation. `canonical`: ScenarioFile::canonical().
ExplainedRun explained_run(const std::string& name, const Result& result, const std::string& canonical);

/// True if the text is a result (of `explain`, or of `run` as JSON or JSON lines) and not a scenario.
bool is_result_text(std::string_view text);
/// Throws InputError for what is no result, for several, and for parts that do not sum to the time.
ExplainedRun read_explained(std::string_view text, const std::string& name);

struct InputChange {
  std::string path;
  std::optional<std::string> a, b;  ///< JSON texts; nothing: it is not there
};
std::vector<InputChange> input_changes(const ExplainedRun& a, const ExplainedRun& b);

/// One cause on both sides; if one lacks it, 0.
struct PartChange {
  std::string cause, kind, links;
  Picoseconds a{0}, b{0};
  std::string task;
};
/// The largest change first; without those of both sides that are equal. The changes sum to b.time - a.time, exactly.
/// Requires the parts of both.
std::vector<PartChange> part_changes(const ExplainedRun& a, const ExplainedRun& b);

}  // namespace ringsim
