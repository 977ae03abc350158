#include "sim/run/fold_renamed.hpp"

#include <fmt/format.h>
#include <tsl/robin_set.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/mixed_hash.hpp"
#include "sim/base/watch.hpp"
#include "sim/run/fold_channels.hpp"
#include "sim/run/planned_routes.hpp"
#include "sim/run/refusal.hpp"
#include "sim/schedule/lanes.hpp"
#include "sim/schedule/piecewise.hpp"

namespace ringsim {

namespace {

/// The renamings of condition 2, by number; 0 changes nothing.
class Renamings {
 public:
  explicit Renamings(const Piecewise& made) : made_(made) {
    for (int channel = 0; channel < made.channels; ++channel) {
      const auto& ranks = made.casts[static_cast<std::size_t>(channel)].rank;
      const auto [known, is_new] = number_.try_emplace(ranks, channels_.size());
      if (is_new) channels_.emplace_back();
      channels_[known->second].push_back(channel);
    }
    for (const std::vector<int>& each : channels_)
      if (each.size() != channels_.front().size()) refuse("some orders of ranks have more channels than others");
    for (std::size_t a = 0; a < size(); ++a)
      for (std::size_t b = 0; b < size(); ++b) products_.push_back(product_of(a, b));
  }

  std::size_t size() const { return channels_.size(); }
  Actor renamed(std::size_t by, Actor rank) const {
    return cast(by).rank[static_cast<std::size_t>(cast(0).position[static_cast<std::size_t>(rank)])];
  }
  /// The renaming by b, then by a.
  std::size_t product(std::size_t a, std::size_t b) const { return products_[a * size() + b]; }
  /// The channels that are simulated.
  const std::vector<int>& simulated() const { return channels_.front(); }
  /// The channel that the i-th of simulated() becomes.
  int channel(std::size_t by, std::size_t i) const { return channels_[by][i]; }

 private:
  const Cast& cast(std::size_t number) const {
    return made_.casts[static_cast<std::size_t>(channels_[number].front())];
  }
  std::size_t product_of(std::size_t a, std::size_t b) const {
    std::vector<Actor> ranks = cast(b).rank;
    for (Actor& rank : ranks) rank = renamed(a, rank);
    const auto found = number_.find(ranks);
    if (found == number_.end()) refuse("the channels' orders are no turns of each other");
    return found->second;
  }

  const Piecewise& made_;
  std::map<std::vector<Actor>, std::size_t> number_;
  std::vector<std::vector<int>> channels_;  // [renaming] all that have its cast
  std::vector<std::size_t> products_;
};

/// The images of links, and what they stand for.
class LinkImages {
 public:
  LinkImages(const Topology& topology, const Renamings& renamings)
      : topology_(topology), renamings_(renamings), number_(topology.n_links(), -1) {}

  void add(LinkId link, std::size_t by, LinkId image) {
    int& number = number_[link.value];
    if (number < 0) {
      number = static_cast<int>(links_.size());
      links_.push_back(link);
      images_.resize(images_.size() + renamings_.size(), no_link);
    }
    LinkId& known = images_[static_cast<std::size_t>(number) * renamings_.size() + by];
    if (known == image) return;
    if (known != no_link) refuse("channels cross links in different ways");
    if (!topology_.are_alike(link, image)) refuse("channels cross links that differ");
    if (!topology_.has_own_resource(image) || topology_.resource(topology_.link(image).resource).shared)
      refuse("a link shares its bandwidth with another");
    known = image;
  }

  /// [link] the one that stands for it. Refuses if condition 3 or 4 does not hold.
  std::vector<LinkId> stand_ins() const {
    expect_products();
    std::vector<LinkId> found;
    for (std::uint32_t l = 0; l < topology_.n_links(); ++l) found.push_back({l});
    for (std::size_t n = 0; n < links_.size(); ++n) {
      std::vector<LinkId> all = images_of(n);
      std::sort(all.begin(), all.end(), [](LinkId a, LinkId b) { return a.value < b.value; });
      if (std::adjacent_find(all.begin(), all.end()) != all.end()) refuse("a link carries several channels in one way");
      for (const LinkId each : all) found[each.value] = all.front();
    }
    return found;
  }

 private:
  std::vector<LinkId> images_of(std::size_t n) const {
    const auto first = images_.begin() + static_cast<std::ptrdiff_t>(n * renamings_.size());
    return {first, first + static_cast<std::ptrdiff_t>(renamings_.size())};
  }
  // If a link is an image of two, its own images by either are the same.
  void expect_products() const {
    std::vector<std::pair<std::size_t, std::size_t>> image_of(number_.size(), {links_.size(), 0});  // link, renaming
    for (std::size_t n = 0; n < links_.size(); ++n) {
      const std::vector<LinkId> own = images_of(n);
      for (std::size_t by = 0; by < own.size(); ++by) {
        if (own[by] == no_link) refuse("channels cross links in different ways");
        auto& [other, by_other] = image_of[own[by].value];
        if (other == links_.size()) {
          std::tie(other, by_other) = std::pair(n, by);
          continue;
        }
        const std::vector<LinkId> theirs = images_of(other);
        for (std::size_t next = 0; next < own.size(); ++next)
          if (own[renamings_.product(next, by)] != theirs[renamings_.product(next, by_other)])
            refuse("channels meet on links in different ways");
      }
    }
  }

  const Topology& topology_;
  const Renamings& renamings_;
  std::vector<int> number_;     // [link] in links_; -1: no simulated channel crosses it
  std::vector<LinkId> links_;   // that simulated channels cross
  std::vector<LinkId> images_;  // [number in links_][renaming]
};

/// The steps of the simulated channels, with the paths of their messages and of the images of these.
class RenamedChannels {
 public:
  RenamedChannels(const Topology& topology, const Schedule& schedule, const Piecewise& made, const RunOptions& options,
                  const std::vector<Actor>& members, int first_channel)
      : topology_(topology),
        schedule_(schedule),
        made_(made),
        options_(options),
        members_(members),
        first_channel_(first_channel),
        renamings_(made),
        images_(topology, renamings_),
        routes_(topology, options),
        by_channel_(differ_by_channel(topology, options)) {}

  ChannelRenaming found() {
    if (renamings_.size() < 2) refuse("ranks have the same positions in all channels");
    compare_chunks();
    compare_devices();
    for (std::size_t i = 0; i < renamings_.simulated().size(); ++i)
      for (Actor actor = 0; actor < schedule_.actors; ++actor) {
        throw_if_stopped(options_.stop, "channels that are alike were being looked for");
        read(actor, i);
      }
    return made();
  }

 private:
  NodeId node_of(Actor rank) const {
    const Actor actor = members_.empty() ? rank : members_[static_cast<std::size_t>(rank)];
    return options_.placement[static_cast<std::size_t>(actor)];
  }

  // How chunks compare on the wire: all alike, or those of a buffer one by one.
  void compare_chunks() {
    const Protocol& protocol = *options_.plan(static_cast<std::uint32_t>(first_channel_)).protocol;
    for (std::size_t b = 0; b < n_buffers; ++b) {
      const Layout& layout = schedule_.layout[b];
      if (layout.uniform() || layout.n_chunks() == 0) continue;
      only_single_[b] = true;
      const Bytes first = protocol.on_wire(layout.size(0, 1));
      for (int c = 1; c < layout.n_chunks(); ++c)
        if (protocol.on_wire(layout.size(static_cast<std::uint32_t>(c), 1)) != first)
          refuse("{} bytes in {} chunks are not equal in all channels", layout.total().count, layout.n_chunks());
    }
  }

  void compare_devices() {
    for (Actor actor = 0; actor < schedule_.actors; ++actor) {
      const DeviceLinks* own = topology_.device(node_of(actor));
      for (std::size_t by = 1; by < renamings_.size(); ++by) {
        const DeviceLinks* other = topology_.device(node_of(renamings_.renamed(by, actor)));
        if ((own == nullptr) != (other == nullptr)) refuse("ranks have devices that differ");
        if (own == nullptr) continue;
        if (own->start != other->start || own->channels.size() != other->channels.size() ||
            own->copy.weight != other->copy.weight || own->reduce.weight != other->reduce.weight)
          refuse("ranks have devices that differ");
        compare_work(own->copy, other->copy, by);
        compare_work(own->reduce, other->reduce, by);
      }
    }
  }
  void compare_work(const DeviceLinks::Work& own, const DeviceLinks::Work& other, std::size_t by) {
    if ((own.link == no_link) != (other.link == no_link)) refuse("ranks have devices that differ");
    if (own.link == no_link) return;
    images_.add(own.link, 0, own.link);
    images_.add(own.link, by, other.link);
  }

  void read(Actor actor, std::size_t i) {
    const int channel = renamings_.simulated()[i];
    for (Lane lane = channel * made_.plain.lanes; lane < (channel + 1) * made_.plain.lanes; ++lane) {
      const int n_steps = schedule_.n_steps(actor, lane);
      for (int number = 0; number < n_steps; ++number) {
        step_.clear();
        schedule_.step(actor, lane, number, step_);
        for (const Op& op : step_.ops) {
          if (op.what == Do::compute) refuse("ranks compute");
          if (only_single_[static_cast<std::size_t>(op.region.buffer)] && op.region.count > 1)
            refuse("messages of several chunks are not equal in all channels");
          if (op.what != Do::send) continue;
          if (followed_.insert(connection_key(actor, op)).second) follow(actor, op, i);
        }
      }
    }
  }

  // Compares the paths of a connection of the i-th simulated channel with those of its images.
  void follow(Actor from, const Op& send, std::size_t i) {
    const int number = send.channel / made_.stride;
    const auto paths = [&](std::size_t by) {
      const auto channel =
          static_cast<std::uint32_t>(first_channel_ + number * made_.stride + renamings_.channel(by, i));
      return routes_.find_parts(node_of(renamings_.renamed(by, from)), node_of(renamings_.renamed(by, send.peer)),
                                by_channel_ ? channel : 0);
    };
    paths_.push_back(paths(0));
    for (std::size_t by = 0; by < renamings_.size(); ++by)
      compare(paths_.back(), by == 0 ? paths_.back() : paths(by), by);
  }

  void compare(const std::vector<Path>& own, const std::vector<Path>& images, std::size_t by) {
    const auto expect = [](bool is_equal) {
      if (!is_equal) refuse("channels have different paths");
    };
    expect(own.size() == images.size());
    for (std::size_t p = 0; p < own.size(); ++p) {
      expect(own[p].type == images[p].type && own[p].has_choice == images[p].has_choice &&
             own[p].legs.size() == images[p].legs.size());
      for (std::size_t l = 0; l < own[p].legs.size(); ++l) {
        const Leg &leg = own[p].legs[l], &image = images[p].legs[l];
        expect(leg.links.size() == image.links.size() && leg.latency == image.latency && leg.beyond == image.beyond);
        for (std::size_t k = 0; k < leg.links.size(); ++k) {
          expect(leg.share(k) == image.share(k));
          images_.add(leg.links[k], by, image.links[k]);
        }
      }
    }
  }

  ChannelRenaming made() {
    auto stand_ins = std::make_shared<StandIns>();
    stand_ins->links = images_.stand_ins();
    for (const std::vector<Path>& parts : paths_)
      for (const Path& path : parts)
        for (const Leg& leg : path.legs) expect_apart(leg, *stand_ins);
    for (std::size_t actor = 0; actor < options_.placement.size(); ++actor)
      stand_ins->actors.push_back(static_cast<Actor>(actor));
    stand_ins->counts.assign(stand_ins->actors.size(), static_cast<int>(renamings_.size()));

    ChannelRenaming found{.channels = made_.channels,
                          .simulated = static_cast<int>(renamings_.simulated().size()),
                          .links = std::move(stand_ins)};
    for (std::size_t by = 0; by < renamings_.size(); ++by) {
      std::vector<Actor>& names = found.names.emplace_back();
      for (Actor rank = 0; rank < schedule_.actors; ++rank) names.push_back(renamings_.renamed(by, rank));
    }
    found.lanes.resize(static_cast<std::size_t>(schedule_.lanes));
    for (const int channel : renamings_.simulated())
      for (Lane lane = channel * made_.plain.lanes; lane < (channel + 1) * made_.plain.lanes; ++lane)
        found.lanes[static_cast<std::size_t>(lane)] = true;
    return found;
  }
  static void expect_apart(const Leg& leg, const StandIns& stand_ins) {
    std::vector<std::uint32_t> links;
    for (const LinkId link : leg.links) links.push_back(stand_ins.links[link.value].value);
    std::sort(links.begin(), links.end());
    if (std::adjacent_find(links.begin(), links.end()) != links.end())
      refuse("a message crosses two links that channels cross alike");
  }

  const Topology& topology_;
  const Schedule& schedule_;
  const Piecewise& made_;
  const RunOptions& options_;
  const std::vector<Actor>& members_;
  int first_channel_;
  Renamings renamings_;
  LinkImages images_;
  PlannedRoutes routes_;
  bool by_channel_;
  std::array<bool, n_buffers> only_single_{};  // chunks are equal on the wire one by one
  Step step_;
  tsl::robin_set<std::uint64_t, MixedHash> followed_;  // connections of the simulated channels
  std::vector<std::vector<Path>> paths_;               // theirs
};

ChannelRenaming found_renaming(const Topology& topology, const CheckedSchedule& checked, const Piecewise& made,
                               const RunOptions& options, const std::vector<Actor>& members, int first_channel) {
  const Schedule& schedule = checked.schedule();
  expect_no_more_than_times(options);
  expect_proved_from_one_channel(checked.proof(), made);
  if (options.may_post(topology)) refuse("devices post messages one after another");
  return RenamedChannels(topology, schedule, made, options, members, first_channel).found();
}

FoldingByStandIns folded_renamed(const Topology& topology, const CheckedSchedule& checked, const Piecewise& made,
                                 const RunOptions& options, const std::vector<NodeId>& placement) {
  if (options.record_path) refuse("the critical path is being recorded");
  if (options.plans.size() > 1) refuse("calls differ in protocol or links");
  const Schedule& schedule = checked.schedule();
  RunOptions placed = options;
  placed.placement = placement;
  const ChannelRenaming renaming = found_renaming(topology, checked, made, placed, {}, /*first_channel=*/0);
  FoldingByStandIns folding{.stand_ins = renaming.links, .some = schedule, .why = {}, .end_together = {}};
  folding.some.n_steps = [lanes = renaming.lanes, all = schedule.n_steps](Actor actor, Lane lane) {
    return lanes[static_cast<std::size_t>(lane)] ? all(actor, lane) : 0;
  };
  std::vector<bool> is_taken(static_cast<std::size_t>(schedule.actors));
  for (Actor actor = 0; actor < schedule.actors; ++actor) {
    if (is_taken[static_cast<std::size_t>(actor)]) continue;
    std::vector<Actor>& images = folding.end_together.emplace_back();
    for (const std::vector<Actor>& names : renaming.names) {
      images.push_back(names[static_cast<std::size_t>(actor)]);
      is_taken[static_cast<std::size_t>(images.back())] = true;
    }
  }
  folding.why = fmt::format(
      "{} of {} channels represent{} all: by the construction and proof of {}, renaming ranks turns each channel into "
      "any other, over identically used links",
      renaming.simulated, renaming.channels, renaming.simulated == 1 ? "s" : "", schedule.algorithm);
  return folding;
}

}  // namespace

bool may_pay_to_rename(const CheckedSchedule& checked, std::int64_t least_messages) {
  const Piecewise* made = piecewise(checked.schedule());
  return made != nullptr && !made->casts.empty() && checked.proof().operations / 2 >= least_messages;
}

std::optional<ChannelRenaming> find_renaming(const Topology& topology, const CheckedSchedule& checked,
                                             const RunOptions& options, const std::vector<Actor>& members,
                                             int first_channel, std::string& why_not) {
  const Piecewise* made = piecewise(checked.schedule());
  ensure(made != nullptr && !made->casts.empty(), "channels are renamed that have casts");
  return unless_refused(why_not,
                        [&] { return found_renaming(topology, checked, *made, options, members, first_channel); });
}

std::optional<FoldingByStandIns> fold_renamed(const Topology& topology, const CheckedSchedule& checked,
                                              const RunOptions& options, const std::vector<NodeId>& placement,
                                              std::string& why_not) {
  const Piecewise* made = piecewise(checked.schedule());
  ensure(made != nullptr && !made->casts.empty(), "channels are renamed that have casts");
  return unless_refused(why_not, [&] { return folded_renamed(topology, checked, *made, options, placement); });
}

}  // namespace ringsim
