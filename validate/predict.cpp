#include "validate/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "algorithms/stored_schedule.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/run/run.hpp"
#include "sim/text/json.hpp"
#include "topologies/search/reduction_tree.hpp"
#include "topologies/search/ring_order.hpp"

namespace ringsim {

namespace {

NodeId gpu_named(const Topology& topology, const std::string& name, const std::string& pointer) {
  const auto node = topology.find(name);
  if (node && topology.node(*node).kind == NodeKind::gpu) return *node;
  throw InputError(
      pointer, fmt::format("expected the name of a gpu, found \"{}\"", name),
      fmt::format("gpus are named {} to {}; `ringsim topology show` lists them",
                  topology.node(topology.ranks().front()).name, topology.node(topology.ranks().back()).name));
}

/// The collective itself as a job, as the others are.
Job main_of(const Scenario& scenario) {
  return {.name = "main",
          .algorithm = scenario.algorithm,
          .arguments = scenario.arguments,
          .request = scenario.request,
          .ranks = scenario.ranks,
          .shuffle = scenario.shuffle,
          .best_ring = scenario.best_ring,
          .servers_on_cpu = scenario.servers_on_cpu};
}

/// A job, and where its scenario says it.
struct PlacedJob {
  Job job;  ///< for algorithms in the fabric with the tree of switches
  std::string pointer;
  std::vector<NodeId> ranks = {}, helpers = {};
  std::string ring = {};  ///< as ring_order_of()
};

std::vector<NodeId> places(const Topology& topology, const Job& job) {
  std::vector<NodeId> result;
  if (job.ranks.empty()) result.assign(topology.ranks().begin(), topology.ranks().end());
  for (std::size_t i = 0; i < job.ranks.size(); ++i)
    result.push_back(gpu_named(topology, job.ranks[i], fmt::format("/ranks/{}", i)));
  if (job.shuffle) {  // Fisher and Yates; the standard's own shuffle differs between libraries
    std::mt19937_64 random(*job.shuffle);
    for (std::size_t i = result.size(); i > 1; --i) std::swap(result[i - 1], result[random() % i]);
  }
  return result;
}

/// Puts the ranks into the order of the best ring, and says which it is.
std::string put_in_best_ring(const Topology& topology, const Transport& transport, std::vector<NodeId>& ranks) {
  const RingOrder ring = best_ring(topology, ranks, transport);
  std::vector<NodeId> ordered;
  std::string text;
  for (const std::size_t rank : ring.order) {
    ordered.push_back(ranks[rank]);
    text += topology.node(ranks[rank]).name + " -> ";
  }
  ranks = std::move(ordered);
  return fmt::format("{}{}, narrowest hop {}{}", text, topology.node(ranks.front()).name, format(ring.narrowest),
                     ring.is_best ? "" : " (the search was broken off before a wider one was ruled out)");
}

NodeId node_named(const Topology& topology, const std::string& name, const std::string& pointer) {
  const auto node = topology.find(name);
  if (node) return *node;
  throw InputError(pointer, fmt::format("expected the name of a node of the topology, found \"{}\"", name),
                   "`ringsim topology show` lists them");
}

Routing routing_in(const Topology& topology, const RoutingSpec& spec) {
  Routing routing{.policy = spec.policy, .seed = spec.seed, .table = {}};
  for (std::size_t i = 0; i < spec.table.size(); ++i) {
    const auto& [at, to, via] = spec.table[i];
    const std::string where = fmt::format("/table/{}", i);
    const NodeId here = node_named(topology, at, where + "/at"), next = node_named(topology, via, where + "/via");
    if (topology.node(here).host && topology.node(here).kind != NodeKind::nic)
      throw InputError(where + "/at", fmt::format("expected a switch of the fabric, or a NIC, found \"{}\"", at),
                       "within a host there are no tables");
    const auto leads = [&](LinkId id) { return topology.link(id).to == next; };
    const auto links = topology.links_from(here);
    if (std::none_of(links.begin(), links.end(), leads))
      throw InputError(where + "/via", fmt::format("expected a neighbour of {}, found \"{}\"", at, via));
    for (std::size_t other = 0; other < i; ++other)
      if (spec.table[other].at == at && spec.table[other].to == to)
        throw InputError(where, fmt::format("expected one entry at {} for {}, found a second one", at, to),
                         fmt::format("the first is /network/table/{}; leave one out", other));
    if (topology.node(next).kind == NodeKind::nic && via != to)
      throw InputError(where + "/via", fmt::format("expected a switch, found the NIC \"{}\"", via),
                       "a NIC passes nothing on");
    if (to == "*") {
      routing.table.push_back({here, no_node, next});
      continue;
    }
    const std::size_t before = routing.table.size();
    for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
      const Node& node = topology.node({n});
      const bool of_host = node.kind == NodeKind::nic && node.name.starts_with(to + ".");
      if (node.name == to || of_host) routing.table.push_back({here, {n}, next});
    }
    if (routing.table.size() == before) node_named(topology, to, where + "/to");
    if (const auto found = topology.find(to);
        found && !topology.hosts().empty() && topology.node(*found).kind != NodeKind::nic)
      throw InputError(where + "/to", fmt::format("expected a NIC, a node or \"*\", found \"{}\"", to),
                       "over the fabric data goes to NICs");
  }
  return routing;
}

std::vector<std::pair<std::string, std::string>> parameters_of(const Job& job) {
  std::vector<std::pair<std::string, std::string>> result;
  if (job.arguments.file) result.emplace_back("name", in_quotes(job.arguments.file->name));
  for (const Parameter& parameter : job.algorithm->parameters) {
    if (!parameter.choices.empty() || !parameter.example.empty()) {
      const std::string value = text(*job.algorithm, job.arguments, parameter.name);
      if (!value.empty()) result.emplace_back(parameter.name, '"' + value + '"');
    } else if (const auto value = number(*job.algorithm, job.arguments, parameter.name);
               value >= parameter.min) {  // a default below is none
      result.emplace_back(parameter.name, fmt::to_string(value));
    }
  }
  return result;
}

/// `start`: of a job; all its ranks wait for it, so that it is no delay.
BottleneckReport report(const Topology& topology, const Bottleneck& found, Picoseconds duration, Picoseconds start) {
  BottleneckReport result;
  const auto total = static_cast<double>(duration.count());
  result.delay = static_cast<double>((found.delay - start).count()) / total;
  if (found.resource != no_resource) {
    result.link = topology.resource_name(found.resource);
    result.kind = to_string(topology.link(topology.resource(found.resource).link).kind);
    result.busy = static_cast<double>(found.busy.count()) / total;
  }
  result.latency = static_cast<double>(found.latency.count()) / total;
  return result;
}

// Most bytes that left one host for the fabric.
std::optional<Bytes> most_leaving(const Topology& topology, const Timeline& timeline) {
  std::map<std::uint32_t, Bytes> leaving;  // [host]
  for (std::size_t i = 0; i < topology.n_links(); ++i) {
    const Link& link = topology.links()[i];
    const auto host = topology.node(link.from).host;
    if (host && !topology.node(link.to).host) leaving[*host] += timeline.link_bytes[i];
  }
  if (leaving.size() < 2) return std::nullopt;
  return std::max_element(leaving.begin(), leaving.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

std::string without_numbers(const std::string& name) {
  std::string result;
  for (const char c : name) {
    if (c < '0' || c > '9')
      result += c;
    else if (result.empty() || result.back() != '*')
      result += '*';
  }
  return result;
}

std::vector<LinkGroup> groups(const Topology& topology, const Timeline& timeline) {
  // By resource: the two directions of a half-duplex cable are one.
  std::vector<Bytes> carried(topology.n_resources());
  for (std::size_t i = 0; i < topology.n_links(); ++i)
    carried[topology.links()[i].resource.value] += timeline.link_bytes[i];
  std::map<std::string, LinkGroup> found;
  const double seconds = static_cast<double>(timeline.duration().count()) / 1e12;
  for (std::uint32_t r = 0; r < carried.size(); ++r) {
    if (carried[r].count == 0) continue;
    const Resource& resource = topology.resource({r});
    const std::string name = without_numbers(topology.resource_name({r}));
    LinkGroup& group = found[name];
    group.links = name;
    group.kind = to_string(topology.link(resource.link).kind);
    ++group.count;
    group.most = std::max(group.most, carried[r]);
    const double utilisation =
        static_cast<double>(carried[r].count) / (static_cast<double>(resource.bandwidth.bytes_per_second) * seconds);
    if (utilisation <= group.utilisation) continue;
    group.utilisation = utilisation;
    group.busiest = topology.resource_name({r});
    group.through_busiest = carried[r];
  }
  std::vector<LinkGroup> result;
  for (auto& [name, group] : found) result.push_back(std::move(group));
  std::stable_sort(result.begin(), result.end(),
                   [](const LinkGroup& a, const LinkGroup& b) { return a.utilisation > b.utilisation; });
  return result;
}

std::vector<LinkId> links_named(const Topology& topology, const std::string& name, const std::string& pointer) {
  std::vector<LinkId> links;
  const auto node = topology.find(name);
  for (std::uint32_t l = 0; l < topology.n_links(); ++l) {
    const Link& link = topology.link({l});
    if (node ? link.from == *node || link.to == *node : topology.link_name({l}) == name) links.push_back({l});
  }
  if (!links.empty()) return links;
  throw InputError(
      pointer, fmt::format("expected a link, FROM -> TO, or the name of a node that has links, found \"{}\"", name),
      fmt::format("for example \"{}\"; `ringsim topology show` lists nodes and links", topology.link_name({0})));
}

std::vector<LinkChange> changes_in(const Topology& topology, const std::vector<FaultSpec>& faults) {
  std::vector<LinkChange> changes;
  for (std::size_t i = 0; i < faults.size(); ++i) {
    const std::string pointer = fmt::format("/{}", i);
    LinkChange change = faults[i].change;
    change.links = links_named(topology, faults[i].link, pointer + "/link");
    for (const LinkId link : change.links) {
      const Bandwidth nominal = topology.link(link).bandwidth;
      if (change.to == LinkChange::To::bandwidth && nominal < change.bandwidth)
        throw InputError(pointer + "/bandwidth",
                         fmt::format("expected at most what {} has without faults, {}, found {}",
                                     topology.link_name(link), format(nominal), format(change.bandwidth)),
                         "a fault takes bandwidth away; more belongs into the topology");
    }
    changes.push_back(change);
    if (!faults[i].until) continue;
    change.to = LinkChange::To::restored;
    change.at = *faults[i].until;
    changes.push_back(std::move(change));
  }
  return changes;
}

/// What the algorithm itself cannot do, or the machine lacks for it.
template <class Part>
auto by_the_algorithm(const Job& job, Part part) {
  try {
    return part();
  } catch (const ScheduleError&) {
    throw;  // the schedule is wrong, not the question
  } catch (const InputError& error) {
    throw UnservedError(job.algorithm->name, error.where(), error.message(), error.hint());
  }
}

// What only the built topology can tell is the file's mistake all the same: says so with the file's name.
template <class Part>
auto blaming(const Scenario& scenario, const std::string& pointer, Part part) {
  try {
    return part();
  } catch (const ScheduleError&) {
    throw;  // names the schedule
  } catch (const UnservedError& error) {
    throw UnservedError(error.algorithm(), scenario.file + ": " + pointer + error.where(), error.message(),
                        error.hint());
  } catch (const InputError& error) {
    throw InputError(scenario.file + ": " + pointer + error.where(), error.message(), error.hint());
  }
}

}  // namespace

Topology topology_of(const Scenario& scenario) {
  return blaming(scenario, "/topology", [&] { return build(scenario.topology); });
}

Routing routing_of(const Topology& topology, const Scenario& scenario) {
  return blaming(scenario, "/network", [&] { return routing_in(topology, scenario.routing); });
}

Disturbance disturbance_of(const Topology& topology, const Scenario& scenario, const std::vector<Actor>& first_actors) {
  Disturbance out;
  out.links = blaming(scenario, "/faults", [&] { return changes_in(topology, scenario.faults); });
  const auto actor = [&](const RankDelay& delay) { return first_actors[delay.job] + delay.rank; };
  const auto start = [&](std::size_t job) { return job == 0 ? Picoseconds{0} : scenario.jobs[job - 1].start; };
  for (const RankDelay& each : scenario.late) out.late.push_back({actor(each), SimTime{each.time}});
  for (const RankDelay& each : scenario.slow) out.slow.push_back({actor(each), each.time});
  for (std::size_t j = 1; j + 1 < first_actors.size(); ++j)
    for (Actor a = first_actors[j]; a < first_actors[j + 1] && start(j).count() > 0; ++a)
      out.late.push_back({a, SimTime{start(j)}});
  out.jitter = scenario.jitter;
  for (std::size_t i = 0; i < scenario.background.size(); ++i) {
    const BackgroundSpec& spec = scenario.background[i];
    Disturbance::Background message = spec.message;
    blaming(scenario, fmt::format("/disturbance/background/{}", i), [&] {
      message.from = gpu_named(topology, spec.from, "/from");
      message.to = gpu_named(topology, spec.to, "/to");
      if (message.from == message.to)
        throw InputError("/to", fmt::format("expected another gpu than the one that sends, found \"{}\"", spec.to));
      return 0;
    });
    out.background.push_back(message);
  }
  return out;
}

namespace {
/// Made for as many bytes as there are elements, then stretched: chunks lie on whole elements.
Schedule in_elements(const Job& job, int element) {
  CollectiveRequest request = job.request;
  if (request.bytes.count % element != 0)
    throw InputError("/bytes", fmt::format("expected a multiple of {} bytes, found {}", element, format(request.bytes)),
                     fmt::format("an element has {} bytes", element));
  request.bytes.count /= element;
  if (request.chunk) request.chunk->count = std::max<std::int64_t>(1, request.chunk->count / element);
  return stretched(by_the_algorithm(job, [&] { return make_schedule(*job.algorithm, request, job.arguments); }),
                   element);
}

CheckedSchedule schedule_of(const Scenario& scenario, const PlacedJob& placed, const std::atomic<bool>* stop,
                            int element = 1) {
  return blaming(scenario, placed.pointer, [&] { return check(in_elements(placed.job, element), {.stop = stop}); });
}

bool uses_fabric(const Job& job) { return job.algorithm->uses_fabric(job.arguments); }

/// The switches that join the ranks; those of a file's schedule must be joined as the file says.
ReductionTree tree_for(const Job& job, const Topology& topology, const std::vector<NodeId>& ranks) {
  ReductionTree tree = reduction_tree(topology, ranks);
  if (job.arguments.file == nullptr) return tree;
  const std::vector<Actor>&is = tree.parents, &wanted = job.arguments.file->tree;
  if (is == wanted) return tree;
  const auto differs = [&](const std::string& expected, const std::string& found) {
    return InputError("",
                      fmt::format("expected switches that join the ranks as {} has it, {}, found {}",
                                  job.arguments.file->name, expected, found),
                      "take the topology and the order of ranks that the schedule was made for");
  };
  if (is.size() != wanted.size())
    throw differs(fmt::to_string(wanted.size() - ranks.size()), fmt::to_string(is.size() - ranks.size()));
  const auto actor = static_cast<std::size_t>(std::mismatch(is.begin(), is.end(), wanted.begin()).first - is.begin());
  const auto below = [&](Actor parent) {
    return parent < 0 ? fmt::format("actor {} at the top", actor) : fmt::format("actor {} below {}", actor, parent);
  };
  throw differs(below(wanted[actor]), below(is[actor]));
}

PlacedJob placed_job(const Topology& topology, const Scenario& scenario, Job job, const std::string& pointer) {
  PlacedJob placed{std::move(job), pointer};
  return blaming(scenario, pointer, [&] {
    placed.ranks = places(topology, placed.job);
    if (placed.job.best_ring) placed.ring = put_in_best_ring(topology, scenario.transport, placed.ranks);
    if (uses_fabric(placed.job)) {
      ReductionTree tree = by_the_algorithm(placed.job, [&] { return tree_for(placed.job, topology, placed.ranks); });
      placed.job.request.tree = std::move(tree.parents);
      placed.helpers = std::move(tree.switches);
    }
    return placed;
  });
}

PlacedJob placed_main(const Topology& topology, const Scenario& scenario) {
  return placed_job(topology, scenario, main_of(scenario), "/collective");
}

/// Where servers on CPUs sit: the first CPU of each host, then the second (what has no host is one); in its memory,
/// where it has some.
std::vector<NodeId> cpu_places(const Topology& topology) {
  std::vector<std::pair<std::size_t, NodeId>> cpus;  // how many of the host come before, and which
  std::map<std::optional<std::uint32_t>, std::size_t> seen;
  for (std::uint32_t n = 0; n < topology.n_nodes(); ++n) {
    const Node& node = topology.node({n});
    if (node.kind == NodeKind::cpu) cpus.emplace_back(seen[node.host]++, NodeId{n});
  }
  std::stable_sort(cpus.begin(), cpus.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<NodeId> found;
  for (const auto& [turn, cpu] : cpus) {
    found.push_back(cpu);
    for (const LinkId link : topology.links_from(cpu))
      if (const NodeId to = topology.link(link).to; topology.node(to).kind == NodeKind::memory) found.back() = to;
  }
  return found;
}

void place_on_cpus(const Topology& topology, const Scenario& scenario, PlacedJob& placed) {
  placed.helpers = cpu_places(topology);
  const auto n = static_cast<std::size_t>(placed.job.algorithm->helpers(placed.job.arguments));
  if (n > placed.helpers.size())
    throw UnservedError(placed.job.algorithm->name, scenario.file + ": " + placed.pointer + "/servers_on",
                        fmt::format("expected at most as many servers as CPUs, {}, found {}", placed.helpers.size(), n),
                        "`ringsim topology show` lists the nodes");
  placed.helpers.resize(n);
}

/// All collectives of a scenario; helpers that are no switches, and not on CPUs, take the extra ports in order.
std::vector<PlacedJob> placed_jobs(const Topology& topology, const Scenario& scenario) {
  std::vector<PlacedJob> jobs{placed_main(topology, scenario)};
  for (std::size_t i = 0; i < scenario.jobs.size(); ++i)
    jobs.push_back(placed_job(topology, scenario, scenario.jobs[i], fmt::format("/jobs/{}/collective", i)));
  std::size_t helpers = 0;
  for (PlacedJob& placed : jobs) {
    if (uses_fabric(placed.job)) continue;
    if (placed.job.servers_on_cpu) {
      place_on_cpus(topology, scenario, placed);
      continue;
    }
    const auto n = static_cast<std::size_t>(placed.job.algorithm->helpers(placed.job.arguments));
    const auto found = topology.helpers().subspan(std::min(helpers, topology.helpers().size()));
    placed.helpers.assign(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(std::min(n, found.size())));
    helpers += n;
  }
  return jobs;
}

/// Switches that take part are no ports of their own.
std::vector<NodeId> endpoints(const PlacedJob& placed) {
  return uses_fabric(placed.job) ? std::vector<NodeId>{} : placed.helpers;
}

/// What the closed forms know nothing of.
std::vector<std::string> disturbances(const Scenario& scenario) {
  std::vector<std::string> because;
  if (!scenario.faults.empty()) because.emplace_back("links have faults");
  if (!scenario.late.empty() || !scenario.slow.empty() || scenario.jitter.most.count() > 0)
    because.emplace_back("ranks are late, slow or unsteady");
  if (!scenario.background.empty()) because.emplace_back("background messages share the links");
  if (!scenario.jobs.empty()) because.emplace_back("other collectives run at the same time");
  return because;
}

Picoseconds launch_of(const Scenario& scenario) {
  const Picoseconds launch = scenario.launch.value_or(scenario.protocol->launch);
  return scenario.calibration ? launch + scenario.calibration->launch : launch;
}

int n_hosts(const Topology& topology, const std::vector<NodeId>& ranks) {
  std::set<std::uint32_t> hosts;
  for (const NodeId rank : ranks)
    if (const auto host = topology.node(rank).host) hosts.insert(*host);
  return static_cast<int>(hosts.size());
}

/// What all formats say of a collective, but for its time and what held it back.
Prediction about(const Topology& topology, const Scenario& scenario, const PlacedJob& placed, const Routing& routing) {
  const Job& job = placed.job;
  Prediction result;
  if (!scenario.jobs.empty()) result.job = job.name;
  result.request = job.request;
  result.algorithm = job.algorithm->name;
  result.parameters = parameters_of(job);
  result.model = scenario.model;
  result.protocol = scenario.protocol;
  if (scenario.calibration) result.calibration = to_string(*scenario.calibration);
  result.varied = scenario.varied;
  result.start = job.start;
  result.disturbed = !disturbances(scenario).empty();
  result.ring = placed.ring;
  result.nodes = n_hosts(topology, placed.ranks);
  const Uniform machine = uniform_of(topology, placed.ranks, endpoints(placed), scenario.transport, routing,
                                     grid_of(*job.algorithm, job.arguments, job.request));
  result.form = closed_form(*job.algorithm, job.arguments, job.request, machine);
  if (!result.form) return result;
  assume_protocol(*result.form, *job.algorithm, job.arguments, job.request, machine, *scenario.protocol);
  assume_even_sizes(*result.form);
  if (scenario.model == NetworkModel::packet) assume_packets(*result.form, scenario.packet);
  if (const Picoseconds launch = launch_of(scenario); launch.count() > 0 && job.request.ranks > 1) {
    result.form->formula = "t + " + result.form->formula;
    result.form->low = add(result.form->low, launch);
    result.form->time = add(result.form->time, launch);
  }
  for (std::string& because : disturbances(scenario)) result.form->because.push_back(std::move(because));
  return result;
}

// What the topology lacks, or what its faults take away.
Timeline run_blaming(const Scenario& scenario, const Topology& topology, const CheckedSchedule& schedule,
                     const RunOptions& options) {
  try {
    return run(topology, schedule, options);
  } catch (const StrandedError& error) {
    throw InputError(scenario.file + ": /faults", error.message(), error.hint());
  } catch (const InputError& error) {
    throw InputError(scenario.file + ": /topology" + error.where(), error.message(), error.hint());
  }
}

void set_time(Prediction& result, Picoseconds time) {
  result.time = time;
  result.algbw = gigabytes_per_second(result.request.bytes, time);
  result.busbw = result.algbw * busbw_factor(result.request.op, result.request.ranks);
}
}  // namespace

std::string ring_order_of(const Scenario& scenario) {
  return scenario.best_ring ? placed_main(topology_of(scenario), scenario).ring : "";
}

CheckedSchedule schedule_of(const Scenario& scenario, const std::atomic<bool>* stop) {
  // Only the tree of switches needs the topology.
  if (!uses_fabric(main_of(scenario))) return schedule_of(scenario, {main_of(scenario), "/collective"}, stop);
  return schedule_of(scenario, placed_main(topology_of(scenario), scenario), stop);
}

std::vector<PlacedSchedule> schedules_of_elements(const Scenario& scenario, int element,
                                                  const std::atomic<bool>* stop) {
  std::vector<PlacedSchedule> result;
  for (PlacedJob& placed : placed_jobs(topology_of(scenario), scenario)) {
    CheckedSchedule schedule = schedule_of(scenario, placed, stop, element);
    placed.ranks.insert(placed.ranks.end(), placed.helpers.begin(), placed.helpers.end());
    result.push_back(
        {scenario.jobs.empty() ? "" : std::move(placed.job.name), std::move(schedule), std::move(placed.ranks)});
  }
  return result;
}

Prediction predict(const Scenario& scenario, const PredictOptions& options) {
  const Topology topology = topology_of(scenario);
  RunOptions run_options{.model = scenario.model,
                         .packet = scenario.packet,
                         .transport = scenario.transport,
                         .protocol = scenario.protocol,
                         .routing = routing_of(topology, scenario),
                         .fold = options.fold,
                         .stop = options.stop,
                         .progress = options.progress};
  const std::vector<PlacedJob> jobs = placed_jobs(topology, scenario);
  ensure(!options.schedules || options.schedules->size() == jobs.size(), "schedules that are given are of all jobs");
  std::vector<CheckedSchedule> schedules;
  std::vector<Actor> first_actors;
  for (const PlacedJob& placed : jobs) {
    first_actors.push_back(static_cast<Actor>(run_options.placement.size()));
    for (const auto* nodes : {&placed.ranks, &placed.helpers})
      run_options.placement.insert(run_options.placement.end(), nodes->begin(), nodes->end());
    schedules.push_back(options.schedules ? (*options.schedules)[schedules.size()].schedule
                                          : schedule_of(scenario, placed, options.stop));
  }
  first_actors.push_back(static_cast<Actor>(run_options.placement.size()));
  run_options.disturbance = disturbance_of(topology, scenario, first_actors);
  const CheckedSchedule whole = jobs.size() == 1 ? schedules.front() : side_by_side(schedules);
  const Timeline timeline = run_blaming(scenario, topology, whole, run_options);

  Prediction result = about(topology, scenario, jobs.front(), run_options.routing);
  if (options.schedules && result.form &&
      schedules.front().schedule().layout !=
          jobs.front().job.algorithm->make(jobs.front().job.request, jobs.front().job.arguments).layout)
    result.form->because.emplace_back("chunks lie on whole elements, not on single bytes");
  result.events = timeline.events;
  result.fingerprint = timeline.fingerprint;
  result.folded = timeline.folded;
  result.not_folded = timeline.not_folded;
  result.proof = schedules.front().proof();
  if (jobs.size() == 1) {
    // All ranks launch at once, so that a launch shifts everything; a single rank has nothing to launch.
    set_time(result, timeline.duration() + (result.request.ranks > 1 ? launch_of(scenario) : Picoseconds{0}));
    result.transfers = timeline.transfers;
    if (timeline.bottleneck) result.bottleneck = report(topology, *timeline.bottleneck, result.time, {});
    const auto bytes = most_leaving(topology, timeline);
    if (bytes && result.time.count() > 0) result.inter_node = {*bytes, gigabytes_per_second(*bytes, result.time)};
  }
  if (timeline.duration().count() > 0) result.links = groups(topology, timeline);
  for (std::size_t j = 0; jobs.size() > 1 && j < jobs.size(); ++j) {
    if (j > 0) result.jobs.push_back(about(topology, scenario, jobs[j], run_options.routing));
    Prediction& one = j == 0 ? result : result.jobs.back();
    const JobTimeline& job = timeline.jobs[j];
    const Picoseconds start = jobs[j].job.start;
    // One that moves nothing ends as it begins.
    const Picoseconds launch = one.request.ranks > 1 ? launch_of(scenario) : Picoseconds{0};
    set_time(one, launch + std::max(Picoseconds{0}, job.finish.time_since_epoch() - start));
    one.transfers = job.transfers;
    one.fingerprint = timeline.fingerprint;
    one.proof = schedules[j].proof();
    if (job.bottleneck && one.time.count() > 0) one.bottleneck = report(topology, *job.bottleneck, one.time, start);
  }
  return result;
}

}  // namespace ringsim
