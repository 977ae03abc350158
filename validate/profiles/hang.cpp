#include "validate/profiles/hang.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "validate/profiles/flight_words.hpp"
#include "validate/profiles/hang_causes.hpp"

namespace ringsim::profiles {

namespace {

// Chosen: more would not be read, and the rest is counted.
constexpr std::size_t most_mismatches = 20;

/// A rank's calls in a group.
struct Member {
  const FlightDump* dump = nullptr;
  std::vector<const FlightCall*> collectives;  // by number
};

struct GroupDumps {
  std::string name, description;
  std::vector<std::uint32_t> members;  // empty: not in the files
  std::map<std::uint32_t, Member> by_rank;
};

/// Version 2.4 or newer: the sizes of all_to_all are in the dump.
bool has_sizes_of_all_to_all(const FlightDump& dump) {
  int minor = 0;
  const std::string& version = dump.version;
  std::from_chars(version.data() + std::min<std::size_t>(2, version.size()), version.data() + version.size(), minor);
  return minor >= 4;
}

/// The operation by NCCL's name, so that PyTorch's names for one of NCCL's operations agree.
std::string operation_of(const FlightDump& dump, const FlightCall& call) {
  std::string out;
  for (const FlightOp& op : call.ops)
    out += (op.op == CallOp::unknown ? dump.text(op.name) : std::string(to_string(op.op))) + ' ';
  return out;
}

std::string types_of(const FlightDump& dump, const FlightCall& call) {
  std::string out;
  for (const FlightOp& op : call.ops) out += dump.text(op.in.dtypes != 0 ? op.in.dtypes : op.out.dtypes) + ' ';
  return out;
}

/// Elements that must be equal on all ranks; empty: none must. A root of scatter has no input, others of gather have no
/// output; all_to_all may differ.
std::string elements_of(const FlightCall& call) {
  std::string out;
  for (const FlightOp& op : call.ops) {
    if (op.op == CallOp::all_to_all || op.op == CallOp::unknown) continue;
    const FlightTensors& tensors = op.op == CallOp::scatter ? op.out : op.in;
    if (tensors.shapes != 0) out += fmt::format("{} ", tensors.elements);
  }
  return out;
}

class HangFinder {
 public:
  explicit HangFinder(const std::vector<FlightDump>& dumps) : dumps_(dumps) {
    for (const FlightDump& dump : dumps_) {
      by_rank_[dump.rank] = &dump;
      lacks_calls_ = lacks_calls_ || dump.missing > 0;
      for (const FlightGroup& group : dump.groups)
        if (!group.members.empty()) listed_[group.name].insert(group.members);
    }
  }

  Hang run() {
    for (const FlightDump& dump : dumps_) sort_calls(dump);
    for (const auto& entry : groups_) out_.groups.push_back(progress_of(entry.second));
    std::stable_sort(out_.groups.begin(), out_.groups.end(), [](const GroupProgress& a, const GroupProgress& b) {
      const auto key = [](const GroupProgress& g) {
        return std::tuple(g.verdict == GroupVerdict::finished, g.name.size(), std::string_view(g.name));
      };
      return key(a) < key(b);
    });
    find_messages();
    find_causes(out_, oldest_pending(), unknown_);
    return std::move(out_);
  }

 private:
  std::map<std::uint32_t, OldestPending> oldest_pending() const {
    std::map<std::uint32_t, OldestPending> found;
    for (const auto& [rank, waiting] : waits_in_) {
      OldestPending& own = found[rank];
      own.dump = by_rank_.at(rank);
      own.call = waiting.call;
      for (std::size_t g = 0; g < out_.groups.size() && waiting.group != nullptr && !own.group; ++g)
        if (out_.groups[g].name == waiting.group->name && out_.groups[g].members == waiting.group->members)
          own.group = g;
    }
    return found;
  }

  /// As the dump lists them, else as another one does, if there is one such group with this rank.
  std::vector<std::uint32_t> members_of(const FlightGroup& group, std::uint32_t rank) const {
    const auto listed = listed_.find(group.name);
    if (!group.members.empty() || listed == listed_.end()) return group.members;
    std::vector<std::uint32_t> found;
    for (const std::vector<std::uint32_t>& members : listed->second) {
      if (std::find(members.begin(), members.end(), rank) == members.end()) continue;
      if (!found.empty()) return {};
      found = members;
    }
    return found;
  }

  /// Groups of one name are one if their members are the same: PyTorch's split_group() reuses names.
  void sort_calls(const FlightDump& dump) {
    std::vector<GroupDumps*> own;
    for (const FlightGroup& group : dump.groups) {
      const std::vector<std::uint32_t> members = members_of(group, dump.rank);
      GroupDumps& all = groups_[{group.name, members}];
      all.name = group.name;
      all.members = members;
      if (all.description.empty()) all.description = group.description;
      all.by_rank[dump.rank].dump = &dump;
      own.push_back(&all);
    }
    for (const FlightCall& call : dump.calls) {
      if (call.is_point_to_point) continue;
      auto& list = own[call.group]->by_rank[dump.rank].collectives;
      // A group that is created again counts from 1: only its last calls matter.
      if (!list.empty() && call.number <= list.back()->number) list.clear();
      list.push_back(&call);
    }
    for (const FlightCall& call : dump.calls) {
      if (call.state == CallState::completed) continue;
      Waiting& waiting = waits_in_[dump.rank];
      waiting.call = &call;  // the oldest
      if (!call.is_point_to_point) waiting.group = own[call.group];
      break;
    }
  }

  static const FlightCall* at_number(const Member& member, std::int64_t number) {
    const auto& list = member.collectives;
    const auto at = std::lower_bound(list.begin(), list.end(), number,
                                     [](const FlightCall* call, std::int64_t n) { return call->number < n; });
    return at != list.end() && (*at)->number == number ? *at : nullptr;
  }

  RankProgress start_of(const GroupDumps& group, std::uint32_t rank) const {
    RankProgress out;
    out.rank = rank;
    const auto dump = by_rank_.find(rank);
    if (dump == by_rank_.end()) return out;
    if (!dump->second->calls.empty()) {
      const FlightCall& last = dump->second->calls.back();
      out.last_call = call_text(*dump->second, last);
      out.place = dump->second->text(last.place);
    }
    out.standing = Standing::not_called;
    const auto known = group.by_rank.find(rank);
    if (known == group.by_rank.end()) return out;  // PyTorch lists a group once a rank has called something in it
    const auto& calls = known->second.collectives;
    if (calls.empty()) {
      const bool is_empty = dump->second->calls.empty();
      if (dump->second->missing > 0 || (is_empty && lacks_calls_)) out.standing = Standing::not_in_dump;
      return out;
    }
    out.first = calls.front()->number;
    out.called = calls.back()->number;
    out.completed = out.called;
    for (const FlightCall* call : calls) {
      if (call->state == CallState::completed) continue;
      out.completed = call->number - 1;
      break;
    }
    return out;
  }

  GroupProgress progress_of(const GroupDumps& group) const {
    GroupProgress out;
    out.name = group.name;
    out.description = group.description;
    out.members = group.members;
    std::vector<std::uint32_t> ranks = group.members;
    if (ranks.empty())
      for (const auto& entry : group.by_rank) ranks.push_back(entry.first);
    std::sort(ranks.begin(), ranks.end());
    std::int64_t last = std::numeric_limits<std::int64_t>::max(), most = 0;
    for (const std::uint32_t rank : ranks) {
      out.ranks.push_back(start_of(group, rank));
      const RankProgress& each = out.ranks.back();
      if (each.standing != Standing::not_called) continue;
      last = std::min(last, each.completed);
      most = std::max(most, each.called);
    }
    if (last == std::numeric_limits<std::int64_t>::max()) last = 0;
    out.last = last;
    for (RankProgress& each : out.ranks) {
      if (each.standing != Standing::not_called) continue;
      const auto known = group.by_rank.find(each.rank);
      const FlightCall* call = known == group.by_rank.end() ? nullptr : at_number(known->second, last + 1);
      if (each.completed > last) {
        each.standing = Standing::completed;
      } else if (call != nullptr) {
        each.standing = call->state == CallState::started ? Standing::started : Standing::scheduled;
        each.has_timed_out = call->has_timed_out;
        out.knows_starts = out.knows_starts && known->second.dump->knows_starts;
      }
      if (call != nullptr && out.next_call.empty()) out.next_call = words_of(*known->second.dump, *call);
      if (known == group.by_rank.end()) continue;
      if (const FlightCall* before = at_number(known->second, last); before != nullptr && out.last_call.empty())
        out.last_call = words_of(*known->second.dump, *before);
    }
    if (most <= last)
      for (RankProgress& each : out.ranks)
        if (each.standing == Standing::not_called)
          each.standing = Standing::completed;  // nobody has called the next one
    find_mismatches(group, out);
    out.verdict = verdict_of(out, most);
    return out;
  }

  static GroupVerdict verdict_of(const GroupProgress& group, std::int64_t most) {
    if (!group.mismatches.empty() && group.mismatches.back().number > group.last) return GroupVerdict::mismatch;
    if (most <= group.last) return GroupVerdict::finished;
    const auto any = [&](Standing standing) { return !group.in(standing).empty(); };
    if (any(Standing::not_called)) return GroupVerdict::behind;
    if (any(Standing::no_dump) || any(Standing::not_in_dump)) return GroupVerdict::no_dump;
    if (any(Standing::scheduled) && group.knows_starts) return GroupVerdict::not_started;
    return GroupVerdict::inside;
  }

  /// Numbers that at least two dumps have, in order.
  void find_mismatches(const GroupDumps& group, GroupProgress& out) const {
    using Caller = std::pair<const FlightDump*, const FlightCall*>;
    std::map<std::int64_t, std::vector<Caller>> by_number;
    for (const auto& entry : group.by_rank)
      for (const FlightCall* call : entry.second.collectives)
        by_number[call->number].emplace_back(entry.second.dump, call);
    for (const auto& [number, callers] : by_number) {
      if (callers.size() < 2) continue;
      // The latest matter most: they may be what the group waits in.
      if (out.mismatches.size() == most_mismatches) out.mismatches.erase(out.mismatches.begin());
      const auto add = [&, n = number, &all = callers](const char* what, const auto& key, const auto& words) {
        std::map<std::string, Variant> variants;
        for (const auto& [dump, call] : all) {
          const std::string own = key(*dump, *call);
          if (own.empty()) continue;
          Variant& variant = variants[own];
          if (variant.ranks.empty()) variant.call = words(*dump, *call);
          variant.ranks.push_back(dump->rank);
        }
        if (variants.size() < 2) return false;
        Mismatch found{.number = n, .what = what, .variants = {}};
        for (auto& each : variants) found.variants.push_back(std::move(each.second));
        std::stable_sort(found.variants.begin(), found.variants.end(),
                         [](const Variant& a, const Variant& b) { return a.ranks.size() > b.ranks.size(); });
        out.mismatches.push_back(std::move(found));
        return true;
      };
      if (add("operation", operation_of, words_of) || add("element type", types_of, words_of)) continue;
      const auto elements = [](const FlightDump&, const FlightCall& call) { return elements_of(call); };
      const auto sums = [](const FlightDump& dump, const FlightCall& call) {
        if (call.ops.size() == 1) return words_of(dump, call);
        return fmt::format("{}, {}elements", names_of(dump, call), elements_of(call));
      };
      if (add("elements", elements, sums)) continue;
      check_all_to_all(group, number, callers, out);
    }
  }

  template <class Callers>
  static void check_all_to_all(const GroupDumps& group, std::int64_t number, const Callers& callers,
                               GroupProgress& out) {
    if (group.members.empty() || callers.size() != group.members.size()) return;
    std::int64_t in = 0, taken = 0;
    Mismatch found{.number = number, .what = "numbers of input and output elements", .variants = {}};
    for (const auto& [dump, call] : callers) {
      const FlightOp& op = call->ops.front();
      if (call->ops.size() != 1 || op.op != CallOp::all_to_all || !has_sizes_of_all_to_all(*dump)) return;
      if (__builtin_add_overflow(in, op.in.elements, &in) || __builtin_add_overflow(taken, op.out.elements, &taken))
        return;
      found.variants.push_back(
          {.call = fmt::format("{} in, {} out", op.in.elements, op.out.elements), .ranks = {dump->rank}});
    }
    if (in != taken) out.mismatches.push_back(std::move(found));
  }

  // Sends and receives.

  /// The first operation that a rank's dump has pending to or from a peer, in a group.
  struct Pending {
    const FlightCall* call = nullptr;
    const FlightOp* op = nullptr;
  };
  using PendingKey = std::tuple<std::uint32_t, std::uint32_t, bool, std::string>;  // rank, peer, is_send, group's title

  void find_messages() {
    std::map<PendingKey, Pending> all;
    for (const FlightDump& dump : dumps_) {
      for (const FlightCall& call : dump.calls) {
        if (!call.is_point_to_point || call.state == CallState::completed) continue;
        const FlightGroup& group = dump.groups[call.group];
        for (const FlightOp& op : call.ops) {
          if (!is_point_to_point(op.op)) continue;
          const auto place = static_cast<std::size_t>(op.peer);
          const std::vector<std::uint32_t> members = members_of(group, dump.rank);
          if (op.peer == no_value || place >= members.size()) {
            unknown_.push_back(fmt::format("rank {} waits in {} of group {}; its dump does not state the other rank",
                                           dump.rank, op_text(dump, op), title_of(group.name, group.description)));
            continue;
          }
          all.try_emplace({dump.rank, members[place], op.op == CallOp::send, title_of(group.name, group.description)},
                          Pending{.call = &call, .op = &op});
        }
      }
    }
    for (const auto& [key, pending] : all) {
      const auto& [rank, peer, is_send, group] = key;
      const FlightDump& dump = *by_rank_.at(rank);
      PendingMessage message{.rank = rank,
                             .peer = peer,
                             .is_send = is_send,
                             .group = group,
                             .call = op_text(dump, *pending.op),
                             .is_met = std::nullopt,
                             .peers_call = "",
                             .differs = ""};
      if (by_rank_.contains(peer)) {
        const auto opposite = all.find({peer, rank, !is_send, group});
        message.is_met = opposite != all.end();
        if (opposite != all.end()) {
          message.peers_call = op_text(*by_rank_.at(peer), *opposite->second.op);
          message.differs = difference(dump, *pending.op, *by_rank_.at(peer), *opposite->second.op);
        }
      }
      out_.messages.push_back(std::move(message));
    }
  }

  static std::string difference(const FlightDump& dump, const FlightOp& op, const FlightDump& peers,
                                const FlightOp& peers_op) {
    const FlightTensors &own = data_of(op), &other = data_of(peers_op);
    if (own.elements != other.elements) return "elements";
    const bool has_types = own.dtypes != 0 && other.dtypes != 0;
    return has_types && dump.text(own.dtypes) != peers.text(other.dtypes) ? "element type" : "";
  }

  static const FlightTensors& data_of(const FlightOp& op) { return op.op == CallOp::send ? op.in : op.out; }
  static std::string op_text(const FlightDump& dump, const FlightOp& op) {
    const FlightTensors& data = data_of(op);
    return fmt::format("{} {} {}", dump.text(op.name), dump.text(data.shapes), dump.text(data.dtypes));
  }

  const std::vector<FlightDump>& dumps_;
  std::map<std::uint32_t, const FlightDump*> by_rank_;
  std::map<std::pair<std::string, std::vector<std::uint32_t>>, GroupDumps> groups_;
  struct Waiting {
    const FlightCall* call = nullptr;   // the oldest that has not completed
    const GroupDumps* group = nullptr;  // of a collective
  };
  std::map<std::uint32_t, Waiting> waits_in_;                           // [rank]
  std::map<std::string, std::set<std::vector<std::uint32_t>>> listed_;  // [name] members of groups of that name
  bool lacks_calls_ = false;                                            // some dump has lost calls
  std::vector<std::string> unknown_;                                    // sentences
  Hang out_;
};

}  // namespace

std::string_view to_string(Standing standing) {
  static constexpr std::string_view words[] = {"no dump",   "not in its dump", "not called",
                                               "scheduled", "started",         "completed"};
  return words[static_cast<std::size_t>(standing)];
}

std::string_view to_string(GroupVerdict verdict) {
  static constexpr std::string_view words[] = {"finished",    "calls differ",     "ranks behind",
                                               "not started", "all ranks inside", "dumps missing"};
  return words[static_cast<std::size_t>(verdict)];
}

std::vector<std::uint32_t> GroupProgress::in(Standing standing) const {
  std::vector<std::uint32_t> out;
  for (const RankProgress& each : ranks)
    if (each.standing == standing) out.push_back(each.rank);
  return out;
}

std::string GroupProgress::title() const { return title_of(name, description); }

Hang hang_of(const std::vector<FlightDump>& dumps) { return HangFinder(dumps).run(); }

}  // namespace ringsim::profiles
