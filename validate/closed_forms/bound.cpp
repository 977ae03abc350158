#include "validate/closed_forms/bound.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/run/call_plan.hpp"
#include "topologies/bound/cut_text.hpp"
#include "topologies/bound/latency_floor.hpp"

namespace ringsim {

namespace {

/// Runs `part`; its InputErrors name the topology of that scenario.
template <class Part>
auto blaming(const std::string& file, Part part) {
  try {
    return part();
  } catch (const InputError& error) {
    throw InputError(file + ": /topology", error.message(), error.hint());
  }
}

/// What the links have at most during the run.
struct InForce {
  std::vector<Bandwidth> rates;  // [link] 0: down all the time
  bool ways_change = false;      // some are down for a part of the run only: messages then take other ways
};

InForce in_force(const Topology& topology, const std::vector<LinkChange>& changes) {
  InForce result;
  std::vector<Bandwidth> at_first;
  for (const Link& link : topology.links()) at_first.push_back(link.bandwidth);
  const auto rate_after = [&](const LinkChange& change, LinkId link) {
    return change.to == LinkChange::To::down ? Bandwidth{0} : change.of(topology.link(link).bandwidth);
  };
  for (const LinkChange& change : changes)
    if (change.at == SimTime{})
      for (const LinkId link : change.links) at_first[link.value] = rate_after(change, link);
  result.rates = at_first;
  for (const LinkChange& change : changes) {
    if (change.at == SimTime{}) continue;
    for (const LinkId link : change.links) {
      const Bandwidth then = rate_after(change, link);
      Bandwidth& most = result.rates[link.value];
      result.ways_change = result.ways_change || (then.bytes_per_second == 0) != (most.bytes_per_second == 0);
      most = std::max(most, then);
    }
  }
  std::vector<Bandwidth> of_resource(topology.n_resources());
  for (std::size_t l = 0; l < topology.n_links(); ++l) {
    Bandwidth& most = of_resource[topology.links()[l].resource.value];
    most = std::max(most, result.rates[l]);
  }
  for (std::size_t l = 0; l < topology.n_links(); ++l)
    if (result.rates[l].bytes_per_second > 0) result.rates[l] = of_resource[topology.links()[l].resource.value];
  return result;
}

bool per_block(CollectiveOp op) {
  return op != CollectiveOp::all_reduce && op != CollectiveOp::broadcast && op != CollectiveOp::reduce &&
         op != CollectiveOp::send_recv && op != CollectiveOp::pairs;
}

/// What must cross from the ranks of a set to the others, in blocks or messages.
std::int64_t crossing(const BoundedCollective& what, const std::vector<bool>& inside) {
  const auto n = inside.size();
  if (what.op == CollectiveOp::all_to_all) {
    const auto k = std::count(inside.begin(), inside.end(), true);
    return k * (static_cast<std::int64_t>(n) - k);
  }
  std::int64_t messages = 0;
  for (std::size_t r = 0; r < n; ++r) {
    if (what.op == CollectiveOp::send_recv) messages += inside[r] && !inside[(r + 1) % n] ? 1 : 0;
    if (what.op != CollectiveOp::pairs) continue;
    const std::size_t partner = r < n / 2 ? r + n / 2 : r - n / 2;
    messages += (r < n / 2 || what.both_ways) && inside[r] && !inside[partner] ? 1 : 0;
  }
  return messages;
}

/// True if trees reach the limit. Those of reductions are the same trees backwards.
bool reached(CollectiveOp op, const Wires& wires) {
  const bool is_cut = op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter ||
                      op == CollectiveOp::broadcast || op == CollectiveOp::reduce || op == CollectiveOp::scatter ||
                      op == CollectiveOp::gather;
  return is_cut && is_balanced(wires);
}

std::string amount_in_words(const BoundedCollective& what, std::int64_t amount, std::int64_t ranks) {
  if (what.op == CollectiveOp::all_to_all) return fmt::format("{} blocks of 1/{} of a rank's message", amount, ranks);
  if (per_block(what.op)) return fmt::format("{} of the {} blocks", amount, ranks);
  if (what.op == CollectiveOp::send_recv || what.op == CollectiveOp::pairs)
    return fmt::format("{} message{}", amount, amount == 1 ? "" : "s");
  return amount == 1 ? "the message" : fmt::format("{} times the message", amount);
}

/// "8 of the 16 blocks must enter node0, crossing twice"; empty if nothing has to.
std::string crossed(const std::string& amount, const char* way, std::uint32_t host, const Fraction& times) {
  if (times.over == 0 || amount.starts_with("0 ")) return "";
  const std::string often = times == Fraction{1, 1}   ? "once"
                            : times == Fraction{2, 1} ? "twice"
                                                      : fmt::format("{:.4g} times", as_double(times));
  return fmt::format("{} must {} node{}, crossing {}", amount, way, host, often);
}

/// What of a link's rate data can take, if each byte costs more than one of it. Rounded up to 10 MB/s: the bound
/// stays one, and its fractions stay small.
std::vector<Bandwidth> payload_rates(std::vector<Bandwidth> rates, const std::vector<double>& cost) {
  constexpr std::int64_t step = 10'000'000;
  for (std::size_t l = 0; l < cost.size(); ++l) {
    if (cost[l] <= 1) continue;
    const auto rate = static_cast<std::int64_t>(static_cast<double>(rates[l].bytes_per_second) / cost[l]);
    rates[l].bytes_per_second = std::min(rates[l].bytes_per_second, (rate / step + 1) * step);
  }
  return rates;
}

}  // namespace

MachineBounds::MachineBounds(const Scenario& scenario, const Setup& setup, std::vector<NodeId> ranks,
                             std::vector<NodeId> helpers, Counted counted)
    : file_(scenario.file),
      topology_(topology_without_kernels(scenario)),
      ranks_(std::move(ranks)),
      devices_(ranks_),
      transport_(transport_for(*scenario.protocol, scenario.transport)),
      routing_(setup.routing) {
  const InForce links = in_force(topology_, faults_of(topology_, scenario));
  rates_ = links.rates;
  counted_ = links.ways_change ? Counted::all : counted;
  devices_.insert(devices_.end(), helpers.begin(), helpers.end());
  find_ways(transport_.point_to_point);
}

void MachineBounds::find_ways(bool point_to_point) {
  if (ways_[point_to_point]) return;
  std::vector<bool> down(topology_.n_links());
  for (std::size_t l = 0; l < down.size(); ++l) down[l] = rates_[l].bytes_per_second == 0;
  Ways made;
  if (counted_ == Counted::all) {
    made.use.links.assign(topology_.n_links(), true);
    made.use.all_pairs = false;
  } else {
    Transport transport = transport_;
    transport.point_to_point = point_to_point;
    transport.channel_nics = nullptr;  // the NICs of a plan's channels; another plan may have others
    made.use = path_use(topology_, devices_, transport, routing_, down);
    if (counted_ == Counted::any_way) count_any_way(made);
  }
  for (std::size_t l = 0; l < down.size(); ++l)
    if (down[l]) made.use.links[l] = false;
  made.wires = wires_of(topology_, ranks_, made.use.links, payload_rates(rates_, made.use.cost));
  ways_[point_to_point] = std::move(made);
}

/// Outside of hosts any way is one that another routing could take; but not if all that moves stays within hosts.
void MachineBounds::count_any_way(Ways& ways) const {
  const auto is_outside = [&](std::size_t l) {
    const Link& link = topology_.links()[l];
    return !topology_.node(link.from).host && !topology_.node(link.to).host;
  };
  const auto leaves_hosts = [&](std::size_t l) {
    const Link& link = topology_.links()[l];
    return topology_.node(link.from).host != topology_.node(link.to).host;
  };
  bool any = topology_.hosts().empty();
  for (std::size_t l = 0; l < topology_.n_links() && !any; ++l) any = ways.use.links[l] && leaves_hosts(l);
  if (!any) return;
  for (std::size_t l = 0; l < topology_.n_links(); ++l) {
    if (ways.use.links[l] || !is_outside(l) || rates_[l].bytes_per_second == 0) continue;
    ways.use.links[l] = true;
    ways.unused.push_back({static_cast<std::uint32_t>(l)});
  }
}

Limit MachineBounds::limit(const BoundedCollective& what) const {
  const Wires& wires = ways_of(what.point_to_point).wires;
  switch (what.op) {
    case CollectiveOp::all_gather:
      return gather_limit(wires);
    case CollectiveOp::reduce_scatter:
      return reduce_scatter_limit(wires);
    case CollectiveOp::all_reduce:
      return what.helpers_add ? all_reduce_in_fabric_limit(wires)
                              : all_reduce_limit(wires, gather_limit(wires).inverse_rate);
    case CollectiveOp::broadcast:
      return broadcast_limit(wires, what.root);
    case CollectiveOp::reduce:
      return reduce_limit(wires, what.root);
    case CollectiveOp::scatter:
      return scatter_limit(wires, what.root);
    case CollectiveOp::gather:
      return gather_to_root_limit(wires, what.root);
    case CollectiveOp::all_to_all:
    case CollectiveOp::send_recv:
    case CollectiveOp::pairs:
      return crossing_limit(wires, [&](const std::vector<bool>& inside) { return crossing(what, inside); });
    case CollectiveOp::barrier:
      break;
  }
  fail_invariant("a barrier moves no bytes, so it has no bound");
}

Bound MachineBounds::make(const BoundedCollective& what) const {
  const Wires& wires = ways_of(what.point_to_point).wires;
  const Limit found = limit(what);
  Bound bound{
      .inverse_rate = found.inverse_rate * fraction(1'000'000'000, wires.unit),
      .is_block = per_block(what.op),
      .is_optimum = reached(what.op, wires),
      .why = cut_in_words(topology_, wires, found, amount_in_words(what, found.amount, wires.n_ranks()), rates_),
      .cut = links_leaving(wires, found.sets)};
  tighten_by_host_links(what, bound);
  return bound;
}

/// A host with g of the N ranks: what must enter and leave it crosses its links so many times.
void MachineBounds::tighten_by_host_links(const BoundedCollective& what, Bound& bound) const {
  const auto n = static_cast<std::int64_t>(ranks_.size());
  for (const HostLinks& of : ways_of(what.point_to_point).use.host_links) {
    std::vector<bool> inside(ranks_.size());
    for (std::size_t r = 0; r < ranks_.size(); ++r) inside[r] = topology_.node(ranks_[r]).host == of.host;
    const auto g = static_cast<std::int64_t>(std::count(inside.begin(), inside.end(), true));
    if (g == 0 || g == n) continue;
    const bool has_root = inside[static_cast<std::size_t>(what.root)];
    std::int64_t enters = 0, leaves = 0;
    if (what.op == CollectiveOp::all_gather) enters = n - g, leaves = g;
    if (what.op == CollectiveOp::reduce_scatter) enters = g, leaves = n - g;
    if (what.op == CollectiveOp::all_reduce) enters = leaves = 1;
    if (what.op == CollectiveOp::broadcast) (has_root ? leaves : enters) = 1;
    if (what.op == CollectiveOp::reduce) (has_root ? enters : leaves) = 1;
    if (what.op == CollectiveOp::scatter) (has_root ? leaves : enters) = has_root ? n - g : g;
    if (what.op == CollectiveOp::gather) (has_root ? enters : leaves) = has_root ? n - g : g;
    if (what.op == CollectiveOp::all_to_all || what.op == CollectiveOp::send_recv || what.op == CollectiveOp::pairs) {
      leaves = crossing(what, inside);
      inside.flip();
      enters = crossing(what, inside);
    }
    std::int64_t rate = 0;
    std::vector<LinkId> links;
    for (const ResourceId resource : of.resources) {
      const LinkId link = topology_.resource(resource).link;
      rate += rates_[link.value].bytes_per_second;
      links.push_back(link);
    }
    // in and out are in thousandths (path_use.hpp).
    const std::int64_t crossings =
        enters * of.in.over * (1000 / of.in.under) + leaves * of.out.over * (1000 / of.out.under);
    if (crossings == 0 || rate == 0) continue;
    const Fraction inverse = fraction(crossings, 1000) * fraction(1'000'000'000, rate);
    if (inverse <= bound.inverse_rate) continue;
    std::sort(links.begin(), links.end());
    bound.inverse_rate = inverse;
    bound.is_optimum = false;
    const std::string over = links_in_words(topology_, links, rates_);
    const std::string entering = crossed(amount_in_words(what, enters, n), "enter", of.host, of.in),
                      leaving = crossed(amount_in_words(what, leaves, n), "leave", of.host, of.out);
    bound.why = fmt::format("{}{}{} {}", entering, entering.empty() || leaving.empty() ? "" : "; ", leaving, over);
    bound.cut = std::move(links);
  }
}

std::optional<Bound> MachineBounds::of(const BoundedCollective& what, Bytes bytes) {
  if (what.op == CollectiveOp::barrier) return std::nullopt;
  auto known = known_.find(what);
  if (known == known_.end())
    known = known_
                .emplace(what, blaming(file_,
                                       [&] {
                                         find_ways(what.point_to_point);
                                         return make(what);
                                       }))
                .first;
  Bound bound = known->second;
  const auto n = static_cast<std::int64_t>(ranks_.size());
  const Bytes amount = bound.is_block ? Bytes{bytes.count / n} : bytes;
  bound.time = time_at(amount, bound.inverse_rate * fraction(1, 1'000'000'000));
  if (bound.inverse_rate.over > 0)
    bound.algbw = static_cast<double>(bound.is_block ? n : 1) / as_double(bound.inverse_rate);
  return bound;
}

Picoseconds MachineBounds::latency_floor(const BoundedCollective& what) {
  if (const auto known = known_floors_.find(what); known != known_floors_.end()) return known->second;
  find_ways(what.point_to_point);
  constexpr std::size_t most_sources = 512;
  const NodeId root = ranks_[static_cast<std::size_t>(what.root)];
  const auto longest = [&](const std::vector<NodeId>& from, const std::vector<NodeId>& to) {
    const Picoseconds floor = blaming(
        file_, [&] { return ringsim::latency_floor(topology_, from, to, ways_of(what.point_to_point).use.links); });
    known_floors_.emplace(what, floor);
    return floor;
  };
  if (what.op == CollectiveOp::broadcast || what.op == CollectiveOp::scatter) return longest({root}, ranks_);
  if (what.op == CollectiveOp::reduce || what.op == CollectiveOp::gather) return longest(ranks_, {root});
  std::vector<NodeId> sources;
  const std::size_t stride = (ranks_.size() + most_sources - 1) / most_sources;
  for (std::size_t r = 0; r < ranks_.size(); r += std::max<std::size_t>(1, stride)) sources.push_back(ranks_[r]);
  return longest(sources, ranks_);
}

namespace {

/// Everything that path_use() and wires_of() look at.
std::string key_of(const Scenario& scenario, const Topology& topology, const PlacedCollective& actors) {
  std::string key;
  const auto put = [&key](auto... values) {
    ((key += fmt::format("{},", values)), ...);
    key += ';';
  };
  for (const Node& node : topology.nodes()) put(node.name, static_cast<int>(node.kind), node.gpudirect);
  for (const Link& link : topology.links())
    put(link.from.value, link.to.value, link.bandwidth.bytes_per_second, link.latency.count(),
        static_cast<int>(link.kind), link.resource.value);
  for (const Host& host : topology.hosts())
    put(static_cast<int>(host.peer_access), host.peer_cost, host.gpudirect_cost, host.bridges_apart);
  for (const auto* nodes : {&actors.ranks, &actors.helpers}) {
    for (const NodeId node : *nodes) put(node.value);
    key += '|';
  }
  const Transport& how = scenario.transport;
  put(static_cast<int>(topology.ties()), static_cast<int>(how.gdr_level), how.assumes_gpudirect,
      scenario.protocol->in_host_memory, static_cast<int>(how.p2p_level), how.pxn, how.acs, static_cast<int>(how.nics),
      static_cast<int>(scenario.routing.policy));
  for (const RoutingSpec::Entry& entry : scenario.routing.table) put(entry.at, entry.to, entry.via);
  for (const FaultSpec& fault : scenario.faults)
    put(fault.link, static_cast<int>(fault.change.to), fault.change.at.time_since_epoch().count(),
        fault.change.millionths, fault.change.bandwidth.bytes_per_second,
        fault.until ? fault.until->time_since_epoch().count() : -1);
  return key;
}

/// True if others than ranks add up: servers, switches. NCCL's NVLS trees are simulated as trees of ranks, over links
/// that are faster by what the switches save.
bool helpers_add(const Scenario& scenario, const PlacedCollective& placed) {
  if (placed.job.request.op != CollectiveOp::all_reduce) return false;
  if (!placed.helpers.empty()) return true;
  if (!scenario.library) return false;
  const auto adds = [](const LibraryCall& call) { return call.plan.algorithm == nccl::TunerAlgorithm::nvls_tree; };
  const auto& exchanges = scenario.library->exchanges;
  return adds(scenario.library->call) ||
         std::any_of(exchanges.begin(), exchanges.end(), [&](const auto& each) { return adds(each.second); });
}

/// What `placed` asks of a bound.
BoundedCollective bounded(const Scenario& scenario, const PlacedCollective& placed) {
  const CollectiveRequest& request = placed.job.request;
  return {.op = request.op,
          .root = has_root(request.op) ? request.root : 0,
          .both_ways = request.both_ways,
          .helpers_add = helpers_add(scenario, placed),
          // As in the run: without a library the scenario's own collective decides for all of its jobs.
          .point_to_point = scenario.transport.point_to_point};
}

/// The scenario as its job j sees it, with what the library has decided for that.
Scenario seen_by_job(const Scenario& scenario, std::size_t j) {
  Scenario seen = scenario;
  seen.library.reset();
  if (const LibraryRun* library = scenario.library_of(j)) {
    seen.library = *library;
    seen.transport = library->call.transport;
    seen.protocol = library->call.protocol.get();
  }
  return seen;
}

}  // namespace

Bound own_bound(const Scenario& scenario) {
  const Setup setup = set_up(scenario);
  const PlacedCollective& placed = setup.collectives.front();
  MachineBounds machine(scenario, setup, placed.ranks, placed.helpers);
  const std::optional<Bound> bound = machine.of(bounded(scenario, placed), placed.job.request.bytes);
  if (!bound)
    throw InputError(scenario.file + ": /collective/op",
                     "expected a collective that moves bytes, for --bound, found barrier");
  return *bound;
}

std::vector<std::optional<Bound>> Bounds::of(const Scenario& whole, const Setup& setup) {
  std::vector<std::optional<Bound>> result(setup.collectives.size());
  if (!shares_all_links(whole.model)) return result;
  const Topology topology = topology_without_kernels(whole);
  const std::lock_guard lock(mutex_);
  for (std::size_t j = 0; j < result.size(); ++j) {
    const std::optional<Scenario> own = j > 0 && whole.library ? std::optional(seen_by_job(whole, j)) : std::nullopt;
    const Scenario& scenario = own ? *own : whole;
    const PlacedCollective& placed = setup.collectives[j];
    std::unique_ptr<MachineBounds>& machine = machines_[key_of(scenario, topology, placed)];
    if (!machine) machine = std::make_unique<MachineBounds>(scenario, setup, placed.ranks, placed.helpers);
    const BoundedCollective what = bounded(scenario, placed);
    result[j] = machine->of(what, placed.job.request.bytes);
    // With pairs, some ranks need not hear of each other; with no bytes, no rank needs to.
    if (result[j] && result[j]->time.count() > 0 && what.op != CollectiveOp::send_recv &&
        what.op != CollectiveOp::pairs)
      result[j]->latency_floor = machine->latency_floor(what);
    // Weights that are averaged once in several steps: a step has its part of the exchange.
    if (const TrainingSpec* training = scenario.training_of(j); training != nullptr && result[j])
      result[j]->time /= training->every;
  }
  return result;
}

}  // namespace ringsim
