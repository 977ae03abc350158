// ringsim merge: the files of one sweep, or of several, as one.
#include <fmt/format.h>

#include <vector>

#include "sim/base/error.hpp"
#include "tools/commands/commands.hpp"
#include "tools/output/output.hpp"
#include "tools/output/sqlite_file.hpp"
#include "tools/sweep/sweep_file.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

int merge_command(const MergeArguments& arguments) {
  const std::string& path = arguments.output;
  const bool jsonl = path == "-" || path.ends_with(".jsonl"), csv = path.ends_with(".csv");
  if (!jsonl && !csv && !path.ends_with(".sqlite"))
    throw InputError("-o", fmt::format("expected a name that ends in .jsonl, .csv or .sqlite, found \"{}\"", path));
  if (has_writer(path))
    throw EnvironmentError(path + ": a sweep writes into it\n  hint: wait for it, or give another -o");
  for (const std::string& file : arguments.files)
    if (has_writer(file))
      say(fmt::format("ringsim: warning: {}: a sweep writes into it; taken is what it has so far\n", file));
  const MergedResults rows(arguments.files);
  for (const std::string& file : rows.torn_files())
    say(fmt::format("ringsim: warning: {}: the last line is not whole, and left out\n", file));
  if (rows.size() == 0) throw InputError(arguments.files.front(), "expected results, found none");
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

}  // namespace ringsim::tools
