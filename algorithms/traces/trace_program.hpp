// Traces of the ranks of a job as one program.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "algorithms/traces/rank_trace.hpp"
#include "algorithms/training/plan_program.hpp"
#include "sim/program/program_size.hpp"

namespace ringsim::traces {

/// More tasks of all ranks together are refused: a task takes some 300 bytes.
inline constexpr std::size_t most_tasks = 50'000'000;

/// Groups by pg_name: [group][member], ranks of the job.
using NamedGroups = std::map<std::string, Program::Groups>;

/// The calls of all ranks, matched.
class TraceJob {
 public:
  /// `ranks`: [rank] its trace, or one that stands for all `n_ranks`. `stated`: groups that the user states, which
  /// count more than those of the traces' metadata; a group that neither lists is all ranks. `time_scale`: kernels take
  /// that part of their recorded time.
  ///
  /// The k-th call of a group is the same collective at all of its ranks. Throws InputError that names the first two
  /// calls that are not: of another operation or size, or ranks that call more often than others; for a rank that calls
  /// a group of others; and for one trace that stands for all, if a rank is in none of a group's groups or there are
  /// sends.
  TraceJob(std::string name, std::vector<std::shared_ptr<const RankTrace>> ranks, int n_ranks,
           const NamedGroups& stated, double time_scale = 1);

  const std::string& name() const { return name_; }
  int n_ranks() const { return n_ranks_; }
  std::size_t n_files() const { return ranks_.size(); }
  const std::vector<std::shared_ptr<const RankTrace>>& ranks() const { return ranks_; }
  const RankTrace& of(Actor rank) const { return *ranks_[ranks_.size() == 1 ? 0 : static_cast<std::size_t>(rank)]; }
  std::size_t n_tasks() const;  ///< of all files

  /// Every kind of call, each once, in order: use `traced`, `stage` a number of groups_of().
  const std::vector<PlanExchange>& exchanges() const { return exchanges_; }
  /// How often a rank makes such a call.
  std::int64_t uses_of(const PlanExchange& exchange) const;
  /// Groups that call together. Those with another root are other groups: the root is the first member.
  const Program::Groups& groups_of(int set) const { return sets_[static_cast<std::size_t>(set)].groups; }
  /// Sentences about calls that the program does not make as the traces have them.
  const std::vector<std::string>& warnings() const { return warnings_; }

  ProgramSize size() const;
  /// The program, one iteration of it. `call`: as plan_program()'s. Calls are launched as `call` says, computations
  /// take what was recorded. Nothing is known of the data: order is proved, data is not.
  PlanProgram program(const std::function<PlanCall(const PlanExchange&)>& call, WatchedWork* work = nullptr) const;

 private:
  Picoseconds scaled(const TracedTask& task, const std::string& file) const;

  struct Set {
    std::string name;        // of the group, for messages
    Program::Groups groups;  // members, the root first
    int family = 0;          // sets of one group, but for the root, have the same
    int color = 0;           // their stream among those of calls
  };
  struct Use {     // a call of a rank
    int set = -1;  // -1: its group is the rank alone, and the call computes
    std::size_t turn = 0;
    PlanExchange exchange;
    std::string name;
  };

  struct Matcher;
  friend struct Matcher;

  std::string name_;
  std::vector<std::shared_ptr<const RankTrace>> ranks_;
  int n_ranks_ = 0;
  double time_scale_ = 1;
  std::vector<Set> sets_;
  int n_colors_ = 0;
  std::vector<std::vector<PlanExchange>> calls_;  // [set][turn]
  std::vector<std::vector<Use>> uses_;            // [file][call of the trace]
  std::vector<PlanExchange> exchanges_;
  std::vector<std::string> warnings_;
};

}  // namespace ringsim::traces
