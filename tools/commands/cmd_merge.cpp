// ringsim merge: the results of one or several sweeps in one file.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/error.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/formats/matrix.hpp"
#include "tools/formats/own_files.hpp"
#include "tools/formats/result_fields.hpp"
#include "tools/formats/sqlite_file.hpp"
#include "tools/formats/stored_rows.hpp"
#include "tools/output/output.hpp"
#include "tools/stop.hpp"
#include "tools/sweep/sweep_file.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

namespace {

struct MergeArguments {
  std::vector<std::string> files;
  std::string output;             ///< its ending tells the format; "-": JSON lines on stdout
  Format format = Format::jsonl;  ///< of a matrix; else `output` tells
  MatrixFields matrix;

  void settle() const {
    if (!is_matrix(format)) return expect_ending(output, {".jsonl", ".csv", ".sqlite"}, OtherEndings::refused);
    (void)format_by_ending(output, std::optional(format), format,
                           {{".csv", Format::matrix_csv}, {".md", Format::matrix_markdown}});
  }
};

void declare(Options& options, MergeArguments& merge) {
  options
      .arguments("FILES", merge.files,
                 "results of `ringsim sweep`; for a matrix, also results of `ringsim run` (.json, .csv)")
      .file = true;
  Option& output = options.file("-o,--output", "FILE", merge.output,
                                "write to FILE.jsonl, FILE.csv or FILE.sqlite; - writes JSON lines to standard output");
  output.required = true;
  Option& format = options.choice<Format>("--format", matrix_formats(), merge.format,
                                          "write one column as a matrix over two others, to a file of any name");
  format.needs = "--rows";
  options.matrix(merge.matrix);
}

/// The rows as a matrix.
std::string matrix_of(const std::vector<ResultRow>& rows, const MergeArguments& arguments) {
  std::vector<std::string> seen;
  for (const ResultRow& row : rows)
    for (const Cell& cell : row.cells)
      if (std::find(seen.begin(), seen.end(), cell.column) == seen.end()) seen.push_back(cell.column);
  std::vector<std::string> varied;
  for (const std::string& column : seen)
    if (column.starts_with("point.")) varied.push_back(column.substr(6));
  require_field("--rows", arguments.matrix.rows, varied, /*compared=*/true);
  require_field("--columns", arguments.matrix.columns, varied, /*compared=*/true);
  require_field("--cell", arguments.matrix.cell, varied, /*compared=*/true);
  return matrix_text(rows, arguments.matrix, arguments.format);
}

void write_matrix(const std::vector<ResultRow>& rows, const MergeArguments& arguments) {
  const std::string text = matrix_of(rows, arguments);
  refuse_to_replace(arguments.output, /*force=*/false);
  Output output(arguments.output);
  output.write(text);
  output.finish();
}

/// True for results that `run` wrote. They have no keys, which `sweep` gives to its rows.
bool is_of_run(const std::string& file) {
  const StoredAs format = stored_as(file);
  return format == StoredAs::csv || format == StoredAs::document;
}

int execute(const MergeArguments& arguments) {
  const std::string& path = arguments.output;
  require_matrix_fields(arguments.matrix, arguments.format);
  const bool jsonl = path == "-" || path.ends_with(".jsonl");
  if (has_writer(path))
    throw EnvironmentError(path + ": a sweep is writing to it\n  hint: wait for the sweep, or give another -o");
  for (const std::string& file : arguments.files)
    if (has_writer(file)) warn(file + ": a sweep is writing to it; only the rows written so far are merged");
  const std::vector<std::string>& files = arguments.files;
  if (is_matrix(arguments.format) && std::all_of(files.begin(), files.end(), is_of_run)) {
    write_matrix(stored_rows(arguments.files), arguments);
    return good;
  }
  for (const std::string& file : files)
    if (is_of_run(file))
      throw InputError(file,
                       fmt::format("expected JSON lines, as `ringsim sweep` writes them, found {}",
                                   stored_as(file) == StoredAs::csv ? "CSV" : "a JSON document"),
                       "these files can only be merged into a matrix: --format matrix --rows COLUMN --columns COLUMN");
  const MergedResults rows(arguments.files);
  for (const std::string& file : rows.torn_files()) warn(file + ": the last line is incomplete and was ignored");
  if (rows.size() == 0) throw InputError(arguments.files.front(), "expected results, found none");
  if (is_matrix(arguments.format)) {
    std::vector<ResultRow> all;
    rows.each([&](const ResultRow& row) {
      stop_if_asked();
      all.push_back(row);
    });
    write_matrix(all, arguments);
    return good;
  }
  if (path.ends_with(".sqlite")) {
    write_sqlite(rows, path);
    return good;
  }
  Output output(path);
  if (jsonl) {
    rows.each_line([&](const std::string& line) {
      stop_if_asked();
      output.write(line);
    });
  } else {
    const std::vector<std::string> columns = rows.columns(ColumnsFor::csv);
    output.write(csv_line(columns));
    rows.each([&](const ResultRow& row) {
      stop_if_asked();
      output.write(csv_line(fields_of(row, columns)));
    });
  }
  output.finish();
  return good;
}

}  // namespace

Command merge_command() {
  return {.name = "merge",
          .group = Group::results,
          .summary = "Merge, deduplicate and sort sweep results",
          .example = "ringsim merge shard-*.jsonl -o all.csv",
          .details =
              "A matrix shows one column of the results as a function of two others, which can be varying paths: "
              "--format matrix --rows topology.nodes --columns collective.algorithm --cell busbw_GBps.",
          .prepare = with<MergeArguments>(declare, execute)};
}

}  // namespace ringsim::tools
