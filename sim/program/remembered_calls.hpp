// Calls of a program that repeat others: a course is simulated once, by itself, and taken again.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/program/alike_actors.hpp"
#include "sim/program/call_meetings.hpp"
#include "sim/program/lower.hpp"
#include "sim/run/courses.hpp"
#include "sim/run/fold_renamed.hpp"
#include "sim/run/run.hpp"
#include "sim/run/stand_ins.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

/// A call takes the course that it takes alone if, from its first use of a resource to its last, no other call uses
/// that resource: links, and devices that add, copy or keep channels, by when bytes moved; the slots of a connection,
/// from the first send to the receiver's end of the call; a device that posts messages, from the launch of the call to
/// its end there. Alone, it depends on its schedule, its plan, its members, its channels, and how long after each other
/// the members arrive. So calls that have all of it in common take one course, moved in time.
///
/// A run in which no call meets another on a resource, whose course was taken as known, is the whole run to the
/// picosecond: by induction over its events. Those that met are to be simulated in the next run, with all others as
/// known; the set only grows, so it ends.
///
/// Actors whose messages are alike as well (sim/program/program_stand_ins.hpp) are simulated as one, in all runs. If
/// there are none, or the path is recorded, actors that are alike (sim/program/alike_actors.hpp) are run as one: the
/// others have only calls that met, which are simulated with all of their members. Both ways times equal those of the
/// whole run to rounding, as is said there.
///
/// A helper (a switch, a server) that arrives before all ranks, and sends nothing before they do, is taken to arrive a
/// picosecond before the first of them.
///
/// A call by itself is simulated with one channel for all if renaming its members turns channels into each other
/// (sim/run/fold_renamed.hpp), and those that are images of each other arrive together.
///
/// Equal to the whole run are times, what crossed links, and what held the run back, but for one thing: of several like
/// links Bottleneck::resource may be another one than the whole run names, if none of them did so most of the time. And
/// what happens at one instant may happen in another order, which decides which of several equally long paths is the
/// critical one, and sometimes the last bit of a rate (3 of 1500 random programs had ends that differed by 1 ps).
class RememberedCalls final : public Courses {
 public:
  /// `options`: of the run; those of run_remembering(). The topology must outlive it.
  RememberedCalls(const Topology& topology, const RunOptions& options, const LoweredProgram& whole);

  /// For the next run. A call that is not known has met another.
  KnownCourses known() const {
    return {.calls = is_known_, .stand_ins = alike_.stand_ins(), .have_no_steps = stand_ins_ != nullptr};
  }
  /// RunOptions::stand_ins of all runs.
  const StandIns* stand_ins() const { return stand_ins_.get(); }
  /// True if some call is not known.
  bool simulates_some() const;
  /// A run begins of the program, lowered with known().
  void begin(const LoweredProgram& lowered);
  /// True if in the run that has ended some known call met another: the run is void, and that call is known() no more.
  bool have_met() const { return n_met_ > 0; }
  /// After such a run: other calls of a kind that met are likely to meet in the next one. Those that are few messages
  /// are known() no more. More of them than need be cost time, and change no result.
  void expect_more_meetings();
  /// No call is known() any more, as hardly any is worth it.
  void simulate_all();
  /// The messages that known() calls moved in the run that has ended.
  std::int64_t transfers_of_known() const;
  /// About how many of so many messages are simulated: as many of them as of the actors.
  std::int64_t simulated_of(std::int64_t transfers) const;
  /// The messages of courses that were simulated for it, with those that were stood for.
  std::int64_t transfers_alone() const { return transfers_alone_; }

  /// Thrown out of a run: hardly any call repeats another, as if each rank took a time of its own for each task.
  struct NotWorthIt {};
  /// Thrown out of a run, which is void: actors that were taken to be alike are not, and are so no more.
  struct Split {};

  const std::vector<End>& begins(Actor actor, Lane lane, int step, SimTime now) override;
  /// Give it to RunOptions::on_compute, if some calls are simulated.
  void on_compute(const ComputeEvent& event);
  /// Give it to RunOptions::on_message of all runs by stand_ins().
  void on_message(const Span& message);
  /// Give it to RunOptions::on_traffic then.
  void on_traffic(const Traffic& traffic) { meetings_.crossed(traffic); }

  /// Adds what the known calls moved to the timeline of the run.
  void add_to(Timeline& timeline);
  /// A recorded path, as that of a run of `whole`, the program without known courses: known calls on it are simulated
  /// once more, with their elements.
  std::vector<PathElement> expanded(const std::vector<PathElement>& path, const LoweredProgram& whole) const;
  /// [actor] what it sent and received by them, after add_to(); by stand_ins() in all calls.
  const std::vector<Bytes>& sent_by() const { return sent_by_; }
  const std::vector<Bytes>& received_by() const { return received_by_; }

  /// Calls of all iterations: courses that were simulated by themselves, uses of a known one, calls in the run itself.
  struct Counts {
    std::int64_t simulated = 0, remembered = 0, met = 0;
    int stand_ins = 0;  ///< ranks that stood for all; 0: each stood for itself
  };
  Counts counts() const;

 private:
  struct Course {
    struct Member {
      Picoseconds end{0};  // after the first arrival, as all times of a course
      Actor since = 0;     // as Courses::End's
      Trail way;
      Bytes sent, received;
      bool posts = false;
    };
    std::vector<Member> members;
    CallUses uses;
    std::vector<std::pair<LinkId, Bytes>> link_bytes;
    std::vector<std::pair<LinkId, double>> link_rests;
    int call = 0;                       // one that takes it
    std::vector<Picoseconds> arrivals;  // of members
    std::int64_t transfers = 0, events = 0;
    Bytes bytes;
    bool has_choice = false;
    bool is_usable = true;     // false: a helper that was taken to arrive later than it does mattered before
    bool is_alike = false;     // members that are alike end at one moment
    std::int64_t n_taken = 0;  // in the present run
  };
  struct Taken {  // by a call in an iteration; kept if the path is recorded
    const Course* course = nullptr;
    SimTime base{};
  };
  /// By course, by actor: the path to its end, from the first arrival on.
  using Paths = std::map<const Course*, std::map<Actor, std::vector<PathElement>>>;
  struct Open {                     // a known call that some members have begun
    std::vector<SimTime> arrivals;  // [class of members]
    int n_arrived = 0;
    SimTime first = SimTime::max();  // of its ranks
  };
  struct OpenSimulated {        // another, which some members may call again before all have ended
    SimTime first{};            // its first launch
    std::vector<SimTime> ends;  // [number of a member]
    int n_ended = 0;
  };
  struct Members {
    std::vector<Actor> actors;     // [number]
    std::vector<int> numbers;      // [actor] -1: it is none
    std::vector<int> class_of;     // [number] those that are alike, in the present run
    std::vector<Actor> stand_ins;  // [class]
  };

  using FirstSends = std::map<std::pair<Actor, Actor>, SimTime>;  // by sender and receiver

  Course& course_of(int call, Stream stream, const std::vector<Picoseconds>& arrivals, Picoseconds first_rank);
  Course simulated_alone(int call, Stream stream, std::vector<Picoseconds> arrivals, Picoseconds first_rank);
  int kind_of(int call, Stream stream);
  void take_from_stand_ins(const Members& members, Course& course) const;
  const ChannelRenaming* renaming_of(int call, Stream stream, const std::vector<Picoseconds>& arrivals);
  void take_from_names(const ChannelRenaming& renaming, Course& course) const;
  static FirstSends with_images(const FirstSends& sends, const ChannelRenaming& renaming, const Members& members);
  Actor simulated(Actor actor) const { return stand_ins_ ? stand_ins_->actor(actor) : actor; }
  void group_members();
  void expect_alike(int call, const std::vector<SimTime>& ends);
  Paths paths_within(const std::vector<PathElement>& path) const;
  const Taken& taken_by(const PathElement& element) const;
  void meets(int call);
  SimTime horizon() const;
  const Members& members_of(int call) const {
    return members_[static_cast<std::size_t>(members_id_[static_cast<std::size_t>(call)])];
  }
  int number_of(int call, Actor actor) const { return members_of(call).numbers[static_cast<std::size_t>(actor)]; }

  const Topology& topology_;
  RunOptions alone_;  // of a call by itself
  bool runs_ahead_, has_posts_, records_path_;
  std::shared_ptr<const StandIns> stand_ins_;  // none: messages of all members are simulated
  AlikeActors alike_;
  CallMeetings meetings_;
  const LoweredProgram* lowered_ = nullptr;
  std::vector<bool> is_known_;                // [call]
  std::vector<bool> in_run_;                  // [call] in the present run
  std::vector<int> members_id_;               // [call]
  std::vector<Members> members_;              // [id]
  std::vector<int> kind_of_;                  // [call] as kinds_of_calls()
  std::map<std::pair<int, int>, int> kinds_;  // by that and the first channel
  std::map<std::pair<int, std::vector<Picoseconds>>, std::unique_ptr<Course>> courses_;  // by kind and class arrivals
  std::map<int, std::optional<ChannelRenaming>> renamings_;  // by kind; of calls whose members all do all of it

  // Of the present run.
  SimTime now_{};
  std::int64_t n_met_ = 0, n_taken_ = 0, n_alone_ = 0, transfers_alone_ = 0;
  std::vector<std::int64_t> transfers_of_;                       // [call]
  std::map<std::pair<int, int>, Taken> taken_;                   // by call and iteration
  std::vector<Open> open_;                                       // [call]
  std::vector<int> begun_;                                       // known calls that are open
  std::map<std::pair<int, int>, OpenSimulated> simulated_open_;  // by call and iteration
  std::vector<Bytes> sent_by_, received_by_;
  std::vector<End> ends_;
};

/// Why calls of a run cannot be remembered; empty: they can.
std::string why_not_remembered(const RunOptions& options);

/// A run in which calls were remembered.
struct RememberedRun {
  Timeline timeline;
  /// [actor] by the calls that were remembered; if actors stood for others by all calls, of which options.on_message
  /// heard nothing.
  std::vector<Bytes> sent_by, received_by;
  RememberedCalls::Counts calls;
};

/// run() of the program, whose actors all have a place in `options`, with calls that repeat each other simulated once;
/// nothing if that is impossible or does not pay. If calls that repeat each other do not pay, but some actors stand for
/// others, all calls are simulated, by those. `room`: as LoweredProgram's. `begins`: called before each run, with
/// the program whose steps options.on_compute hears from then on; what it heard before is void, even if nothing is
/// returned. Throws what run() throws: TooManyMessages if the calls that have met move more than options.most_messages.
std::optional<RememberedRun> run_remembering(
    const Topology& topology, const CheckedProgram& program, int room, const RunOptions& options,
    const std::function<void(const std::shared_ptr<const LoweredProgram>&)>& begins);

}  // namespace ringsim
