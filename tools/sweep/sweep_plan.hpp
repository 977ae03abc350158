// Which points of a scenario a sweep takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "scenarios/scenario.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

/// The ith of n parts of a sweep, counted from 1, which take about equally long: points are dealt by expected_work(),
/// the largest first, each to the shard that has least so far. Equal points are dealt in turn.
struct Shard {
  std::size_t i = 1, n = 1;
};
/// "2/4". Throws InputError.
Shard parse_shard(const std::string& text);
/// What Slurm's job array says of this task, told on stderr; the whole if there is none. Throws InputError for an
/// array whose numbers are not evenly spaced.
Shard shard_of_slurm();

struct SweepPlan {
  std::vector<std::size_t> points;                      ///< of this shard, in order, each key once
  std::size_t n_repeated = 0;                           ///< points whose key an earlier one has
  std::unordered_map<std::string, std::size_t> by_key;  ///< of all shards
  std::set<std::string> varied;                         ///< the paths that vary, in any point
  std::vector<std::int64_t> work;                       ///< [point of the file] expected_work(); 0: it is repeated
};
/// `jobs`: threads that work out keys; 0: one per core. `bounded`: as for result_key(). Without shards it fills `work`
/// only if `with_work` asks for it: it takes longer than the keys.
SweepPlan sweep_plan_of(const ScenarioFile& file, Shard shard, int jobs, bool bounded = false, bool with_work = false);

/// What a file of results has of a plan.
class DoneRows {
 public:
  DoneRows(const ScenarioFile& file, const SweepPlan& plan) : file_(file), plan_(plan) {}
  /// Takes a row; false if it is the error of a point that the scenario has no more. Throws InputError at `where`
  /// for a result that is not the scenario's.
  bool take(const ResultRow& row, const std::string& where);
  /// The points of the plan that lack a row.
  std::vector<std::size_t> to_do() const;
  std::size_t n_failed() const { return failed_.size(); }

 private:
  const ScenarioFile& file_;
  const SweepPlan& plan_;
  std::unordered_map<std::size_t, std::set<std::string>> done_;  // [point] names of the jobs that have a row
  std::set<std::size_t> failed_;                                 // points
};

}  // namespace ringsim::tools
