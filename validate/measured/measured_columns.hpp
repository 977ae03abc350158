// The names of a table's columns, and their units. For sources alone.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "validate/measured/measured_detail.hpp"

namespace ringsim::measured {

enum class What {
  size,
  time,
  min,
  max,
  algbw,
  busbw,
  wrong,
  op,
  ranks,
  gpus_per_rank,
  is_in_place,
  type,
  redop,
  root,
  cycle,
  nothing
};

struct Column {
  What what{};
  bool in_place = false;
  double unit = 1;  ///< in bytes, us or GB/s
};

/// The kind of unit that a column has: size, time or algbw; `nothing`: it has none.
What unit_kind(What what);

/// The parts of a column's name.
struct ColumnName {
  std::optional<What> what;
  std::string name, unit;  ///< unit: empty, none
  bool in_place = false, has_place = false;
};

/// "size_KiB", "Time (us) Out-of-place", "algbw [GB/s]", "#wrong": name, unit and place.
ColumnName column_name(std::string_view text);
/// The meaning of a column that only files of rccl-tests have.
std::optional<What> rccl_column(std::string_view text);

/// The column's unit in bytes, us or GB/s; 1 if the column has none. `as_printed`: a missing unit is that of
/// nccl-tests' columns. Throws InputError if the unit is missing or unknown. `text`: the name as the file has it.
double unit_of(const ColumnName& name, const std::string& text, bool as_printed, const std::string& where);
/// The bytes of a unit after a number: "M" and "MiB" are 2^20, "MB" is 10^6. Nothing if it is unknown.
std::optional<double> size_unit(std::string_view unit);

}  // namespace ringsim::measured
