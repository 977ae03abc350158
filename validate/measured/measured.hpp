// Timings that somebody measured: files of benchmarks, read strictly.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "sim/schedule/schedule.hpp"

namespace ringsim {

/// A row that somebody measured. Times are microseconds, above 0; bandwidths GB/s (10^9), as they were printed.
struct MeasuredRow {
  CollectiveOp op{};
  Bytes bytes;         ///< as nccl-tests counts bytes for the op (DESIGN.md section 9)
  double time_us = 0;  ///< out of place where there are both
  std::optional<double> in_place_us, time_min_us, time_max_us, algbw_GBps, busbw_GBps;
  std::optional<std::int64_t> wrong;  ///< elements out of bounds, out of place and in place together; where it counted
  int line = 0;                       ///< in the file, from 1; 0: the format has no lines (JSON)
};

/// A file of measured rows.
struct MeasuredTable {
  std::string file, format;                  ///< format: "nccl-tests text", "nccl-tests JSON", "OSU text", "CSV", ...
  std::optional<int> ranks;                  ///< where the file tells
  std::map<std::string, std::string> about;  ///< "id", "source", "grade", "library", ... of comments `# key: value`
  std::vector<MeasuredRow> rows;  ///< in file order; one for each (op, bytes): repetitions are their median (see below)
  std::vector<std::string> warnings;  ///< FILE:LINE: what was left out, or taken for granted
};

/// Which formats are read, one per line, for errors and --help.
std::string measured_formats();

/// The collective of that name, in any of the usual spellings ("all_reduce", "AllReduce", "allreduce",
/// "all_reduce_perf", "osu_allreduce"); nothing where it is none.
std::optional<CollectiveOp> collective_named(std::string_view name);

/// Reads a file of measured rows; which format is found by looking at the text. `collective`: what the rows are, where
/// the file does not say; an error where it says otherwise. Neither: taken from the file's name, with a warning, or an
/// error.
///
/// Rows without a time (an empty cell: it was not printed) are left out with a warning. Several rows of one size are
/// repetitions if each size has as many, or if a header separates them: their median (of an even number the mean of
/// the middle two) of times, least and most of minima and maxima. A single size that appears twice is an error.
///
/// In the log of a benchmark a row that other output has torn is left out with a warning, and the number of ranks is
/// that of the highest rank that is listed, since logs are abridged; rows with busbw have to agree with it.
///
/// Throws InputError at FILE:LINE where a number is no number, negative or not finite, where a row of a table has lost
/// columns, where algbw or busbw is not bytes/time within rounding (old all_gather and reduce_scatter print (n-1)/n of
/// it, which is let pass), and where there are no rows.
MeasuredTable read_measured(const std::string& path, std::optional<CollectiveOp> collective = std::nullopt);
/// The same from text; `name` stands for the file in errors.
MeasuredTable parse_measured(std::string_view text, const std::string& name,
                             std::optional<CollectiveOp> collective = std::nullopt);

/// predicted/measured - 1, at a size.
struct SizedError {
  Bytes bytes;
  double error = 0;
};

/// Errors of a range of sizes, summarised. Shares, not percent.
struct ErrorBand {
  std::string name;
  int rows = 0;
  double median_abs = 0, p90_abs = 0;  ///< of |error|
  double median_signed = 0;            ///< below 0: predicted too fast
};

/// The value below which a share `q` of the values lies, between neighbours by their distance (as numpy's default).
/// Requires at least one value and 0 <= q <= 1.
double quantile(std::vector<double> values, double q);

/// Errors by size: "up to 64 KiB", "64 KiB to 8 MiB" (neither end belongs to it), "8 MiB and more", "256 MiB and more"
/// (which is part of the third). Bands without rows are left out.
std::vector<ErrorBand> error_bands(std::span<const SizedError> errors);
/// All of them as one band. Requires at least one.
ErrorBand error_band(const std::string& name, std::span<const SizedError> errors);

}  // namespace ringsim
