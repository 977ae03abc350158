#include "sim/run/find_stand_ins.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "sim/base/watch.hpp"
#include "sim/run/planned_routes.hpp"
#include "sim/schedule/lanes.hpp"

namespace ringsim {

namespace {

/// Chosen: with fewer than two actors a class, the run of all costs about as much.
constexpr std::size_t least_class = 2;
/// Chosen: like connections that share a link are separated at one kind of link per round, and a few kinds have them.
constexpr int most_collisions = 8;

/// Chosen: a connection takes some 500 bytes here, as it does in the run itself.
constexpr std::size_t most_connections = std::size_t{1} << 21;
/// Chosen: what is unlike in one place of a ring is so one place farther after each pass, so that hardly any actor
/// would be left that stands for another.
constexpr int most_passes = 256;

/// Chosen: of a schedule with fewer actors all kinds are read, however many there are.
constexpr std::size_t most_unlike = 64;

/// Numbers for things that are compared by what they are.
template <class Thing>
class Numbers {
 public:
  int of(Thing thing) { return known_.try_emplace(std::move(thing), static_cast<int>(known_.size())).first->second; }
  std::size_t size() const { return known_.size(); }

 private:
  std::map<Thing, int> known_;
};

using Words = std::vector<std::int64_t>;

/// A sender, a receiver and a channel, over all schedules.
struct Connection {
  Actor from = 0, to = 0;
  Words sends, receives;      // schedule and number among the sender's, or the receiver's, in that one; in pairs
  int sent_as = 0;            // a number of `sends`, which no other connection of its sender has
  int received_as = 0;        // likewise
  std::vector<LinkId> links;  // over all parts and legs of its path
  std::vector<int> legs;      // [link] of all of its legs
  int form = 0;               // a number for all of its path but the links
};

bool has_steps(const Schedule& schedule, Actor actor) {
  for (Lane lane = 0; lane < schedule.lanes; ++lane)
    if (schedule.n_steps(actor, lane) > 0) return true;
  return false;
}

class Finder {
 public:
  Finder(const Topology& topology, const RunOptions& options, const ToldApart& actors)
      : topology_(topology),
        options_(options),
        actors_(actors),
        n_actors_(static_cast<Actor>(actors.roles.size())),
        has_posts_(options.may_post(topology)) {}

  std::shared_ptr<const StandIns> found() {
    if (has_posts_ && shares_devices()) return nullptr;
    shapes_.resize(actors_.roles.size());
    for (std::size_t i = 0; i < actors_.schedules.size(); ++i)
      if (!read(actors_.schedules[i](), static_cast<std::int64_t>(i))) return nullptr;
    if (connections_.empty() || !find_paths()) return nullptr;
    color();
    for (int round = 0; refine() && round < most_collisions; ++round)
      if (!tell_apart()) return made();
    return nullptr;
  }

 private:
  // Two actors whose messages one device posts.
  bool shares_devices() const {
    std::set<std::uint32_t> taken;
    for (const NodeId device : options_.placement)
      if (!taken.insert(device.value).second) return true;
    return false;
  }

  // The steps of those who have any, and their connections. False: there are too many kinds of actors.
  bool read(const CheckedSchedule& checked, std::int64_t number) {
    const Schedule& schedule = checked.schedule();
    Numbers<Words> shapes;
    std::size_t n_members = 0;
    for (Actor actor = 0; actor < n_actors_; ++actor) {
      if (!has_steps(schedule, actor)) continue;
      throw_if_stopped(options_.stop, "ranks that are alike were being looked for");
      ++n_members;
      const int shape = shapes.of(shape_of(schedule, actor, number));
      if (shapes.size() > 1 + n_members / least_class && n_members > most_unlike) return false;
      if (!has_only_own_ || connections_.size() > most_connections) return false;
      shapes_[static_cast<std::size_t>(actor)].push_back(number << 32 | shape);
    }
    return true;
  }

  // An actor's steps in a schedule, with its connections numbered instead of its peers.
  Words shape_of(const Schedule& schedule, Actor actor, std::int64_t kind) {
    Words shape;
    std::map<std::pair<std::uint64_t, bool>, std::int64_t> numbers;
    Step step;
    for (Lane lane = 0; lane < schedule.lanes; ++lane) {
      const int n_steps = schedule.n_steps(actor, lane);
      shape.push_back(n_steps);
      for (int i = 0; i < n_steps; ++i) {
        step.clear();
        schedule.step(actor, lane, i, step);
        shape.push_back(static_cast<std::int64_t>(step.ops.size() << 32 | step.waits.size()));
        for (const Wait& wait : step.waits) {
          has_only_own_ = has_only_own_ && wait.actor < 0;
          shape.push_back(static_cast<std::int64_t>(wait.lane) << 32 | static_cast<std::int64_t>(wait.steps));
        }
        if (has_posts_) add_turns(actor, step, shape);
        for (const Op& op : step.ops) {
          shape.push_back(static_cast<std::int64_t>(op.what) << 16 | static_cast<std::int64_t>(op.channel));
          if (op.what == Do::compute) {
            shape.push_back(op.time.count());
            has_only_own_ = has_only_own_ && op.unit() < 0;
            continue;
          }
          shape.push_back(schedule.size(op.region).count);
          if (op.peer < 0) continue;
          shape.push_back(number_of(actor, op, kind, numbers));
        }
      }
    }
    return shape;
  }

  // Posts takes what one lane sends at one instant in order of the distance to the receiver.
  void add_turns(Actor actor, const Step& step, Words& shape) const {
    std::vector<Actor> far;
    for (const Op& op : step.ops)
      if (op.what == Do::send) far.push_back(wrap(op.peer - actor, n_actors_));
    if (far.size() < 2) return;
    shape.push_back(static_cast<std::int64_t>(far.size()));
    for (const Actor each : far)
      shape.push_back(std::count_if(far.begin(), far.end(), [&](Actor other) { return other < each; }));
  }

  // The number of a connection among those of the actor in a schedule.
  std::int64_t number_of(Actor actor, const Op& op, std::int64_t kind,
                         std::map<std::pair<std::uint64_t, bool>, std::int64_t>& numbers) {
    const bool sends = op.what == Do::send;
    const std::uint64_t key = connection_key(actor, op);
    const auto next = static_cast<std::int64_t>(numbers.size());
    const auto [number, is_new] = numbers.try_emplace({key, sends}, next);
    if (!is_new) return number->second;
    Connection& connection = connections_[key];
    connection.from = sends ? actor : op.peer;
    connection.to = sends ? op.peer : actor;
    Words& words = sends ? connection.sends : connection.receives;
    words.push_back(kind);
    words.push_back(next);
    return next;
  }

  // False: a link of some path shares its resource.
  bool find_paths() {
    PlannedRoutes routes(topology_, options_);
    const bool by_channel = differ_by_channel(topology_, options_);
    Numbers<Words> uses, forms;
    used_.resize(topology_.n_links());
    for (auto& [key, connection] : connections_) {
      throw_if_stopped(options_.stop, "ranks that are alike were being looked for");
      connection.sent_as = uses.of(connection.sends);
      connection.received_as = uses.of(connection.receives);
      const auto channel = static_cast<std::uint32_t>(key & UINT16_MAX);
      Words form;
      for (const Path& path :
           routes.find_parts(node_of(connection.from), node_of(connection.to), by_channel ? channel : 0)) {
        form.push_back(-1 - static_cast<std::int64_t>(path.type));
        form.push_back(topology_.joins_hosts(node_of(connection.from), node_of(connection.to)) ? 1 : 0);
        form.push_back(path.has_choice ? 1 : 0);
        for (const Leg& leg : path.legs) {
          form.insert(form.end(),
                      {static_cast<std::int64_t>(leg.links.size()), leg.latency.count(), leg.beyond.count()});
          for (std::size_t l = 0; l < leg.links.size(); ++l) {
            form.push_back(std::bit_cast<std::int64_t>(leg.share(l)));
            if (!use(leg.links[l])) return false;
            connection.links.push_back(leg.links[l]);
            connection.legs.push_back(n_legs_);
          }
          ++n_legs_;
        }
      }
      connection.form = forms.of(std::move(form));
    }
    return use_work();
  }

  // Devices copy and add over links of their own. False: one draws on another link.
  bool use_work() {
    for (Actor actor = 0; actor < n_actors_; ++actor)
      for (const LinkId link : work_of(actor))
        if (!use(link)) return false;
    return true;
  }
  std::vector<LinkId> work_of(Actor actor) const {
    const DeviceLinks* device = topology_.device(node_of(actor));
    std::vector<LinkId> found;
    if (device == nullptr) return found;
    for (const DeviceLinks::Work& work : {device->copy, device->reduce})
      if (work.link != no_link) found.push_back(work.link);
    return found;
  }

  bool use(LinkId link) {
    used_[link.value] = true;
    return topology_.has_own_resource(link) && !topology_.resource(topology_.link(link).resource).shared;
  }

  NodeId node_of(Actor actor) const { return options_.placement[static_cast<std::size_t>(actor)]; }

  // The first colors.
  void color() {
    Numbers<Words> actors;
    for (Actor actor = 0; actor < n_actors_; ++actor) {
      Words words{actors_.roles[static_cast<std::size_t>(actor)], actor < actors_.ranks ? 1 : 0};
      const auto& shapes = shapes_[static_cast<std::size_t>(actor)];
      words.insert(words.end(), shapes.begin(), shapes.end());
      if (const DeviceLinks* device = topology_.device(node_of(actor)); device != nullptr)
        for (const std::int64_t each :
             {device->start.count(), device->post.count(), static_cast<std::int64_t>(device->channels.size()),
              std::bit_cast<std::int64_t>(device->copy.weight), std::bit_cast<std::int64_t>(device->reduce.weight)})
          words.push_back(each);
      colors_.push_back(actors.of(std::move(words)));
    }
    std::vector<LinkId> first;  // [color]
    link_colors_.assign(topology_.n_links(), -1);
    for (std::uint32_t l = 0; l < topology_.n_links(); ++l) {
      if (!used_[l]) continue;
      std::size_t its = 0;
      while (its < first.size() && !topology_.are_alike(first[its], LinkId{l})) ++its;
      if (its == first.size()) first.push_back({l});
      link_colors_[l] = static_cast<int>(its);
    }
    places_.assign(colors_.size(), 0);
  }

  // Splits colors until none is to be split. False: too few actors share a color.
  bool refine() {
    std::size_t n_before = 0;
    for (int pass = 0; pass < most_passes; ++pass) {
      throw_if_stopped(options_.stop, "ranks that are alike were being looked for");
      Numbers<Words> paths, actors, links;
      std::vector<Words> next(colors_.size());
      for (std::size_t actor = 0; actor < colors_.size(); ++actor) {
        next[actor] = {colors_[actor], places_[actor]};
        for (const LinkId link : work_of(static_cast<Actor>(actor))) next[actor].push_back(link_colors_[link.value]);
      }
      add_connections(paths, next);
      std::vector<Words> around = crossings();
      for (std::size_t actor = 0; actor < colors_.size(); ++actor) colors_[actor] = actors.of(std::move(next[actor]));
      for (std::size_t l = 0; l < around.size(); ++l) {
        if (!used_[l]) continue;
        around[l].push_back(link_colors_[l]);
        link_colors_[l] = links.of(std::move(around[l]));
      }
      if (actors.size() * least_class > colors_.size()) return false;
      if (actors.size() + links.size() == n_before) return true;
      n_before = actors.size() + links.size();
    }
    return false;
  }

  void add_connections(Numbers<Words>& paths, std::vector<Words>& next) const {
    std::vector<std::vector<Words>> own(colors_.size());
    for (const auto& [key, connection] : connections_) {
      Words path{connection.form};
      for (const LinkId link : connection.links) path.push_back(link_colors_[link.value]);
      const std::int64_t its = paths.of(std::move(path));
      own[static_cast<std::size_t>(connection.from)].push_back(
          {0, connection.sent_as, connection.received_as, color_of(connection.to), its});
      own[static_cast<std::size_t>(connection.to)].push_back(
          {1, connection.received_as, connection.sent_as, color_of(connection.from), its});
    }
    for (std::size_t actor = 0; actor < own.size(); ++actor) {
      std::sort(own[actor].begin(), own[actor].end());
      for (const Words& words : own[actor]) next[actor].insert(next[actor].end(), words.begin(), words.end());
    }
  }

  /// A connection, or an actor's own work, on a link.
  struct Crossing {
    std::int64_t color = 0, what = 0, place = 0;
    Actor actor = 0;  // not compared
    auto what_it_is() const { return std::tuple(color, what, place); }
  };
  // [link] in order
  std::vector<std::vector<Crossing>> all_crossings() const {
    std::vector<std::vector<Crossing>> found(topology_.n_links());
    for (const auto& [key, connection] : connections_)
      for (std::size_t l = 0; l < connection.links.size(); ++l)
        found[connection.links[l].value].push_back({.color = color_of(connection.from),
                                                    .what = connection.sent_as,
                                                    .place = static_cast<std::int64_t>(l),
                                                    .actor = connection.from});
    for (Actor actor = 0; actor < n_actors_; ++actor) {
      const std::vector<LinkId> work = work_of(actor);
      for (std::size_t l = 0; l < work.size(); ++l)
        found[work[l].value].push_back(
            {.color = color_of(actor), .what = -1, .place = static_cast<std::int64_t>(l), .actor = actor});
    }
    for (std::vector<Crossing>& each : found)
      std::sort(each.begin(), each.end(), [](const Crossing& a, const Crossing& b) {
        return std::tuple(a.what_it_is(), a.actor) < std::tuple(b.what_it_is(), b.actor);
      });
    return found;
  }
  std::vector<Words> crossings() const {
    std::vector<Words> found;
    for (const std::vector<Crossing>& of_link : all_crossings()) {
      Words& words = found.emplace_back();
      for (const Crossing& each : of_link) words.insert(words.end(), {each.color, each.what, each.place});
    }
    return found;
  }

  // Actors of a color whose like connections meet on a link get places, by which they differ. False: none do.
  bool tell_apart() {
    bool has_found = false;
    places_.assign(colors_.size(), 0);  // colors have those of before
    for (const std::vector<Crossing>& of_link : all_crossings()) {
      std::int64_t place = 0;
      for (std::size_t i = 1; i < of_link.size(); ++i) {
        place = of_link[i].what_it_is() == of_link[i - 1].what_it_is() ? place + 1 : 0;
        std::int64_t& its = places_[static_cast<std::size_t>(of_link[i].actor)];
        if (place == 0) continue;
        has_found = true;
        its = std::max(its, place);
      }
    }
    return has_found;
  }

  std::int64_t color_of(Actor actor) const { return colors_[static_cast<std::size_t>(actor)]; }

  std::shared_ptr<const StandIns> made() const {
    auto found = std::make_shared<StandIns>();
    std::vector<Actor> first(colors_.size(), -1);  // [color]
    for (std::size_t actor = 0; actor < colors_.size(); ++actor) {
      Actor& its = first[static_cast<std::size_t>(colors_[actor])];
      if (its < 0) its = static_cast<Actor>(actor);
      found->actors.push_back(its);
    }
    std::vector<int> n(colors_.size());  // [color]
    for (const int color : colors_) ++n[static_cast<std::size_t>(color)];
    for (const int color : colors_) found->counts.push_back(n[static_cast<std::size_t>(color)]);
    std::vector<LinkId> first_link(topology_.n_links(), no_link);  // [color]
    for (std::uint32_t l = 0; l < topology_.n_links(); ++l) {
      LinkId its{l};
      if (used_[l]) {
        LinkId& known = first_link[static_cast<std::size_t>(link_colors_[l])];
        if (known == no_link) known = its;
        its = known;
      }
      found->links.push_back(its);
    }
    if (!has_apart_legs(*found)) return nullptr;
    std::map<std::pair<Actor, int>, std::uint64_t> sent;  // by its sender, which is simulated, and Connection::sent_as
    for (const auto& [key, connection] : connections_)
      if (found->actor(connection.from) == connection.from) sent[{connection.from, connection.sent_as}] = key;
    for (const auto& [key, connection] : connections_)
      if (found->actor(connection.to) == connection.to)
        found->received[key] = sent.at({found->actor(connection.from), connection.sent_as});
    return found;
  }

  // No link stands for two of one leg.
  bool has_apart_legs(const StandIns& stand_ins) const {
    for (const auto& [key, connection] : connections_) {
      std::set<std::pair<int, std::uint32_t>> seen;
      for (std::size_t l = 0; l < connection.links.size(); ++l)
        if (!seen.emplace(connection.legs[l], stand_ins.links[connection.links[l].value].value).second) return false;
    }
    return true;
  }

  const Topology& topology_;
  const RunOptions& options_;
  const ToldApart& actors_;
  Actor n_actors_;
  bool has_posts_;
  bool has_only_own_ = true;  // no unit that several actors share, no wait for another's steps
  int n_legs_ = 0;
  std::vector<Words> shapes_;                        // [actor] by schedule: its number, and the actor's shape in it
  std::map<std::uint64_t, Connection> connections_;  // by connection_key()
  std::vector<bool> used_;                           // [link]
  std::vector<int> colors_, link_colors_;            // [actor], [link]
  std::vector<std::int64_t> places_;                 // [actor]
};

}  // namespace

std::shared_ptr<const StandIns> find_stand_ins(const Topology& topology, const RunOptions& options,
                                               const ToldApart& actors) {
  return Finder(topology, options, actors).found();
}

}  // namespace ringsim
