// Running a checked schedule on a topology.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sim/check/check.hpp"
#include "sim/network/network_model.hpp"
#include "sim/run/call_plan.hpp"
#include "sim/run/disturbance.hpp"
#include "sim/run/timeline.hpp"
#include "sim/topology/topology.hpp"

namespace ringsim {

struct Trail;
class Courses;
struct StandIns;

/// A `compute` begins or ends.
struct ComputeEvent {
  Actor actor = 0;
  Lane lane = 0;
  int step = 0;
  bool begins = false;
  SimTime when{};
};

/// Bytes that crossed a link, evenly between two moments.
struct Traffic {
  LinkId link;
  SimTime begin{}, end{};
  double bytes = 0;
};

/// Thrown in place of a run that would simulate more than RunOptions::most_messages.
struct TooManyMessages {
  std::int64_t messages = 0;
};

struct RunOptions {
  NetworkModel model = NetworkModel::fair;
  PacketOptions packet;  ///< for the model of that name
  /// How messages move, of each call; at least one. All have slots, or none, and their sends are done at the same
  /// event.
  std::vector<CallPlan> plans{CallPlan{}};
  /// [channel] its plan, of all 2^16 numbers; empty: all have the first. LoweredProgram::plan_of_channel() of a
  /// program.
  std::vector<std::uint16_t> plan_of_channel;
  Routing routing;
  Disturbance disturbance;
  /// The node of each actor, [actor]. Empty: ranks on topology.ranks(), helpers on topology.helpers(), in order.
  std::vector<NodeId> placement;
  /// [lane] to which of several jobs it belongs, the same for all actors; they count from 0. Timeline::jobs then tells
  /// of each by itself. Empty: all is one.
  std::vector<std::size_t> jobs;
  bool record_spans = false;
  bool record_path = false;  ///< Timeline::path; for its memory see sim/run/path_record.hpp
  /// True if one rank, some or one channel may stand for all if that is exact (sim/run/fold.hpp), in runs of at
  /// least `fold_from` messages: smaller ones take no time, and simulated in full they have a fingerprint.
  bool fold = true;
  std::int64_t fold_from = std::int64_t{1} << 20;
  /// run() throws TooManyMessages in place of simulating more, and so does run_remembering(). Those for which others
  /// stand do not count.
  std::optional<std::int64_t> most_messages;
  /// Asked now and then; true ends the run with Interrupted.
  const std::atomic<bool>* stop = nullptr;
  /// Called now and then with which share is done, 0 to 1: of the steps, or of the messages if that is more.
  std::function<void(double)> progress;
  /// Called before all ranks of a run that is_worth_folding() are simulated, with the reason: a part of a sentence.
  std::function<void(const std::string& why_not)> on_whole;
  /// Called with every compute, in order of time; never with a message, so it costs those nothing. Of a folded run with
  /// those of all ranks.
  std::function<void(const ComputeEvent&)> on_compute;
  /// Asked when the time of a compute is up: how much longer it takes, after which it is asked again; 0: it is done.
  /// None: none takes longer. No run is folded with it.
  std::function<Picoseconds(const ComputeEvent&)> longer;
  /// Asked after every compute; true ends the run by count: no further step begins, and what is under way comes to its
  /// end. Lanes that are not through are no stall then. No run is folded with it.
  std::function<bool()> enough;
  /// Called with every message when it arrives, as Timeline::spans would have it, without keeping it. No run is folded
  /// then, except with the next option.
  std::function<void(const Span&)> on_message;
  /// on_message looks at Span::count, so that of a folded run it needs only the messages of the ranks that are
  /// simulated. If that is rank 0 alone, Span::to is rank 0 as well: it receives as many.
  bool messages_may_fold = false;
  /// Called with all that crosses links, but for background messages; of each link they sum to Timeline::link_bytes, to
  /// a rounded byte. With packets that are spread, which take whole turns, they are what really crossed. No run is
  /// folded then.
  std::function<void(const Traffic&)> on_traffic;

  /// Called for each actor that has steps on its first lane, when the run is over: the critical path to the last of
  /// them, and the actor at whose start that path begins. No run is folded then.
  std::function<void(Actor, const Trail&, Actor origin)> on_end;
  /// With record_path: the actors of Timeline::paths_of. No run is folded with them.
  std::vector<Actor> paths_of;
  /// Says when a compute of time until_told ends; must outlive the run. No run is folded with it. A recorded path has
  /// an element `known` for each.
  Courses* courses = nullptr;
  /// Some actors stand for others, which have no steps; must outlive the run. Timeline counts messages and bytes for
  /// all of them; on_message, on_compute and on_traffic hear of those that are simulated, and Span::to is who receives
  /// it. No run is folded with it, nor disturbed.
  const StandIns* stand_ins = nullptr;

  std::size_t plan_number(std::uint32_t channel) const {
    return plan_of_channel.empty() ? 0 : plan_of_channel[channel];
  }
  const CallPlan& plan(std::uint32_t channel) const { return plans[plan_number(channel)]; }
  /// True if messages may have to be posted one after another: sim/run/posts.hpp.
  bool may_post(const Topology& topology) const {
    return topology.has_posts() ||
           std::any_of(plans.begin(), plans.end(), [](const CallPlan& p) { return p.protocol->post.count() > 0; });
  }
};

/// Simulates the schedule. Under the textbooks' protocol (`none`) a message starts when both of its ends have begun
/// their step (rendezvous), a send is done when the message is delivered, every byte is payload; for others see
/// sim/run/protocol.hpp. Bytes are those on the wire. Devices copy and add in no time, but if the topology has rates
/// (sim/run/device_work.hpp); the protocol's launch is not counted.
///
/// Throws InputError if the topology has too few places, or no path between two actors; if the schedule needs more
/// slots than the protocol has, or larger ones; if faults leave no way (sim/run/disturbance.hpp). Throws InvariantError
/// if the simulation breaks a law: bytes in = bytes out, no link above its rate, time never back, nothing left waiting
/// at the end.
Timeline run(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options = {});

/// True if the run is large enough for run() to look whether some of its ranks, or one of its channels, can stand for
/// all.
bool is_worth_folding(const CheckedSchedule& checked, const RunOptions& options);

/// As run(), if some of its ranks, or one of its channels, can stand for all; else nothing, and `why_not` says why.
std::optional<Timeline> run_folded(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                                   std::string& why_not);

}  // namespace ringsim
