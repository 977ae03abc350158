#include "sim/run/run.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/setting_error.hpp"
#include "sim/network/network.hpp"
#include "sim/run/fold_renamed.hpp"
#include "sim/run/simulate.hpp"

namespace ringsim {

namespace {

/// The node of each actor.
std::vector<NodeId> places(const Topology& topology, const Schedule& schedule, const RunOptions& options) {
  std::vector<NodeId> placement = options.placement;
  if (placement.empty()) {
    const auto n_helpers = static_cast<std::size_t>(schedule.actors - schedule.collective.ranks);
    const auto n_ranks = static_cast<std::size_t>(schedule.collective.ranks);
    if (topology.ranks().size() < n_ranks || topology.helpers().size() < n_helpers)
      throw InputError(
          "", fmt::format("the schedule {} needs {} ranks and {} helpers, the topology has {} and {}",
                          schedule.algorithm, n_ranks, n_helpers, topology.ranks().size(), topology.helpers().size()));
    placement.assign(topology.ranks().begin(), topology.ranks().begin() + static_cast<std::ptrdiff_t>(n_ranks));
    placement.insert(placement.end(), topology.helpers().begin(),
                     topology.helpers().begin() + static_cast<std::ptrdiff_t>(n_helpers));
  }
  ensure(placement.size() == static_cast<std::size_t>(schedule.actors), "every actor has a place");
  ensure(placement.size() < (std::size_t{1} << 24), "an actor's number has 24 bits, as CompiledRoutes::key_of() needs");
  return placement;
}

/// Throws SettingError if the schedule needs slots that the protocol does not have.
void expect_enough_slots(const CheckedSchedule& checked, const Protocol& protocol) {
  if (checked.proof().slots_needed > protocol.slots)
    throw SettingError(
        SettingError::Setting::protocol,
        fmt::format("the schedule {} needs messages that are sent ahead of their receiver, but protocol {} has {} "
                    "slots for them ({})",
                    checked.schedule().algorithm, protocol.name,
                    protocol.slots == 0 ? "no" : fmt::format("only {}", protocol.slots), to_string(checked.proof())),
        protocol.slots == 0
            ? "the schedule is correct, but written for a protocol that sends ahead, such as those of NCCL: set "
              "transport.protocol to simple, and for large messages also transport.chunk, such as \"512 KiB\""
            : "the schedule is correct, but no protocol sends as far ahead: let ranks receive earlier");
}

bool has_many_messages(const CheckedSchedule& checked, const RunOptions& options) {
  return checked.proof().operations / 2 >= options.fold_from;  // a message is two operations
}

/// The reason that rules out all folds; empty if there is none.
std::string why_whole(const RunOptions& options) {
  if (options.enough) return "the run ends by count";
  if (options.courses != nullptr || options.stand_ins != nullptr || options.on_end || !options.paths_of.empty())
    return "ends of its parts are asked for, or known";
  if (options.longer) return "computations take longer while messages are in flight";
  if (!options.jobs.empty()) return "several jobs share the run";
  if (!options.disturbance.empty())
    return "something disturbs the run, so ranks may do different things at the same time";
  return "";
}

/// A part that gives the whole run's figures to the last digit.
std::optional<Timeline> run_part(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                                 const std::vector<NodeId>& placement, std::string& why_not) {
  if (options.may_post(topology))
    why_not = "devices post messages one after another";
  else if (topology.has_work_rates())
    why_not = "devices add or copy at a rate";
  else if (options.plans.size() > 1)
    why_not = "calls differ in protocol or links";
  if (!why_not.empty()) return std::nullopt;

  const Protocol& protocol = *options.plans.front().protocol;
  const bool may_run_ahead = protocol.done_when_left;
  if (may_run_ahead)
    why_not = fmt::format("with protocol {}, ranks can run ahead of each other", protocol.name);
  else if (topology.has_channel_rates())
    why_not = "each channel of a device has its own rate";
  else if (const auto folding = fold(topology, checked, options, placement, why_not))
    return folding->unfold(simulate(topology, checked, options, placement, {.folding = &*folding}));

  std::string no_turns;
  if (const auto folding = fold_by_turns(topology, checked, options, placement, no_turns)) {
    try {
      return folding->unfold(simulate(topology, checked, options, placement, {.by_turns = &*folding}));
    } catch (const Unsure& unsure) {
      no_turns = unsure.why;
    }
  }
  // If ranks have their own positions, fold() has said enough.
  if (may_run_ahead || checked.proof().positions.claimed())
    why_not += fmt::format("; the first ranks do not represent all ranks either: {}", no_turns);

  std::string no_channels;
  if (const auto folding = fold_channels(topology, checked, options, no_channels)) {
    try {
      return folding->unfold(simulate(topology, checked, options, placement, {.by_channels = &*folding}));
    } catch (const Unsure& unsure) {
      no_channels = unsure.why;
    }
  }
  if (!no_channels.empty())
    why_not += fmt::format("; one channel does not represent all channels either: {}", no_channels);
  return std::nullopt;
}

void expect_plans(const CheckedSchedule& checked, const RunOptions& options) {
  ensure(!options.plans.empty(), "calls have a plan");
  ensure(options.plans.size() == 1 || options.plan_of_channel.size() == std::size_t{1} << 16,
         "every channel has a plan, if there are several");
  const Protocol& first = *options.plans.front().protocol;
  for (const CallPlan& plan : options.plans) {
    const Protocol& protocol = *plan.protocol;
    ensure((protocol.slots > 0) == (first.slots > 0) && protocol.done_when_left == first.done_when_left,
           "messages of all protocols of a run wait for their receives, or all may run ahead");
    ensure(std::has_single_bit(static_cast<std::uint64_t>(protocol.align.count)),
           "a protocol cuts data in multiples of a power of two");
    expect_enough_slots(checked, protocol);
  }
}

}  // namespace

bool is_worth_folding(const CheckedSchedule& checked, const RunOptions& options) {
  return has_many_messages(checked, options) || may_pay_to_fold_alike(checked, options);
}

std::optional<Timeline> run_folded(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                                   std::string& why_not) {
  // Chosen: one channel of NCCL's eight stands for all, so runs of an eighth of the messages gain as well.
  constexpr std::int64_t channels_of_nccl = 8;
  const bool may_rename = may_pay_to_rename(checked, options.fold_from / channels_of_nccl);
  if (!options.fold || !(may_rename || is_worth_folding(checked, options))) return std::nullopt;
  expect_plans(checked, options);
  const std::vector<NodeId> placement = places(topology, checked.schedule(), options);
  why_not = why_whole(options);
  if (!why_not.empty()) return std::nullopt;
  if (has_many_messages(checked, options)) {
    if (auto timeline = run_part(topology, checked, options, placement, why_not)) return timeline;
  }
  if (may_rename) {
    std::string no_renaming;
    if (const auto folding = fold_renamed(topology, checked, options, placement, no_renaming))
      return folding->unfold(simulate(topology, checked, options, placement, {.alike = &*folding}));
    if (!why_not.empty())
      why_not += fmt::format("; renaming ranks does not turn channels into each other either: {}", no_renaming);
  }
  if (!may_pay_to_fold_alike(checked, options)) return std::nullopt;
  std::string no_stand_ins;
  if (const auto folding = fold_alike(topology, checked, options, placement, no_stand_ins))
    return folding->unfold(simulate(topology, checked, options, placement, {.alike = &*folding}));
  why_not += (why_not.empty() ? "" : "; some ranks do not represent all ranks either: ") + no_stand_ins;
  return std::nullopt;
}

Timeline run(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options) {
  std::string why_not;
  if (std::optional<Timeline> folded = run_folded(topology, checked, options, why_not)) return std::move(*folded);
  expect_plans(checked, options);
  if (const std::int64_t messages = checked.proof().operations / 2; messages > options.most_messages.value_or(messages))
    throw TooManyMessages{messages};
  if (options.on_whole && !why_not.empty()) options.on_whole(why_not);
  Timeline timeline = simulate(topology, checked, options, places(topology, checked.schedule(), options));
  timeline.not_folded = std::move(why_not);
  return timeline;
}

}  // namespace ringsim
