#include "sim/run/fold_alike.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/network/network_model.hpp"
#include "sim/run/find_stand_ins.hpp"
#include "sim/run/refusal.hpp"

namespace ringsim {

namespace {

FoldingByStandIns folded_alike(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                               const std::vector<NodeId>& placement) {
  const Schedule& schedule = checked.schedule();
  expect_no_more_than_times(options);
  RunOptions placed = options;
  placed.placement = placement;
  const ToldApart actors{.ranks = schedule.collective.ranks,
                         .roles = std::vector<int>(placement.size()),
                         .schedules = {[&checked] { return checked; }}};
  std::shared_ptr<const StandIns> stand_ins = find_stand_ins(topology, placed, actors);
  if (stand_ins == nullptr) refuse("too few ranks do the same over equally loaded links");
  std::int64_t n_classes = 0;
  for (Actor actor = 0; actor < schedule.actors; ++actor) n_classes += stand_ins->actor(actor) == actor ? 1 : 0;
  FoldingByStandIns made{.stand_ins = stand_ins, .some = schedule, .why = {}, .end_together = {}};
  made.some.n_steps = [stand_ins, all = schedule.n_steps](Actor actor, Lane lane) {
    return stand_ins->actor(actor) == actor ? all(actor, lane) : 0;
  };
  made.why = fmt::format("{} of {} ranks represent all: the others do the same over equally loaded links", n_classes,
                         schedule.actors);
  return made;
}

}  // namespace

void expect_no_more_than_times(const RunOptions& options) {
  if (moves_packets(options.model) || !shares_all_links(options.model))
    refuse("the network model is {}", to_string(options.model));
  if (options.routing.policy != Routing::Policy::fixed && options.routing.policy != Routing::Policy::ecmp)
    refuse("messages are spread over several ways");
  if (options.record_spans || (options.on_message && !options.messages_may_fold) || options.on_traffic ||
      options.on_compute)
    refuse("every message is being recorded");
}

bool may_pay_to_fold_alike(const CheckedSchedule& checked, const RunOptions& options) {
  const Schedule& schedule = checked.schedule();
  if (!is_point_to_point(schedule.collective.op)) return false;
  std::int64_t at_once = 0;
  Step step;
  for (Lane lane = 0; lane < schedule.lanes; ++lane) {
    if (schedule.n_steps(0, lane) == 0) continue;
    step.clear();
    schedule.step(0, lane, 0, step);
    at_once += static_cast<std::int64_t>(step.ops.size()) / 2;  // a send and a receive for each peer
  }
  return checked.proof().operations / 2 >= options.fold_from / std::max<std::int64_t>(at_once, 1);
}

std::optional<FoldingByStandIns> fold_alike(const Topology& topology, const CheckedSchedule& checked,
                                            const RunOptions& options, const std::vector<NodeId>& placement,
                                            std::string& why_not) {
  return unless_refused(why_not, [&] { return folded_alike(topology, checked, options, placement); });
}

Timeline FoldingByStandIns::unfold(Timeline some_actors) const {
  Timeline all = std::move(some_actors);
  for (std::size_t actor = 0; actor < all.actor_finish.size(); ++actor)
    all.actor_finish[actor] = all.actor_finish[static_cast<std::size_t>(stand_ins->actors[actor])];
  for (const std::vector<Actor>& group : end_together) {
    SimTime last{};
    for (const Actor actor : group) last = std::max(last, all.actor_finish[static_cast<std::size_t>(actor)]);
    for (const Actor actor : group) all.actor_finish[static_cast<std::size_t>(actor)] = last;
  }
  all.folded = why;
  return all;
}

}  // namespace ringsim
