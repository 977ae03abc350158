// Programs: compute and many collectives in one run. Every actor has a few streams of tasks; a task computes, or calls
// a schedule that was proved by itself. All of it is repeated for a number of iterations.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/few.hpp"
#include "sim/base/units.hpp"
#include "sim/base/watch.hpp"
#include "sim/check/check.hpp"

namespace ringsim {

/// A queue of tasks of one actor, such as a CUDA stream or a host thread: a task begins when the one before it is done.
using Stream = int;

struct Program {
  enum class StreamKind : std::uint8_t {
    compute,        ///< kernels
    communication,  ///< calls of collectives, and their launches
    host            ///< what a CPU thread does before the GPU can go on
  };

  /// Before a task begins, the first `tasks` tasks of `stream` are done: of this iteration, or with back = 1 of the one
  /// before. What lies before the first iteration is done.
  struct After {
    Stream stream = 0;
    int tasks = 0;
    int back = 0;
    Actor actor =
        -1;  ///< whose: -1 the same actor's, else another's of its process, such as one with the host's thread
  };

  /// What a task does to a variable of its actor. Only the proof looks at it.
  struct Touch {
    enum class As : std::uint8_t {
      read,        ///< reads what was made in this iteration, or has come in; of weights those of before it
      read_whole,  ///< reads what a call has made whole: the sum over its ranks, or the parts of all of them
      make,        ///< writes the actor's own new contribution into it: a gradient
      add,         ///< adds another one to what it has made in this iteration: gradients of the next microbatch
      apply,       ///< reads it, and adds it to the variable `to`: an update of weights
      clear,       ///< writes zero: a server that adds up what comes in
      drop,        ///< frees it: what a call has made whole is gone until a call makes it whole again
      divide,      ///< divides it by `divisor`
      answer,      ///< replaces each part that an all_to_all has brought by a result, which the next one takes back
      keep,        ///< of a ring's variable: puts a copy on shelf `to` of its actor
      take         ///< of a ring's variable: takes the copy from shelf `to`
    };
    As as = As::read;
    int variable = 0;
    int to = -1;
    int divisor = 1;
  };

  struct Task {
    /// For messages and pictures, its first word the kind of task: "backward conv1". Empty: that of its call.
    std::string name;
    Picoseconds time{0};  ///< how long it computes; of a call: the launch before its first step
    int call = -1;        ///< which of `calls`; -1: it computes
    Few<After, 1> after;
    Few<Touch, 2> touches;
    /// Which unit computes it, one task at a time, first come first served; those of called schedules have the same
    /// numbers. -1: none that others use.
    int unit = -1;
  };

  using Members = Few<Actor, 2>;
  using Variables = Few<int, 2>;

  /// One use of a proved schedule, once an iteration. If the schedule is that of several groups, each group exchanges
  /// its own data.
  struct Call {
    std::string name;
    CheckedSchedule schedule;
    Members members;  ///< [actor of the schedule] which actor of the program; empty: the same numbers
    /// By which of RunOptions::plans its messages move.
    int plan = 0;
    /// What its data is. all_reduce: each becomes the sum over the schedule's ranks, divided by `divisor`; reduce,
    /// gather: the same at the root alone (of a gather it stands for everybody's part); broadcast, scatter: what the
    /// root has (of a scatter a part of it); reduce_scatter: the sum, of which each rank holds its own part;
    /// all_gather: the parts of all ranks together, which of weights must all have been updated in this iteration;
    /// send_recv: see `into`, in each group; all_to_all: each rank's has a part for each, and the next all_to_all of
    /// the same ranks takes back what they have made of these parts (`answer`). No other collective has variables.
    Variables variables;
    int divisor = 1;
    /// For each of `variables` the one that gets the result; empty: each itself. send_recv, which needs them: of the
    /// next rank of the schedule. all_gather: the parts of all ranks. all_reduce, reduce_scatter: the sum is added to
    /// it, in each iteration for the first time to nothing.
    Variables into = {};

    /// The actor of the program that is this one of the schedule.
    Actor member(int number) const { return members.empty() ? number : members[static_cast<std::size_t>(number)]; }
    /// `members`, also if they are left out.
    std::vector<Actor> all_members() const;
  };

  /// What an actor does in one iteration.
  struct Role {
    std::vector<std::vector<Task>> streams;  ///< [stream][task]; as many streams as the program has
  };

  /// Promises that each iteration adds to `weights` the mean of all ranks' new `gradient`s, each once. Of neighbors,
  /// ranks r - 1, r and r + 1 on the ring of ranks (each once if they are the same), it promises that the new weights
  /// are the mean of theirs.
  struct Learns {
    enum class How : std::uint8_t {
      gradients_summed,  ///< gradients are summed over the ranks; weights are read as the last iteration left them
      weights_averaged,  ///< each rank updates weights of its own with its own gradients; then the weights are averaged
      neighbors_averaged,  ///< the same, with those of its neighbors
      neighbors_first,     ///< each rank averages with its neighbors, then updates with its own gradients
      group_mean  ///< the members of each group have them whole at the end, and add the sum of their gradients,
                  ///< divided by `divisor`, to them
    };
    int weights = 0, gradient = 0;
    Actor keeper = -1;  ///< who keeps the weights from one iteration to the next; -1: every rank
    How how = How::gradients_summed;
    int groups = -1;  ///< group_mean: which of `groups`
    int divisor = 1;
    int times = 1;  ///< group_mean: how often each member adds a new contribution to its gradient: its micro-batches
    /// group_mean: each member has a part of them, and all of them only in the variables into which an all_gather of
    /// this iteration has put them. Those are the weights that the step before has left.
    bool parts = false;
  };

  /// Blocks of keys and values that travel around rings of ranks, and their gradients. A pass begins when a rank makes
  /// its own block, or takes from a shelf what an earlier pass has kept. Promises that each member's queries meet the
  /// blocks of all members of the pass, each once (`read`), before a result is read (`read_whole` of blocks[0]); and
  /// that the parts of a gradient, one of each member (`make` the first, `add` the others), come home to the member
  /// whose block it is (`read_whole` of gradients[0]). Nothing but send_recv moves them.
  struct Ring {
    int groups = 0;           ///< which of `groups`: each is a ring, whose members have one role; their sizes are equal
    std::vector<int> blocks;  ///< [d] variable: the block of the member d places before
    std::vector<int> gradients;  ///< [d] likewise the gradient of that block
  };

  /// Promises that of these variables, each made once and read later, `most` are alive at the same time: made, and not
  /// yet read for the last time. Their tasks lie on stream 0 of the role.
  struct Alive {
    int role = 0;
    std::vector<int> variables;
    int most = 0;
  };

  /// [group][member]
  using Groups = std::vector<std::vector<Actor>>;

  std::string name;
  int ranks = 0;  ///< actors 0 to ranks - 1; the others are helpers of calls
  int actors = 0;
  std::vector<StreamKind> streams;     ///< [stream]
  std::vector<std::string> variables;  ///< names; every actor has each of them
  std::vector<Role> roles;
  std::vector<int> role_of;          ///< [actor]; empty: all have role 0
  std::vector<int> process_of = {};  ///< [actor]; empty: each is a process of its own
  std::vector<Call> calls;
  std::vector<Learns> learns;
  std::vector<Groups> groups = {};  ///< of ranks, for `learns` and `rings`
  std::vector<Alive> alive = {};
  std::vector<Ring> rings = {};
  int iterations = 1;
  /// Other streams may go on with an iteration when stream 0 has begun the next one, which hides them (for the accounts
  /// of time; what waits for what, tasks say themselves).
  bool overlaps_next = false;
  /// If set, how long a task really takes, in place of Task::time. Pure: equal arguments, equal times.
  std::function<Picoseconds(Actor, Stream, int task, int iteration)> time = {};

  int role_number(Actor actor) const { return role_of.empty() ? 0 : role_of[static_cast<std::size_t>(actor)]; }
  const Role& role(Actor actor) const { return roles[static_cast<std::size_t>(role_number(actor))]; }
  const std::string& name_of(const Task& task) const {
    return task.name.empty() && task.call >= 0 ? calls[static_cast<std::size_t>(task.call)].name : task.name;
  }
  int process(Actor actor) const { return process_of.empty() ? actor : process_of[static_cast<std::size_t>(actor)]; }
};

/// A program that check() has proved.
class CheckedProgram {
 public:
  const Program& program() const { return *program_; }
  /// Two operations a message, in one iteration.
  std::int64_t operations() const { return operations_; }

 private:
  friend CheckedProgram check(Program program, WatchedWork* work);
  friend class LoweredProgram;  // sim/program/lower.hpp
  explicit CheckedProgram(Program program, std::int64_t operations)
      : program_(std::make_shared<const Program>(std::move(program))), operations_(operations) {}

  std::shared_ptr<const Program> program_;
  std::int64_t operations_ = 0;
};

/// Proves that the program finishes and that its data is right. The called schedules were proved one by one; what
/// remains is what lies between them. It costs time and memory in the tasks of one iteration, whatever the messages
/// are.
///
///  1. Streams, tasks, variables and calls that are named exist; tasks wait for their own process alone. Every member
///  of a call calls it once an iteration, on
///     the stream of the same number; nobody else does. So calls of one stream meet in order, and calls of different
///     streams use different channels.
///  2. Order. The tasks of one iteration can be numbered such that the numbers grow along every stream and every
///  `after`
///     with back = 0, a call having one number at all of its members. Then the program finishes: take the unfinished
///     (iteration, number) that is least. All that its actors do before it has lower numbers or lies in earlier
///     iterations, so it is done; each member has begun it; and by its own proof the call comes through. If there is no
///     such numbering, the circle is named: "rank 0 calls bucket 1 before bucket 2, rank 3 the other way round".
///  3. No races. Two tasks of an actor that touch one variable, one of them writing, are ordered by streams and
///  `after`:
///     vector clocks over the streams, for two iterations. Iterations further apart follow, because task k of a stream
///     in iteration t comes before task k in t + 1. What an `after` of another actor orders is not counted: that orders
///     less, never more.
///  4. Counting. With 3 every legal order gives the same data, so one order is followed for two iterations. Each rank's
///     contribution to a variable is a random number modulo the prime 2^61 - 1 (so that a mean can be divided); a wrong
///     sum passes with probability 2^-60 or so. Every promise of `learns` must hold after each of the two. Named are: a
///     variable in no call or in too many, one that is summed before it is made or applied before it is summed, read
///     before it is made or has come in, weights that are not those of the step before, a divisor that is not the
///     number of ranks, weights that are updated in parts and not gathered. Of two all_to_alls each rank gets back the
///     answers of all ranks to which it has sent a part, each once, and nothing else.
///  5. Memory. As many variables are alive at a time as `alive` promises.
///  6. Rings. In the order of 4, for two iterations: whose block each variable of `rings` has, and of which pass. Parts
///     of gradients are random numbers as in 4.
///
/// Each task and each look at a variable of an actor is reported to `work`, which may be nullptr.
/// Throws ScheduleError that names rank, stream and task; Interrupted.
CheckedProgram check(Program program, WatchedWork* work = nullptr);

}  // namespace ringsim
