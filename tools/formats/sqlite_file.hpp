// Results as a table of an SQLite database.
#pragma once

#include <string>

#include "validate/results/results.hpp"

namespace ringsim::tools {

/// Writes the table `results`: a column for each of the rows' columns, values of the rows' types, nothing if a row
/// has none; `key` is indexed. What stood at `path` is replaced when all is written. Throws EnvironmentError if that
/// fails.
void write_sqlite(const MergedResults& rows, const std::string& path);

}  // namespace ringsim::tools
