// What happens in a run over time, as tracks with slices: for pictures and for the viewers of --trace.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/predict/explain.hpp"
#include "scenarios/predict/programs_run.hpp"
#include "scenarios/predict/route_use.hpp"
#include "sim/run/link_use.hpp"
#include "sim/run/run.hpp"
#include "sim/run/timeline.hpp"

namespace ringsim {

/// Which part of a run is traced. If both ranks and links are chosen, a message must satisfy both.
struct TraceFilter {
  std::vector<Actor> ranks;               ///< messages from or to them, and what they compute; empty: all
  bool critical_rank = false;             ///< only the rank that is on the critical path for longest; `ranks` is empty
  std::vector<std::string> links;         ///< "FROM -> TO", or a node: messages over such links, and their utilization
  SimTime begin{}, end = SimTime::max();  ///< what overlaps this time
  /// Slices, ends of flows and samples; the viewers take a few seconds to open as many. What ends first is kept.
  std::size_t most_events = 1'000'000;
};

/// A finished trace. Slices of a track follow each other, or lie one within the other.
struct Trace {
  struct Process {
    std::string name;
  };
  struct Track {
    std::uint32_t process = 0;
    std::string name;
    bool is_counter = false;
  };
  struct Slice {
    std::uint32_t track = 0;
    SimTime begin{}, end{};
    std::string name;
    std::string_view category;   ///< "message", "task", "step", or the cause of a stretch of the critical path
    std::uint32_t flow = 0;      ///< of a message: equal at its two ends; 0: none
    bool flow_ends = false;      ///< at its receiver
    std::optional<Bytes> bytes;  ///< of a message
    std::optional<int> step;     ///< of a message: of the sender's lane, or of its lane in the call; from 0
    std::optional<Actor> actor;  ///< of the critical path: who sent the message, computed or waited
  };
  struct Sample {
    std::uint32_t track = 0;
    SimTime when{};
    double value = 0;  ///< percent
  };
  std::vector<Process> processes;
  std::vector<Track> tracks;
  /// By begin; at one moment those without length first, then the longer before the shorter.
  std::vector<Slice> slices;
  std::vector<Sample> samples;         ///< by time
  std::optional<Actor> critical_rank;  ///< if the filter asks for it: the lowest of several
  std::string left_out;                ///< what most_events left out, in words; empty: nothing
};

/// What is kept of a run besides its prediction: give it to PredictOptions.
struct Recording {
  std::optional<TraceFilter> filter;    ///< asks for `trace`
  std::optional<Picoseconds> use_step;  ///< asks for `use`: LinkUse's step
  bool keep_flows = false;              ///< asks for `flows`
  bool keep_streams = false;            ///< asks for `streams`; needs a program
  bool keep_kernels = false;            ///< asks for `calls` and `kernels`; needs a program

  Trace trace;
  /// What a link carried in each step of time.
  struct Use {
    LinkId id;
    std::string link, kind;  ///< its name and class
    Bandwidth bandwidth;
    std::vector<std::int64_t> bytes;  ///< [step]
  };
  std::vector<Use> use;  ///< links that carried anything
  /// All messages from one actor to another that take the same way.
  struct Flow {
    std::string from, to;  ///< "rank 3 (gpu3)"
    std::int64_t messages = 0;
    Bytes bytes;
    std::vector<std::pair<SimTime, SimTime>> when;  ///< when any of them was under way; ascending, none touch
    std::vector<LinkId> links;                      ///< ascending
  };
  /// Ascending by the numbers of the ends. Nothing if messages of a pair take turns on several ways (flow_spray), or
  /// links go down.
  std::optional<std::vector<Flow>> flows;
  /// A task of the last iteration; times count from the first that begins.
  struct StreamTask {
    SimTime begin{}, end{};
    std::string name;        ///< "backward conv1", "bucket 3"
    std::string kind;        ///< "communication", "exposed", or the first word of the name
    Picoseconds exposed{0};  ///< of communication: while the actor computes nothing
    bool operator==(const StreamTask&) const = default;
  };
  struct Stream {
    std::string name;  ///< "compute"; "exposed": what of communication nothing hides
    std::vector<StreamTask> tasks;
  };
  /// What some actors do, all the same at the same times.
  struct Streams {
    std::string who;  ///< the first of them: "rank 3 (gpu3)"
    int others = 0;
    std::vector<Stream> streams;  ///< those with a task that takes time
  };
  std::vector<Streams> streams;
  struct Traffic {
    Bytes sent, received;
  };
  /// A collective that the last iteration calls.
  struct Call {
    CollectiveOp op = CollectiveOp::all_reduce;
    Bytes bytes;                                      ///< as Collective::bytes
    Actor root = 0;                                   ///< in its group, if the operation has one
    std::vector<std::vector<ringsim::Actor>> groups;  ///< [group][member], each of which exchanges data of its own
    std::vector<std::vector<Traffic>> traffic;        ///< likewise, of sends and receives; empty: another operation
  };
  /// A task of the last iteration; times count from the first that begins. A call begins when its rank calls it and
  /// ends when the rank has its result; its launch is within. A rank's step begins when its iteration before has ended,
  /// or with its first kernel that is no call; calls that wait for other members before that begin there.
  struct Kernel {
    SimTime begin{}, end{};
    std::string name;
    ringsim::Stream stream = 0;
    Program::StreamKind kind = Program::StreamKind::compute;
    int call = -1;  ///< index into `calls`; -1: none
  };
  std::vector<Call> calls;
  std::vector<std::vector<Kernel>> kernels;  ///< [actor] by begin; ranks come first
  Picoseconds step{0};                       ///< the length of the steps; the last one may be cut by `finish`
  SimTime finish{};
};

/// Bytes over what the link could have carried in that step.
double utilization(const Recording& recording, const Recording::Use& use, std::size_t step);

/// Listens to a run. All references must outlive it.
class Tracer {
 public:
  /// `actors`: their names. `ranks`: of the scenario's own collective, the first actors. `program`: nullptr for
  /// a collective. Throws InputError for a rank or a link that is not there, and for links that
  /// are chosen if the routes are not known beforehand.
  Tracer(const TraceFilter& filter, const Topology& topology, const RunOptions& options,
         std::vector<std::string> actors, int ranks, const ProgramsRun* program);

  void on_message(const Span& message);
  void on_compute(const ComputeEvent& event);   ///< of collectives
  void on_task(const ProgramsRun::Task& task);  ///< of programs

  /// When the run is over. `use`: of all links that carried anything.
  Trace finish(const Timeline& timeline, const Recording& use);

 private:
  struct Task {
    Actor actor = 0;
    Stream stream = 0;
    int iteration = 0;  // of a program
    SimTime begin{}, end{};
    std::string name;
  };
  bool is_wanted(Actor actor) const { return wanted_ranks_.empty() || wanted_ranks_[static_cast<std::size_t>(actor)]; }
  bool overlaps(SimTime begin, SimTime end) const { return begin <= filter_.end && end >= filter_.begin; }
  bool has_room(std::size_t events, SimTime now);
  void keep_task(Task task);
  std::uint32_t add_process(const std::string& name);
  std::uint32_t add_track(std::uint32_t process, const std::string& name, bool is_counter = false);
  void add_path(const std::vector<PathElement>& path);
  void add_tasks(const std::vector<std::uint32_t>& own, std::uint32_t process);
  void add_messages(Actor actor, std::uint32_t process, const std::vector<std::uint32_t>& own, bool sends);
  void add_use(const Recording& recording);
  void keep_critical_rank(const Timeline& timeline);
  Trace::Slice slice_of(const PathElement& element) const;
  void say_left_out(const Timeline& timeline);

  const TraceFilter& filter_;
  const Topology& topology_;
  const RunOptions& options_;
  std::vector<std::string> actors_;
  int ranks_ = 0;
  const ProgramsRun* program_;
  std::vector<bool> wanted_ranks_;  // empty: all
  std::vector<bool> wanted_links_;  // empty: all
  std::optional<RouteUse> routes_;  // if links are chosen
  std::vector<Span> messages_;
  std::vector<Task> tasks_;
  std::map<std::pair<Actor, Lane>, SimTime> computing_;
  std::size_t events_ = 0, messages_left_out_ = 0;
  std::optional<SimTime> cut_;  // where the events ran out
  Trace trace_;
};

}  // namespace ringsim
