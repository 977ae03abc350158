// Quantities as text: "64 MiB", "25 GB/s", "1.3 us". One spelling for scenarios, presets, tables and errors.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/units.hpp"

namespace ringsim {

/// Reads a size: B kB MB GB TB (decimal), KiB MiB GiB TiB (binary); a space is optional, fractions are allowed if
/// they come out at whole bytes. Throws InputError (with an empty `where`) naming what was expected and found.
Bytes parse_bytes(std::string_view text);

/// Reads a rate: a size per second ("25 GB/s", "10 MiB/s") or bits per second (b/s kb/s Mb/s Gb/s Tb/s).
/// The result must be a whole number of bytes per second, at least 1.
Bandwidth parse_bandwidth(std::string_view text);

/// Reads a length of time: ps ns us ms s; at most 106 days, and a whole number of picoseconds. 0 needs a unit too.
Picoseconds parse_time(std::string_view text);

/// The shortest exact text in one unit: "64 MiB", "1000003 B". Reads back to the same value.
std::string format(Bytes size);
/// "25 GB/s", "12.5 GB/s". Reads back to the same value.
std::string format(Bandwidth rate);
/// "1.3 us", "187904819200 ps" only if no larger unit is exact with up to 6 decimals. Reads back to the same value.
std::string format(Picoseconds time);

}  // namespace ringsim
