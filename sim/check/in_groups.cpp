#include "sim/check/in_groups.hpp"

#include <algorithm>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim {

CheckedSchedule in_groups(const std::vector<CheckedSchedule>& of_group) {
  ensure(!of_group.empty(), "there is a group");
  if (of_group.size() == 1) return of_group.front();
  const Schedule& first = of_group.front().schedule();
  const int n = first.actors;
  Schedule whole{.algorithm = first.algorithm, .collective = first.collective, .layout = first.layout};
  Proof proof{.by = Proof::By::parts};
  proof.slots_needed = 0;
  for (const CheckedSchedule& each : of_group) {
    const Schedule& one = each.schedule();
    ensure(one.actors == n && one.collective.op == first.collective.op &&
               one.collective.ranks == first.collective.ranks && one.collective.root == first.collective.root,
           "groups do the same collective");
    ensure(one.layout == first.layout, "groups have equal chunks");
    ensure(!one.process, "each actor of a group is a process of its own");
    whole.lanes = std::max(whole.lanes, one.lanes);
    whole.names_regions = whole.names_regions && one.names_regions;
    proof.operations += each.proof().operations;
    proof.slots_needed = std::max(proof.slots_needed, each.proof().slots_needed);
    proof.shape.numbers = std::max(proof.shape.numbers, each.proof().shape.numbers);
  }
  whole.groups = static_cast<int>(of_group.size());
  whole.actors = whole.groups * n;
  whole.n_steps = [of_group, n](Actor actor, Lane lane) {
    const Schedule& one = of_group[static_cast<std::size_t>(actor / n)].schedule();
    return lane < one.lanes ? one.n_steps(actor % n, lane) : 0;
  };
  whole.step = [of_group, n](Actor actor, Lane lane, int i, Step& out) {
    const Actor first_of_group = actor / n * n;
    const std::size_t known = out.ops.size();
    of_group[static_cast<std::size_t>(actor / n)].schedule().step(actor - first_of_group, lane, i, out);
    for (std::size_t o = known; o < out.ops.size(); ++o)
      if (out.ops[o].peer >= 0) out.ops[o].peer += first_of_group;
  };
  return CheckedSchedule(std::move(whole), std::move(proof));
}

}  // namespace ringsim
