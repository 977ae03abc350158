// ringsim lab: a network of namespaces that is shaped as the scenario's, and replays in it.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/text/table.hpp"
#include "tools/command_line/input.hpp"
#include "tools/commands/commands.hpp"
#include "tools/exit.hpp"
#include "tools/output/output.hpp"
#include "tools/output/warnings.hpp"
#include "tools/replay/replay_backend.hpp"
#include "tools/replay/replay_tcp.hpp"
#include "tools/replay/replay_work.hpp"
#include "tools/stop.hpp"
#include "validate/replay/lab/lab.hpp"
#include "validate/replay/memory.hpp"

namespace ringsim::tools {

namespace {

using replay::Lab;
using replay::LabCommand;
using replay::LabOptions;
using replay::LabPairs;
using replay::LabPlan;

struct LabArguments {
  ReplayArguments replay;  ///< down: an empty scenario is all labs that no command uses
  bool fifo = false;       ///< as opposed to LabOptions::fair_ports
  int window = 262144;     ///< as TcpOptions::receive_buffer
};

const std::string any_lab = "ringsim-";
constexpr int lab_priority = -15;  // before what else the machine does

/// A point's network: where its processes run, and which sends to which.
struct Network {
  Topology topology;
  std::vector<NodeId> places;  ///< [process]
  LabPairs pairs;
};

LabPairs pairs_of(const std::vector<PlacedSchedule>& jobs) {
  std::set<std::pair<int, int>> pairs;
  int first = 0;
  for (const PlacedSchedule& job : jobs) {
    const Schedule& schedule = job.schedule.schedule();
    for (Actor actor = 0; actor < schedule.actors; ++actor) {
      each_op(schedule, actor, [&](const Op& op) {
        if (op.what == Do::send) pairs.emplace(first + actor, first + op.peer);
      });
    }
    first += schedule.actors;
  }
  return {pairs.begin(), pairs.end()};
}

Network network_of(const Scenario& scenario, const std::vector<PlacedSchedule>& jobs) {
  Network network{.topology = topology_of(scenario), .places = {}, .pairs = pairs_of(jobs)};
  for (const PlacedSchedule& job : jobs)
    network.places.insert(network.places.end(), job.nodes.begin(), job.nodes.end());
  return network;
}

LabPlan plan_of(const Scenario& scenario, const Network& network, const LabPairs& pairs, const LabOptions& options) {
  try {
    return plan_lab(network.topology, network.places, pairs, options);
  } catch (const InputError& error) {
    throw InputError(scenario.file + ": " + error.where(), error.message(), error.hint());
  }
}

std::string text_of(const LabPlan& plan) {
  std::string text;
  for (const LabCommand& command : plan.up) text += command.net_namespace + ' ' + command.text + '\n';
  return text;
}

/// The name of a lab that outlives its command: equal networks, equal names. FNV-1a, 32 bits.
std::string lasting_prefix(const std::string& plan_text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : plan_text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return fmt::format("{}lab{:08x}-", any_lab, hash);
}
std::string own_prefix() { return fmt::format("{}{}-", any_lab, getpid()); }

/// The networks that a scenario's points need. Points of one network share it, with all pairs of any of them.
class Networks {
 public:
  Networks(const ScenarioFile& file, bool fair_ports) {
    options_.fair_ports = fair_ports;
    options_.cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    for (std::size_t i = 0; i < file.size(); ++i) {
      const Scenario scenario = file.point(i);
      const Network network = network_of(scenario, ReplayWork(scenario).jobs());
      pairs_[key_of(scenario, network)].insert(network.pairs.begin(), network.pairs.end());
      for (const Link& link : network.topology.links()) has_latency_ = has_latency_ || link.latency.count() > 0;
    }
  }

  std::size_t size() const { return pairs_.size(); }
  bool has_latency() const { return has_latency_; }
  LabOptions options(const std::string& prefix) const {
    LabOptions options = options_;
    options.prefix = prefix;
    return options;
  }
  LabPlan plan(const Scenario& scenario, const Network& network, const std::string& prefix) const {
    const auto& pairs = pairs_.at(key_of(scenario, network));
    return plan_of(scenario, network, {pairs.begin(), pairs.end()}, options(prefix));
  }
  /// The prefix of the lab of this network that `lab up` makes.
  std::string lasting(const Scenario& scenario, const Network& network) const {
    return lasting_prefix(text_of(plan(scenario, network, "")));
  }

 private:
  std::string key_of(const Scenario& scenario, const Network& network) const {
    return text_of(plan_of(scenario, network, {}, options("")));
  }

  LabOptions options_;
  std::map<std::string, std::set<std::pair<int, int>>> pairs_;  // [key_of]
  bool has_latency_ = false;
};

/// Links that change while a run goes on, and are at first what they are without faults.
replay::TcpMeanwhile meanwhile_of(const Scenario& scenario, const Network& network, const LabOptions& options) {
  replay::TcpMeanwhile meanwhile;
  std::vector<LinkChange> changes = faults_of(network.topology, scenario);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const LinkChange& a, const LinkChange& b) { return a.at < b.at; });
  std::vector<LabCommand> first;
  std::vector<std::pair<SimTime, std::vector<LabCommand>>> later;
  for (const LinkChange& change : changes) {
    if (change.to == LinkChange::To::down)
      throw InputError(scenario.file + ": /faults", "expected links that only slow down, found one that goes down",
                       "in the lab, data has no other path");
    for (const LinkId link : change.links)
      first.push_back(change_link(network.topology, link, network.topology.link(link).bandwidth, options));
  }
  for (const LinkChange& change : changes) {
    std::vector<LabCommand> commands;
    for (const LinkId link : change.links)
      commands.push_back(
          change_link(network.topology, link, change.of(network.topology.link(link).bandwidth), options));
    if (change.at == SimTime{})
      first.insert(first.end(), commands.begin(), commands.end());
    else
      meanwhile.during.push_back({std::chrono::duration_cast<std::chrono::nanoseconds>(change.at.time_since_epoch()),
                                  [commands] { replay::carry_out(commands); }});
  }
  if (!first.empty()) meanwhile.between = [first] { replay::carry_out(first); };
  return meanwhile;
}

class InLab : public ReplayBackend {
 public:
  InLab(const ScenarioFile& file, const LabArguments& arguments) : networks_(file, !arguments.fifo) {
    options_.timeout = arguments.replay.timeout;
    options_.stop = &stop_requested;
    options_.receive_buffer = arguments.window;
    options_.priority = lab_priority;
    if (networks_.has_latency())
      warnings_.say({"the lab cannot set latencies: every message takes 0.1 to 0.2 ms, regardless of the scenario"});
  }

  bool does_training() const override { return true; }
  std::vector<replay::Measured> replay(const ReplayPoint& point) override {
    const Network network = network_of(point.scenario, point.jobs);
    const std::string lasting = networks_.lasting(point.scenario, network);
    const bool is_up = !replay::namespaces_of(lasting).empty();
    const std::string prefix = is_up ? lasting : own_prefix();
    LabPlan plan = networks_.plan(point.scenario, network, prefix);
    if (!is_up && (!lab_ || lab_->plan().up != plan.up)) {
      lab_.reset();  // names are the same
      lab_.emplace(plan, &stop_requested);
    }
    std::vector<replay::TcpPlace> places;
    for (std::size_t p = 0; p < plan.process_namespace.size(); ++p)
      places.push_back({plan.process_address[p], "/run/netns/" + plan.process_namespace[p]});
    const auto outcome = replay::replay_here(tcp_replay_of(point, options_), places,
                                             meanwhile_of(point.scenario, network, networks_.options(prefix)));
    warnings_.say(outcome.notes);
    return outcome.jobs;
  }

 private:
  Networks networks_;
  replay::TcpOptions options_;
  std::optional<Lab> lab_;
  Warnings warnings_;
};

int lab_up(const ScenarioFile& file, const LabArguments& arguments) {
  const Networks networks(file, !arguments.fifo);
  if (networks.size() != 1)
    throw InputError(arguments.replay.scenario,
                     fmt::format("expected points that share one network, found {} networks", networks.size()),
                     "`ringsim lab run` builds them one after another; choose one with --set");
  const Scenario scenario = file.point(0);
  const Network network = network_of(scenario, ReplayWork(scenario).jobs());
  const std::string prefix = networks.lasting(scenario, network);
  if (!replay::namespaces_of(prefix).empty())
    throw EnvironmentError(
        fmt::format("this lab is already up: namespaces {}*\n  hint: remove it with `ringsim lab down`", prefix));
  Lab lab(networks.plan(scenario, network, prefix), &stop_requested);
  Table table({"process", "node", "namespace", "address"});
  for (std::size_t p = 0; p < network.places.size(); ++p)
    table.add({fmt::to_string(p), network.topology.node(network.places[p]).name, lab.plan().process_namespace[p],
               lab.plan().process_address[p]});
  Output output;
  output.write(table.text());
  output.finish();
  lab.keep();
  return good;
}

bool is_left_over(const std::string& name) {  // of a process that is no more
  const std::string number = name.substr(any_lab.size(), name.find('-', any_lab.size()) - any_lab.size());
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos || number.size() > 9) return false;
  return kill(static_cast<pid_t>(std::stoi(number)), 0) != 0;
}

int lab_down(const LabArguments& arguments) {
  std::vector<std::string> names;
  for (const std::string& name : replay::namespaces_of(any_lab))
    if (is_left_over(name)) names.push_back(name);
  if (!arguments.replay.scenario.empty()) {
    const ScenarioFile file = load_scenario(arguments.replay.scenario, arguments.replay.set);
    const Networks networks(file, !arguments.fifo);
    const Scenario scenario = file.point(0);
    const Network network = network_of(scenario, ReplayWork(scenario).jobs());
    const auto of_it = replay::namespaces_of(networks.lasting(scenario, network));
    if (of_it.empty()) say("ringsim: this scenario's lab is not up\n");
    names.insert(names.end(), of_it.begin(), of_it.end());
  } else {
    const auto lasting = replay::namespaces_of(any_lab + "lab");
    names.insert(names.end(), lasting.begin(), lasting.end());
  }
  replay::take_down(names);
  say(fmt::format("ringsim: {} namespaces removed\n", names.size()));
  return good;
}

/// A process that is asked to end takes its lab down first.
void catch_ends() {
  for (const int signal : {SIGTERM, SIGHUP}) std::signal(signal, [](int) { stop_requested = true; });
}

void declare_fifo(Options& options, LabArguments& lab) {
  options.flag("--fifo", lab.fifo, "give each port a single queue; by default its users take turns");
}

void declare_up(Options& options, LabArguments& lab) {
  options.scenario(lab.replay.scenario, lab.replay.set);
  declare_fifo(options, lab);
}

void declare_down(Options& options, LabArguments& lab) {
  Option& scenario = options.scenario(lab.replay.scenario, lab.replay.set);
  scenario.required = false;
  scenario.fallback = "all networks";
  declare_fifo(options, lab);
}

void declare_run(Options& options, LabArguments& lab) {
  declare_replay(options, lab.replay);
  declare_fifo(options, lab);
  const auto take = [&lab](const std::string& text) {
    if (text == "free") {
      lab.window = 0;
      return;
    }
    const Bytes size = parse_bytes(text);
    if (size < Bytes{4096} || size > Bytes{1 << 30})
      throw InputError("", fmt::format("expected 4 KiB to 1 GiB, or free, found \"{}\"", text));
    lab.window = static_cast<int>(size.count);
  };
  options.read("--window", "SIZE|free", take, "TCP receive buffer (SO_RCVBUF); free: chosen by the system").fallback =
      "256 KiB";
}

int execute_up(const LabArguments& arguments) {
  catch_ends();
  const ScenarioFile file = load_scenario(arguments.replay.scenario, arguments.replay.set);
  replay::require_lab();
  return lab_up(file, arguments);
}

int execute_run(const LabArguments& arguments) {
  catch_ends();
  const ScenarioFile file = load_scenario(arguments.replay.scenario, arguments.replay.set);
  InLab backend(file, arguments);
  replay::require_lab();
  setpriority(PRIO_PROCESS, 0, lab_priority);  // links change when they should; if that is refused, it is said later
  return replay_points(file, arguments.replay, backend, true);
}

int execute_down(const LabArguments& arguments) {
  catch_ends();
  replay::require_lab();
  return lab_down(arguments);
}

}  // namespace

Command lab_command() {
  return {.name = "lab",
          .group = Group::replay,
          .summary = "Replay a scenario in a network of Linux namespaces",
          .example = "ringsim lab run scenarios/examples/replay/replay-star.json",
          .details = "The network has the nodes, links and rates of the scenario. Requires root and iproute2.",
          .prepare = {}};
}

Command lab_up_command() {
  return {.name = "lab up",
          .group = Group::replay,
          .summary = "Build the network and leave it up, so you can inspect it and run programs in it",
          .example = "ringsim lab up scenarios/examples/replay/replay-star.json",
          .details = "Requires root and iproute2.",
          .prepare = with<LabArguments>(declare_up, execute_up)};
}

Command lab_run_command() {
  return {.name = "lab run",
          .group = Group::replay,
          .summary = "Replay over TCP in the network built by `lab up`, or in a temporary one",
          .example = "ringsim lab run scenarios/examples/replay/replay-star.json",
          .details = "Requires root and iproute2.",
          .prepare = with<LabArguments>(declare_run, execute_run)};
}

Command lab_down_command() {
  return {.name = "lab down",
          .group = Group::replay,
          .summary = "Remove a scenario's network, or all networks and leftovers of ended processes",
          .example = "ringsim lab down",
          .details = "Requires root and iproute2.",
          .prepare = with<LabArguments>(declare_down, execute_down)};
}

}  // namespace ringsim::tools
