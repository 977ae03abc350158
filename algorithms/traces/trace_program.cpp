#include "algorithms/traces/trace_program.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim::traces {

namespace {

/// PyTorch's barrier is an all_reduce of one float (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, barrier).
constexpr Bytes barrier_bytes{4};

/// As collective.bytes: of a gather what all ranks have together.
Bytes bytes_of(const TracedCall& call, std::size_t members) {
  if (call.op == CollectiveOp::barrier) return barrier_bytes;
  const bool is_share = call.op == CollectiveOp::all_gather || call.op == CollectiveOp::gather;
  const Bytes all = is_share ? call.input * static_cast<std::int64_t>(members) : call.input;
  return std::max(all, Bytes{1});
}
CollectiveOp op_of(const TracedCall& call) {
  return call.op == CollectiveOp::barrier ? CollectiveOp::all_reduce : call.op;
}

std::string group_text(const std::string& name) {
  return name.empty() ? "the group of all ranks" : fmt::format("group {}", name);
}

}  // namespace

/// Puts the calls of ranks together.
struct TraceJob::Matcher {
  TraceJob& job;
  const NamedGroups& stated;

  /// The calls of one group at one rank, in order.
  struct Calls {
    std::size_t file = 0;
    std::vector<std::int32_t> calls;  // into RankTrace::calls
  };
  struct Group {
    std::string name;
    std::vector<Actor> members;
    std::map<Actor, Calls> by_rank;
  };

  std::map<std::string, std::vector<std::size_t>> known;  // by name, into groups
  std::vector<Group> groups;
  std::map<std::pair<Actor, Actor>, std::size_t> pairs;  // sends and receives
  int families = 0;                                      // groups, or groups of one name, so far
  std::size_t rootless = 0;                              // calls without the root that they need
  std::size_t unequal = 0;                               // all_to_alls of several sizes

  bool is_one() const { return job.ranks_.size() == 1 && job.n_ranks_ > 1; }

  void go() {
    for (Actor rank = 0; rank < job.n_ranks_; ++rank)
      for (const TracedStream& stream : job.of(rank).streams)
        if (stream.kind == TracedStream::Kind::calls) take(rank, stream);
    job.uses_.resize(job.ranks_.size());
    for (std::size_t file = 0; file < job.ranks_.size(); ++file) job.uses_[file].resize(job.ranks_[file]->calls.size());
    if (is_one())
      merge();
    else
      for (const Group& group : groups) match({&group});
    color();
    std::set<PlanExchange> kinds;
    for (const auto& calls : job.calls_) kinds.insert(calls.begin(), calls.end());
    job.exchanges_.assign(kinds.begin(), kinds.end());
    if (unequal > 0)
      job.warnings_.push_back(fmt::format(
          "{} all_to_all calls have different sizes on different ranks; the largest size is used for all", unequal));
    if (rootless > 0)
      job.warnings_.push_back(
          fmt::format("{} calls do not state their root; the first rank of the group is assumed", rootless));
  }

  /// The groups of a name; made when it first comes up.
  std::vector<std::size_t>& groups_named(const std::string& name) {
    const auto [found, is_new] = known.try_emplace(name);
    if (!is_new) return found->second;
    std::set<std::vector<Actor>> lists;
    if (const auto said = stated.find(name); said != stated.end()) {
      lists.insert(said->second.begin(), said->second.end());
    } else {
      for (const auto& rank : job.ranks_)
        if (const auto own = rank->groups.find(name); own != rank->groups.end())
          lists.emplace(own->second.begin(), own->second.end());
    }
    if (lists.empty()) {
      if (!name.empty())
        job.warnings_.push_back(fmt::format(
            "{} is not listed in the traces and is assumed to have all ranks; to change this, set \"groups\"",
            group_text(name)));
      std::vector<Actor> all(static_cast<std::size_t>(job.n_ranks_));
      std::iota(all.begin(), all.end(), 0);
      lists.insert(std::move(all));
    }
    const std::string where = stated.contains(name) ? "/groups" : job.ranks_.front()->file;
    for (const std::vector<Actor>& list : lists) {
      for (const Actor member : list)
        if (member >= job.n_ranks_)
          throw InputError(
              where,
              fmt::format("expected ranks from 0 to {} in {}, found {}", job.n_ranks_ - 1, group_text(name), member),
              "set the ranks of the group with \"groups\" in the scenario");
      std::vector<Actor> sorted = list;
      std::sort(sorted.begin(), sorted.end());
      if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end())
        throw InputError(where,
                         fmt::format("expected each rank only once in {}, found {} twice", group_text(name), *twice),
                         "set the ranks of the group with \"groups\" in the scenario");
      found->second.push_back(groups.size());
      groups.push_back({.name = name, .members = list, .by_rank = {}});
    }
    return found->second;
  }

  std::size_t group_of(Actor rank, const TracedStream& stream) {
    if (job.of(rank).calls[static_cast<std::size_t>(stream.tasks.front().call)].op == CollectiveOp::send_recv)
      return pair_of(rank, stream);
    for (const std::size_t group : groups_named(stream.group)) {
      const std::vector<Actor>& members = groups[group].members;
      if (std::find(members.begin(), members.end(), rank) != members.end()) return group;
    }
    throw InputError(job.of(rank).file,
                     fmt::format("expected calls only of groups that contain rank {}, found one of {}", rank,
                                 group_text(stream.group)),
                     is_one() ? "a single trace represents all ranks, so the groups of each name must cover all ranks "
                                "and have equal sizes"
                              : "set the ranks of the group with \"groups\" in the scenario");
  }

  std::size_t pair_of(Actor rank, const TracedStream& stream) {
    if (is_one())
      throw InputError(
          job.of(rank).file,
          "expected only collectives, because a single trace represents all ranks, found sends or receives",
          "use one file per rank: \"files\": \"job.{rank}.et\"");
    std::int64_t from = stream.from, to = stream.to;
    const std::uint64_t node = job.of(rank).calls[static_cast<std::size_t>(stream.tasks.front().call)].node;
    // A send has its receiver, a receive its sender; the other end is the rank itself.
    if (from < 0 && to >= 0) from = rank;
    if (to < 0 && from >= 0) to = rank;
    if (from < 0 || to < 0 || from >= job.n_ranks_ || to >= job.n_ranks_ || from == to || (from != rank && to != rank))
      throw InputError(
          fmt::format("{}: node {}", job.of(rank).file, node),
          fmt::format("expected a message from or to rank {}, with comm_src and comm_dst below {}, found one "
                      "with comm_src {} and comm_dst {}",
                      rank, job.n_ranks_, stream.from, stream.to),
          "PyTorch traces do not name the peers of sends and receives; ASTRA-sim traces do");
    const std::pair key{static_cast<Actor>(from), static_cast<Actor>(to)};
    const auto [found, is_new] = pairs.try_emplace(key, groups.size());
    if (is_new)
      groups.push_back(
          {.name = fmt::format("messages {} -> {}", from, to), .members = {key.first, key.second}, .by_rank = {}});
    return found->second;
  }

  void take(Actor rank, const TracedStream& stream) {
    if (is_one() && rank > 0) {  // as rank 0, whose place in its group may be another
      for (const std::size_t group : groups_named(stream.group)) {
        const std::vector<Actor>& members = groups[group].members;
        if (std::find(members.begin(), members.end(), rank) == members.end()) continue;
        return fill(groups[group], rank, stream);
      }
    }
    fill(groups[group_of(rank, stream)], rank, stream);
  }
  void fill(Group& group, Actor rank, const TracedStream& stream) {
    const auto [found, is_new] = group.by_rank.try_emplace(rank);
    Calls& its = found->second;
    if (!is_new)
      throw InputError(
          job.of(rank).file,
          fmt::format("expected comm_src and comm_dst in either all or none of {}, found a mix", group.name));
    its.file = job.ranks_.size() == 1 ? 0 : static_cast<std::size_t>(rank);
    for (const TracedTask& task : stream.tasks) its.calls.push_back(task.call);
  }

  /// One rank's trace: the groups of a name call together.
  void merge() {
    for (const auto& [name, its] : known) {
      std::vector<const Group*> together;
      for (const std::size_t group : its) {
        together.push_back(&groups[group]);
        if (groups[group].members.size() != groups[its.front()].members.size())
          throw InputError(
              "/groups",
              fmt::format("expected groups of equal size, because a single trace represents all ranks, found {} with "
                          "{} and with {} ranks",
                          group_text(name), groups[its.front()].members.size(), groups[group].members.size()),
              "use one file per rank: \"files\": \"job.{rank}.et\"");
      }
      match(together);
    }
  }

  std::string said(const Group& group, Actor rank, std::size_t turn) const {
    const Calls& its = group.by_rank.at(rank);
    if (turn >= its.calls.size()) return fmt::format("no more on rank {}", rank);
    const TracedCall& call = job.ranks_[its.file]->calls[static_cast<std::size_t>(its.calls[turn])];
    std::string more;
    if (has_root(call.op) && call.root >= 0) more = fmt::format(", root {}", call.root);
    if (call.op == CollectiveOp::send_recv) more = fmt::format(", tag {}", call.tag);
    return fmt::format("{} of {}{} on rank {} (node {})", to_string(call.op), format(call.input), more, rank,
                       call.node);
  }

  void match(const std::vector<const Group*>& together) {
    const Group& first = *together.front();
    const Actor leader = first.members.front();
    std::size_t longest = 0;
    for (const Group* group : together) {
      for (const Actor member : group->members) {
        if (!group->by_rank.contains(member))
          throw InputError(job.of(member).file,
                           fmt::format("expected calls in {} from all of its ranks, found none from rank {}",
                                       group_text(group->name), member),
                           "set the ranks of the group with \"groups\" in the scenario: {\"name\": \"0\", \"members\": "
                           "[[0, 1], [2, 3]]}");
        longest = std::max(longest, group->by_rank.at(member).calls.size());
      }
    }
    ++families;
    std::map<std::int64_t, int> set_of_root;
    for (std::size_t turn = 0; turn < longest; ++turn) {
      const TracedCall* model = call_at(first, leader, turn);
      Bytes largest;
      bool differs = false;
      for (const Group* group : together)
        for (const Actor member : group->members) {
          const TracedCall* call = call_at(*group, member, turn);
          const bool sizes_may_differ = model != nullptr && model->op == CollectiveOp::all_to_all;
          const bool is_same = model != nullptr && call != nullptr && call->op == model->op &&
                               (!has_root(call->op) || call->root == model->root) &&
                               (call->op != CollectiveOp::send_recv || call->tag == model->tag) &&
                               (call->input == model->input || sizes_may_differ);
          if (!is_same)
            throw InputError(
                job.of(member).file,
                fmt::format("expected the same call on all ranks of {}, found as number {} {}, and {}",
                            group_text(group->name), turn + 1, said(first, leader, turn), said(*group, member, turn)),
                "the files are from different runs, or the ranks call collectives in different orders and would wait "
                "forever");
          differs = differs || call->input != model->input;
          largest = std::max(largest, call->input);
        }
      TracedCall stands = *model;
      stands.input = largest;
      unequal += differs ? 1U : 0U;
      add_call(together, turn, stands, set_of_root);
    }
  }

  const TracedCall* call_at(const Group& group, Actor rank, std::size_t turn) const {
    const Calls& its = group.by_rank.at(rank);
    if (turn >= its.calls.size()) return nullptr;
    return &job.ranks_[its.file]->calls[static_cast<std::size_t>(its.calls[turn])];
  }

  void add_call(const std::vector<const Group*>& together, std::size_t turn, const TracedCall& call,
                std::map<std::int64_t, int>& set_of_root) {
    const std::size_t members = together.front()->members.size();
    if (members == 1) return;  // the call computes: nothing is sent
    const std::int64_t root = has_root(call.op) ? std::max<std::int64_t>(call.root, 0) : 0;
    rootless += has_root(call.op) && call.root < 0 ? 1U : 0U;
    if (root >= static_cast<std::int64_t>(members))
      throw InputError(
          job.of(together.front()->members.front()).file,
          fmt::format("expected a root below {} in {}, found {}", members, group_text(together.front()->name),
                      said(*together.front(), together.front()->members.front(), turn)),
          "a root is a rank number within its group");
    const auto [found, is_new] = set_of_root.try_emplace(root, static_cast<int>(job.sets_.size()));
    if (is_new) {
      Set set{.name = together.front()->name, .groups = {}, .family = families};
      for (const Group* group : together) {
        std::vector<Actor> list = group->members;
        std::rotate(list.begin(), list.begin() + root, list.begin() + root + 1);  // the root first, the others in order
        set.groups.push_back(std::move(list));
      }
      job.sets_.push_back(std::move(set));
      job.calls_.emplace_back();
    }
    const int set = found->second;
    const PlanExchange exchange{PlanUse::traced, set, op_of(call), bytes_of(call, members)};
    std::vector<PlanExchange>& calls = job.calls_[static_cast<std::size_t>(set)];
    const std::string name = call.op == CollectiveOp::send_recv
                                 ? fmt::format("{} of {}", together.front()->name, format(call.input))
                                 : fmt::format("{} of {}{}", to_string(call.op), format(exchange.bytes),
                                               together.front()->name.empty() ? "" : " in " + together.front()->name);
    for (const Group* group : together)
      for (const Actor member : group->members) {
        const Calls& its = group->by_rank.at(member);
        job.uses_[its.file][static_cast<std::size_t>(its.calls[turn])] = {set, calls.size(), exchange, name};
      }
    calls.push_back(exchange);
  }

  /// Groups without a common rank share a stream: the first that none of their ranks has.
  void color() {
    std::vector<std::vector<bool>> taken;  // [color][rank]
    std::map<int, int> of_family;
    for (Set& set : job.sets_) {
      if (const auto known_one = of_family.find(set.family); known_one != of_family.end()) {
        set.color = known_one->second;
        continue;
      }
      const auto is_free = [&](const std::vector<bool>& ranks) {
        for (const auto& group : set.groups)
          for (const Actor rank : group)
            if (ranks[static_cast<std::size_t>(rank)]) return false;
        return true;
      };
      const auto color = std::find_if(taken.begin(), taken.end(), is_free);
      set.color = static_cast<int>(color - taken.begin());
      if (color == taken.end()) taken.emplace_back(static_cast<std::size_t>(job.n_ranks_), false);
      for (const auto& group : set.groups)
        for (const Actor rank : group)
          taken[static_cast<std::size_t>(set.color)][static_cast<std::size_t>(rank)] = true;
      of_family[set.family] = set.color;
    }
    job.n_colors_ = static_cast<int>(taken.size());
  }
};

TraceJob::TraceJob(std::string name, std::vector<std::shared_ptr<const RankTrace>> ranks, int n_ranks,
                   const NamedGroups& stated, double time_scale)
    : name_(std::move(name)), ranks_(std::move(ranks)), n_ranks_(n_ranks), time_scale_(time_scale) {
  ensure(ranks_.size() == 1 || ranks_.size() == static_cast<std::size_t>(n_ranks_),
         "each rank has a trace, or one for all");
  Matcher{.job = *this, .stated = stated}.go();
}

std::size_t TraceJob::n_tasks() const {
  return std::accumulate(ranks_.begin(), ranks_.end(), std::size_t{0},
                         [](std::size_t sum, const auto& rank) { return sum + rank->n_tasks(); });
}

std::int64_t TraceJob::uses_of(const PlanExchange& exchange) const {
  const std::vector<PlanExchange>& calls = calls_[static_cast<std::size_t>(exchange.stage)];
  return std::count(calls.begin(), calls.end(), exchange);
}

namespace {

/// Which of a program's streams a trace's stream is: kernels first, then those of the CPU, then calls.
struct StreamCounts {
  int kernels = 1, cpu = 0;  // a program has a stream 0
};
StreamCounts counts_of(const std::vector<std::shared_ptr<const RankTrace>>& ranks) {
  StreamCounts out;
  for (const auto& rank : ranks) {
    const auto n = [&](TracedStream::Kind kind) {
      return static_cast<int>(std::count_if(rank->streams.begin(), rank->streams.end(),
                                            [&](const TracedStream& stream) { return stream.kind == kind; }));
    };
    out.kernels = std::max(out.kernels, n(TracedStream::Kind::kernels));
    out.cpu = std::max(out.cpu, n(TracedStream::Kind::cpu));
  }
  return out;
}

}  // namespace

ProgramSize TraceJob::size() const {
  const StreamCounts streams = counts_of(ranks_);
  ProgramSize out{.actors = n_ranks_, .streams = streams.kernels + streams.cpu + n_colors_, .variables = 0};
  const std::int64_t actors_each = ranks_.size() == 1 ? n_ranks_ : 1;
  for (const auto& rank : ranks_) out.add_role(actors_each, static_cast<std::int64_t>(rank->n_tasks()), 0);
  for (std::size_t set = 0; set < sets_.size(); ++set) {
    const auto members = static_cast<std::int64_t>(sets_[set].groups.size() * sets_[set].groups.front().size());
    out.add_calls(static_cast<std::int64_t>(calls_[set].size()), members, 0);
  }
  return out;
}

Picoseconds TraceJob::scaled(const TracedTask& task, const std::string& file) const {
  const double ps = static_cast<double>(task.time.count()) * time_scale_;
  constexpr double most = 4e18;  // of the 9.2e18 that Picoseconds count
  if (ps > most)
    throw InputError(file,
                     fmt::format("expected kernels of at most 46 days, found {} of {:.3g} us", task.name, ps / 1e6),
                     "use a larger calibration.scale_compute to shorten it");
  return Picoseconds{std::llround(ps)};
}

PlanProgram TraceJob::program(const std::function<PlanCall(const PlanExchange&)>& ask, WatchedWork* work) const {
  const StreamCounts streams = counts_of(ranks_);
  PlanProgram out;
  Program& program = out.program;
  program.name = name_;
  program.ranks = program.actors = n_ranks_;
  program.streams.assign(static_cast<std::size_t>(streams.kernels), Program::StreamKind::compute);
  program.streams.resize(program.streams.size() + static_cast<std::size_t>(streams.cpu), Program::StreamKind::host);
  const auto first_color = static_cast<Stream>(program.streams.size());
  program.streams.resize(program.streams.size() + static_cast<std::size_t>(n_colors_),
                         Program::StreamKind::communication);
  const auto stream_of = [&](int set) { return first_color + sets_[static_cast<std::size_t>(set)].color; };
  program.role_of.resize(static_cast<std::size_t>(n_ranks_));
  for (std::size_t rank = 0; rank < program.role_of.size(); ++rank)
    program.role_of[rank] = ranks_.size() == 1 ? 0 : static_cast<int>(rank);

  // Calls, one after another of each set; helpers of a set take part in all that need them.
  std::map<PlanExchange, PlanCall> known;
  std::vector<int> first_call;        // [set]
  std::vector<Picoseconds> launches;  // [call]
  std::vector<std::vector<int>> helped(sets_.size());
  std::vector<std::pair<Actor, int>> helpers(sets_.size(), {-1, 0});  // [set] the first, and how many a group has
  for (std::size_t s = 0; s < sets_.size(); ++s) {
    const Set& set = sets_[s];
    const auto members = static_cast<int>(set.groups.front().size());
    first_call.push_back(static_cast<int>(program.calls.size()));
    for (const PlanExchange& exchange : calls_[s]) {
      done(work);
      auto found = known.find(exchange);
      if (found == known.end()) found = known.emplace(exchange, ask(exchange)).first;
      const PlanCall& how = found->second;
      const Schedule& schedule = how.schedule.schedule();
      ensure(schedule.groups == static_cast<int>(set.groups.size()), "each group of a trace has a schedule");
      const int each = schedule.actors / schedule.groups - members;
      auto& [first_helper, n_helpers] = helpers[s];
      if (each > 0 && first_helper < 0) {
        first_helper = program.actors;
        n_helpers = each;
        for (int group = 0; group < schedule.groups; ++group)
          for (int number = 0; number < each; ++number)
            out.helpers.push_back({PlanUse::traced, static_cast<int>(s), group, number});
        program.actors += schedule.groups * each;
      }
      ensure(each == 0 || each == n_helpers, "all calls of a group have the same helpers");
      std::vector<Actor> all;
      for (std::size_t g = 0; g < set.groups.size(); ++g) {
        all.insert(all.end(), set.groups[g].begin(), set.groups[g].end());
        for (int h = 0; h < each; ++h) all.push_back(first_helper + static_cast<int>(g) * each + h);
      }
      if (each > 0) helped[s].push_back(static_cast<int>(program.calls.size()));
      launches.push_back(how.launch);
      program.calls.push_back(
          {.name = {}, .schedule = how.schedule, .members = all, .plan = how.plan, .variables = {}});
    }
  }

  for (std::size_t file = 0; file < ranks_.size(); ++file) {
    const RankTrace& trace = *ranks_[file];
    Program::Role role;
    role.streams.resize(program.streams.size());
    // Calls of one group lie on one stream here as there. A group that is its rank alone computes, on a stream of its
    // own.
    std::vector<Stream> stream_at;
    int kernels = 0, cpu = streams.kernels;
    for (const TracedStream& stream : trace.streams) {
      if (stream.kind == TracedStream::Kind::kernels) stream_at.push_back(kernels++);
      if (stream.kind == TracedStream::Kind::cpu) stream_at.push_back(cpu++);
      if (stream.kind != TracedStream::Kind::calls) continue;
      const Use& use = uses_[file][static_cast<std::size_t>(stream.tasks.front().call)];
      if (use.set < 0) {
        const auto alone = static_cast<Stream>(program.streams.size());
        program.streams.push_back(Program::StreamKind::compute);
        role.streams.resize(program.streams.size());
        stream_at.push_back(alone);
      } else {
        stream_at.push_back(stream_of(use.set));
      }
    }
    for (std::size_t s = 0; s < trace.streams.size(); ++s)
      for (const TracedTask& task : trace.streams[s].tasks) {
        done(work);
        Program::Task written{.name = task.name, .time = task.time, .call = -1, .after = {}, .touches = {}};
        if (task.call >= 0) {
          const Use& use = uses_[file][static_cast<std::size_t>(task.call)];
          if (use.set < 0) {
            written.time = trace.calls[static_cast<std::size_t>(task.call)].recorded;
          } else {
            const int call = first_call[static_cast<std::size_t>(use.set)] + static_cast<int>(use.turn);
            program.calls[static_cast<std::size_t>(call)].name = use.name;
            written = {
                .name = {}, .time = launches[static_cast<std::size_t>(call)], .call = call, .after = {}, .touches = {}};
          }
        } else if (time_scale_ != 1 && trace.streams[s].kind == TracedStream::Kind::kernels) {
          written.time = scaled(task, trace.file);
        }
        for (const TracedWait& wait : task.waits)
          written.after.push_back({.stream = stream_at[wait.stream], .tasks = static_cast<int>(wait.tasks), .back = 0});
        role.streams[static_cast<std::size_t>(stream_at[s])].push_back(std::move(written));
      }
    program.roles.push_back(std::move(role));
  }
  for (std::size_t s = 0; s < sets_.size(); ++s) {
    if (helpers[s].first < 0) continue;
    Program::Role role;
    role.streams.resize(program.streams.size());
    for (const int call : helped[s])
      role.streams[static_cast<std::size_t>(stream_of(static_cast<int>(s)))].push_back(
          {.name = {}, .time = Picoseconds{0}, .call = call, .after = {}, .touches = {}});
    const auto n = sets_[s].groups.size() * static_cast<std::size_t>(helpers[s].second);
    program.role_of.insert(program.role_of.end(), n, static_cast<int>(program.roles.size()));
    program.roles.push_back(std::move(role));
  }
  for (Program::Role& role : program.roles) role.streams.resize(program.streams.size());
  return out;
}

}  // namespace ringsim::traces
