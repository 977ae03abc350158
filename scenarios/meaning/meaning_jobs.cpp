#include "scenarios/meaning/meaning_jobs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <variant>

#include "algorithms/formats/schedule_file.hpp"
#include "scenarios/meaning/meaning_calibration.hpp"
#include "scenarios/meaning/meaning_groups.hpp"
#include "scenarios/meaning/meaning_inference.hpp"
#include "scenarios/meaning/meaning_trace.hpp"
#include "scenarios/meaning/meaning_training.hpp"
#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "topologies/catalog.hpp"

namespace ringsim::scenarios {

using Canonical = nlohmann::json;

Arguments arguments_of(const Algorithm& algorithm, const Canonical& given) {
  Arguments arguments;
  for (const Parameter& parameter : algorithm.parameters) {
    if (!given.contains(parameter.name)) continue;  // one that is not set
    const Canonical& value = given[parameter.name];
    if (!value.is_string())
      arguments.numbers[parameter.name] = value.get<std::int64_t>();
    else
      arguments.texts[parameter.name] = value.get<std::string>();
  }
  return arguments;
}
const Algorithm& algorithm_of_groups(const Canonical& given, const std::string& pointer, const Blame& blame) {
  const Algorithm* algorithm = find_algorithm(given["name"].get<std::string>());
  if (algorithm == nullptr)
    blame.fail(pointer, "expected an algorithm of the catalog, found a file", "the collectives have several sizes");
  const Arguments arguments = arguments_of(*algorithm, given);
  if (!algorithm->uses_fabric(arguments) && algorithm->helpers(arguments) > 0)
    blame.fail(pointer, fmt::format("expected an algorithm without servers, found {}", algorithm->name),
               "servers are not modeled for groups");
  return *algorithm;
}

std::optional<std::size_t> find_job(const std::vector<Job>& jobs, const std::string& name) {
  const auto found = std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) { return job.name == name; });
  return found == jobs.end() ? std::nullopt : std::optional(static_cast<std::size_t>(found - jobs.begin()));
}

namespace {

CollectiveOp op_of(const std::string& name) {
  for (const CollectiveOp op : collective_ops())
    if (to_string(op) == name) return op;
  fail_invariant("the table of fields names an op that nothing stands for: " + name);
}

/// The schedule of a file; its faults are the scenario's, too, which names the file.
std::shared_ptr<const StoredSchedule> schedule_in(const Files::Content& content, const Canonical& algorithm,
                                                  const std::string& pointer, const Blame& blame) {
  const bool says = algorithm.contains("sends");
  if (says && !is_goal(content.text))
    blame.fail(pointer + "/sends", fmt::format("expected sends only for a GOAL file, found {}", content.path),
               "other formats already order their sends");
  try {
    return std::make_shared<const StoredSchedule>(
        read_schedule(content.text, content.path, {.sends_in_turn = says && algorithm["sends"] == "in_turn"}));
  } catch (const InputError& error) {
    blame.fail(pointer + "/file", fmt::format("{}: {}", error.where(), error.message()), error.hint());
  }
}

/// Holds it against what is asked for.
void take_file(const Canonical& algorithm, const std::string& pointer, const Blame& blame, const Files& files, Job& out,
               std::vector<std::string>& warnings) {
  const FileKind kind{"a schedule: MSCCL XML (<algo ...), MSCCL++'s or ringsim's JSON, or GOAL (num_ranks ...)",
                      {"<algo", "\"threadblocks\"", "\"ringsim_schedule\"", "num_ranks"}};
  const Files::Content& content = files.read(algorithm["file"]["path"].get<std::string>(), kind);
  const auto stored = schedule_in(content, algorithm, pointer + "/algorithm", blame);
  if (const Mismatch wrong = file_serves(*stored, out.request); !wrong.part.empty())
    blame.fail(pointer + (wrong.part == "ranks" ? "/algorithm/file" : "/" + wrong.part), wrong.message);
  out.arguments.file = stored;
  warnings.insert(warnings.end(), stored->warnings.begin(), stored->warnings.end());
  if (const std::string odd = outside_of_range(*stored, out.request.bytes); !odd.empty())
    warnings.push_back(content.path + ": " + odd);
}

void check_supports(const Algorithm& algorithm, CollectiveOp op, const std::string& pointer, const Blame& blame) {
  if (algorithm.supports(op)) return;
  std::vector<std::string_view> can, others;
  for (const CollectiveOp each : algorithm.ops) can.push_back(to_string(each));
  for (const Algorithm& other : algorithms()) {
    if (other.supports(op)) others.push_back(other.name);
  }
  throw UnservedError(
      algorithm.name, blame.where(pointer + "/algorithm"),
      fmt::format("expected an algorithm for {}, found \"{}\"", to_string(op), algorithm.name),
      fmt::format("{} does {}; {}", algorithm.name, fmt::join(can, ", "),
                  others.empty() ? fmt::format("no algorithm implements {}", to_string(op))
                                 : fmt::format("{} is implemented by {}", to_string(op), fmt::join(others, ", "))));
}

void check_request(const Job& job, const Canonical& collective, const Json& said, std::size_t gpus,
                   const std::string& pointer, const Blame& blame) {
  const CollectiveRequest& request = job.request;
  const auto found = [&] { return fmt::format("found op {} with {}", to_string(request.op), job.algorithm->name); };
  if (job.ranks.size() > gpus) {
    blame.fail(pointer + (job.groups.empty() || job.by_rule ? "/ranks" : "/groups"),
               fmt::format("expected at most {} names, one for each GPU, found {}", gpus, job.ranks.size()));
  }
  if (said.contains("root") && !job.algorithm->takes_root(request.op)) {
    std::vector<std::string_view> takers;
    for (const CollectiveOp op : collective_ops())
      if (has_root(op)) takers.push_back(to_string(op));
    for (const Algorithm& each : algorithms())
      if (each.rooted) takers.push_back(each.name);
    blame.fail(pointer + "/root",
               fmt::format("expected a root only for one of {}, {}", fmt::join(takers, ", "), found()),
               "remove \"root\"");
  }
  if (request.op == CollectiveOp::barrier && request.bytes.count != 0) {
    blame.fail(pointer + "/bytes",
               fmt::format(R"(expected "0 B", because a barrier moves no data, found "{}")", format(request.bytes)));
  }
  if (request.root >= request.ranks) {
    blame.fail(pointer + "/root", fmt::format("expected a rank from 0 to {}, found {}", request.ranks - 1,
                                              collective["root"].get<std::int64_t>()));
  }
  if (said.contains("both_ways") && request.op != CollectiveOp::pairs) {
    blame.fail(pointer + "/both_ways", "expected both_ways only for op pairs, " + found(), "remove \"both_ways\"");
  }
  if (request.op == CollectiveOp::pairs && request.ranks % 2 != 0) {
    blame.fail(pointer + "/op", fmt::format("expected an even number of ranks for pairs, found {}", request.ranks));
  }
}

/// A barrier moves no data, and is not divided. A file says itself on which channels data moves and in which buffers;
/// it can be run on one piece after the other, as MSCCL does with its algorithms. `said` is the collective as written:
/// the canonical form leaves out an in_place that asks for nothing new.
void check_pieces(const Job& job, const Json& said, const std::string& pointer, const Blame& blame) {
  const CollectiveRequest& request = job.request;
  const bool is_file = job.algorithm == &file_algorithm();
  if (!is_file && request.op != CollectiveOp::barrier) return;
  const auto refuse = [&](const std::string& place, const std::string& expected) {
    blame.fail(place, fmt::format("expected {}, found {}", expected, is_file ? "a schedule from a file" : "a barrier"),
               is_file ? "a schedule file defines its own channels and buffers" : "a barrier moves no data");
  };
  if (request.channels > 1) refuse("/transport/channels", "several channels only for a collective that can be divided");
  if (request.chunk && !is_file) refuse("/transport/chunk", "a chunk only for a collective that can be divided");
  if (said.contains("in_place"))
    refuse(pointer + "/in_place", "in_place only for a collective that can use other buffers");
}

/// How the GPUs of a topology lie, the last number varying fastest; empty if they do not lie in a grid.
std::vector<int> grid_of(const TopologySpec& topology) {
  if (const auto* torus = std::get_if<Torus>(&topology)) return torus->dimensions;
  const auto* cluster = std::get_if<Cluster>(&topology);
  if (cluster == nullptr) return {};
  const std::size_t gpus = cluster->parts.front().machine->n_gpus();
  int nodes = 0;
  for (const Cluster::Part& part : cluster->parts) {
    if (part.machine->n_gpus() != gpus) return {};
    nodes += part.nodes;
  }
  return {nodes, static_cast<int>(gpus)};
}

Job job_of(const Canonical& collective, const Json& written, const TopologySpec& topology, std::size_t gpus,
           const Canonical& transport, const std::string& pointer, const Blame& blame, const Files& files,
           std::vector<std::string>& warnings) {
  Job out;
  if (!collective.contains("algorithm"))
    blame.fail(pointer, "expected the key \"algorithm\", found none",
               "set algorithm to a name from `ringsim list algorithms`, or write \"library\": \"nccl\" at the top "
               "level to let NCCL choose");
  const Canonical& algorithm = collective["algorithm"];
  const bool from_file = algorithm["name"] == file_algorithm().name;
  out.algorithm = from_file ? &file_algorithm() : find_algorithm(algorithm["name"].get_ref<const std::string&>());
  ensure(out.algorithm != nullptr, "the table of fields names the algorithms of the catalog");
  out.arguments = arguments_of(*out.algorithm, algorithm);
  if (collective.contains("ranks")) out.ranks = collective["ranks"].get<std::vector<std::string>>();
  if (collective.contains("groups")) out.ranks = names_in_groups(collective);
  const std::size_t members = out.ranks.empty() ? gpus : out.ranks.size();
  out.groups = groups_of(collective, members, pointer, blame);
  out.by_rule = collective.contains("split");
  out.request = {.op = op_of(collective["op"].get_ref<const std::string&>()),
                 .ranks = static_cast<int>(out.groups.empty() ? members : out.groups.front().size()),
                 .bytes = {collective["bytes"].get<std::int64_t>()},
                 .root = collective["root"].get<Actor>(),
                 .both_ways = collective["both_ways"].get<bool>(),
                 .grid = {},
                 .tree = {},
                 .channels = transport["channels"].get<int>(),
                 .chunk = {},
                 .orders = {},
                 .in_place = {}};
  if (transport.contains("chunk")) out.request.chunk = Bytes{transport["chunk"].get<std::int64_t>()};
  if (collective.contains("in_place")) out.request.in_place = collective["in_place"].get<bool>();
  check_supports(*out.algorithm, out.request.op, pointer, blame);
  check_request(out, collective, written, gpus, pointer, blame);
  check_pieces(out, written, pointer, blame);
  if (from_file) take_file(algorithm, pointer, blame, files, out, warnings);
  if (out.ranks.empty() && out.groups.empty()) out.request.grid = grid_of(topology);
  out.best_ring = collective["order"] == "best_ring";
  out.channel_rings = collective["order"] == "channel_rings";
  out.servers_on_cpu = collective.contains("servers_on");
  if (collective["order"] == "shuffled") out.shuffle = collective["seed"].get<std::uint64_t>();
  return out;
}

void check_servers_on(const Job& job, const std::string& pointer, const Blame& blame) {
  if (!job.servers_on_cpu || (!job.algorithm->uses_fabric(job.arguments) && job.algorithm->helpers(job.arguments) > 0))
    return;
  throw UnservedError(
      job.algorithm->name, blame.where(pointer + "/servers_on"),
      fmt::format("expected servers_on only for an algorithm with separate servers, found {}", job.algorithm->name),
      R"(such as {"name": "parameter_server", "servers": 1})");
}

/// What has helpers needs ports for them, unless they are the switches that are there, or sit on its CPUs.
int helpers_of(const Job& job, const Scenario& scenario, const std::string& kind, const std::string& pointer,
               const Blame& blame) {
  check_servers_on(job, pointer, blame);
  if (job.algorithm->uses_fabric(job.arguments) || job.servers_on_cpu) return 0;
  const int helpers = job.algorithm->helpers(job.arguments);
  if (helpers > 0 && !std::holds_alternative<Star>(scenario.topology)) {
    throw UnservedError(
        job.algorithm->name, blame.where(pointer + "/algorithm"),
        fmt::format("expected a topology of kind star, which has extra ports for the {} helper{} of {}, found {}",
                    helpers, helpers == 1 ? "" : "s", job.algorithm->name, kind),
        R"(use a star, set "servers_on": "cpu" if there are CPUs, or remove the parameter that requires helpers)");
  }
  return helpers;
}

/// The jobs that another comes after; only those before it can be named, so that none waits for itself.
std::vector<std::size_t> after_of(const Canonical& names, const std::vector<Job>& jobs, const std::string& pointer,
                                  const Blame& blame) {
  std::vector<std::size_t> after;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto name = names[i].get<std::string>();
    const std::optional<std::size_t> found = find_job(jobs, name);
    if (!found) {
      std::vector<std::string> known;
      for (const Job& job : jobs) known.push_back(job.name);
      blame.fail(fmt::format("{}/{}", pointer, i),
                 fmt::format("expected main or the name of an earlier job, found {}", in_quotes(name)),
                 fmt::format("valid names here: {}", fmt::join(known, " or ")));
    }
    after.push_back(*found);
  }
  return after;
}

/// A job that trains: the exchange of its gradients, and the step around it.
Job training_job_of(const Canonical& canonical, std::size_t i, std::size_t gpus, const DecideJob& decide,
                    const Blame& blame, const Files& files, Scenario& out) {
  Canonical training = canonical["jobs"][i]["training"], transport = canonical["transport"];
  const std::string pointer = fmt::format("/jobs/{}/training", i);
  TrainingSpec spec =
      training_of(training, gpus, compute_scale_of(canonical), blame.within(fmt::format("/jobs/{}", i)), out.warnings);
  if (spec.async)
    blame.fail(pointer + "/regime/mode", "expected the mode sync with other jobs, found async",
               "use mode sync, or simulate the asynchronous job alone: it ends after a number of updates, so it cannot "
               "be combined with other jobs");
  std::shared_ptr<const LibraryRun> library;
  if (decide && spec.regime->kind != Regime::Kind::single)
    library = std::make_shared<const LibraryRun>(decide(training, pointer, &spec, transport));
  Job job = job_of(gradients_of(training, spec), Json::object(), out.topology, gpus, transport, pointer + "/regime",
                   blame, files, out.warnings);
  job.library = std::move(library);
  if (spec.regime->kind == Regime::Kind::single) job.request.ranks = 1;
  job.training = std::make_shared<const TrainingSpec>(std::move(spec));
  return job;
}

Job collective_job_of(const Canonical& canonical, const Json& written, std::size_t i, std::size_t gpus,
                      const DecideJob& decide, const Blame& blame, const Files& files, Scenario& out) {
  Canonical collective = canonical["jobs"][i]["collective"], transport = canonical["transport"];
  const std::string pointer = fmt::format("/jobs/{}/collective", i);
  std::shared_ptr<const LibraryRun> library;
  if (decide) library = std::make_shared<const LibraryRun>(decide(collective, pointer, nullptr, transport));
  Job job = job_of(collective, written["jobs"][i]["collective"], out.topology, gpus, transport, pointer, blame, files,
                   out.warnings);
  job.library = std::move(library);
  return job;
}

/// Appends the jobs of the list "jobs".
void add_others(const Canonical& canonical, const Json& written, std::size_t gpus, const DecideJob& decide,
                const Blame& blame, const Files& files, Scenario& out) {
  std::vector<Job>& jobs = out.jobs;
  if (!canonical.contains("jobs")) return;
  for (std::size_t i = 0; i < canonical["jobs"].size(); ++i) {
    const Canonical& given = canonical["jobs"][i];
    const std::string pointer = fmt::format("/jobs/{}", i);
    if (given.contains("collective") == given.contains("training"))
      blame.fail(pointer,
                 fmt::format("expected the key \"collective\" or \"training\", found {}",
                             given.contains("training") ? "both" : "none"),
                 "a job needs one of these two");
    Job job = given.contains("training") ? training_job_of(canonical, i, gpus, decide, blame, files, out)
                                         : collective_job_of(canonical, written, i, gpus, decide, blame, files, out);
    job.name = given["name"].get<std::string>();
    job.start = Picoseconds{given["start"].get<std::int64_t>()};
    job.pointer = pointer + (job.training ? "/training/regime" : "/collective");
    if (find_job(jobs, job.name))
      blame.fail(pointer + "/name", fmt::format("expected a unique name, found \"{}\" again", job.name),
                 "main is the collective of the scenario itself");
    if (given.contains("after") && (job.training || out.training))
      blame.fail(pointer + "/after", "cannot be combined with a training step",
                 "use \"start\" to set the time at which the job starts; \"after\" only orders collectives");
    if (given.contains("after")) job.after = after_of(given["after"], jobs, pointer + "/after", blame);
    jobs.push_back(std::move(job));
  }
}

/// The scenario's own collective: the one that it states, or that of its training step.
Job main_of(const Canonical& canonical, const Json& written, std::size_t gpus, const Blame& blame, const Files& files,
            Scenario& out) {
  const auto make = [&](const Canonical& collective, const Json& said, const std::string& pointer) {
    Job job = job_of(collective, said, out.topology, gpus, canonical["transport"], pointer, blame, files, out.warnings);
    job.name = "main";
    job.pointer = pointer;
    return job;
  };
  if (!out.training) return make(canonical["collective"], written["collective"], "/collective");
  if (out.training->inference() != nullptr)
    return make(layer_collective_of(canonical["inference"], *out.training), Json::object(), "/inference/parallel");
  if (out.training->trace) return make(largest_call_of(canonical["trace"], *out.training), Json::object(), "/trace");
  const Canonical& training = canonical["training"];
  Job job = make(gradients_of(training, *out.training), Json::object(), "/training/regime");
  if (out.training->regime->kind == Regime::Kind::single) job.request.ranks = 1;
  return job;
}

}  // namespace

void take_jobs(const Canonical& canonical, const Json& written, std::size_t gpus, const DecideJob& decide,
               const Blame& blame, const Files& files, Scenario& out) {
  out.jobs = {main_of(canonical, written, gpus, blame, files, out)};
  add_others(canonical, written, gpus, decide, blame, files, out);
  if (out.jobs.size() > 1 && out.training && out.training->async)
    blame.fail("/training/regime/mode", "expected the mode sync with other jobs, found async",
               "use mode sync, or simulate the asynchronous job alone: it ends after a number of updates, so it cannot "
               "be combined with other jobs");
  for (std::size_t j = 1; j < out.jobs.size(); ++j)
    for (const std::size_t before : out.jobs[j].after)
      if (out.training_of(before) != nullptr)
        blame.fail(fmt::format("/jobs/{}/after", j - 1),
                   "expected only collectives to run before a collective, found a training step",
                   "use \"start\" to set the time at which the job starts");
  for (std::size_t j = 1; j < out.jobs.size() && out.has_total(); ++j)
    if (out.jobs[j].name == "all")
      blame.fail(fmt::format("/jobs/{}/name", j - 1), "expected a name other than \"all\", found \"all\"",
                 "\"all\" is the name of the combined result of groups and of jobs that follow others");
  const auto kind = canonical["topology"]["kind"].get<std::string>();
  int helpers = 0;
  for (const Job& job : out.jobs) helpers += helpers_of(job, out, kind, job.pointer, blame) * job.n_groups();
  if (auto* star = std::get_if<Star>(&out.topology)) star->extra_ports = helpers;
}

}  // namespace ringsim::scenarios
