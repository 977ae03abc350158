#include "scenarios/predict/no_effect.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "scenarios/fields/effect.hpp"
#include "scenarios/fields/fields.hpp"
#include "scenarios/setup/setup.hpp"
#include "sim/base/error.hpp"
#include "sim/topology/routes.hpp"

namespace ringsim {

namespace {

constexpr std::int64_t most_steps = std::int64_t{1} << 20;
constexpr std::int64_t most_pairs = std::int64_t{1} << 16;
constexpr const char* no_message = "no message of this run uses such a link";

/// Calls visit(from, to, channel) for those that exchange messages, each once, until it returns false. False if
/// there are too many to visit all.
template <class Visit>
bool each_pair(const CheckedSchedule& checked, Visit visit) {
  const Schedule& schedule = checked.schedule();
  const bool alike = schedule.symmetry.claimed() && checked.proof().by == Proof::By::symmetry;
  std::int64_t steps = 0, pairs = 0;
  Step step;
  for (Actor actor = 0; actor < (alike ? 1 : schedule.actors); ++actor) {
    std::set<std::pair<Actor, std::uint16_t>> seen;
    for (Lane lane = 0; lane < schedule.lanes; ++lane) {
      const int n = schedule.n_steps(actor, lane);
      steps += n;
      if (steps > most_steps) return false;
      for (int i = 0; i < n; ++i) {
        step.clear();
        schedule.step(actor, lane, i, step);
        for (const Op& op : step.ops) {
          if (op.what != Do::send || !seen.insert({op.peer, op.channel}).second) continue;
          // What actor 0 sends to `peer`, actor a sends to a + peer.
          for (Actor from = actor; from < (alike ? schedule.actors : actor + 1); ++from) {
            if (++pairs > most_pairs) return false;
            if (!visit(from, alike ? schedule.symmetry.add(from, op.peer) : op.peer, op.channel)) return true;
          }
        }
      }
    }
  }
  return true;
}

class Settings : public scenarios::RunFacts {
 public:
  Settings(const Scenario& scenario, const Topology& topology, const RunOptions& options,
           const CheckedSchedule& schedule, const Timeline& timeline)
      : scenario_(scenario), topology_(topology), options_(options), schedule_(schedule), timeline_(timeline) {}

  std::vector<SettingEffect> effects() {
    look_at_faults();
    for (std::size_t i = 0; i < scenario_.background.size(); ++i) look_at_background(i);
    look_at_fabric();
    if (options_.routing.policy != Routing::Policy::fixed && !scenario_.routing.is_auto) look_at_routing();
    look_at_gpudirect();
    look_at_rows("transport", scenario_.transport);
    look_at_rows("transport.staging", scenario_.transport.staging);
    if (scenario_.devices.gpu) look_at_devices("gpu", *scenario_.devices.gpu);
    if (scenario_.devices.cpu) look_at_devices("cpu", *scenario_.devices.cpu);
    return std::move(found_);
  }

  /// beyond_gpudirect() with that level.
  std::string beyond_gpudirect(PathType level) {
    std::set<PathType> found;
    const auto look = [&](NodeId gpu, std::optional<NodeId> nic, PathType type) {
      if (!is_gpu(gpu) || !nic || type <= level) return;
      const Node &one = topology_.node(gpu), &other = topology_.node(*nic);
      if (scenario_.transport.assumes_gpudirect || (one.gpudirect && other.gpudirect)) found.insert(type);
    };
    each_pair(schedule_, [&](Actor from, Actor to, std::uint16_t channel) {
      if (!topology_.joins_hosts(place(from), place(to))) return true;
      for (const Path& path : paths(from, to, channel, channel)) {
        look(place(from), first_nic(topology_, path), path.out == PathType::pxn ? PathType::loc : path.out);
        look(place(to), last_nic(topology_, path), path.in);
      }
      return true;
    });
    if (found.empty()) return "";
    const std::string nearest(to_string(*found.begin()));
    return found.size() == 1 ? nearest : fmt::format("{} to {}", nearest, to_string(*found.rbegin()));
  }

  bool stages_between_hosts() {
    bool uses_memory = false;  // looked at first: pairs take longer
    for (std::uint32_t l = 0; l < topology_.n_links() && !uses_memory; ++l)
      uses_memory = topology_.link({l}).kind == LinkKind::memory && timeline_.link_bytes[l].count > 0;
    bool found = false;
    if (uses_memory)
      each_pair(schedule_, [&](Actor from, Actor to, std::uint16_t channel) {
        if (!topology_.joins_hosts(place(from), place(to))) return true;
        for (const Path& path : paths(from, to, channel, channel)) found = found || path.legs.size() > 1;
        return !found;
      });
    return found;
  }

  bool works_within(bool gpus, LinkKind kind) override {
    for (std::uint32_t l = 0; l < topology_.n_links(); ++l) {
      const Link& link = topology_.link({l});
      if (link.kind == kind && is_gpu(link.from) == gpus && timeline_.link_bytes[l].count > 0) return true;
    }
    return false;
  }

  bool sends_to_other_host(bool gpus) override {
    return any_pair([&](Actor from, Actor to, std::uint16_t) {
      return is_gpu(place(from)) == gpus && topology_.joins_hosts(place(from), place(to));
    });
  }

  bool crosses(scenarios::FabricCables cables) override {
    for (std::uint32_t l = 0; l < topology_.n_links(); ++l) {
      const Link& link = topology_.link({l});
      if (timeline_.link_bytes[l].count == 0 || !between_switches(link)) continue;
      const bool within = group_of(link.from) == group_of(link.to);
      if (cables == scenarios::FabricCables::all || within == (cables == scenarios::FabricCables::within_group))
        return true;
    }
    return false;
  }

  bool would_use_pxn() override {
    const auto with = [](Transport& transport) { transport.pxn = true; };
    return !same_paths(with) || !same_rings(with);
  }

  bool is_turned_by_acs() override {
    return !same_paths([](Transport& transport) { transport.acs = false; });
  }

  bool stages() override {
    for (const Disturbance::Background& message : options_.disturbance.background)
      for (const Path& path : routes().find_parts(message.from, message.to))
        if (path.legs.size() > 1) return true;
    return any_pair([&](Actor from, Actor to, std::uint16_t channel) {
      const std::vector<Path> found = paths(from, to, channel, channel);
      return std::any_of(found.begin(), found.end(), [](const Path& path) { return path.legs.size() > 1; });
    });
  }

 private:
  bool is_gpu(NodeId id) const { return topology_.node(id).kind == NodeKind::gpu; }

  /// True if `holds` for any pair that exchanges messages; true if there are too many to look at.
  template <class Holds>
  bool any_pair(Holds holds) {
    bool any = false;
    const bool all = each_pair(schedule_, [&](Actor from, Actor to, std::uint16_t channel) {
      any = any || holds(from, to, channel);
      return !any;
    });
    return any || !all;
  }

  /// The rows of the object at a dotted path whose values, in `owner`, are not the defaults.
  template <class Owner>
  void look_at_rows(const std::string& path, const Owner& owner) {
    std::string pointer = '/' + path;
    std::replace(pointer.begin(), pointer.end(), '.', '/');
    look_at_rows(scenarios::field_at(path), pointer, owner);
  }
  template <class Owner>
  void look_at_rows(const scenarios::Field& object, const std::string& pointer, const Owner& owner) {
    scenarios::for_each_effect(object, owner, *this, [&](const scenarios::Field& row, scenarios::Effect effect) {
      tell(pointer + '/' + row.name, effect.setting, std::move(effect.idle));
    });
  }

  /// Routes of the messages of that channel.
  Routes& routes(std::uint16_t channel = 0) {
    if (routes_.empty())
      for (const CallPlan& plan : options_.plans) routes_.emplace_back(topology_, plan.transport, options_.routing);
    return routes_[options_.plan_number(channel)];
  }

  /// `idle`: why the setting changed nothing; empty: it is not known to be idle.
  void tell(const std::string& pointer, std::string_view value, std::string idle) {
    found_.push_back(
        {fmt::format("{}: {}{}{}", scenario_.file, pointer, value.empty() ? "" : ": ", value), std::move(idle)});
  }

  // --- faults --------------------------------------------------------------------------------------------------------

  void look_at_faults() {
    const std::vector<LinkChange>& changes = options_.disturbance.links;
    std::vector<std::string> idle(scenario_.faults.size());
    std::vector<std::pair<std::size_t, const LinkChange*>> avoidable;  // faults on links that carried nothing, down
    // A fault is a change, and one that restores the link if it has an end.
    for (std::size_t i = 0, c = 0, n = 0; i < scenario_.faults.size(); c += n, ++i) {
      n = scenario_.faults[i].until ? 2 : 1;
      const LinkChange& change = changes.at(c);
      idle[i] = why_idle(c, n);
      if (!idle[i].empty() || carries_any(change.links)) continue;
      if (change.to == LinkChange::To::down)
        avoidable.emplace_back(i, &change);
      else
        idle[i] = no_message;
    }
    if (!avoidable.empty()) look_at_ways_round(avoidable, idle);
    for (std::size_t i = 0; i < idle.size(); ++i)
      tell(fmt::format("/faults/{}", i), scenario_.faults[i].link, std::move(idle[i]));
  }

  /// A link that is down carries nothing also because messages go round it.
  void look_at_ways_round(const std::vector<std::pair<std::size_t, const LinkChange*>>& avoidable,
                          std::vector<std::string>& idle) {
    std::vector<bool> wanted(topology_.n_links(), false);
    const bool all = each_pair(schedule_, [&](Actor from, Actor to, std::uint16_t channel) {
      mark_links(from, to, channel, wanted);
      return true;
    });
    if (!all) return;
    for (const auto& [i, change] : avoidable)
      if (std::none_of(change->links.begin(), change->links.end(), [&](LinkId id) { return wanted[id.value]; }))
        idle[i] = no_message;
  }

  /// What can be told of a fault, whose changes are c to c + n - 1, without a look at the messages.
  std::string why_idle(std::size_t c, std::size_t n) const {
    const std::vector<LinkChange>& changes = options_.disturbance.links;
    const LinkChange& change = changes[c];
    if (timeline_.transfers == 0) return "no data moves in this run";
    if (change.at >= timeline_.finish) return "it starts after the end of the run";
    const auto none = [&](auto differs) { return std::none_of(change.links.begin(), change.links.end(), differs); };
    const auto touched = [&](LinkId id) {
      for (std::size_t other = 0; other < changes.size(); ++other)
        if ((other < c || other >= c + n) &&
            std::find(changes[other].links.begin(), changes[other].links.end(), id) != changes[other].links.end())
          return true;
      return false;
    };
    if (!none(touched)) return "";  // the order of several counts
    if (change.to == LinkChange::To::restored) return "no earlier fault changed the link";
    const auto differs = [&](LinkId id) {
      const Bandwidth nominal = topology_.link(id).bandwidth;
      return change.to == LinkChange::To::down || change.of(nominal) != nominal;
    };
    return none(differs) ? "the link has this bandwidth anyway" : "";
  }

  /// By resource: a fault of one direction of a half-duplex cable is one of both.
  bool carries_any(const std::vector<LinkId>& links) {
    const std::vector<bool>& busy = busy_resources();
    return std::any_of(links.begin(), links.end(), [&](LinkId id) { return busy[topology_.link(id).resource.value]; });
  }

  const std::vector<bool>& busy_resources() {
    if (!busy_.empty()) return busy_;
    busy_.assign(topology_.n_resources(), false);
    for (std::uint32_t l = 0; l < topology_.n_links(); ++l)
      if (timeline_.link_bytes[l].count > 0) busy_[topology_.link({l}).resource.value] = true;
    return busy_;
  }

  /// The links of all ways that messages of a pair take if no link is down.
  void mark_links(Actor from, Actor to, std::uint16_t channel, std::vector<bool>& links) {
    std::uint32_t turns = 1;
    for (std::uint32_t label = 0; label < turns; ++label) {
      for (const Path& path : paths(from, to, channel, label)) {
        if (options_.routing.policy == Routing::Policy::flow_spray) turns = std::max(turns, path.turns);
        for (const Leg& leg : path.legs)
          for (const LinkId id : leg.links) links[id.value] = true;
      }
    }
  }

  std::vector<Path> paths(Actor from, Actor to, std::uint16_t channel, std::uint32_t turn) {
    const bool by_channel = options_.routing.policy == Routing::Policy::ecmp;
    return routes(channel).find_parts(place(from), place(to), by_channel ? channel : turn);
  }

  NodeId place(Actor actor) const { return options_.placement.at(static_cast<std::size_t>(actor)); }

  // --- background ----------------------------------------------------------------------------------------------------

  void look_at_background(std::size_t i) {
    const BackgroundSpec& spec = scenario_.background[i];
    tell(fmt::format("/disturbance/background/{}", i), fmt::format("{} -> {}", spec.from, spec.to),
         why_background_is_idle(options_.disturbance.background.at(i)));
  }

  std::string why_background_is_idle(const Disturbance::Background& message) {
    if (message.start >= timeline_.finish) return "it starts after the end of the run";
    // With links that go down it may take other ways than these.
    for (const LinkChange& change : options_.disturbance.links)
      if (change.to == LinkChange::To::down) return "";
    const std::vector<bool>& busy = busy_resources();
    std::uint32_t turns = 1;
    for (std::uint32_t label = 0; label < turns; ++label) {
      for (const Path& path : routes().find_parts(message.from, message.to, label)) {
        if (options_.routing.policy == Routing::Policy::flow_spray) turns = std::max(turns, path.turns);
        for (const Leg& leg : path.legs)
          for (const LinkId id : leg.links)
            if (busy[topology_.link(id).resource.value]) return "";
      }
    }
    return "it shares no link with the messages of this run";
  }

  // --- the fabric ----------------------------------------------------------------------------------------------------

  bool between_switches(const Link& link) const {
    return topology_.node(link.from).kind == NodeKind::network_switch &&
           topology_.node(link.to).kind == NodeKind::network_switch;
  }

  void look_at_fabric() {
    const auto* cluster = std::get_if<Cluster>(&scenario_.topology);
    if (cluster == nullptr || !cluster->fabric || topology_.hosts().size() < 2) return;
    for (std::size_t i = 0; i < cluster->changes.size(); ++i) look_at_cable(cluster->changes[i], i);
    const scenarios::Field& row = scenarios::fabric_row(kind_of(*cluster->fabric));
    std::visit([&](const auto& fabric) { look_at_rows(row, "/topology/fabric", fabric); }, *cluster->fabric);
  }

  std::string_view group_of(NodeId router) const {
    const std::string_view name = topology_.node(router).name;
    return name.substr(0, name.find('.'));
  }

  void look_at_cable(const CableChange& change, std::size_t i) {
    const auto from = topology_.find(change.from), to = topology_.find(change.to);
    if (!from || !to) return;
    tell(fmt::format("/topology/fabric/cables/{}", i), fmt::format("{}, {}", change.from, change.to),
         cable_may_matter(*from, *to) ? "" : "no message of this run crosses it");
  }

  /// Also a cable that nothing crosses, if it is one of a host that sends or receives: messages may avoid the NIC
  /// because of the cable's rate.
  bool cable_may_matter(NodeId from, NodeId to) const {
    for (std::uint32_t l = 0; l < topology_.n_links(); ++l) {
      const Link& link = topology_.link({l});
      if (timeline_.link_bytes[l].count == 0) continue;
      if ((link.from == from && link.to == to) || (link.from == to && link.to == from)) return true;
      for (const NodeId end : {from, to})
        for (const NodeId node : {link.from, link.to})
          if (topology_.node(end).host && topology_.node(node).host == topology_.node(end).host) return true;
    }
    return false;
  }

  // --- devices -------------------------------------------------------------------------------------------------------

  /// There are nodes of that kind, and each has rates of its own.
  bool all_have_own(const std::string& kind) const {
    const auto* graph = std::get_if<Graph>(&scenario_.topology);
    if (graph == nullptr) return false;
    int n = 0;
    for (const Graph::NodeSpec& node : graph->nodes) {
      const bool is_memory = node.kind == NodeKind::cpu || node.kind == NodeKind::memory;
      if (kind == "gpu" ? node.kind != NodeKind::gpu : !is_memory) continue;
      if (!node.rates) return false;
      ++n;
    }
    return n > 0;
  }

  void look_at_devices(const std::string& kind, const DeviceRates& rates) {
    if (all_have_own(kind)) return tell("/devices", kind, fmt::format("each {} has its own rates", kind));
    look_at_rows("devices." + kind, rates);
  }

  // --- routing -------------------------------------------------------------------------------------------------------

  void look_at_routing() {
    bool any = false;
    const bool all = each_pair(schedule_, [&](Actor from, Actor to, std::uint16_t channel) {
      for (const Path& path : paths(from, to, channel, 0)) {
        any = any || path.turns > 1;
        for (const Leg& leg : path.legs)
          for (std::size_t i = 0; i < leg.links.size(); ++i) any = any || leg.share(i) < 1;
      }
      return !any;
    });
    for (const Disturbance::Background& message : options_.disturbance.background)
      for (const Path& path : routes().find_parts(message.from, message.to)) any = any || path.turns > 1;
    tell("/network/routing", to_string(options_.routing.policy),
         any || !all ? "" : "every message of this run has only one path");
  }

  // --- the transport ---------------------------------------------------------------------------------------------

  void look_at_gpudirect() {
    if (!scenario_.said_gpudirect) return;
    const bool on = *scenario_.said_gpudirect;
    tell("/transport/gpudirect", on ? "true" : "false", why_gpudirect_is_idle(on));
  }

  std::string why_gpudirect_is_idle(bool on) {
    const PathType level = on ? scenario_.transport.gdr_level : Transport().gdr_level;
    const std::string distance = beyond_gpudirect(level);
    const auto with = [&](Transport& transport) { transport.gdr_level = on ? PathType::loc : level; };
    if (distance.empty() || !same_paths(with) || !same_rings(with)) return "";
    if (on)
      return fmt::format(
          "GPUDirect reaches up to {}, but the distance between GPUs and their NICs is {}; with NCCL_NET_GDR_LEVEL "
          "SYS, it reaches any distance",
          to_string(level), distance);
    return fmt::format(
        "GPUDirect is not used anyway: it reaches up to {}, but the distance between GPUs and their NICs is {}",
        to_string(level), distance);
  }

  /// True if every message takes the same links with a transport that is changed as well.
  bool same_paths(const std::function<void(Transport&)>& change) {
    std::vector<Routes> others;
    for (CallPlan plan : options_.plans) {
      change(plan.transport);
      others.emplace_back(topology_, plan.transport, options_.routing);
    }
    bool same = true;
    const bool all = each_pair(schedule_, [&](Actor from, Actor to, std::uint16_t channel) {
      Routes& changed = others[options_.plan_number(channel)];
      same = same_links(paths(from, to, channel, channel), changed.find_parts(place(from), place(to), channel));
      return same;
    });
    return all && same;
  }

  static bool same_links(const std::vector<Path>& a, const std::vector<Path>& b) {
    const auto same_leg = [](const Leg& x, const Leg& y) { return x.links == y.links && x.shares == y.shares; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const Path& x, const Path& y) {
      return std::equal(x.legs.begin(), x.legs.end(), y.legs.begin(), y.legs.end(), same_leg);
    });
  }

  bool same_rings(const std::function<void(Transport&)>& change) const {
    if (std::none_of(scenario_.jobs.begin(), scenario_.jobs.end(), [](const Job& job) { return job.channel_rings; }))
      return true;
    Scenario other = scenario_;
    change(other.transport);
    const auto change_calls = [&](LibraryRun& library) {
      change(library.call.transport);
      for (auto& [bytes, call] : library.exchanges) change(call.transport);
    };
    if (other.library) change_calls(*other.library);
    for (Job& job : other.jobs) {
      if (job.library == nullptr) continue;
      LibraryRun its = *job.library;
      change_calls(its);
      job.library = std::make_shared<const LibraryRun>(std::move(its));
    }
    const auto rings = [&](const Scenario& scenario) {
      std::vector<std::string> out;
      for (const auto& groups : collectives_of(scenario, topology_))
        for (const PlacedCollective& each : groups) out.push_back(each.ring);
      return out;
    };
    return rings(scenario_) == rings(other);
  }

  const Scenario& scenario_;
  const Topology& topology_;
  const RunOptions& options_;
  const CheckedSchedule& schedule_;
  const Timeline& timeline_;
  std::vector<Routes> routes_;  // [plan] made when they are asked for: that takes time in large fabrics
  std::vector<bool> busy_;      // [resource] whether a message of the run crossed it; empty: not looked at yet
  std::vector<SettingEffect> found_;
};

}  // namespace

std::vector<SettingEffect> effects_of_settings(const Scenario& scenario, const Topology& topology,
                                               const RunOptions& options, const CheckedSchedule& schedule,
                                               const Timeline& timeline) {
  return Settings(scenario, topology, options, schedule, timeline).effects();
}

bool stages_between_hosts(const Scenario& scenario, const Topology& topology, const RunOptions& options,
                          const CheckedSchedule& schedule, const Timeline& timeline) {
  return Settings(scenario, topology, options, schedule, timeline).stages_between_hosts();
}

std::string beyond_gpudirect(const Scenario& scenario, const Topology& topology, const RunOptions& options,
                             const CheckedSchedule& schedule, const Timeline& timeline) {
  return Settings(scenario, topology, options, schedule, timeline).beyond_gpudirect(scenario.transport.gdr_level);
}

}  // namespace ringsim
