#include "sim/run/fold_turns.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/run/planned_routes.hpp"
#include "sim/run/refusal.hpp"
#include "sim/schedule/piecewise.hpp"

namespace ringsim {

namespace {

std::size_t index_of(Actor actor) { return static_cast<std::size_t>(actor); }

/// Condition 1, for one number of ranks after another.
class TurningSchedule {
 public:
  TurningSchedule(const CheckedSchedule& checked, const Protocol& protocol)
      : schedule_(checked.schedule()),
        protocol_(protocol),
        made_(piecewise(schedule_)),
        n_(schedule_.collective.ranks) {
    const Proof& proof = checked.proof();
    if (proof.by == Proof::By::parts) refuse("a program has several schedules");
    if (proof.copies_first) refuse("ranks copy before they send");
    const bool has_casts = made_ != nullptr && !made_->casts.empty();
    const Symmetry& symmetry = has_casts ? proof.positions : proof.symmetry;
    if (!symmetry.claimed() || symmetry.radices().size() != 1 || !symmetry.chunks_as_actors())
      refuse("the schedule is not proved to be the same from rank to rank");
    ensure(symmetry.order() == n_ && schedule_.actors == n_, "a symmetry is one of all ranks");
    const Schedule& plain = made_ == nullptr ? schedule_ : made_->plain;
    for (std::size_t b = 0; b < n_buffers; ++b)
      if (const int n = plain.layout[b].n_chunks(); n != 0 && n != n_) refuse("ranks have several chunks each");
  }

  /// True if the rank `by` further does the same; if not, why_not() says why.
  bool turns(Actor by) {
    const int n_channels = made_ == nullptr ? 1 : made_->channels;
    for (int channel = 0; channel < n_channels; ++channel) {
      const Cast* cast = cast_of(channel);
      // Counts positions, which are the ranks if each has its own.
      const int shift = cast == nullptr ? by : wrap(position(cast, by) - position(cast, 0), n_);
      for (Actor p = 0; p < n_ && cast != nullptr; ++p)
        if (rank(cast, wrap(p + shift, n_)) != wrap(rank(cast, p) + by, n_)) {
          why_not_ = fmt::format("the order of channel {} does not repeat", channel);
          return false;
        }
      if (!sizes_turn(channel, shift)) return false;
    }
    return true;
  }
  const std::string& why_not() const { return why_not_; }

 private:
  const Cast* cast_of(int channel) const {
    return made_ == nullptr || made_->casts.empty() ? nullptr : &made_->casts[static_cast<std::size_t>(channel)];
  }
  static Actor rank(const Cast* cast, int position) { return cast->rank[index_of(position)]; }
  static int position(const Cast* cast, Actor rank) { return cast->position[index_of(rank)]; }

  // Chunks that the shift of positions moves onto each other are equally large on the wire.
  bool sizes_turn(int channel, int shift) {
    const int rounds = made_ == nullptr ? 1 : made_->rounds;
    for (std::size_t b = 0; b < n_buffers; ++b) {
      const Layout& layout = schedule_.layout[b];
      if (layout.n_chunks() == 0) continue;
      for (int round = 0; round < rounds; ++round)
        for (int c = 0; c < n_; ++c)
          if (size(b, channel, round, c) != size(b, channel, round, wrap(c + shift, n_))) {
            why_not_ =
                fmt::format("{} bytes in {} chunks are not equal chunks", layout.total().count, layout.n_chunks());
            return false;
          }
    }
    return true;
  }
  // Size on the wire of a chunk of the plain schedule.
  Bytes size(std::size_t buffer, int channel, int round, int c) const {
    auto chunk = static_cast<std::uint32_t>(c);
    if (made_ == nullptr) return protocol_.on_wire(schedule_.layout[buffer].size(chunk, 1));
    const Cut& cut = made_->cut;
    if (const Cast* cast = cast_of(channel); cast != nullptr && cut.parts)
      chunk = cast->chunk_of(chunk, cut.chunks[buffer]);
    const auto piece = static_cast<std::uint32_t>(channel * made_->rounds + round);
    return protocol_.on_wire(schedule_.layout[buffer].size(cut.chunk(static_cast<Buffer>(buffer), {chunk, piece}), 1));
  }

  const Schedule& schedule_;
  const Protocol& protocol_;
  const Piecewise* made_;
  int n_;
  std::string why_not_;
};

/// To whom a lane sends.
struct Sending {
  Actor to = -1;  // nobody
  int channel = -1;
};

/// Conditions 2 and 4 of the ranks that are simulated. Returns [rank * lanes + lane].
std::vector<Sending> sendings(const Schedule& schedule, int simulated, const RunOptions& options) {
  std::vector<Sending> all(index_of(simulated) * static_cast<std::size_t>(schedule.lanes));
  const Protocol& protocol = *options.plans.front().protocol;
  int slots = 0;  // that a message fills
  Step step;
  for (Actor rank = 0; rank < simulated; ++rank)
    for (Lane lane = 0; lane < schedule.lanes; ++lane) {
      Sending& its = all[index_of(rank * schedule.lanes + lane)];
      const int n_steps = schedule.n_steps(rank, lane);
      for (int i = 0; i < n_steps; ++i) {
        step.clear();
        schedule.step(rank, lane, i, step);
        const auto n_sends =
            std::count_if(step.ops.begin(), step.ops.end(), [](const Op& op) { return op.what == Do::send; });
        if (step.ops.size() != 2 || n_sends != 1) refuse("step {} is not one message", i);
        if (!step.waits.empty()) refuse("a lane of a rank waits for another in step {}", i);
        for (const Op& op : step.ops) {
          if (op.what == Do::compute || op.what == Do::copy || op.what == Do::add)
            refuse("step {} is more than messages", i);
          if (op.region.count != 1) refuse("step {} moves several chunks", i);
          if (its.channel >= 0 && its.channel != op.channel) refuse("lane {} of a rank has several channels", lane);
          its.channel = op.channel;
          if (op.what != Do::send) continue;
          if (its.to >= 0 && its.to != op.peer) refuse("lane {} of a rank sends to several", lane);
          its.to = op.peer;
          if (protocol.slots == 0) continue;
          const int fills = protocol.slots_of(protocol.on_wire(schedule.size(op.region)));
          if (fills > protocol.slots || protocol.slots % fills != 0 || (slots != 0 && slots != fills))
            refuse("a message can start before it has all of its {} slots", protocol.name);
          slots = fills;
        }
      }
    }
  // Both ends of a message are in lanes of one number.
  std::map<int, Lane> lane_of;  // [channel]
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Lane lane = static_cast<Lane>(i) % schedule.lanes;
    if (all[i].channel >= 0 && lane_of.try_emplace(all[i].channel, lane).first->second != lane)
      refuse("channel {} is in several lanes", all[i].channel);
  }
  return all;
}

bool are_images(const Topology& topology, const Path& a, const Path& b) {
  if (a.type != b.type || a.legs.size() != b.legs.size()) return false;
  const auto like = [&](LinkId x, LinkId y) { return topology.are_alike(x, y); };
  for (std::size_t i = 0; i < a.legs.size(); ++i) {
    const Leg &x = a.legs[i], &y = b.legs[i];
    if (x.latency != y.latency || x.shares != y.shares ||
        !std::equal(x.links.begin(), x.links.end(), y.links.begin(), y.links.end(), like))
      return false;
  }
  return true;
}

/// Condition 3.
class TurningLinks {
 public:
  TurningLinks(const Topology& topology, const RunOptions& options, const std::vector<NodeId>& placement)
      : topology_(topology),
        options_(options),
        placement_(placement),
        n_(static_cast<int>(placement.size())),
        routes_(topology, options),
        by_channel_(differ_by_channel(topology, options)) {}

  /// Follows the messages of the ranks that are simulated through all turns by `by`. Returns [link] which stands for
  /// it.
  std::vector<LinkId> follow(const std::vector<Sending>& sendings, int lanes, Actor by) {
    by_ = by;
    place_.assign(topology_.n_links(), {});
    first_.clear();
    for (std::size_t i = 0; i < sendings.size(); ++i)
      if (sendings[i].to >= 0) follow(static_cast<Actor>(i) / lanes, sendings[i]);
    std::vector<LinkId> stands_for;
    for (std::uint32_t link = 0; link < topology_.n_links(); ++link) {
      const Place& place = place_[link];
      stands_for.push_back(place.orbit < 0 ? LinkId{link} : first_[static_cast<std::size_t>(place.orbit)]);
    }
    return stands_for;
  }

 private:
  struct Place {
    int orbit = -1;  // those that are images of each other; -1: in use by nobody
    int turn = 0;    // how often the first of them was turned
  };

  const Path& path(Actor from, Actor to, std::uint32_t label) {
    if (const auto known = paths_.find({from, to, label}); known != paths_.end()) return known->second;
    refuse_if_stopped(options_);
    std::vector<Path> parts = routes_.find_parts(placement_[index_of(from)], placement_[index_of(to)], label);
    if (parts.size() != 1) refuse("messages are cut into {} parts", parts.size());
    const NodeId node = placement_[index_of(from)];
    if (parts[0].legs.empty()) refuse("two ranks sit on {}", topology_.node(node).name);
    return paths_.emplace(Pair{from, to, label}, std::move(parts[0])).first->second;
  }

  void follow(Actor from, const Sending& sending) {
    const Path& first = path(from, sending.to, label(sending));
    for (const Leg& leg : first.legs) take(leg, from, sending.to);
    for (int turn = 1; turn < n_ / by_; ++turn) {
      const Actor a = wrap(from + turn * by_, n_), b = wrap(sending.to + turn * by_, n_);
      const Path& here = path(a, b, label(sending));
      if (!are_images(topology_, first, here))
        refuse("the path of {} is not like that of {}", pair(a, b), pair(from, sending.to));
      for (std::size_t i = 0; i < first.legs.size(); ++i)
        for (std::size_t l = 0; l < first.legs[i].links.size(); ++l)
          expect_image(first.legs[i].links[l], here.legs[i].links[l], turn);
    }
  }

  // Links of a rank that is simulated.
  void take(const Leg& leg, Actor from, Actor to) {
    for (const LinkId link : leg.links) {
      expect_own_resource(link);
      if (at(link).orbit >= 0) continue;
      at(link) = {.orbit = static_cast<int>(first_.size()), .turn = 0};
      first_.push_back(link);
    }
    for (std::size_t l = 0; l < leg.links.size(); ++l)
      for (std::size_t k = 0; k < l; ++k)
        if (at(leg.links[k]).orbit == at(leg.links[l]).orbit)
          refuse("the path of {} uses similar links twice", pair(from, to));
  }
  void expect_own_resource(LinkId link) const {
    if (topology_.resource(topology_.link(link).resource).shared)
      refuse("{} shares its bandwidth with another link", topology_.link_name(link));
  }

  std::uint32_t label(const Sending& sending) const {
    return by_channel_ ? static_cast<std::uint32_t>(sending.channel) : 0;
  }

  // Turned that often, the one link is the other.
  void expect_image(LinkId link, LinkId image, int turn) {
    const Place& one = at(link);
    const Place expected{.orbit = one.orbit, .turn = (one.turn + turn) % (n_ / by_)};
    Place& other = at(image);
    if (other.orbit < 0) {
      expect_own_resource(image);
      other = expected;
      LinkId& first = first_[static_cast<std::size_t>(one.orbit)];
      first = std::min(first, image);
    }
    if (other.orbit != expected.orbit || other.turn != expected.turn)
      refuse("{} is used in different ways by ranks that are {} apart", topology_.link_name(image), by_);
  }

  Place& at(LinkId link) { return place_[link.value]; }
  std::string pair(Actor from, Actor to) const {
    return fmt::format("{} to {}", topology_.node(placement_[index_of(from)]).name,
                       topology_.node(placement_[index_of(to)]).name);
  }

  struct Pair {
    Actor from = 0, to = 0;
    std::uint32_t label = 0;
    auto operator<=>(const Pair&) const = default;
  };

  const Topology& topology_;
  const RunOptions& options_;
  const std::vector<NodeId>& placement_;
  int n_;
  PlannedRoutes routes_;
  bool by_channel_;
  Actor by_ = 1;
  std::map<Pair, Path> paths_;
  std::vector<Place> place_;   // [link]
  std::vector<LinkId> first_;  // [orbit] the one of its links with the lowest number
};

/// The fewest ranks that can stand for all.
FoldingByTurns folded_by_turns(const Topology& topology, const CheckedSchedule& checked, const RunOptions& options,
                               const std::vector<NodeId>& placement) {
  const Schedule& schedule = checked.schedule();
  TurningSchedule turning(checked, *options.plans.front().protocol);
  if (moves_packets(options.model) || !shares_all_links(options.model))
    refuse("the network model is {}", to_string(options.model));
  if (options.routing.policy != Routing::Policy::fixed && options.routing.policy != Routing::Policy::ecmp)
    refuse("messages are spread over several ways");
  if (options.record_path) refuse("the critical path is being recorded");
  if (options.record_spans || options.on_message || options.on_traffic) refuse("every message is being recorded");
  TurningLinks links(topology, options, placement);
  std::string why_not = "no smaller number of ranks divides the number of ranks";
  bool schedule_turns = false;  // by some number of ranks
  for (int by = 1; by <= schedule.actors / 2; ++by) {
    if (schedule.actors % by != 0) continue;
    if (!turning.turns(by)) {
      if (!schedule_turns) why_not = turning.why_not();
      continue;
    }
    schedule_turns = true;
    try {
      const std::vector<Sending> sending = sendings(schedule, by, options);
      FoldingByTurns made{.ranks = schedule.actors, .simulated = by, .why = {}, .first = schedule};
      made.stands_for = links.follow(sending, schedule.lanes, by);
      made.first.actors = by;
      for (std::size_t i = 0; i < sending.size(); ++i)
        made.peers.push_back(sending[i].to >= 0 ? sending[i].to : static_cast<Actor>(i) / schedule.lanes);
      made.why = fmt::format(
          "{} of {} ranks represent all: rank r + {} does what r does, by the construction and proof of {}, over "
          "identically used links",
          by, schedule.actors, by, schedule.algorithm);
      return made;
    } catch (const Refusal& refusal) {
      why_not = refusal.because;
    }
  }
  throw Refusal{why_not};
}

}  // namespace

std::optional<FoldingByTurns> fold_by_turns(const Topology& topology, const CheckedSchedule& checked,
                                            const RunOptions& options, const std::vector<NodeId>& placement,
                                            std::string& why_not) {
  return unless_refused(why_not, [&] { return folded_by_turns(topology, checked, options, placement); });
}

Timeline FoldingByTurns::unfold(Timeline some_ranks) const {
  Timeline all = std::move(some_ranks);
  const int turns = ranks / simulated;
  std::vector<SimTime> finish;
  for (Actor rank = 0; rank < ranks; ++rank) finish.push_back(all.actor_finish[index_of(simulated_for(rank))]);
  all.actor_finish = std::move(finish);
  all.bytes_sent = all.bytes_sent * turns;
  for (std::int64_t* count : {&all.transfers, &all.events})
    if (__builtin_mul_overflow(*count, turns, count)) fail_too_large("more messages than can be counted (2^63)");
  for (std::size_t link = 0; link < all.link_bytes.size(); ++link)  // what stands for others stands for itself as well
    all.link_bytes[link] = all.link_bytes[stands_for[link].value];
  all.fingerprint.reset();
  all.folded = why;
  return all;
}

}  // namespace ringsim
