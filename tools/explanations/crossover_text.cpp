#include "tools/explanations/crossover_text.hpp"
#include "sim/text/figures.hpp"
#include "sim/text/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "sim/base/version.hpp"
#include "sim/text/json.hpp"
#include "sim/text/wrap.hpp"
#include "tools/output/output.hpp"
#include "validate/results/results.hpp"

namespace ringsim::tools {

namespace {

std::string title(const CrossoverGroup& group) {
  std::string text = fmt::format("{}, {} rank{}", to_string(group.op), group.ranks, group.ranks == 1 ? "" : "s");
  if (group.nodes > 0) text += fmt::format(" on {} node{}", group.nodes, group.nodes == 1 ? "" : "s");
  for (const auto& [path, value] : group.others) {
    const bool told = path == "collective.op" || path == "topology.ranks" || path == "topology.nodes";
    if (!told) text += fmt::format(", {} {}", path, without_quotes(value));
  }
  return text;
}

std::string called(const Contender& contender) {
  return contender.algorithm + (contender.settings.empty() ? "" : " " + contender.settings) +
         (contender.protocol == "none" ? "" : " protocol=" + contender.protocol) +
         (contender.channels == 1 ? "" : fmt::format(" channels={}", contender.channels));
}

/// Which contenders a table calls by a letter, so that it is not too wide.
enum class Lettered { none, runners_up, all };

/// What a table calls its contenders.
class Names {
 public:
  Names(const std::vector<Contender>& contenders, Lettered lettered) : contenders_(contenders), lettered_(lettered) {}

  std::string runner_up(std::size_t i) { return lettered_ == Lettered::none ? called(contenders_[i]) : letter(i); }
  /// All that are equally fast.
  std::string best(const std::vector<std::size_t>& all) {
    std::vector<std::string> names;
    for (const std::size_t i : all) names.push_back(lettered_ == Lettered::all ? letter(i) : called(contenders_[i]));
    const bool tie = names.size() > 1 && lettered_ != Lettered::all;
    return fmt::format("{}{}", fmt::join(names, " = "), tie ? " (equally fast)" : "");
  }
  /// A line for each letter.
  std::string legend() const {
    std::string lines;
    for (std::size_t n = 0; n < known_.size(); ++n)
      lines += wrapped(fmt::format("{}: {}", letters(n), called(contenders_[known_[n]]))) + '\n';
    return lines;
  }

 private:
  /// A to Z, AA to ZZ, and so on.
  static std::string letters(std::size_t n) {
    std::string text(1, static_cast<char>('A' + static_cast<char>(n % 26)));
    return n < 26 ? text : letters(n / 26 - 1) + text;
  }
  std::string letter(std::size_t i) {
    auto found = std::find(known_.begin(), known_.end(), i);
    if (found == known_.end()) found = known_.insert(known_.end(), i);
    return letters(static_cast<std::size_t>(found - known_.begin()));
  }

  const std::vector<Contender>& contenders_;
  Lettered lettered_;
  std::vector<std::size_t> known_;  // [number of the letter] the contender
};

std::string ahead(const std::optional<Lead>& lead, Names& names) {
  if (!lead) return "no other";
  return fmt::format("{:.2f} x {}", lead->times, names.runner_up(lead->runner_up));
}

Table table_of(const Comparison& comparison, Names& names) {
  Table table({"from", "to", "best", "us", "ahead at from", "at to", "most"});
  for (const BestRange& range : best_ranges(comparison)) {
    table.add({format(range.from), format(range.to), names.best(range.best),
               fmt::format("{} - {}", figure(microseconds(range.time_from)), figure(microseconds(range.time_to))),
               ahead(range.lead_from, names), ahead(range.lead_to, names),
               range.longest ? fmt::format("{} at {}", ahead(range.longest, names), format(range.longest->at)) : ""});
  }
  return table;
}

/// With as many names and as few letters as fit.
std::string text_of(const CrossoverGroup& group) {
  for (const Lettered lettered : {Lettered::none, Lettered::runners_up}) {
    Names names(group.comparison.contenders, lettered);
    const Table table = table_of(group.comparison, names);
    if (table.width() <= text_width) return table.text() + names.legend();
  }
  Names names(group.comparison.contenders, Lettered::all);
  const Table table = table_of(group.comparison, names);
  return table.fitted() + names.legend();
}

/// What NCCL calls it; nothing: NCCL has no such algorithm. Which algorithm does which collective: NVIDIA/nccl
/// 5067397c2676 src/graph/tuning.cc.
std::optional<std::string> nccl_name(const CrossoverGroup& group, const std::string& algorithm) {
  const CollectiveOp op = group.op;
  const bool scatters = op == CollectiveOp::reduce_scatter || op == CollectiveOp::all_gather;
  if (algorithm == "ring") return "ring";
  // The ring of a reduce or broadcast is a chain that ends before the root.
  if (algorithm == "chain" && (op == CollectiveOp::broadcast || op == CollectiveOp::reduce)) return "ring";
  if (algorithm == "double_binary_tree" && op == CollectiveOp::all_reduce) return "tree";
  if (algorithm == "in_switch" && group.nodes == 1) return "nvls";
  if (algorithm == "pat" && scatters) return "pat";
  return std::nullopt;
}

std::optional<std::string> nccl_collective(CollectiveOp op) {
  switch (op) {
    case CollectiveOp::all_reduce:
      return "allreduce";
    case CollectiveOp::reduce_scatter:
      return "reducescatter";
    case CollectiveOp::all_gather:
      return "allgather";
    case CollectiveOp::broadcast:
      return "broadcast";
    case CollectiveOp::reduce:
      return "reduce";
    default:
      return std::nullopt;  // NCCL asks no tuner for the others
  }
}

/// A comment; the plugin reads lines of at most 255 characters, and would take the rest of a longer one for a row.
std::string comment(const std::string& text) {
  constexpr std::size_t most = 240;
  return "# " + (text.size() > most ? text.substr(0, most) + " ..." : text) + "\n";
}

/// The size between two compared ones at which the first rule ends: the middle of their logarithms.
std::int64_t last_before(Bytes to, Bytes next) {
  const auto middle =
      static_cast<std::int64_t>(std::sqrt(static_cast<double>(to.count) * static_cast<double>(next.count)));
  return std::clamp(middle, to.count, next.count - 1);
}

constexpr const char* about_the_file[] = {
    ("For NCCL's example tuner plugin (NVIDIA/nccl 2.30.7, plugins/tuner/example): set NCCL_TUNER_CONFIG_FILE to this "
     "file."),
    "Sizes outside the rows were not compared. For these NCCL chooses, but with 1 channel, as the plugin requests.",
    "An algorithm that is never at least 1 % faster than that of the previous row has no row.",
};

/// Printed if only one channel was modeled, which is the default.
constexpr const char* about_channels[] = {
    "The number of channels is -1 (not chosen). This version of the plugin then requests 1 channel, despite its "
    "README:",
    "write a number, or change pluginGetCollInfo to start with *nChannels = 0 (NCCL's own choice).",
};

/// Printed if no protocol was modeled.
constexpr const char* about_protocols[] = {
    "No protocol was modeled. The plugin cannot express \"any protocol\" (it reads every word except ll and ll128 as "
    "simple), so",
    "the rows say simple, which is slow for small messages; replace it with ll or ll128 where appropriate.",
};

/// True if a number of channels was chosen: then one is a choice as well.
bool has_channels(const CrossoverGroup& group) {
  return std::any_of(group.comparison.contenders.begin(), group.comparison.contenders.end(),
                     [](const Contender& each) { return each.channels > 1; });
}

/// Sizes of one choice. It is kept as long as it is within one in a hundred of the best: a last round's byte makes two
/// choices change places a hundred times, by nothing that a machine would show.
struct Rule {
  Bytes from, to;
  std::size_t choice;
};

std::vector<Rule> rules_of(const Comparison& comparison) {
  constexpr double as_good = 1.01;
  const auto keeps = [&](std::size_t choice, const BestRange& range) {
    for (auto row = comparison.times.find(range.from); row != comparison.times.end() && row->first <= range.to; ++row) {
      const auto& time = row->second[choice];
      const auto& best = row->second[range.best.front()];
      if (!time || static_cast<double>(time->count()) > as_good * static_cast<double>(best->count())) return false;
    }
    return true;
  };
  std::vector<Rule> rules;
  for (const BestRange& range : best_ranges(comparison)) {
    if (rules.empty() || !keeps(rules.back().choice, range))
      rules.push_back({range.from, range.to, range.best.front()});
    rules.back().to = range.to;
  }
  return rules;
}

/// The rows of a group, and what was left out of them. `rows`: whether it has any.
std::string tuner_rows(const CrossoverGroup& group, bool& rows) {
  std::string text = comment(title(group));
  const auto collective = nccl_collective(group.op);
  std::vector<std::optional<std::string>> names;
  std::set<std::string> left_out, compared;
  for (const Contender& each : group.comparison.contenders) {
    auto name = collective ? nccl_name(group, each.algorithm) : std::nullopt;
    if (name) {
      *name += each.protocol == "none" ? ",simple" : "," + each.protocol;
      *name += has_channels(group) ? fmt::format(",{}", each.channels) : ",-1";
      compared.insert(*name);
    } else {
      left_out.insert(each.algorithm);
    }
    names.push_back(std::move(name));
  }
  if (!left_out.empty())
    text += comment(fmt::format("left out because NCCL does not have it: {}", fmt::join(left_out, ", ")));
  if (compared.size() < 2) {
    return text + comment(compared.empty()
                              ? "no row: no NCCL algorithm was compared"
                              : fmt::format("no row: {} was the only NCCL algorithm compared", *compared.begin()));
  }
  rows = true;
  const Comparison comparison = renamed(group.comparison, names);
  const std::vector<Rule> rules = rules_of(comparison);
  std::int64_t from = rules.empty() ? 0 : rules.front().from.count;
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const std::int64_t to = i + 1 < rules.size() ? last_before(rules[i].to, rules[i + 1].from) : rules[i].to.count;
    // One row a rule: the plugin takes the first that fits.
    text +=
        fmt::format("{},{},{},{},{},{},-1,-1\n", *collective, from, to,
                    comparison.contenders[rules[i].choice].algorithm, group.nodes > 0 ? group.nodes : -1, group.ranks);
    from = to + 1;
  }
  return text;
}

}  // namespace

std::string crossover_table(const std::vector<CrossoverGroup>& groups) {
  std::string text;
  for (const CrossoverGroup& group : groups) {
    text += fmt::format("{}{}\n{}", text.empty() ? "" : "\n", wrapped(title(group)), text_of(group));
  }
  return text;
}

std::string crossover_csv(const std::vector<CrossoverGroup>& groups) {
  std::string text = "op,ranks,nodes,bytes,algorithm,parameters,protocol,channels,time_us,best,times_the_best";
  for (const auto& [path, value] : groups.front().others) text += "," + csv_field("point." + path);
  text += '\n';
  for (const CrossoverGroup& group : groups) {
    for (const auto& [size, times] : group.comparison.times) {
      std::optional<Picoseconds> least;
      for (const auto& time : times)
        if (time && (!least || *time < *least)) least = time;
      for (std::size_t i = 0; i < times.size(); ++i) {
        if (!times[i]) continue;
        const Contender& contender = group.comparison.contenders[i];
        const bool best = *times[i] == *least;
        text += fmt::format("{},{},{},{},{},{},{},{},{},{},", to_string(group.op), group.ranks, group.nodes, size.count,
                            csv_field(contender.algorithm), csv_field(contender.settings), contender.protocol,
                            contender.channels, microseconds(*times[i]), best);
        // Nothing if the best takes no time at all, and others do.
        if (best || least->count() > 0)
          text += fmt::format(
              "{}", best ? 1.0 : static_cast<double>(times[i]->count()) / static_cast<double>(least->count()));
        for (const auto& [path, value] : group.others) text += "," + csv_field(without_quotes(value));
        text += '\n';
      }
    }
  }
  return text;
}

std::string crossover_nccl_tuner(const std::vector<CrossoverGroup>& groups, bool refined) {
  std::string text = comment(
      fmt::format("ringsim {} (model {}): the best algorithm for each size, as simulated", version, model_version));
  for (const char* line : about_the_file) text += comment(line);
  if (!std::all_of(groups.begin(), groups.end(), has_channels))
    for (const char* line : about_channels) text += comment(line);
  const auto is_none = [](const Contender& each) { return each.protocol == "none"; };
  const auto unprotocolled = [&](const CrossoverGroup& group) {
    const auto& all = group.comparison.contenders;
    const auto n = std::count_if(all.begin(), all.end(), is_none);
    if (n > 0 && n < std::ssize(all))
      throw InputError("", "expected either NCCL protocols or only none, found both",
                       R"(NCCL has no protocol none: --set transport.protocol='["ll","ll128","simple"]')");
    return n > 0;
  };
  if (std::any_of(groups.begin(), groups.end(), unprotocolled))
    for (const char* line : about_protocols) text += comment(line);
  if (!refined)
    text += comment(
        "Each change lies somewhere between two compared sizes and is shown at their geometric mean; --refine locates "
        "it.");
  text += comment("collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks,numPipeOps,regBuff");
  bool rows = false;
  std::set<std::string> known;  // what the plugin can tell apart
  for (const CrossoverGroup& group : groups) {
    const std::string key = fmt::format("{} {} {}", to_string(group.op), group.nodes, group.ranks);
    if (!known.insert(key).second)
      throw InputError("",
                       fmt::format("expected one group of points for {} of {} ranks on {} nodes, found several",
                                   to_string(group.op), group.ranks, group.nodes),
                       "NCCL's tuner does not distinguish further; choose one with --set");
    text += tuner_rows(group, rows);
  }
  if (!rows)
    throw InputError("",
                     "expected at least two algorithms that NCCL has, such as ring and double_binary_tree, found fewer",
                     "for all_reduce: ring, double_binary_tree and, on one node, in_switch; for reduce_scatter and "
                     "all_gather: ring and pat");
  return text;
}

}  // namespace ringsim::tools
