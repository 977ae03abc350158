// Rows of results as `run` and `merge` write them for other programs, CSV or one JSON document, read back from text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/results/results.hpp"

namespace ringsim {

/// For errors: the commands that write such files.
inline constexpr const char* how_rows_are_written =
    "`ringsim sweep -o FILE.jsonl` and `ringsim run --format csv -o FILE` write results";

/// The rows of CSV as `ringsim run --format csv` writes it (RFC 4180). `name`: what errors call it. Throws InputError
/// at `name`, or `name`:LINE.
std::vector<ResultRow> rows_of_csv(std::string_view text, const std::string& name);

/// The rows of a document as `ringsim run --format json` writes it. Throws InputError, of a row at `name`:NUMBER.
std::vector<ResultRow> rows_of_document(std::string_view text, const std::string& name);

}  // namespace ringsim
