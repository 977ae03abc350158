#include "tools/formats/stored_rows.hpp"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <set>
#include <utility>

#include "scenarios/decoder/files.hpp"
#include "sim/base/error.hpp"
#include "tools/output/output.hpp"
#include "validate/results/written_rows.hpp"

namespace ringsim::tools {

static constexpr std::string_view csv_head = "scenario.name,";

StoredAs stored_as(const std::string& path) {
  std::string begin(64, '\0');
  std::ifstream in(path, std::ios::binary);
  in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<std::size_t>(in.gcount()));
  if (begin.starts_with(csv_head)) return StoredAs::csv;
  if (begin.starts_with("{\n")) return StoredAs::document;
  return begin.empty() || begin.starts_with('{') ? StoredAs::lines : StoredAs::other;
}

std::vector<ResultRow> stored_rows(const std::string& path) {
  const StoredAs format = stored_as(path);
  std::vector<ResultRow> rows;
  if (format == StoredAs::csv) {
    rows = rows_of_csv(scenarios::read_text(path, "a results file"), path);
  } else if (format == StoredAs::document) {
    rows = rows_of_document(scenarios::read_text(path, "a results file"), path);
  } else if (format == StoredAs::lines) {
    const FileEnd end =
        read_results(path, [&](ResultRow&& row, std::string_view, const RowPlace&) { rows.push_back(std::move(row)); });
    if (end.torn) warn(path + ": the last line is incomplete and was ignored");
  } else {
    throw InputError(path, "expected results of ringsim as JSON lines, JSON or CSV, found other text",
                     how_rows_are_written);
  }
  if (rows.empty()) throw InputError(path, "expected results of ringsim, found none", how_rows_are_written);
  return rows;
}

std::vector<ResultRow> stored_rows(const std::vector<std::string>& paths) {
  std::set<std::string> names;
  for (const std::string& path : paths) names.insert(std::filesystem::path(path).stem().string());
  std::vector<ResultRow> rows;
  for (const std::string& path : paths)
    for (ResultRow& row : stored_rows(path)) {
      if (paths.size() > 1) {
        const std::string name = names.size() == paths.size() ? std::filesystem::path(path).stem().string() : path;
        row.cells.insert(row.cells.begin(), {"file", name});
      }
      rows.push_back(std::move(row));
    }
  return rows;
}

}  // namespace ringsim::tools
