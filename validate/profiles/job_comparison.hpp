// The collectives of a job next to predictions: what NCCL should take, what the wires allow, and a verdict.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "validate/profiles/record.hpp"
#include "validate/profiles/waiting.hpp"

namespace ringsim::profiles {

enum class Verdict : std::uint8_t {
  late_rank,          ///< waiting above 20 % of the kernels' time, one rank last in more than 60 %
  late_ranks,         ///< the same, no rank last so often
  slow_transfer,      ///< above 1.25 x predicted, and above predicted + 1.5 x the error of predictions
  slowed_by_compute,  ///< transfers next to other kernels take above 1.15 x those without, and x what is stated
  as_predicted,
  faster,  ///< below predicted by more than the error of predictions: model or scenario is wrong
  cannot_say
};
std::string_view to_string(Verdict verdict);

/// A row of the account, predicted.
struct ComparedCalls {
  Row row;
  std::optional<double> predicted_ns;  ///< with the kernels that ran meanwhile, by JobComparison::interference
  double slowed = 1;                   ///< how many times as long as without those kernels, of predicted_ns
  std::optional<double> allowed_ns;    ///< the bound of the links, or of latency if that is longer
  std::string algorithm, protocol;     ///< that were simulated
  int blocks = 0;                      ///< that NCCL launches by the plan; 0: not known
  double band = 0;                     ///< error of predictions for such rows, a share (error_band())
  std::vector<Verdict> verdicts;       ///< at least one
  std::string because;                 ///< of cannot_say, and what more there is to say
  double lost_ns = 0,
         lost_waiting_ns = 0;  ///< of the row's calls, mean over ranks with a file: kernel time - predicted; waiting

  bool blocks_differ() const;  ///< the launch has other blocks than the plan, by more than a quarter
  /// A block's threads are not those of the plan's algorithm and protocol: LL up to 512, LL128 and trees of Simple 640,
  /// rings of Simple 544 (NVIDIA/nccl src/enqueue.cc: computeColl adds a warp, or four, to Simple's 512).
  bool threads_differ() const;
  bool has(Verdict verdict) const;
  /// Transfer / prediction: of the median transfer, or of the mean where the prediction is a mean because it includes
  /// interference. Requires predicted_ns and a split row.
  double transfer_over_predicted() const;
};

struct JobComparison {
  Account account;
  std::vector<ComparedCalls> rows;  ///< most time lost first
  std::string nccl, nccl_from;      ///< "2.17.1", "in the files"
  int gpus = 0, nodes = 0;          ///< of the scenario
  double interference = 1;          ///< as JobOptions has it
  std::string other_machine;        ///< why the scenario is not the machine of the job; empty: nothing says so
  std::string other_machine_hint;   ///< what to change then
};

struct JobOptions {
  std::vector<std::string> set;  ///< of --set
  std::string nccl;              ///< version, if the files do not say it
  std::uint32_t ranks_per_host = 0;
  double interference = 1;  ///< transfers take so many times as long while other kernels run; at least 1
  const std::atomic<bool>* stop = nullptr;
  /// Runs work(0) ... work(n - 1), on several threads if it likes; empty: in turn.
  std::function<void(std::size_t n, const std::function<void(std::size_t)>& work)> for_each;
};

/// Ranks lie on the scenario's GPUs in order. Each distinct (op, bytes, placement) is simulated once, by `library:
/// nccl` of the version that the files name, and by algorithm and protocol if the files have them. Hosts of the files
/// must have the GPUs of the scenario's nodes. Throws InputError for a scenario that is wrong or has several points.
JobComparison compare_job(const Profile& profile, const std::string& scenario, const std::string& scenario_name,
                          const JobOptions& options);

/// How far nine of ten predictions with a library are off at most (docs/results/accuracy.md: 90th percentile by size).
enum class Wiring : std::uint8_t { nvlink, pcie, nodes };
double error_band(Wiring wiring, std::int64_t bytes);

/// The verdicts of a row that was predicted, by the rules above. Requires predicted_ns.
void judge(ComparedCalls& calls, double interference = 1);

/// How many times as long the row's collectives take, in the mean, as without the kernels that ran at the same time, if
/// data moves 1 / interference as fast while such kernels run. With a share s of its time next to compute one takes
/// 1 / (1 - s (1 - 1 / interference)) times as long. Profiles have the share of the whole kernel, its wait included, so
/// compute is taken to be spread evenly over it. 1 if no share is known. Requires interference >= 1.
double slowed_by(const Row& row, double interference);

/// The interference by which the row's overlapped_ratio would come about, by the shares of its collectives; the ratio
/// itself if it is below 1. Nothing without that ratio, if no interference explains it, or if the transfer is not
/// known: then a kernel may be longer because it waited longer.
std::optional<double> interference_of(const Row& row);

/// The least, the median and the largest interference_of() the rows that have one. n = 0: none has.
struct MeasuredInterference {
  std::size_t n = 0;
  double least = 0, median = 0, largest = 0;
};
MeasuredInterference measured_interference(const std::vector<Row>& rows);

}  // namespace ringsim::profiles
