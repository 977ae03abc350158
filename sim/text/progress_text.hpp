// How far long work is, in words.
#pragma once

#include <string>

#include "sim/base/units.hpp"

namespace ringsim {

/// "90 s", "12 min", "5.5 h".
std::string rough_duration(double seconds);

/// "12 MB", "5.5 GB", "160 GB".
std::string rough_size(Bytes size);

/// How far work of `parts` equal parts is after so many seconds: "2 of 10 done, 25 %, about 90 s left". A forecast from
/// less than a thousandth waits until 10 s have passed: it is rough, but tells hours from minutes.
std::string progress_text(double elapsed_seconds, double done, double parts);

}  // namespace ringsim
