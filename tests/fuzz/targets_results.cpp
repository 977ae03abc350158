// What was measured, and results that were written before.
#include <cmath>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/text/json.hpp"
#include "tests/fuzz/laws.hpp"
#include "tests/fuzz/targets.hpp"
#include "validate/analysis/difference.hpp"
#include "validate/measured/measured.hpp"
#include "validate/measured/training_figures.hpp"
#include "validate/results/column_names.hpp"
#include "validate/results/results.hpp"
#include "validate/results/written_rows.hpp"
#include "validate/score/score_limits.hpp"

namespace ringsim::fuzz {

namespace {

/// The line with the key that its other values ask for: no fuzzer finds a hash. As it is if it lacks any of them.
std::string with_its_key(std::string_view line) {
  try {
    Json row = parse_json(line, "line");
    if (!row.contains("key")) return std::string(line);
    const auto member = [](const Json& json, const char* key) {
      return json.is_object() ? json.value(key, Json()) : Json();
    };
    const Json program = member(member(row, "ringsim"), "version"),
               model = member(member(row, "ringsim"), "model_version");
    const Json name = member(member(row, "scenario"), "name"), hash = member(member(row, "scenario"), "hash");
    const Json point = member(row, "point");
    if (!program.is_string() || !model.is_number_integer() || !name.is_string() || !hash.is_string())
      return std::string(line);
    PointId id{.hash = hash.get<std::string>(), .varied = {}};
    if (point.is_object())
      for (const auto& [path, value] : point.items()) id.varied.emplace_back(path, value.dump());
    row["key"] = result_key(program.get<std::string>(), model.get<std::int64_t>(), name.get<std::string>(), id, false);
    return json_text(row);
  } catch (const InputError&) {
    return std::string(line);
  }
}

std::string with_their_keys(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    out += with_its_key(text.substr(0, end));
    if (end == std::string_view::npos) break;
    out += '\n';
    text.remove_prefix(end + 1);
  }
  return out;
}

/// What plots, tables and --assert ask of a row.
void check_row(const ResultRow& row) {
  law(row.failed() || row.time_us() >= 0, "a result has a time");
  row.error();
  row.label();
  row.point();
  for (const Cell& cell : row.cells) {
    const std::optional<ExpressionValue> value = row.value(cell.column);
    law(value.has_value(), "a cell is found by its column");
  }
}

/// The rows as CSV, which is read again.
void check_rows(const std::vector<ResultRow>& rows) {
  std::vector<std::string> columns{"scenario.name"};
  for (const ResultRow& row : rows) {
    check_row(row);
    see_columns(row, columns);
  }
  std::string csv = csv_line(columns);
  for (const ResultRow& row : rows) csv += csv_line(fields_of(row, columns));
  law(rows_of_csv(csv, "again.csv").size() == rows.size(), "results that were written as CSV are read again");
}

}  // namespace

bool read_measured_rows(std::string_view text) {
  const ComparedWith eight{.ops = {CollectiveOp::all_reduce}, .ranks = {8}};
  const auto read = [&](std::optional<CollectiveOp> collective, std::optional<int> run,
                        const std::optional<ComparedWith>& with) {
    return reads_or_refuses([&] {
      const MeasuredTable table = MeasuredFile(text, "measured", collective).table(run, with);
      law(!table.rows.empty(), "a table that was read has rows");
      for (const MeasuredRow& row : table.rows) {
        law(row.time_us > 0 && std::isfinite(row.time_us), "a measured time is above 0 and finite");
        law(row.bytes.count >= 0, "a size is not negative");
        law(!with || row.op == CollectiveOp::all_reduce, "rows are of the scenario's collective");
        for (const std::optional<double>& other : {row.in_place_us, row.time_min_us, row.time_max_us})
          law(!other || (*other >= 0 && std::isfinite(*other)), "other times are not negative, and finite");
      }
    });
  };
  bool any = read(std::nullopt, std::nullopt, std::nullopt);
  any = read(CollectiveOp::all_reduce, std::nullopt, std::nullopt) || any;
  any = read(std::nullopt, std::nullopt, eight) || any;
  return read(std::nullopt, 2, eight) || any;
}

bool read_training_rows(std::string_view text) {
  return reads_or_refuses([&] {
    for (const TrainingFigure& row : parse_training_rows(text, "published.csv")) {
      law(row.gpus >= 1 && row.batch >= 0, "counts are not negative");
      law(std::isfinite(row.value), "a figure is finite");
    }
  });
}

bool read_training_map(std::string_view text) {
  return reads_or_refuses([&] {
    const TrainingMap map = parse_training_map(text, "mapping.json");
    for (const TrainingMachine& machine : map.machines) law(!machine.words.empty(), "a machine is found by words");
    for (const TrainingWay& way : map.ways) law(!way.words.empty(), "a way of training is found by words");
  });
}

bool read_limits_file(std::string_view text) {
  return reads_or_refuses([&] {
    const std::vector<ScoreLimit> limits = read_score_limits(text, "limits.json");
    const std::string written = to_json(limits);
    const std::vector<ScoreLimit> again = read_score_limits(written, "again.json");
    law(again.size() == limits.size(), "limits that were written are read again");
    law(to_json(again) == written, "limits are written in one way");
  });
}

bool read_result_lines(std::string_view text) {
  const std::string lines = with_their_keys(text);
  return reads_or_refuses([&] {
    const MemoryFile file(lines);
    const MergedResults merged({file.path()});
    std::vector<ResultRow> rows;
    merged.each([&](const ResultRow& row) { rows.push_back(row); });
    law(rows.size() == merged.size(), "every row is there");
    merged.columns(ColumnsFor::csv);
    check_rows(rows);
    std::string written;
    merged.each_line([&](const std::string& line) { written += line; });
    const MemoryFile again(written);
    law(MergedResults({again.path(), file.path()}).size() == merged.size(), "results are merged once and for all");
  });
}

bool read_result_csv(std::string_view text) {
  return reads_or_refuses([&] {
    for (const ResultRow& row : rows_of_csv(text, "results.csv")) check_row(row);
  });
}

bool read_result_document(std::string_view text) {
  return reads_or_refuses([&] { check_rows(rows_of_document(text, "results.json")); });
}

bool read_explained_run(std::string_view text) {
  is_result_text(text);
  return reads_or_refuses([&] {
    const ExplainedRun run = read_explained(text, "run.json");
    law(run.time >= Picoseconds{0}, "a time is not negative");
    law(input_changes(run, run).empty(), "a run differs in nothing from itself");
    if (run.parts) law(part_changes(run, run).empty(), "a run takes as long as itself");
  });
}

}  // namespace ringsim::fuzz
