// What the streams of GPUs do in one iteration of a program: kernels, collectives, and what of them nothing hides.
#pragma once

#include <string>
#include <vector>

#include "scenarios/predict/trace.hpp"

namespace ringsim::tools {

/// A lane for each stream of at most 4 of them, those that differ. `alone`: a file of its own, with streams_notes()
/// below; else a part of a page. Requires one that does something.
std::string streams_svg(const std::vector<Recording::Streams>& all, const std::string& title, bool alone);
/// Sentences: which ranks do the same, which share of the step is exposed, how many are not drawn.
std::vector<std::string> streams_notes(const std::vector<Recording::Streams>& all);

}  // namespace ringsim::tools
