#include "tools/formats/sqlite_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "sim/base/error.hpp"
#include "tools/output/output.hpp"
#include "validate/results/column_names.hpp"

namespace ringsim::tools {

namespace {

using Database = std::unique_ptr<sqlite3, decltype(&sqlite3_close)>;
using Statement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

[[noreturn]] void fail(const std::string& path, sqlite3* database) {
  throw EnvironmentError(
      fmt::format("{}: cannot be written: {}", path, database == nullptr ? "out of memory" : sqlite3_errmsg(database)));
}

std::string quoted(const std::string& name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

void execute(const std::string& path, sqlite3* database, const std::string& sql) {
  if (sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail(path, database);
}

int bind(sqlite3_stmt* statement, int place, const Cell& cell) {
  if (const bool* truth = std::get_if<bool>(&cell.value)) return sqlite3_bind_int(statement, place, *truth ? 1 : 0);
  if (const auto* whole = std::get_if<std::int64_t>(&cell.value)) return sqlite3_bind_int64(statement, place, *whole);
  if (const auto* number = std::get_if<double>(&cell.value)) return sqlite3_bind_double(statement, place, *number);
  const auto& text = std::get<std::string>(cell.value);
  return sqlite3_bind_text64(statement, place, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}

void fill(const MergedResults& rows, const std::string& path, sqlite3* database) {
  const std::vector<std::string> columns = rows.columns(ColumnsFor::database);
  std::vector<std::string> names, marks;
  for (const std::string& column : columns) {
    // SQLite does not tell names apart by case alone; columns of ringsim never differ only so.
    names.push_back(quoted(column));
    marks.emplace_back("?");
  }
  execute(path, database, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN");
  execute(path, database, fmt::format("CREATE TABLE results ({})", fmt::join(names, ", ")));
  sqlite3_stmt* prepared = nullptr;
  const std::string insert = fmt::format("INSERT INTO results VALUES ({})", fmt::join(marks, ", "));
  if (sqlite3_prepare_v2(database, insert.c_str(), -1, &prepared, nullptr) != SQLITE_OK) fail(path, database);
  const Statement statement(prepared, &sqlite3_finalize);
  rows.each([&](const ResultRow& row) {
    sqlite3_reset(prepared);
    sqlite3_clear_bindings(prepared);
    std::size_t at = 0;
    for (const Cell& cell : row.cells) {
      while (columns[at] != cell.column) at = (at + 1) % columns.size();
      if (bind(prepared, static_cast<int>(at) + 1, cell) != SQLITE_OK) fail(path, database);
    }
    if (sqlite3_step(prepared) != SQLITE_DONE) fail(path, database);
  });
  execute(path, database, "CREATE INDEX results_key ON results (\"key\"); COMMIT");
}

}  // namespace

void write_sqlite(const MergedResults& rows, const std::string& path) {
  std::string part;
  const int reserved = open_part(path, part);
  if (reserved == -1) fail_to_write(path, errno);
  close(reserved);
  std::error_code ignored;
  try {
    sqlite3* opened = nullptr;
    const int result = sqlite3_open_v2(part.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
    Database database(opened, &sqlite3_close);
    if (result != SQLITE_OK) fail(path, opened);
    fill(rows, path, opened);
    database.reset();
    if (std::rename(part.c_str(), path.c_str()) != 0)
      throw EnvironmentError(path + ": cannot be written: its new version cannot replace it");
  } catch (...) {
    std::filesystem::remove(part, ignored);
    throw;
  }
}

}  // namespace ringsim::tools
