// What was fitted to measurements, apart from the machine's published figures.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"
#include "topologies/machines/scale_links.hpp"

namespace ringsim {

/// Few factors, each with a name; the defaults change nothing.
struct Calibration {
  Picoseconds launch{0};  ///< added to each collective's time, on top of what protocol or `transport.launch` say
  LinkScales links;
  ClassScales classes;  ///< `scale_*`: what is asked, not what was fitted; on top of the rest
  double compute = 1;   ///< `scale_compute`, the same: how many times as fast GPUs compute; training has it already
};

/// "launch 5 us, latency_scale 1.2, efficiency_inside 0.9": what changes something; "nothing" if nothing does.
std::string to_string(const Calibration& calibration);

/// A file of `ringsim calibrate`: {"factors": {"launch": "5 us", ...}} and where they come from, which is not looked at
/// but for the model's version: another one than this program's is a warning. `path` is for errors. Throws InputError
/// for what is no such file.
Calibration read_calibration(std::string_view text, const std::string& path, std::vector<std::string>& warnings);

}  // namespace ringsim
