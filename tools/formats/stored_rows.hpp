// Results that were written to files before, in any format that programs read.
#pragma once

#include <string>
#include <vector>

#include "validate/results/results.hpp"

namespace ringsim::tools {

/// The format of a file of results, as its first bytes tell. A file that is not there counts as lines: reading it says
/// so.
enum class StoredAs { lines, document, csv, other };
StoredAs stored_as(const std::string& path);

/// The rows of JSON lines (`sweep`, `run --format jsonl`), of a JSON document (`run --format json`) or of CSV (`run`,
/// `merge`): the text tells which. Warns of a last line that is torn. Throws InputError at FILE or FILE:LINE if it
/// cannot be read or is no result of ringsim.
std::vector<ResultRow> stored_rows(const std::string& path);

/// The rows of several files. If there is more than one, each row has a column `file`: its name without folder and
/// ending, or the whole path if names repeat.
std::vector<ResultRow> stored_rows(const std::vector<std::string>& paths);

}  // namespace ringsim::tools
