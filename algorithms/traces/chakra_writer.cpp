#include "algorithms/traces/chakra_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "algorithms/traces/chakra_messages.hpp"
#include "sim/base/error.hpp"
#include "sim/text/json.hpp"

namespace ringsim::traces {

namespace {

constexpr std::int32_t comp_node = 4, send_node = 5, receive_node = 6, collective_node = 7;
constexpr std::int64_t ps_per_us = 1'000'000;

/// `has_rings`: keys and values of context ranks are what the program shifts.
std::int64_t comm_type_of(CollectiveOp op, bool has_rings) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return 0;
    case CollectiveOp::reduce:
      return 1;
    case CollectiveOp::all_gather:
      return 2;
    case CollectiveOp::gather:
      return 3;
    case CollectiveOp::scatter:
      return 4;
    case CollectiveOp::broadcast:
      return 5;
    case CollectiveOp::all_to_all:
      return 6;
    case CollectiveOp::reduce_scatter:
      return 7;
    case CollectiveOp::barrier:
      return 9;
    case CollectiveOp::pairs:
    case CollectiveOp::send_recv:
      break;
  }
  throw InputError(
      "", fmt::format("expected collectives that a trace can contain, found {}", to_string(op)),
      std::string("the format supports sends and receives between two ranks, but not shifts around a ring") +
          (has_rings ? ": set training.parallel.cp_comm to all_gather" : ""));
}

/// ASTRA-sim's analytical backend simulates these; it replays a broadcast by its duration and stops at others
/// (astra-sim/workload/Workload.cc, issue_coll_comm).
bool is_simulated_by_astra(CollectiveOp op) {
  return op == CollectiveOp::all_reduce || op == CollectiveOp::all_gather || op == CollectiveOp::reduce_scatter ||
         op == CollectiveOp::all_to_all;
}

class ChakraWriter {
 public:
  explicit ChakraWriter(const Program& program) : program_(program) {}

  ChakraFiles write() {
    expect_plain_helpers();
    ChakraFiles out;
    for (Actor rank = 0; rank < program_.ranks; ++rank) out.ranks.push_back(write_rank(rank));
    const std::string head = written_head();  // with the groups that the ranks have found
    for (std::string& rank : out.ranks) rank.insert(0, head);
    Json groups = Json::object();
    for (const auto& [members, name] : groups_) groups[std::to_string(name)] = members;
    out.groups = json_text(groups, 2) + '\n';
    out.notes.emplace_back("the traces do not contain launches of collectives; the replay adds its own");
    if (rounded_) out.notes.emplace_back("times are rounded to whole microseconds, the unit of the format");
    if (uneven_)
      out.notes.emplace_back("parts of different size in an all_gather or gather are written with the largest size");
    for (const CollectiveOp op : others_)
      out.notes.push_back(fmt::format("ASTRA-sim does not simulate {}", to_string(op)));
    if (on_cpu_)
      out.notes.emplace_back(
          "ASTRA-sim prints the end time of these steps but no overlap, because its statistics do not include CPU "
          "tasks");
    return out;
  }

 private:
  struct Place {
    std::size_t stream = 0, task = 0;
  };
  static constexpr std::int64_t no_id = -1;

  void expect_plain_helpers() const {
    if (program_.time)
      throw InputError("", "expected identical task times in every step, found slow or unsteady ranks",
                       "remove slow and jitter");
    for (Actor actor = program_.ranks; actor < program_.actors; ++actor)
      for (const auto& stream : program_.role(actor).streams)
        for (const Program::Task& task : stream)
          if (task.call < 0 && task.time.count() > 0)
            throw InputError("", fmt::format("expected helpers that compute nothing, found one with {}", task.name),
                             "a trace contains only ranks, and a server that computes is not a rank");
  }

  const Program::Task& at(const Program::Role& role, const Place& place) const {
    return role.streams[place.stream][place.task];
  }

  /// [place] what a task of the rank waits for in its iteration.
  std::vector<Place> waits_of(Actor rank, const Program::Role& role, const Place& place) const {
    std::vector<Place> out;
    if (place.task > 0) out.push_back({place.stream, place.task - 1});
    for (const Program::After& after : at(role, place).after) {
      if (after.back > 0 || after.tasks == 0) continue;
      if (after.actor >= 0 && after.actor != rank)
        throw InputError("",
                         fmt::format("expected ranks that wait for others only in collectives, found {} of rank {}",
                                     program_.name_of(at(role, place)), rank),
                         "a trace has no dependencies between ranks");
      out.push_back({static_cast<std::size_t>(after.stream), static_cast<std::size_t>(after.tasks) - 1});
    }
    return out;
  }

  std::string write_rank(Actor rank) {
    const Program::Role& role = program_.role(rank);
    std::vector<std::vector<std::int64_t>> ids;
    for (const auto& stream : role.streams) ids.emplace_back(stream.size(), no_id);
    std::string out;
    std::vector<Picoseconds> before(role.streams.size());
    std::vector<std::size_t> next(role.streams.size(), 0);
    std::int64_t id = 0;
    // Streams in turn, each as far as what it waits for is written: a proved program comes to its end.
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t s = 0; s < role.streams.size(); ++s)
        for (; next[s] < role.streams[s].size(); ++next[s]) {
          const Place place{s, next[s]};
          const std::vector<Place> waits = waits_of(rank, role, place);
          std::set<std::uint64_t> data;
          for (const Place& wait : waits) data.insert(static_cast<std::uint64_t>(ids[wait.stream][wait.task]));
          if (data.contains(static_cast<std::uint64_t>(no_id))) break;
          ids[s][next[s]] = ++id;
          moves = true;
          if (at(role, place).call < 0) before[s] = add(before[s], at(role, place).time);
          write_node(rank, place, at(role, place), {data.begin(), data.end()}, id, before[s], out);
        }
    }
    for (std::size_t s = 0; s < role.streams.size(); ++s)
      ensure(next[s] == role.streams[s].size(), "the tasks of a proved program have an order");
    return out;
  }

  /// In the head of the file: ASTRA-sim stops at metadata nodes, which its statistics do not know
  /// (astra-sim/workload/Statistics.cc, get_operator_type, commit 518bd51).
  std::string written_head() const {
    Json groups = Json::array();
    for (const auto& [members, name] : groups_)
      groups.push_back({{"pg_name", std::to_string(name)}, {"ranks", members}});
    std::string out;
    write_chakra_head(
        {.name = "0.0.4", .control = {}, .data = {}, .input_values = {}, .attributes = {{head_groups, groups.dump()}}},
        out);
    return out;
  }

  void write_node(Actor rank, const Place& place, const Program::Task& task, std::vector<std::uint64_t> data,
                  std::int64_t id, Picoseconds sum, std::string& out) {
    const bool on_cpu = program_.streams[place.stream] == Program::StreamKind::host;
    on_cpu_ = on_cpu_ || on_cpu;
    ChakraMessage node{.id = static_cast<std::uint64_t>(id),
                       .name = program_.name_of(task),
                       .type = comp_node,
                       .control = {},
                       .data = std::move(data),
                       .start_us = 0,
                       .duration_us = 0,
                       .input_values = {},
                       .attributes = {{"is_cpu_op", std::int64_t{on_cpu}},
                                      {on_cpu ? "tid" : "stream", static_cast<std::int64_t>(place.stream)}}};
    if (task.call < 0) {
      // From the sum before to the sum after, each rounded: errors do not add up.
      const auto rounded = [](Picoseconds time) { return (time.count() + ps_per_us / 2) / ps_per_us; };
      node.duration_us = static_cast<std::uint64_t>(rounded(sum) - rounded(sum - task.time));
      rounded_ = rounded_ || task.time.count() % ps_per_us != 0;
    } else {
      add_call(rank, program_.calls[static_cast<std::size_t>(task.call)], node);
    }
    write_chakra_node(node, out);
  }

  void add_call(Actor rank, const Program::Call& call, ChakraMessage& node) {
    const Schedule& schedule = call.schedule.schedule();
    const Collective& collective = schedule.collective;
    const auto each = static_cast<std::size_t>(schedule.actors / schedule.groups);
    std::vector<Actor> members(call.members.begin(), call.members.end());
    if (members.empty())
      for (Actor actor = 0; actor < schedule.actors; ++actor) members.push_back(actor);
    const auto me = static_cast<std::size_t>(std::find(members.begin(), members.end(), rank) - members.begin());
    const auto first = members.begin() + static_cast<std::ptrdiff_t>(me / each * each);
    const std::vector<Actor> group(first, first + collective.ranks);
    const std::int64_t bytes = schedule.collective.bytes.count;
    if (collective.op == CollectiveOp::broadcast && collective.ranks == 2) {
      const Actor from = group[static_cast<std::size_t>(collective.root)], to = group[collective.root == 0 ? 1 : 0];
      node.type = rank == from ? send_node : receive_node;
      node.attributes.push_back({"comm_src", std::int64_t{from}});
      node.attributes.push_back({"comm_dst", std::int64_t{to}});
      node.attributes.push_back({"comm_size", bytes});
      node.attributes.push_back({"comm_tag", std::int64_t{0}});
      return;
    }
    const bool is_share = collective.op == CollectiveOp::all_gather || collective.op == CollectiveOp::gather;
    node.type = collective_node;
    uneven_ = uneven_ || (is_share && bytes % collective.ranks != 0);
    node.attributes.push_back({"comm_type", comm_type_of(collective.op, !program_.rings.empty())});
    node.attributes.push_back({"comm_size", is_share ? (bytes + collective.ranks - 1) / collective.ranks : bytes});
    if (has_root(collective.op)) node.attributes.push_back({"root", std::int64_t{collective.root}});
    if (!is_simulated_by_astra(collective.op)) others_.insert(collective.op);
    const auto [name, is_new] = groups_.try_emplace(group, static_cast<int>(groups_.size()) + 1);
    node.attributes.push_back({"pg_name", std::to_string(name->second)});
  }

  const Program& program_;
  std::map<std::vector<Actor>, int> groups_;  // name by members
  std::set<CollectiveOp> others_;
  bool rounded_ = false, uneven_ = false, on_cpu_ = false;
};

}  // namespace

ChakraFiles chakra_files(const Program& program) {
  if (!has_chakra())
    throw InputError("", "expected a ringsim with support for Chakra traces, found one built without libprotobuf",
                     why_no_chakra());
  return ChakraWriter(program).write();
}

}  // namespace ringsim::traces
