// What the streams of GPUs do in one iteration of a program: kernels, collectives, and what of them nothing hides.
#pragma once

#include <string>
#include <vector>

#include "scenarios/predict/trace.hpp"

namespace ringsim::tools {

/// A file of its own: a lane for each stream of at most 4 of them, those that differ. Requires one that does something.
std::string streams_svg(const std::vector<Recording::Streams>& all, const std::string& title);

}  // namespace ringsim::tools
