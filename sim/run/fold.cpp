#include "sim/run/fold.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/run/refusal.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

namespace {

/// The messages a -> a + by of all ranks a.
struct Stride {
  Actor by = 0;
  std::uint16_t channel = 0;
  auto operator<=>(const Stride&) const = default;
};
/// What each rank sends along each stride in the whole run.
using Strides = std::map<Stride, Bytes>;

/// What a rank does in a step, as far as folding goes; -1: sends nothing.
struct Doing {
  Actor peer = -1;
  std::uint16_t channel = 0;
  Bytes size;
  std::vector<Picoseconds> computing;
  std::vector<Wait> waits;
  bool same(const Doing& other) const {  // but for the channel, of which each lane has its own, and waits
    return peer == other.peer && size == other.size && computing == other.computing;
  }
};

/// Condition 2 for one step of rank 0 by itself. The bytes received are as many as those sent, because the schedule was
/// checked and chunks are equal.
Doing doing_in(const Step& step, const Schedule& schedule, const Symmetry& symmetry, int i) {
  Doing doing;
  const Op *sent = nullptr, *received = nullptr;
  for (const Op& op : step.ops) {
    if (op.what == Do::compute) {
      if (op.unit() >= 0) refuse("ranks share units that compute");
      doing.computing.push_back(op.time);
      continue;
    }
    if (op.what == Do::copy || op.what == Do::add) continue;  // take no time
    const Op*& place = op.what == Do::send ? sent : received;
    if (place != nullptr) refuse("step {} is more than one message", i);
    place = &op;
  }
  if (sent == nullptr && received == nullptr) return doing;
  // All ranks are in this step: what did not meet here could never meet, and the schedule is known to finish.
  ensure(sent != nullptr && received != nullptr && sent->channel == received->channel &&
             symmetry.subtract(0, sent->peer) == received->peer,
         "ranks in lockstep receive in each step what they send in it");
  doing.peer = sent->peer;
  doing.channel = sent->channel;
  doing.size = schedule.size(sent->region);
  return doing;
}

/// Condition 2.
class LanesInStep {
 public:
  LanesInStep(const CheckedSchedule& checked, const RunOptions& options)
      : schedule_(checked.schedule()),
        proof_(checked.proof()),
        options_(options),
        peers_(static_cast<std::size_t>(schedule_.lanes)) {
    ensure(proof_.slots_needed == 0, "a run without slots");
    for (Lane lane = 0; lane < schedule_.lanes; ++lane) {
      read(lane);
      const bool has_messages = std::any_of(now_.begin(), now_.end(), [](const Doing& it) { return it.peer >= 0; });
      if (!has_messages) continue;
      const bool is_first = n_lanes_++ == 0;
      if (is_first) {
        first_lane_ = lane;
        first_ = std::move(now_);
      } else {
        compare(lane);
      }
      for (const Doing& it : is_first ? first_ : now_) {
        peers_[static_cast<std::size_t>(lane)].push_back(it.peer);
        if (it.peer >= 0) strides_[{it.peer, it.channel}] += it.size * proof_.repeated.iterations;
      }
    }
  }

  /// How many have messages.
  int n_lanes() const { return n_lanes_; }
  const Strides& strides() const { return strides_; }
  std::vector<std::vector<Actor>> take_peers() { return std::move(peers_); }

 private:
  // What a lane does in one iteration.
  void read(Lane lane) {
    now_.clear();
    Step step;
    const int n_steps = schedule_.n_steps(0, lane) / proof_.repeated.iterations;
    now_.reserve(static_cast<std::size_t>(n_steps));
    for (int i = 0; i < n_steps; ++i) {
      if (i % 1024 == 0) refuse_if_stopped(options_);
      step.clear();
      schedule_.step(0, lane, i, step);
      now_.push_back(doing_in(step, schedule_, proof_.symmetry, i));
      now_.back().waits = std::move(step.waits);
    }
  }

  // The lane is in step with the first one.
  void compare(Lane lane) const {
    if (now_.size() > first_.size())
      refuse("lanes {} and {} of a rank have unequal numbers of steps", first_lane_, lane);
    std::size_t i = 0;  // the step of the first lane
    bool skipped = false;
    for (const Doing& it : now_) {
      for (; i < first_.size() && first_[i].peer < 0 && !first_[i].same(it); ++i) skipped = true;
      if (i == first_.size() || !first_[i].same(it))
        refuse("lanes {} and {} of a rank do different things in step {}", first_lane_, lane, i);
      const bool waits_for_first =
          it.waits.size() == 1 && it.waits[0].lane == first_lane_ && it.waits[0].steps == static_cast<int>(i);
      if (!first_[i].waits.empty() || (skipped ? !waits_for_first : !it.waits.empty()))
        refuse("a lane of a rank waits for another in step {}", i);
      skipped = false;
      ++i;
    }
    for (std::size_t rest = i; rest < first_.size(); ++rest)
      if (first_[rest].peer >= 0) refuse("lanes {} and {} of a rank have unequal numbers of steps", first_lane_, lane);
    // What is skipped at the end comes before the next iteration.
    if (i < first_.size() && proof_.repeated.iterations > 1 && now_.front().waits.empty())
      refuse("a lane of a rank does not wait for another in step 0");
  }

  const Schedule& schedule_;
  const Proof& proof_;
  const RunOptions& options_;
  std::vector<Doing> now_, first_;  // [step] of an iteration: of the lane that was read, and of the first with messages
  Lane first_lane_ = 0;
  int n_lanes_ = 0;
  Strides strides_;
  std::vector<std::vector<Actor>> peers_;
};

bool alike(const Topology& topology, const Path& a, const Path& b) {
  if (a.legs.size() != b.legs.size()) return false;
  for (std::size_t l = 0; l < a.legs.size(); ++l) {
    const Leg &x = a.legs[l], &y = b.legs[l];
    if (x.links.size() != y.links.size()) return false;
    for (std::size_t i = 0; i < x.links.size(); ++i)
      if (!topology.are_alike(x.links[i], y.links[i])) return false;
  }
  return true;
}

const std::string& name(const Topology& topology, NodeId node) { return topology.node(node).name; }

/// Condition 4 if each actor is joined to one switch by one cable: there is only one way between any two. Returns
/// the switch; none if the topology is another.
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
    if (!topology.are_alike(o, out) || !topology.are_alike(i, in))
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
        routes_(topology, options.plans.front().transport, options.routing),
        user_(topology.n_resources(), -1) {}

  /// The paths of one stride.
  void follow(const Stride& stride, Bytes carried) {
    std::fill(user_.begin(), user_.end(), -1);
    const Path first = path(0, stride);
    for (Actor a = 0; a < group_.order(); ++a) {
      if (a % 1024 == 0) refuse_if_stopped(options_);
      const Path here = path(a, stride);
      if (!alike(topology_, here, first))
        refuse("the path of {} is not like that of {}", pair(a, stride), pair(0, stride));
      for (const Leg& leg : here.legs)
        for (const LinkId id : leg.links) take(id, a, stride, carried);
    }
  }

  /// Another lane's channel to the same ranks, at the same time: it must take the paths of the first.
  void follow_again(const Stride& stride, const Stride& first, Bytes carried) {
    for (Actor a = 0; a < group_.order(); ++a) {
      const Path here = path(a, stride), there = path(a, first);
      const auto same = [](const Leg& x, const Leg& y) { return x.links == y.links; };
      if (!std::equal(here.legs.begin(), here.legs.end(), there.legs.begin(), there.legs.end(), same))
        refuse("channels {} and {} of {} take different paths", first.channel, stride.channel, pair(a, stride));
      for (const Leg& leg : here.legs)
        for (const LinkId id : leg.links) link_bytes_[id.value] += carried;
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

/// The paths' part of the proof, condition 4. Returns what there is to say about them.
std::string follow_paths(const Topology& topology, const RunOptions& options, const CheckedSchedule& checked,
                         const std::vector<NodeId>& placement, const LanesInStep& lanes,
                         std::vector<Bytes>& link_bytes) {
  const Strides& strides = lanes.strides();
  expect_one_each(topology, placement);
  link_bytes.assign(topology.n_links(), Bytes{});
  const bool has_lanes = lanes.n_lanes() > 1;
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
  Strides apart;  // by channel only if routes look at it
  const bool by_channel = options.routing.policy == Routing::Policy::ecmp;
  for (const auto& [stride, bytes] : strides)
    apart[{stride.by, by_channel ? stride.channel : std::uint16_t{0}}] += bytes;
  Paths paths(topology, options, checked.proof().symmetry, placement, link_bytes);
  std::optional<Stride> first;  // of those to the same ranks
  for (const auto& [stride, bytes] : apart) {
    if (has_lanes && first && first->by == stride.by) {
      paths.follow_again(stride, *first, bytes);
    } else {
      paths.follow(stride, bytes);
      first = stride;
    }
  }
  return "the paths of their messages are identical in kind and share no link";
}

/// "{2,3}"; "{2^16}" for sixteen twos.
std::string text_of(const Symmetry& group) {
  const std::vector<int>& radices = group.radices();
  const bool equal = std::equal(radices.begin() + 1, radices.end(), radices.begin());
  if (radices.size() > 2 && equal) return fmt::format("{{{}^{}}}", radices[0], radices.size());
  return fmt::format("{{{}}}", fmt::join(radices, ","));
}

void expect_symmetry(const CheckedSchedule& checked) {
  const Schedule& schedule = checked.schedule();
  const Proof& proof = checked.proof();
  if (proof.by == Proof::By::parts) {
    if (!proof.repeated.why_no_symmetry.empty()) refuse("{}", proof.repeated.why_no_symmetry);
    return ensure(proof.symmetry.claimed(), "a program has a symmetry, or a reason why not");
  }
  if (!proof.symmetry.claimed())
    refuse("the schedule{}", schedule.symmetry.claimed() ? "'s symmetry was not proved" : " claims no symmetry");
  for (const Layout& layout : schedule.layout)
    if (!layout.uniform())
      refuse("{} bytes in {} chunks are not equal chunks", layout.total().count, layout.n_chunks());
}

/// What there is to say about the symmetry.
std::string about_symmetry(const CheckedSchedule& checked) {
  const Proof& proof = checked.proof();
  const bool is_program = proof.by == Proof::By::parts;
  const bool everywhere = is_program ? proof.repeated.at_every_rank : proof.by == Proof::By::symmetry;
  return fmt::format("{} {} of {} was checked at {}, and its chunks are equal",
                     is_program ? "they do the same tasks in the same time, the symmetry" : "the symmetry",
                     text_of(proof.symmetry), is_program ? "each collective" : checked.schedule().algorithm,
                     everywhere ? "every step of every rank" : "samples");
}

}  // namespace

std::optional<Folding> fold(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                            const std::vector<NodeId>& placement, std::string& why_not) {
  const Schedule& schedule = checked.schedule();
  return unless_refused(why_not, [&] {
    if (options.record_spans || (options.on_message && !options.messages_may_fold) || options.on_traffic)
      refuse("every message is being recorded");
    if (moves_packets(options.model))
      refuse("in the model {} messages may meet where none shares a link", to_string(options.model));
    expect_symmetry(checked);
    LanesInStep lanes(checked, options);
    if (options.plans.front().transport.nics == Transport::Nics::per_channel && lanes.n_lanes() > 1)
      refuse("the lanes of a rank may leave by NICs of their own");
    Folding made{.ranks = schedule.actors, .one = schedule};
    made.one.actors = 1;
    const std::string about = follow_paths(topology, options, checked, placement, lanes, made.link_bytes);
    made.peers = lanes.take_peers();
    made.why =
        fmt::format("one rank represents all {}: {}, {}and {}", made.ranks, about_symmetry(checked),
                    lanes.n_lanes() > 1 ? fmt::format("its {} lanes do the same, ", lanes.n_lanes()) : "", about);
    return made;
  });
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
