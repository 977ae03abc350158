// The critical path of a run in words: its parts by cause and class of links, and its chain folded into a few lines.
#pragma once

#include <cstddef>
#include <functional>
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

/// What a stretch of the path is in a program: of which task, and why it took time.
struct PathTask {
  std::string kind;   ///< "forward", "bucket 3", "update": the first word of a task's name, or the name of its call
  std::string name;   ///< "forward conv1", "bucket 3"
  std::string cause;  ///< to_string(PathCause), or "launch" (of a call), "host" (what a CPU thread does)
  int step = 0;       ///< within a call
};

/// The part of a program's run that is explained: its iterations after the warm-up.
struct ProgramPath {
  SimTime begin{}, end{};  ///< of them all
  SimTime last_begin{};    ///< of the last one, whose chain is shown
  std::function<PathTask(const PathElement&)> task_of;
};

/// What one cause, or one group of like links, adds to the time. Like: the same name but for its numbers.
struct ExplainedPart {
  std::string cause;         ///< to_string(PathCause), "launch", "own pass", or as PathTask::cause
  std::string task;          ///< of a program: PathTask::kind
  std::string longest_task;  ///< then: the one task that took longest
  Picoseconds task_time{0};  ///< and how long
  std::string kind;          ///< class of the links (to_string(LinkClass)); empty for other causes
  std::string link;          ///< the one that held the path longest
  std::string links;         ///< "node*.nic* -> leaf*"
  int n_links = 0;           ///< of them on the path
  Picoseconds time{0};
  Picoseconds link_time{0};            ///< of `link`
  std::string fault;                   ///< what a fault does to `link`
  std::optional<Actor> rank;           ///< of late, slow, jitter: the rank that the path waited for longest
  std::optional<LinkSharing> sharing;  ///< of `link`, during its longest stretch; nothing if that is not known
};

/// A few stretches of the path in a row that are alike, as one line; `times` such lines in turn, if the path
/// repeats.
struct ExplainedLine {
  SimTime begin{}, end{};  ///< from the first to the last of them
  std::string cause, task, kind, links;
  std::string first_task, last_task;  ///< of a program: names
  int first_step = 0, last_step = 0;
  std::string ranks;                            ///< "rank k -> rank k+1", "rank 3 -> rank 7", "5 pairs of ranks"
  std::size_t messages = 0;                     ///< or waits
  std::size_t times = 1;                        ///< how often the lines of its group repeat
  std::size_t group = 0;                        ///< lines of one group repeat together
  Picoseconds busy{0}, staging{0}, latency{0};  ///< of other causes than messages: all of it in `busy`
  Picoseconds time() const { return busy + staging + latency; }
};

/// One task of a program: what the path spent in it.
struct ExplainedTask {
  std::string name;
  Picoseconds time{0};
};

struct Explanation {
  std::vector<ExplainedPart> parts;  ///< the longest first; they sum to the time of the prediction, exactly
  std::vector<ExplainedLine> lines;  ///< in order of time; of a program those of its last iteration
  std::vector<ExplainedTask> tasks;  ///< of a program, in the order in which the path meets them; they sum to the time
  std::size_t n_elements = 0;        ///< of the path that the lines show
  std::vector<std::string> kinds;    ///< classes of links that carried anything in the run, in the order of LinkClass
};

/// What a collective takes besides the steps of its schedule.
struct TimeOffSteps {
  Picoseconds launch{0};    ///< launch_of()
  Picoseconds own_pass{0};  ///< own_pass_of()
};

/// `path`: of the collective, whose ranks began at `start`; `off_steps`: what came before its first step and after its
/// last. `timeline`: of the run, whose messages tell who shared links; those that were not recorded tell nothing.
/// `placement`: [actor]. Ensures that the parts sum to `time`. `program`: of a program, whose `time` is the mean of its
/// iterations; if they differ, each part is its mean, rounded so that the sum stays. nullptr: of a collective.
Explanation explanation_of(const Topology& topology, const std::vector<PathElement>& path, const Timeline& timeline,
                           const RunOptions& options, int ranks, Picoseconds start, const TimeOffSteps& off_steps,
                           Picoseconds time, const ProgramPath* program = nullptr);

}  // namespace ringsim
