// The SQLite file that `nsys export --type sqlite` writes, opened so that nothing in it can do anything.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

struct sqlite3;
struct sqlite3_stmt;

namespace ringsim::profiles {

/// True for the first bytes of any SQLite database.
bool is_sqlite(std::string_view beginning);

/// The row that each_row() is at.
class NsightRow {
 public:
  NsightRow(sqlite3_stmt* statement, std::uint64_t number) : statement_(statement), number_(number) {}

  std::uint64_t number() const { return number_; }  ///< from 1
  /// A whole number; nothing if the value is NULL, of another type, or the table lacks the column.
  std::optional<std::int64_t> whole(int column) const;
  bool is_null(int column) const;
  /// Text or a blob, until the next row; empty for all else.
  std::string_view text(int column) const;

 private:
  sqlite3_stmt* statement_;
  std::uint64_t number_;
};

/// Read-only and immutable: no lock, no journal. The schema is not trusted: no views, no triggers, no virtual tables,
/// no attached files. Only tables that are asked for are read, each from its first row to its last.
class NsightDatabase {
 public:
  /// Throws InputError if it is no database, damaged, or no file (a pipe).
  explicit NsightDatabase(const std::string& path);

  /// Nsight Systems makes a table when its first row comes, so any may be missing. Throws InputError if it is there as
  /// a view or a virtual table.
  bool has(const char* table);
  bool has(const char* table, const char* column);

  /// Calls f for each row, with the values of `columns` in that order; columns that the table lacks are NULL, as names
  /// differ by version. Does nothing if there is no such table. Throws InputError that names table and row if the file
  /// is damaged.
  void each_row(const char* table, const std::vector<const char*>& columns,
                const std::function<void(const NsightRow&)>& f);

  /// Fails at a row: "FILE: table NVTX_EVENTS, row 7: ...".
  [[noreturn]] void fail(const char* table, std::uint64_t row, const std::string& message,
                         const std::string& hint = "") const;

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  [[noreturn]] void fail_by_sqlite(const std::string& place) const;
  const std::set<std::string>& columns_of(const char* table);

  std::string path_;
  std::uint64_t size_ = 0;  // bytes: no table has more rows
  std::unique_ptr<sqlite3, Close> database_;
  std::map<std::string, std::string, std::less<>> kinds_;  // by name: "table", "view" or another type of the schema
  std::map<std::string, std::set<std::string>, std::less<>> columns_;
};

/// Hint of errors about damaged files.
inline constexpr const char* export_again =
    "export the report again with nsys export --type sqlite --include-blobs=true REPORT.nsys-rep";

}  // namespace ringsim::profiles
