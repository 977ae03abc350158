#include "validate/profiles/nsight_database.hpp"

#include <fmt/format.h>
#include <sqlite3.h>

#include <filesystem>
#include <new>
#include <system_error>

#include "sim/base/ascii.hpp"
#include "sim/base/error.hpp"

namespace ringsim::profiles {

namespace {

/// Size of a value or a row. The table of strings has the outputs of processes, so it is generous.
constexpr int most_value_bytes = 64 << 20;

/// A path as a URI (sqlite.org/uri.html); immutable: SQLite takes no lock and looks for no journal.
std::string uri_of(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    const bool is_plain =
        is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '/' || c == '.' || c == '-' || c == '_';
    if (is_plain)
      uri += c;
    else
      uri += fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  return uri + "?mode=ro&immutable=1";
}

using NsightStatement = std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)>;

}  // namespace

bool is_sqlite(std::string_view beginning) { return beginning.starts_with(std::string_view("SQLite format 3\0", 16)); }

std::optional<std::int64_t> NsightRow::whole(int column) const {
  if (sqlite3_column_type(statement_, column) != SQLITE_INTEGER) return std::nullopt;
  return sqlite3_column_int64(statement_, column);
}

bool NsightRow::is_null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }

std::string_view NsightRow::text(int column) const {
  const int type = sqlite3_column_type(statement_, column);
  if (type != SQLITE_TEXT && type != SQLITE_BLOB) return {};
  const void* bytes = sqlite3_column_blob(statement_, column);
  if (bytes == nullptr) return {};  // empty
  return {static_cast<const char*>(bytes), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void NsightDatabase::Close::operator()(sqlite3* database) const { sqlite3_close(database); }

NsightDatabase::NsightDatabase(const std::string& path) : path_(path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw InputError(path, "expected an SQLite database as a file, found a pipe or a device",
                     "give the name of the file");
  size_ = std::filesystem::file_size(path, error);
  sqlite3* opened = nullptr;
  const int result = sqlite3_open_v2(uri_of(path).c_str(), &opened, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  database_.reset(opened);
  if (opened == nullptr) throw std::bad_alloc();
  if (result != SQLITE_OK) fail_by_sqlite(path_);
  for (const auto& [option, value] : {std::pair{SQLITE_DBCONFIG_DEFENSIVE, 1},
                                      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                      {SQLITE_DBCONFIG_ENABLE_VIEW, 0},
                                      {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                      {SQLITE_DBCONFIG_DQS_DML, 0}})
    sqlite3_db_config(opened, option, value, nullptr);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, most_value_bytes);
  sqlite3_limit(opened, SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(opened, SQLITE_LIMIT_EXPR_DEPTH, 100);
  sqlite3_limit(opened, SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(opened, SQLITE_LIMIT_WORKER_THREADS, 0);
  for (const char* pragma : {"PRAGMA cell_size_check = ON", "PRAGMA mmap_size = 0"})
    if (sqlite3_exec(opened, pragma, nullptr, nullptr, nullptr) != SQLITE_OK) fail_by_sqlite(path_);
  columns_["sqlite_master"] = {"type", "name", "rootpage"};
  kinds_["sqlite_master"] = "table";
  std::map<std::string, std::string, std::less<>> found;
  each_row("sqlite_master", {"type", "name", "rootpage"}, [&](const NsightRow& row) {
    const std::string_view type = row.text(0);
    if (type != "table" && type != "view") return;
    // A virtual table has no pages of its own.
    const bool is_virtual = type == "table" && row.whole(2).value_or(0) <= 0;
    found.try_emplace(std::string(row.text(1)), is_virtual ? "virtual table" : std::string(type));
  });
  kinds_.merge(found);
}

void NsightDatabase::fail_by_sqlite(const std::string& place) const {
  const int code = sqlite3_errcode(database_.get()) & 0xff;
  // A damaged file may ask for more memory than there is: SQLITE_NOMEM is no reason to end.
  if (code == SQLITE_TOOBIG)
    throw InputError(place,
                     fmt::format("expected values of at most {} MiB, found a larger one", most_value_bytes >> 20),
                     export_again);
  // SQLite's text may have a name out of the file in it, of any length.
  constexpr std::size_t most_shown = 200;
  const std::string_view said = std::string_view(sqlite3_errmsg(database_.get())).substr(0, most_shown);
  throw InputError(place, fmt::format("expected an undamaged SQLite database, found: {}", said), export_again);
}

void NsightDatabase::fail(const char* table, std::uint64_t row, const std::string& message,
                          const std::string& hint) const {
  throw InputError(fmt::format("{}: table {}, row {}", path_, table, row), message, hint.empty() ? export_again : hint);
}

bool NsightDatabase::has(const char* table) {
  const auto found = kinds_.find(table);
  if (found == kinds_.end()) return false;
  if (found->second != "table")
    throw InputError(path_, fmt::format("expected {} as a table, found a {}", table, found->second), export_again);
  return true;
}

bool NsightDatabase::has(const char* table, const char* column) {
  return has(table) && columns_of(table).contains(column);
}

const std::set<std::string>& NsightDatabase::columns_of(const char* table) {
  const auto [known, is_new] = columns_.try_emplace(table);
  if (!is_new) return known->second;
  sqlite3_stmt* prepared = nullptr;
  const std::string place = fmt::format("{}: table {}", path_, table);
  const int result = sqlite3_prepare_v2(database_.get(), fmt::format("PRAGMA table_xinfo(\"{}\")", table).c_str(), -1,
                                        &prepared, nullptr);
  const NsightStatement statement(prepared, &sqlite3_finalize);
  if (result != SQLITE_OK) fail_by_sqlite(place);
  constexpr int name_column = 1, hidden_column = 6;  // sqlite.org/pragma.html#pragma_table_xinfo
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(prepared)) == SQLITE_ROW) {
    // A hidden or generated column has an expression of the file's.
    if (sqlite3_column_int(prepared, hidden_column) != 0) continue;
    known->second.emplace(NsightRow(prepared, 0).text(name_column));
  }
  if (step != SQLITE_DONE) fail_by_sqlite(place);
  return known->second;
}

void NsightDatabase::each_row(const char* table, const std::vector<const char*>& columns,
                              const std::function<void(const NsightRow&)>& f) {
  if (!has(table)) return;
  const std::set<std::string>& there = columns_of(table);
  std::string list;
  for (const char* column : columns) {
    if (!list.empty()) list += ", ";
    list += there.contains(column) ? fmt::format("\"{}\"", column) : "NULL";
  }
  if (list.empty()) list = "NULL";
  sqlite3_stmt* prepared = nullptr;
  const std::string sql = fmt::format("SELECT {} FROM \"{}\" NOT INDEXED", list, table);
  const int result = sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &prepared, nullptr);
  const NsightStatement statement(prepared, &sqlite3_finalize);
  if (result != SQLITE_OK) fail_by_sqlite(fmt::format("{}: table {}", path_, table));
  std::uint64_t number = 0;
  int step = SQLITE_ROW;
  while ((step = sqlite3_step(prepared)) == SQLITE_ROW) {
    // Pages that point at each other give rows without end.
    if (++number > size_) fail(table, number, "expected fewer rows than bytes in the file, found more");
    f(NsightRow(prepared, number));
  }
  if (step != SQLITE_DONE) fail_by_sqlite(fmt::format("{}: table {}, row {}", path_, table, number + 1));
}

}  // namespace ringsim::profiles
