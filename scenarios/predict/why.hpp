// The critical path of a run in words: its parts by cause and class of links, and its chain folded into a few lines.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.hpp"
#include "sim/base/units.hpp"
#include "sim/run/run.hpp"
#include "sim/run/timeline.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

std::string_view to_string(PathCause cause);  ///< "link", "latency", ...

/// The messages that were under way over a link while it set the speed of one of them.
struct LinkSharing {
  int messages = 0;          ///< others, without the one on the critical path
  std::vector<Actor> ranks;  ///< that sent them, ascending
};

/// What one cause, or one group of like links, adds to the time. Like: the same name but for its numbers.
struct WhyPart {
  std::string cause;  ///< to_string(PathCause), "launch" or "own pass"
  std::string kind;   ///< class of the links (to_string(LinkClass)); empty for other causes
  std::string link;   ///< the one that held the path longest
  std::string links;  ///< "node*.nic* -> leaf*"
  int n_links = 0;    ///< of them on the path
  Picoseconds time{0};
  Picoseconds link_time{0};            ///< of `link`
  std::string fault;                   ///< what a fault does to `link`
  std::optional<Actor> rank;           ///< of late, slow, jitter: the rank that the path waited for longest
  std::optional<LinkSharing> sharing;  ///< of `link`, during its longest stretch; nothing where that is not known
};

/// A few stretches of the path in a row that are alike, as one line; `times` such lines in turn, where the path
/// repeats.
struct WhyLine {
  SimTime begin{}, end{};  ///< from the first to the last of them
  std::string cause, kind, links;
  int first_step = 0, last_step = 0;
  std::string ranks;                            ///< "rank k -> rank k+1", "rank 3 -> rank 7", "5 pairs of ranks"
  std::size_t messages = 0;                     ///< or waits
  std::size_t times = 1;                        ///< how often the lines of its group repeat
  std::size_t group = 0;                        ///< lines of one group repeat together
  Picoseconds busy{0}, staging{0}, latency{0};  ///< of other causes than messages: all of it in `busy`
  Picoseconds time() const { return busy + staging + latency; }
};

struct Why {
  std::vector<WhyPart> parts;      ///< the longest first; they sum to the time of the prediction, exactly
  std::vector<WhyLine> lines;      ///< in order of time
  std::size_t n_elements = 0;      ///< of the path
  std::vector<std::string> kinds;  ///< classes of links that carried anything in the run, in the order of LinkClass
};

/// What a collective takes besides the steps of its schedule.
struct TimeOffSteps {
  Picoseconds launch{0};    ///< launch_of()
  Picoseconds own_pass{0};  ///< own_pass_of()
};

/// `path`: of the collective, whose ranks began at `start`; `off_steps`: what came before its first step and after its
/// last. `timeline`: of the run, whose messages tell who shared links; those that were not recorded tell nothing.
/// `placement`: [actor]. Ensures that the parts sum to `time`.
Why why_of(const Topology& topology, const std::vector<PathElement>& path, const Timeline& timeline,
           const RunOptions& options, int ranks, Picoseconds start, const TimeOffSteps& off_steps, Picoseconds time);

}  // namespace ringsim
