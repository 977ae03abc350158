// Which columns a file has, which names --assert knows, and the page that describes them all.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ringsim {

enum class ColumnsFor { csv, database };
/// The columns of a file, in order: those that every row has, and of `seen` those that some rows have. Names are flat:
/// "closed_form.ratio", "point.topology.nodes". Names that no column has come last (the error of a failed point).
std::vector<std::string> columns_for(ColumnsFor format, std::span<const std::string> seen);

/// What a row of a sweep may have, apart from what varies: the names that --assert knows. `compared`: those of commands
/// that compare with measured times as well.
std::vector<std::string> column_names(bool compared = false);

/// What to write instead of a name that is neither in `columns` nor in `varied`, the paths that vary (with or without
/// "point."); nothing if the name is right.
std::optional<std::string> hint_of_unknown(const std::string& name, const std::vector<std::string>& columns,
                                           const std::vector<std::string>& varied);

/// docs/results/columns.md: every column with its unit and meaning.
std::string columns_page();

}  // namespace ringsim
