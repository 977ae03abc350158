// Timings that somebody measured: files of benchmarks, read strictly.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

namespace measured {
class Runs;
}

/// A row that somebody measured. Times are microseconds, above 0; bandwidths GB/s (10^9), as they were printed.
struct MeasuredRow {
  CollectiveOp op{};
  Bytes bytes;         ///< as nccl-tests counts bytes for the op (DESIGN.md section 9)
  double time_us = 0;  ///< out of place if there are both
  std::optional<double> in_place_us, time_min_us, time_max_us, algbw_GBps, busbw_GBps;
  std::optional<std::int64_t> wrong;  ///< elements out of bounds, out of place and in place together; if it counted
  int line = 0;                       ///< in the file, from 1; 0: the format has no lines (JSON)
};

/// A file of measured rows.
struct MeasuredTable {
  std::string file, format;                  ///< format: "nccl-tests text", "nccl-tests JSON", "OSU text", "CSV", ...
  std::optional<int> ranks;                  ///< if the file tells
  std::map<std::string, std::string> about;  ///< "id", "source", "grade", "library", ... of comments `# key: value`
  std::vector<MeasuredRow> rows;  ///< in file order; one for each (op, bytes): repetitions are their median (see below)
  std::vector<std::string> warnings;  ///< FILE:LINE: what was left out, or taken for granted
};

/// Which formats are read, one per line, for errors and --help.
std::string measured_formats();

/// The collective of that name, in any of the usual spellings ("all_reduce", "AllReduce", "allreduce"), also as MPI,
/// NCCL, PyTorch and benchmarks call it ("MPI_Allreduce", "ncclAllReduce", "dist.all_gather_into_tensor",
/// "all_reduce_perf", "osu_allreduce"); nothing if it is none.
std::optional<CollectiveOp> collective_named(std::string_view name);

/// A hint where a scenario has another number of ranks than was measured.
inline constexpr const char* how_to_change_ranks =
    "use --nodes N for a machine given by name, or --set topology.nodes=N or topology.ranks=N for a scenario file; "
    "collective.ranks lists GPUs if not all of them take part";

/// The scenario of a comparison: the collectives and numbers of ranks of its points, each once.
struct ComparedWith {
  std::vector<CollectiveOp> ops;
  std::vector<int> ranks;
};

/// A file of measured rows, before they are compared with anything. A log may have several runs. A heading of columns,
/// a list of ranks, another program's name, and sizes that begin again start a new run; listed ranks apply only to the
/// rows of their own run. In a table, the rows of each number of ranks are a run.
///
/// Formats: see measured_formats(). Terminal colors, prefixes of jobs' logs (mpirun, srun, Kubernetes, time stamps),
/// bars around cells and decimal commas are accepted. A row that other output has torn is left out with a warning, and
/// so is a row with NaN, an infinite number or a time of 0. Logs are abridged, so the highest listed rank gives the
/// number of ranks.
class MeasuredFile {
 public:
  /// `name`: the file, for errors. `collective`: that of the rows, if the file does not say; an error if it says
  /// another.
  ///
  /// Throws InputError at FILE:LINE for text in place of a number, negative numbers, rows of a table that have lost
  /// columns, and commas of unclear meaning; and if there are no rows.
  MeasuredFile(std::string_view text, const std::string& name, std::optional<CollectiveOp> collective = std::nullopt);
  static MeasuredFile read(const std::string& path, std::optional<CollectiveOp> collective = std::nullopt);

  /// The rows of run `run`, counted from 1; of all runs if it is not given.
  ///
  /// If the file does not name the collective, its file name may; else it is the scenario's if busbw fits it. Both come
  /// with a warning. If nothing fits, the error says which collectives and numbers of ranks busbw fits. With a
  /// scenario, rows of other collectives and runs of other numbers of ranks are left out with a warning. The remaining
  /// runs count as repetitions if their times differ by at most 20 % at each size; a warning names the spread.
  /// Otherwise they are refused.
  ///
  /// Rows without a time (an empty cell: it was not printed) are left out with a warning. Several rows of one size in a
  /// table are repetitions if each size has as many; a single size that appears twice is an error. Repetitions become
  /// their median (of an even number, the mean of the middle two), with the bandwidth of the median time, the least of
  /// their minima and the greatest of their maxima.
  ///
  /// Throws InputError if algbw or busbw is not bytes/time within rounding. Old all_gather and reduce_scatter print
  /// (n-1)/n of it, which is accepted. Each row is checked before repetitions are merged.
  MeasuredTable table(std::optional<int> run = std::nullopt,
                      const std::optional<ComparedWith>& with = std::nullopt) const;
  /// One of the sizes that were measured.
  Bytes first_size() const;
  /// The collective, if all rows with a known one have the same; of run `run`, if given. Those that only a scenario
  /// could tell have none.
  std::optional<CollectiveOp> only_op(std::optional<int> run = std::nullopt) const;
  /// As MeasuredTable::about.
  const std::map<std::string, std::string>& about() const;

 private:
  std::shared_ptr<const measured::Runs> runs_;
};

/// The table of a file with one run, or with runs that agree.
MeasuredTable read_measured(const std::string& path, std::optional<CollectiveOp> collective = std::nullopt);
/// Reads a table from text; `name` stands for the file in errors.
MeasuredTable parse_measured(std::string_view text, const std::string& name,
                             std::optional<CollectiveOp> collective = std::nullopt);

/// predicted/measured - 1, at a size.
struct SizedError {
  Bytes bytes;
  double error = 0;
};

/// Errors of a range of sizes, summarized. Shares, not percent.
struct ErrorBand {
  std::string name;
  int rows = 0;
  double median_abs = 0, p90_abs = 0;  ///< of |error|
  double median_signed = 0;            ///< below 0: predicted too fast
};

/// The value below which a share `q` of the values lies, between neighbors by their distance (as numpy's default).
/// Requires at least one value and 0 <= q <= 1.
double quantile(std::vector<double> values, double q);

/// Errors by size: "up to 64 KiB", "64 KiB to 8 MiB" (neither end belongs to it), "8 MiB and more", "256 MiB and more"
/// (which is part of the third). Bands without rows are left out.
std::vector<ErrorBand> error_bands(std::span<const SizedError> errors);
/// All of them as one band. Requires at least one.
ErrorBand error_band(const std::string& name, std::span<const SizedError> errors);

}  // namespace ringsim
