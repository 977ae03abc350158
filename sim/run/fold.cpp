#include "sim/run/fold.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

namespace {

/// Why a run cannot be folded; caught in fold().
struct Refusal {
  std::string because;
};
template <class... Parts>
[[noreturn]] void refuse(fmt::format_string<Parts...> text, Parts&&... parts) {
  throw Refusal{fmt::format(text, std::forward<Parts>(parts)...)};
}

/// The messages a -> a + by of all ranks a.
struct Stride {
  Actor by = 0;
  std::uint16_t channel = 0;
  auto operator<=>(const Stride&) const = default;
};
/// What each rank sends along each stride in the whole run.
using Strides = std::map<Stride, Bytes>;

/// Condition 2. What is received is as long as what is sent, because the schedule was checked and chunks are equal.
Strides strides_of(const CheckedSchedule& checked, std::vector<Actor>& peer) {
  ensure(checked.proof().slots_needed == 0, "a run without slots");
  const Schedule& schedule = checked.schedule();
  if (schedule.lanes != 1) refuse("an actor has {} lanes", schedule.lanes);
  Strides strides;
  Step step;
  for (int i = 0; i < schedule.n_steps(0, 0); ++i) {
    step.clear();
    schedule.step(0, 0, i, step);
    const Op *sent = nullptr, *received = nullptr;
    for (const Op& op : step.ops) {
      if (op.what == Do::compute) continue;
      const Op*& place = op.what == Do::send ? sent : received;
      if (place != nullptr || op.what == Do::copy || op.what == Do::add) refuse("step {} is more than one message", i);
      place = &op;
    }
    peer.push_back(sent == nullptr ? -1 : sent->peer);
    if (sent == nullptr && received == nullptr) continue;
    // All ranks are in this step: what did not meet here could never meet, and the schedule is known to finish.
    ensure(sent != nullptr && received != nullptr && sent->channel == received->channel &&
               schedule.symmetry.subtract(0, sent->peer) == received->peer,
           "ranks in lockstep receive in a step what they send in it");
    strides[{sent->peer, sent->channel}] += schedule.size(sent->region);
  }
  return strides;
}

bool alike(const Topology& topology, LinkId a, LinkId b) {
  const Link &x = topology.link(a), &y = topology.link(b);
  const auto kind = [&](NodeId node) { return topology.node(node).kind; };
  return x.bandwidth == y.bandwidth && x.latency == y.latency && x.kind == y.kind && kind(x.from) == kind(y.from) &&
         kind(x.to) == kind(y.to);
}

bool alike(const Topology& topology, const Path& a, const Path& b) {
  if (a.legs.size() != b.legs.size()) return false;
  for (std::size_t l = 0; l < a.legs.size(); ++l) {
    const Leg &x = a.legs[l], &y = b.legs[l];
    if (x.links.size() != y.links.size()) return false;
    for (std::size_t i = 0; i < x.links.size(); ++i)
      if (!alike(topology, x.links[i], y.links[i])) return false;
  }
  return true;
}

const std::string& name(const Topology& topology, NodeId node) { return topology.node(node).name; }

/// Condition 4 where each actor hangs on one switch by one cable: there is but one way, whoever sends to whom. Returns
/// the switch; none where the topology is another.
std::optional<NodeId> common_switch(const Topology& topology, const std::vector<NodeId>& placement) {
  NodeId hub = no_node;
  for (const NodeId device : placement) {
    const auto out = topology.links_from(device), in = topology.links_to(device);
    if (out.size() != 1 || in.size() != 1 || topology.node(device).host) return std::nullopt;
    if (hub == no_node) hub = topology.link(out[0]).to;
    if (topology.link(out[0]).to != hub || topology.link(in[0]).from != hub) return std::nullopt;
  }
  const bool is_switch = topology.node(hub).kind == NodeKind::network_switch && !topology.node(hub).host;
  return is_switch ? std::optional(hub) : std::nullopt;
}

void expect_equal_ports(const Topology& topology, const std::vector<NodeId>& placement) {
  const LinkId out = topology.links_from(placement[0])[0], in = topology.links_to(placement[0])[0];
  for (const NodeId device : placement) {
    const LinkId o = topology.links_from(device)[0], i = topology.links_to(device)[0];
    if (topology.resource(topology.link(o).resource).shared)
      refuse("{} sends and receives over one half-duplex cable", name(topology, device));
    if (!alike(topology, o, out) || !alike(topology, i, in))
      refuse("the port of {} is not like that of {}", name(topology, device), name(topology, placement[0]));
  }
}

/// Condition 4 anywhere else, path by path.
class Paths {
 public:
  Paths(const Topology& topology, const RunOptions& options, const Symmetry& group,
        const std::vector<NodeId>& placement, std::vector<Bytes>& link_bytes)
      : topology_(topology),
        options_(options),
        group_(group),
        placement_(placement),
        link_bytes_(link_bytes),
        routes_(topology, options.transport, options.routing),
        user_(topology.n_resources(), -1) {}

  void follow(const Stride& stride, Bytes carried) {
    std::fill(user_.begin(), user_.end(), -1);
    const Path first = path(0, stride);
    for (Actor a = 0; a < group_.order(); ++a) {
      if (a % 1024 == 0 && options_.stop != nullptr && options_.stop->load(std::memory_order_relaxed))
        refuse("it was stopped");
      const Path here = path(a, stride);
      if (!alike(topology_, here, first))
        refuse("the path of {} is not like that of {}", pair(a, stride), pair(0, stride));
      for (const Leg& leg : here.legs)
        for (const LinkId id : leg.links) take(id, a, stride, carried);
    }
  }

 private:
  Path path(Actor a, const Stride& stride) {
    const bool by_channel = options_.routing.policy == Routing::Policy::ecmp;
    const std::vector<Path> parts =
        routes_.find_parts(at(a), at(group_.add(a, stride.by)), by_channel ? stride.channel : 0);
    if (parts.size() > 1) refuse("messages are cut into {} parts", parts.size());
    for (const Leg& leg : parts[0].legs)
      if (!leg.shares.empty()) refuse("bytes of {} cross links in shares", pair(a, stride));
    return parts[0];
  }

  void take(LinkId id, Actor a, const Stride& stride, Bytes carried) {
    const ResourceId resource = topology_.link(id).resource;
    Actor& user = user_[resource.value];
    if (user >= 0)
      refuse("{} and {} meet on {}", pair(user, stride), pair(a, stride), topology_.resource_name(resource));
    user = a;
    link_bytes_[id.value] += carried;
  }

  NodeId at(Actor a) const { return placement_[static_cast<std::size_t>(a)]; }
  std::string pair(Actor a, const Stride& stride) const {
    return fmt::format("{} to {}", name(topology_, at(a)), name(topology_, at(group_.add(a, stride.by))));
  }

  const Topology& topology_;
  const RunOptions& options_;
  const Symmetry& group_;
  const std::vector<NodeId>& placement_;
  std::vector<Bytes>& link_bytes_;
  Routes routes_;
  std::vector<Actor> user_;  // [resource] whose message of this stride crosses it; -1: nobody's
};

void expect_one_each(const Topology& topology, const std::vector<NodeId>& placement) {
  std::vector<bool> taken(topology.n_nodes());
  for (const NodeId device : placement) {
    if (taken[device.value]) refuse("two ranks sit on {}", name(topology, device));
    taken[device.value] = true;
  }
}

/// The paths' part of the proof. Returns what there is to say about them.
std::string follow_paths(const Topology& topology, const RunOptions& options, const Symmetry& group,
                         const std::vector<NodeId>& placement, const Strides& strides, std::vector<Bytes>& link_bytes) {
  expect_one_each(topology, placement);
  link_bytes.assign(topology.n_links(), Bytes{});
  const bool tables = !options.routing.table.empty();
  if (const auto hub = tables ? std::nullopt : common_switch(topology, placement)) {
    expect_equal_ports(topology, placement);
    Bytes sent;
    for (const auto& [stride, bytes] : strides) sent += bytes;
    for (const NodeId device : placement)
      for (const LinkId id : {topology.links_from(device)[0], topology.links_to(device)[0]})
        link_bytes[id.value] = sent;
    return fmt::format("each has an equal port of its own on {}", name(topology, *hub));
  }
  if (options.routing.policy == Routing::Policy::flow_spray) refuse("messages of a pair take several ways in turn");
  Paths paths(topology, options, group, placement, link_bytes);
  for (const auto& [stride, bytes] : strides) paths.follow(stride, bytes);
  return "the paths of their messages are alike and share no link";
}

/// "{2,3}"; "{2^16}" for sixteen twos.
std::string text_of(const Symmetry& group) {
  const std::vector<int>& radices = group.radices();
  const bool equal = std::equal(radices.begin() + 1, radices.end(), radices.begin());
  if (radices.size() > 2 && equal) return fmt::format("{{{}^{}}}", radices[0], radices.size());
  return fmt::format("{{{}}}", fmt::join(radices, ","));
}

void expect_symmetry(const Schedule& schedule, Proof::By by) {
  if (!schedule.symmetry.claimed()) refuse("the schedule claims no symmetry");
  if (by == Proof::By::all_ranks) refuse("the schedule's symmetry was not proved");
  for (const Layout& layout : schedule.layout)
    if (!layout.uniform())
      refuse("{} bytes in {} chunks are not equal chunks", layout.total().count, layout.n_chunks());
}

}  // namespace

std::optional<Folding> fold(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                            const std::vector<NodeId>& placement, std::string& why_not) {
  const Schedule& schedule = checked.schedule();
  const Proof::By by = checked.proof().by;
  try {
    if (options.record_spans) refuse("every message is recorded");
    if (options.model != NetworkModel::ideal && options.model != NetworkModel::fair)
      refuse("in the model {} messages may meet where none shares a link", to_string(options.model));
    expect_symmetry(schedule, by);
    Folding made{.ranks = schedule.actors, .one = schedule};
    made.one.actors = 1;
    const Strides strides = strides_of(checked, made.peer);
    const std::string about = follow_paths(topology, options, schedule.symmetry, placement, strides, made.link_bytes);
    made.why = fmt::format("{} ranks are one: the symmetry {} of {} was checked at {}, its chunks are equal, and {}",
                           made.ranks, text_of(schedule.symmetry), schedule.algorithm,
                           by == Proof::By::symmetry ? "every step of every rank" : "samples", about);
    return made;
  } catch (const Refusal& refusal) {
    why_not = refusal.because;
  } catch (const InputError&) {  // no path: the run says so, in its own order
    why_not = "not all paths exist";
  }
  return std::nullopt;
}

Timeline Folding::unfold(Timeline one_rank) const {
  Timeline all = std::move(one_rank);
  all.actor_finish.assign(static_cast<std::size_t>(ranks), all.finish);
  all.bytes_sent = all.bytes_sent * ranks;
  for (std::int64_t* count : {&all.transfers, &all.events})
    if (__builtin_mul_overflow(*count, ranks, count)) fail_too_large("more messages than can be counted (2^63)");
  all.link_bytes = link_bytes;
  all.fingerprint.reset();
  all.folded = why;
  return all;
}

}  // namespace ringsim
