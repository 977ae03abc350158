// Predicted against measured: the same collective, the same ranks, the same sizes.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/scenario.hpp"
#include "validate/measured/measured.hpp"
#include "validate/results/result.hpp"
#include "validate/score/given_launch.hpp"

namespace ringsim {

/// What the points of a scenario are, for MeasuredFile::table().
ComparedWith compared_with(const ScenarioFile& file);

/// A scenario at the sizes at which its collective was measured, and the rows that are compared with it.
struct ComparedFile {
  ScenarioFile scenario;
  MeasuredTable measured;
};

/// Reads a scenario (as ScenarioFile::parse) at the measured sizes of its collective; its own, if it has any, do not
/// count. `run`: as MeasuredFile::table(). Throws InputError if its points are of several collectives, of one that
/// the file has not, of another number of ranks than was measured, or of several jobs. Appends to `warnings` what of
/// the file is not compared, and that ranks are not known to agree. `input`: rows that gave the launch; those of the
/// file with the same size and time are left out, as they would be compared with themselves. Throws InputError if no
/// other is left.
ComparedFile load_at_measured_sizes(std::string_view text, const std::string& name, std::vector<std::string> overrides,
                                    const MeasuredFile& measured, std::optional<int> run,
                                    std::vector<std::string>& warnings, std::span<const LaunchRow> input = {});

/// Throws InputError if a point of the scenario has another number of ranks than was measured.
void require_measured_ranks(const ScenarioFile& file, const MeasuredTable& table);

/// Adds measured times to predictions, by collective and size.
class Beside {
 public:
  /// The table must outlive it.
  explicit Beside(const MeasuredTable& table);
  /// Sets measured_us if that collective was measured at that size; of several jobs, for the first one alone.
  void add(Result& result);
  /// What has no counterpart, in words; empty if all have one.
  std::vector<std::string> unmatched() const;

 private:
  using Key = std::pair<CollectiveOp, std::int64_t>;
  const MeasuredTable& table_;
  std::map<Key, std::pair<const MeasuredRow*, bool>> rows_;  // whether a prediction met it
  std::vector<Key> alone_;                                   // predictions that met none
};

/// The predictions of one algorithm or one library, and of one of whatever else varies, at all sizes. What a library
/// chooses by size is one curve.
struct Curve {
  std::string name;  ///< "ring", "nccl 2.22.3", "parameter_server servers=2, topology.nodes 4"
  std::vector<const Result*> points;
  ErrorBand all;
  std::vector<ErrorBand> bands;  ///< by size
  std::vector<ErrorBand> plans;  ///< of a library: by what it chose, "Tree LL128"; empty if it chose one plan
};
/// In the order of their first points; those that were measured. The results must outlive it. Ensures that each
/// measured result is on exactly one curve.
std::vector<Curve> curves_of(std::span<const Result> results);
/// The curve whose median |error| is least. Requires at least one.
const Curve& nearest_of(std::span<const Curve> curves);
/// The errors of all points of all curves.
ErrorBand errors_of(std::span<const Curve> curves);
/// How far the prediction is off, in a sentence: over all rows of all curves; of several curves also the nearest.
/// Requires at least one curve.
std::string headline_of(std::span<const Curve> curves);

}  // namespace ringsim
