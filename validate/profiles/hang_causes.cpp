#include "validate/profiles/hang_causes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "validate/profiles/flight_words.hpp"
#include "validate/profiles/rank_ranges.hpp"

namespace ringsim::profiles {

namespace {

// Chosen: more would not be read, and the rest is counted.
constexpr std::size_t most_findings_of_a_kind = 20;

/// A sentence, and whom it names.
struct Finding {
  std::string text;
  std::vector<std::uint32_t> ranks = {};
  std::string group = {};   ///< its title
  std::string advice = {};  ///< what follows the text
};

/// Sentences of one kind.
struct Findings {
  std::vector<Finding> said;
  std::size_t n_more = 0;

  void say(Finding finding) {
    if (said.size() < most_findings_of_a_kind)
      said.push_back(std::move(finding));
    else
      ++n_more;
  }
  void add_to(Hang& hang) const {
    for (const Finding& each : said) {
      if (hang.findings.empty()) hang.headline = each.text;
      hang.findings.push_back(each.text + each.advice);
      for (const std::uint32_t rank : each.ranks) add_new(hang.named_ranks, rank);
      if (!each.group.empty()) add_new(hang.named_groups, each.group);
    }
    if (n_more > 0) hang.findings.push_back(fmt::format("{} more like this", n_more));
  }

 private:
  template <class Value>
  static void add_new(std::vector<Value>& all, const Value& value) {
    if (std::find(all.begin(), all.end(), value) == all.end()) all.push_back(value);
  }
};

class Causes {
 public:
  Causes(const Hang& hang, const std::map<std::uint32_t, OldestPending>& pending) : hang_(hang), pending_(pending) {}

  void say_all(const std::vector<std::string>& unknown, Hang& hang) {
    for (const std::string& each : unknown) unknown_.say({.text = each});
    find_circles();
    for (const GroupProgress& group : hang_.groups) say_group(group);
    for (const PendingMessage& message : hang_.messages) say_message(message);
    for (const Findings* each : {&causes_, &unknown_, &consequences_, &past_}) each->add_to(hang);
  }

 private:
  // Circles: ranks that wait for each other.

  /// Ranks without which the rank's oldest pending call does not go on, of those that wait themselves.
  std::vector<std::uint32_t> waits_for(std::uint32_t rank) const {
    std::vector<std::uint32_t> found;
    const OldestPending& own = pending_.at(rank);
    if (own.group)
      for (const std::uint32_t other : hang_.groups[*own.group].in(Standing::not_called))
        if (pending_.contains(other)) found.push_back(other);
    for (const PendingMessage& message : hang_.messages)
      if (!own.group && message.rank == rank && message.is_met == false && pending_.contains(message.peer))
        found.push_back(message.peer);
    return found;
  }

  /// Depth first; of each circle that closes the ranks on the way.
  void find_circles() {
    struct Step {
      std::uint32_t rank;
      std::vector<std::uint32_t> others;  // that are not looked at yet
    };
    std::set<std::uint32_t> seen;
    for (const auto& start : pending_) {
      if (!seen.insert(start.first).second) continue;
      std::vector<Step> way{{.rank = start.first, .others = waits_for(start.first)}};
      while (!way.empty()) {
        if (way.back().others.empty()) {
          way.pop_back();
          continue;
        }
        const std::uint32_t next = way.back().others.back();
        way.back().others.pop_back();
        const auto on_way = std::find_if(way.begin(), way.end(), [&](const Step& step) { return step.rank == next; });
        if (on_way != way.end()) {
          std::vector<std::uint32_t> circle;
          for (auto each = on_way; each != way.end(); ++each) circle.push_back(each->rank);
          say_circle(circle);
        } else if (seen.insert(next).second) {
          way.push_back({.rank = next, .others = waits_for(next)});
        }
      }
    }
  }

  void say_circle(const std::vector<std::uint32_t>& ranks) {
    std::vector<std::uint32_t> in_order = ranks;
    std::sort(in_order.begin(), in_order.end());
    constexpr std::size_t shown = 4;
    std::string who, last;
    for (std::size_t i = 0; i < std::min(ranks.size(), shown); ++i) {
      const OldestPending& own = pending_.at(ranks[i]);
      const FlightDump& dump = *own.dump;
      const FlightCall& call = dump.calls.back();
      who += fmt::format("{}rank {} for rank {} in {}", i == 0 ? "" : "; ", ranks[i], ranks[(i + 1) % ranks.size()],
                         call_text(dump, *own.call));
      last += fmt::format("{}rank {} {}{}", i == 0 ? "" : "; ", ranks[i], call_text(dump, call),
                          call.place == 0 ? "" : ", " + dump.text(call.place));
    }
    if (ranks.size() > shown) who += fmt::format("; and {} more", ranks.size() - shown);
    causes_.say(
        {.text = fmt::format("{} wait for each other: {}", those(in_order), who),
         .ranks = in_order,
         .advice = fmt::format(
             ". They call in different orders, or a program is stuck after an asynchronous call; last calls: {}",
             last)});
  }

  static std::string those(const std::vector<std::uint32_t>& ranks) {
    return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", rank_ranges(ranks));
  }

  std::string timed_out(const GroupProgress& group) const {
    std::vector<std::uint32_t> ranks;
    for (const RankProgress& each : group.ranks)
      if (each.has_timed_out) ranks.push_back(each.rank);
    return ranks.empty() ? "" : fmt::format("; the call timed out on {}", those(ranks));
  }

  void say_mismatch(const GroupProgress& group) {
    bool is_said = false;
    for (const Mismatch& each : group.mismatches) {
      const bool is_over = each.number <= group.last;
      if (is_said && !is_over) continue;
      is_said = is_said || !is_over;
      std::vector<std::string> parts;
      for (const Variant& variant : each.variants)
        parts.push_back(fmt::format("{}: {}", those(variant.ranks), variant.call));
      std::vector<std::uint32_t> fewest;  // ranks of the rarest variant
      if (!each.variants.empty()) fewest = each.variants.back().ranks;
      (is_over ? past_ : causes_)
          .say({.text = fmt::format("group {}, number {}: ranks differ in the {}{}: {}", group.title(), each.number,
                                    each.what, is_over ? ", although it has completed" : "", fmt::join(parts, "; ")),
                .ranks = fewest,
                .group = group.title()});
    }
  }

  static std::string last_of(const RankProgress& rank) {
    return rank.last_call + (rank.place.empty() ? "" : ", " + rank.place);
  }

  void say_behind(const GroupProgress& group) {
    std::vector<std::uint32_t> waiting = group.in(Standing::scheduled);
    for (const Standing standing : {Standing::started, Standing::completed})
      for (const std::uint32_t rank : group.in(standing)) waiting.push_back(rank);
    std::sort(waiting.begin(), waiting.end());
    const std::string call = fmt::format("number {} of group {}{}", group.last + 1, group.title(),
                                         group.next_call.empty() ? "" : fmt::format(", {}", group.next_call));
    std::map<std::string, std::vector<std::uint32_t>> elsewhere;  // [what it waits in]
    std::map<std::string, std::vector<std::uint32_t>> free;       // [its last call]
    for (const RankProgress& each : group.ranks) {
      if (each.standing != Standing::not_called) continue;
      const auto waits = pending_.find(each.rank);
      if (waits != pending_.end()) {
        const std::string waits_in = call_text(*waits->second.dump, *waits->second.call);
        const bool went_on = each.last_call != waits_in;
        elsewhere[waits_in + (went_on ? fmt::format("; its last call was {}", last_of(each)) : "")].push_back(
            each.rank);
      } else {
        free[each.last_call.empty() ? "it has made no call" : fmt::format("its last call was {}", last_of(each))]
            .push_back(each.rank);
      }
    }
    for (const auto& [last, ranks] : free)
      causes_.say({.text = fmt::format("{} {} not called {}; {} {}{}", those(ranks), ranks.size() == 1 ? "has" : "have",
                                       call, those(waiting), waiting.size() == 1 ? "has" : "have", timed_out(group)),
                   .ranks = ranks,
                   .group = group.title(),
                   .advice = fmt::format(". No call is pending on {}, so check the program: {}", those(ranks), last)});
    for (const auto& [what, ranks] : elsewhere)
      consequences_.say(
          {.text = fmt::format("{} {} not called {}: {} in {}", those(ranks), ranks.size() == 1 ? "has" : "have", call,
                               ranks.size() == 1 ? "it waits" : "they wait", what),
           .ranks = ranks,
           .group = group.title()});
  }

  void say_group(const GroupProgress& group) {
    const std::string call = fmt::format("number {} of group {}, {}", group.last + 1, group.title(), group.next_call);
    say_mismatch(group);
    switch (group.verdict) {
      case GroupVerdict::finished:
      case GroupVerdict::mismatch:
        break;
      case GroupVerdict::behind:
        say_behind(group);
        break;
      case GroupVerdict::not_started:
        causes_.say({.text = fmt::format("all ranks have called {}{}; its kernel has not started on {}, where earlier "
                                         "work on the stream has not ended",
                                         call, timed_out(group), those(group.in(Standing::scheduled))),
                     .ranks = group.in(Standing::scheduled),
                     .group = group.title()});
        break;
      case GroupVerdict::inside:
        causes_.say({.text = fmt::format("all ranks have called {}, and it has not ended{}", call, timed_out(group)),
                     .group = group.title(),
                     .advice = group.knows_starts
                                   ? ": its kernels are running, so check links, NICs and GPUs"
                                   : ": check links, NICs and GPUs, or earlier work on the streams (with "
                                     "TORCH_NCCL_ENABLE_TIMING=1, dumps show whether kernels have started)"});
        break;
      case GroupVerdict::no_dump:
        if (const auto without = group.in(Standing::no_dump); !without.empty())
          unknown_.say({.text = fmt::format("all ranks with a dump have called {}{}; check the dumps of {}", call,
                                            timed_out(group), those(without)),
                        .ranks = without,
                        .group = group.title()});
        if (const auto lost = group.in(Standing::not_in_dump); !lost.empty())
          unknown_.say(
              {.text = fmt::format("it is unknown whether {} {} called {}, because the dumps no longer contain the "
                                   "calls of this group; increase TORCH_FR_BUFFER_SIZE",
                                   those(lost), lost.size() == 1 ? "has" : "have", call),
               .ranks = lost,
               .group = group.title()});
        break;
    }
  }

  void say_message(const PendingMessage& message) {
    const char* way = message.is_send ? "to" : "from";
    const std::string waits = fmt::format("rank {} waits in {} {} rank {} of group {}", message.rank, message.call, way,
                                          message.peer, message.group);
    const std::vector<std::uint32_t> both{message.rank, message.peer};
    if (!message.is_met)
      return unknown_.say({.text = fmt::format("{}; check the dump of rank {}", waits, message.peer), .ranks = both});
    if (*message.is_met) {
      if (!message.is_send) return;  // said of the sender
      if (message.differs.empty())
        return causes_.say(
            {.text = fmt::format("{}, which has called {}, and neither has ended", waits, message.peers_call),
             .ranks = both,
             .advice = ": check links, NICs and GPUs, or earlier work on the streams"});
      return causes_.say({.text = fmt::format("{}, which waits in {}: they differ in the {}", waits, message.peers_call,
                                              message.differs),
                          .ranks = both});
    }
    const auto other = pending_.find(message.peer);
    const std::string text =
        fmt::format("{}, which has no matching {} pending", waits, message.is_send ? "receive" : "send");
    if (other == pending_.end())
      causes_.say({.text = text, .ranks = both, .advice = ". No call is pending there at all, so check the program"});
    else
      consequences_.say(
          {.text = fmt::format("{}: it waits in {}", text, call_text(*other->second.dump, *other->second.call)),
           .ranks = both});
  }

  const Hang& hang_;
  const std::map<std::uint32_t, OldestPending>& pending_;
  Findings causes_, unknown_, consequences_, past_;
};

}  // namespace

void find_causes(Hang& hang, const std::map<std::uint32_t, OldestPending>& pending,
                 const std::vector<std::string>& unknown) {
  Causes(hang, pending).say_all(unknown, hang);
}

}  // namespace ringsim::profiles
