// The scorecard: every published table against what is predicted for its machine, next to what simpler models say.
#pragma once

#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/predict/predict.hpp"
#include "scenarios/scenario.hpp"
#include "validate/measured/measured.hpp"
#include "validate/score/baselines.hpp"
#include "validate/score/given_launch.hpp"

namespace ringsim {

/// A file of a published table, and of the scenario of the machine on which it was measured.
struct PublishedTable {
  std::string id;                       ///< "abci-v100-2n4g-all_reduce"
  std::string csv_file, csv;            ///< what errors call the file, and its text
  std::string scenario_file, scenario;  ///< the same; empty if there is none
};

/// Those of validate/measured/tables/tables, which are part of the library; by id.
std::vector<PublishedTable> published_tables();
/// ID.csv and ID.json of a folder, by id. Throws InputError if there is none, or a scenario without its table.
std::vector<PublishedTable> tables_in(const std::string& folder);

/// Which rows of a table count, and why not the others.
struct ScoredSizes {
  Bytes from{0}, to{std::numeric_limits<std::int64_t>::max()};  ///< both inclusive; none if from > to
  std::string reason;                                           ///< empty: all count
  bool contains(Bytes bytes) const { return from <= bytes && bytes <= to; }
};
/// From the table's line `# score: none; REASON`, `# score: from 8 MiB; REASON` or `# score: to 64 KiB; REASON`; all
/// if it has none. Throws InputError for any other, and if the reason is missing.
ScoredSizes scored_sizes(const MeasuredTable& table);

/// Who predicts.
enum class Model : std::uint8_t {
  library,    ///< ringsim, one point a size: what the library decides (scenario key `library`)
  plain,      ///< ringsim, the fastest of the scenario's points with protocol none
  protocols,  ///< ringsim, the fastest of those with another protocol
  textbook,
  tuner,
  line,  ///< alpha + bytes/beta, fitted to the other half of the table's scored rows
};
inline constexpr std::array models = {Model::library,  Model::plain, Model::protocols,
                                      Model::textbook, Model::tuner, Model::line};
std::string_view to_string(Model model);  ///< "ringsim, plain", "NCCL's tuner", ...

enum class Family : std::uint8_t { nvlink, pcie, nodes, none, rccl };
inline constexpr std::array families = {Family::nvlink, Family::pcie, Family::nodes, Family::none, Family::rccl};
/// "one node, NVLink", ... "no machine": a free topology; "RCCL": all tables of it.
std::string_view to_string(Family family);

struct ScoredRow {
  Bytes bytes;
  double measured_us = 0;
  bool scored = true;
  bool gives_launch = false;                                  ///< it is one of ScoredTable::launch
  std::array<std::optional<ModelTime>, models.size()> times;  ///< [model]; nothing if it says nothing of the row

  const std::optional<ModelTime>& of(Model model) const { return times[static_cast<std::size_t>(model)]; }
};

struct ScoredTable {
  std::string id;
  CollectiveOp op{};
  int ranks = 0;
  std::optional<Family> family;  ///< nothing if there is no scenario
  ScoredSizes sizes;
  std::string missing;  ///< what the model leaves out that the table may show; the table's line `# missing: TEXT`
  std::vector<ScoredRow> rows;
  std::vector<std::string> warnings;  ///< FILE: what is predicted otherwise than the table says
  /// The launch that fits the smallest scored rows of the library's column; none if no row gives it.
  std::optional<GivenLaunch> launch;
  std::string no_launch;  ///< why there is none, though the library's column has scored rows
};

/// What is scored.
struct ScoreOptions {
  /// Options of --set for every scenario. Those of the key `library` change what the library decides, and nothing else.
  std::vector<std::string> set;
  bool only_library = false;  ///< no Model::plain, no Model::protocols: their runs take most of the time
  /// Model::library has the launch that its table's smallest scored rows give, and these rows are not scored. So the
  /// scores are those of a machine whose launch is known.
  bool launch_given = false;
};

/// How the points of a scenario are predicted, in any order.
using PredictAll = std::function<std::vector<Prediction>(const ScenarioFile&)>;

/// One table. The scenario is predicted at the sizes that were measured. What the library decides: the scenario, if it
/// names one; else the same with the library that the table names, if that is NCCL, instead of its algorithms. Of
/// several other points at a size (algorithms,
/// protocols) the fastest counts, as NCCL chooses by its own model; never the one that is nearest to the measurement.
/// Throws InputError if scenario and table do not fit, and if a table has no scenario but is to be scored.
ScoredTable score(const PublishedTable& published, const PredictAll& predict_all, const ScoreOptions& options = {});

/// The options of --set by which a scenario of algorithms becomes one of that library: keys that it decides go.
std::vector<std::string> library_instead(const SaidLibrary& library);

/// predicted/measured - 1 of the rows that count.
std::vector<SizedError> errors_of(const ScoredTable& table, Model model);
/// True if the table is of that family. Nothing: of any but RCCL's, whose costs are not fitted to these tables.
bool is_of(const ScoredTable& table, const std::optional<Family>& family);

/// Errors of several tables, of those that is_of().
std::vector<SizedError> errors_of(std::span<const ScoredTable> tables, Model model,
                                  const std::optional<Family>& family = std::nullopt);

/// predicted/measured - 1 of the library's column with and without the launch that each table gives, for the scored
/// rows that do not give it. A table that gives none has the same times in both. Of those that is_of(). Requires
/// scores without ScoreOptions::launch_given.
struct LaunchErrors {
  std::vector<SizedError> without, with;
};
LaunchErrors launch_errors_of(std::span<const ScoredTable> tables, const std::optional<Family>& family = std::nullopt);

/// What ringsim says of the table, at its best: library, else protocols, else plain.
Model best_model(const ScoredTable& table);

/// The tables that are farthest off, by the median |error| of best_model(); the worst first. Those without a scored row
/// are in none.
std::vector<const ScoredTable*> worst_of(std::span<const ScoredTable> tables, std::size_t most);

}  // namespace ringsim
