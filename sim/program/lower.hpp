// From a proved program to a schedule that run() takes. Lazy: a step is worked out when it is asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "sim/program/program.hpp"

namespace ringsim {

/// The schedule of a program without its proof, for those who prove it otherwise.
///
/// Stream s has as many lanes as the widest call on it; its tasks follow one another on the first. A task that computes
/// is one step. A call is a step that launches it (and waits for what it comes after), the steps of its schedule, and a
/// step that joins its lanes; its other lanes wait for the launch. So streams and their `after` need only the first
/// lanes. Regions are moved behind those of the calls before. Calls of different streams or plans have different
/// channels: those of the n pairs of a stream and a plan that occur lie channels_apart(n) from each other.
///
/// Memory: 4 bytes a lane, 8 bytes a chunk of all calls, and the steps of the tasks of one iteration for each kind of
/// actor (by role and by place in the calls); not the iterations, nor the messages.
/// Throws InputError if a lane would have more than 2^31 - 1 steps.
Schedule lowered(const Program& program);

inline constexpr int all_channels = 1 << 16;  ///< how many numbers of channels there are

/// How far apart the channels of n streams (or programs) lie, that have `room` numbers together. Devices have few
/// channels and NICs, which the channels of a connection take in turn, modulo their number: if there is room for it
/// the distance is a multiple of all numbers up to 10, and of 12, 16, 24 and 32, so that channel c of one stream uses
/// what channel c of another does.
int channels_apart(int n, int room = all_channels);

/// Throws SettingError: a call uses that channel, though each may have only `most` next to the others.
[[noreturn]] void too_many_channels(int channel, int most);

/// The place of a step of the lowered schedule in the program.
struct StepPlace {
  int iteration = 0;
  Stream stream = 0;
  int task = 0;
  int step = 0;                      ///< of the called schedule's lane; -1: the launch; after the last: the join
  bool first = false, last = false;  ///< of the task's steps on the stream's first lane; on others neither
};

/// Calls and actors that a run does not simulate: another simulation or another actor tells their times.
struct KnownCourses {
  /// [call] its course is known: in place of the steps of its schedule it has one, a compute of time until_told;
  /// empty: none is.
  std::vector<bool> calls = {};
  /// [actor] who does its tasks for it, an actor of its role; empty: each does its own. One that is stood for has
  /// only calls that are not known, and launches each when its stand-in has.
  std::vector<Actor> stand_ins = {};
  /// One that is stood for has no steps at all, nor in alone() (RunOptions::stand_ins).
  bool have_no_steps = false;
};

class LoweredProgram {
 public:
  /// It uses channels below `room`. Each lane of each actor is reported to `work`, which may be nullptr. Throws
  /// Interrupted.
  explicit LoweredProgram(const CheckedProgram& program, int room = all_channels, WatchedWork* work = nullptr,
                          KnownCourses known = {});

  const Program& program() const { return program_.program(); }
  const CheckedProgram& checked() const { return program_; }
  const CheckedSchedule& schedule() const { return schedule_; }
  /// A call alone, on the channels that it has in this program when it is called on that stream: [number of a member]
  /// when its launch is over. Its lanes are those of its schedule, its actors those of the program. `lanes`: those that
  /// have steps, the first among them; empty: all.
  CheckedSchedule alone(int call, Stream stream, std::vector<Picoseconds> arrivals,
                        const std::vector<bool>& lanes = {}) const;
  /// As RunOptions::plan_of_channel, up to the last channel in use; empty if all calls have plan 0.
  std::vector<std::uint16_t> plan_of_channel() const;
  /// The place of a step on any lane. The first lane of a stream has a step of every task; the others those of calls
  /// alone. O(log tasks).
  StepPlace place_of(Actor actor, Lane lane, int step) const;
  const Program::Task& task_of(Actor actor, const StepPlace& place) const {
    return program().role(actor).streams[static_cast<std::size_t>(place.stream)][static_cast<std::size_t>(place.task)];
  }
  /// KnownCourses::stand_ins.
  Actor stand_in(Actor actor) const;
  bool has_stand_ins() const;
  /// The lanes of a stream, the same for all actors. A call's first steps wait for the first of them.
  struct LaneRange {
    Lane first = 0;
    int count = 0;
  };
  LaneRange lanes_of(Stream stream) const;
  /// The step of a lane with which a task begins. Requires that the actor has that task on the lane's stream.
  int first_step(Actor actor, Lane lane, int iteration, int task) const;
  /// The first channel of what calls of that plan use on a stream.
  int first_channel(Stream stream, int plan) const;

 private:
  struct Parts;
  friend Schedule lowered(const Program& program);
  static Schedule make(std::shared_ptr<const Parts> parts);

  CheckedProgram program_;
  std::shared_ptr<const Parts> parts_;
  CheckedSchedule schedule_;
};

}  // namespace ringsim
