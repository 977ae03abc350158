// Merges rows of one size: repetitions within a run, and runs that agree.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"
#include "validate/measured/measured_runs.hpp"

namespace ringsim::measured {

void check_bandwidth(const Row& row, const Timed& timed, std::optional<int> ranks) {
  if (!timed.time) return;
  const Number& time = *timed.time;
  const double expected = static_cast<double>(row.bytes.count) / time.value / 1e3;
  // Transcribed tables lose trailing zeros and digits of long times: another 0.2 % of both.
  const auto near = [&](double value, const Number& printed) {
    return std::abs(printed.value - value) <= printed.half + value * (time.half / time.value + 0.002);
  };
  // Old nccl-tests counted only the bytes that travel: (n-1)/n, of all_gather and reduce_scatter.
  const bool may_be_less = *row.op == CollectiveOp::all_gather || *row.op == CollectiveOp::reduce_scatter;
  const auto is_less = [&] {
    if (!may_be_less) return false;
    if (ranks) return near(expected * (*ranks - 1) / *ranks, *timed.algbw);
    return timed.algbw->value < expected && timed.algbw->value + timed.algbw->half > 0.49 * expected;
  };
  if (timed.algbw && !near(expected, *timed.algbw) && !is_less())
    throw InputError(row.where,
                     fmt::format("expected algbw to be {} over {} us, which is {:.2f} GB/s, found {}",
                                 format(row.bytes), time.value, expected, timed.algbw->value),
                     "a column is missing or misplaced, or the row is truncated");
  if (!ranks || busbw_fits(timed, row.bytes, *row.op, *ranks)) return;
  throw InputError(
      row.where,
      fmt::format("expected busbw to be {:.2f} GB/s, which follows from {} on {} ranks in {} us, found {}",
                  expected * busbw_factor(*row.op, *ranks), to_string(*row.op), *ranks, time.value, timed.busbw->value),
      "check the collective and the number of ranks");
}

namespace {

MeasuredRow row_of(const Row& row, std::optional<int> ranks) {
  check_bandwidth(row, row.out, ranks);
  check_bandwidth(row, row.in, ranks);
  const auto value = [](const std::optional<Number>& n) { return n ? std::optional(n->value) : std::nullopt; };
  return {.op = *row.op,
          .bytes = row.bytes,
          .time_us = row.counted().time->value,
          .in_place_us = value(row.in.time),
          .time_min_us = value(row.min),
          .time_max_us = value(row.max),
          .algbw_GBps = value(row.counted().algbw),
          .busbw_GBps = value(row.counted().busbw),
          .wrong = row.wrong,
          .line = row.line};
}

std::optional<double> median_of(const std::vector<MeasuredRow>& rows, std::optional<double> MeasuredRow::*member) {
  std::vector<double> values;
  for (const MeasuredRow& row : rows)
    if (row.*member) values.push_back(*(row.*member));
  return values.empty() ? std::nullopt : std::optional(quantile(values, 0.5));
}

/// Merges repetitions into one row with the median time and its bandwidth. (A mean of bandwidths is that of another
/// time.)
MeasuredRow merged(const std::vector<MeasuredRow>& rows) {
  MeasuredRow result = rows.front();
  if (rows.size() == 1) return result;
  std::vector<double> times;
  for (const MeasuredRow& row : rows) {
    times.push_back(row.time_us);
    const auto keep = [&](std::optional<double>& kept, double value, bool less) {
      kept = !kept ? value : less ? std::min(*kept, value) : std::max(*kept, value);
    };
    keep(result.time_min_us, row.time_min_us.value_or(row.time_us), true);
    keep(result.time_max_us, row.time_max_us.value_or(row.time_us), false);
    if (&row != &rows.front() && row.wrong) result.wrong = result.wrong.value_or(0) + *row.wrong;
  }
  result.time_us = quantile(times, 0.5);
  result.in_place_us = median_of(rows, &MeasuredRow::in_place_us);
  const auto at_median = [&](std::optional<double> MeasuredRow::*member) {
    std::vector<MeasuredRow> carried = rows;  // bandwidth times time: bytes, or those that travel
    for (MeasuredRow& row : carried)
      if (row.*member) *(row.*member) *= row.time_us;
    std::optional<double> bytes = median_of(carried, member);
    if (bytes) *bytes /= result.time_us;
    return bytes;
  };
  result.algbw_GBps = at_median(&MeasuredRow::algbw_GBps);
  result.busbw_GBps = at_median(&MeasuredRow::busbw_GBps);
  return result;
}

/// The fastest and the slowest row of one size.
struct Spread {
  MeasuredRow least, most;

  double share() const { return most.time_us / least.time_us - 1; }
  std::string text() const {
    return fmt::format("up to {:.1f} % ({}: {} to {} us)", 100 * share(), format(least.bytes), least.time_us,
                       most.time_us);
  }
};

Spread spread_of(const std::vector<MeasuredRow>& rows) {
  const auto [least, most] = std::minmax_element(
      rows.begin(), rows.end(), [](const MeasuredRow& a, const MeasuredRow& b) { return a.time_us < b.time_us; });
  return {*least, *most};
}

void keep_wider(std::optional<Spread>& widest, const Spread& spread) {
  if (!widest || spread.share() > widest->share()) widest = spread;
}

using SizeOfOp = std::pair<CollectiveOp, std::int64_t>;

/// Items by collective and size, in the order in which these come first.
template <class Item>
class BySize {
 public:
  std::vector<Item>& at(const SizeOfOp& key) {
    std::vector<Item>& group = groups_[key];
    if (group.empty()) order_.push_back(key);
    return group;
  }
  const std::vector<SizeOfOp>& order() const { return order_; }
  const std::map<SizeOfOp, std::vector<Item>>& groups() const { return groups_; }

 private:
  std::vector<SizeOfOp> order_;
  std::map<SizeOfOp, std::vector<Item>> groups_;
};

/// One row for each (op, bytes) of a run.
std::vector<MeasuredRow> merge_repetitions(const RunRows& run, bool from_benchmark, const std::string& name,
                                           std::vector<std::string>& warnings) {
  BySize<const Row*> groups;
  for (const Row& row : run.rows) {
    auto& group = groups.at({*row.op, row.bytes.count});
    if (!group.empty() && group.front()->variant() != row.variant())
      throw InputError(
          row.where,
          fmt::format("expected {} with one type, operation and root, found \"{}\" here and \"{}\" on line {}",
                      format(row.bytes), row.variant(), group.front()->variant(), group.front()->line),
          "put the rows of each type, operation and root into a separate file");
    group.push_back(&row);
  }
  const auto& all = groups.groups();
  const bool alike =
      std::all_of(all.begin(), all.end(), [&](const auto& g) { return g.second.size() == all.begin()->second.size(); });
  std::vector<MeasuredRow> rows;
  std::optional<Spread> widest;
  std::size_t repeated = 0, most = 0;
  for (const SizeOfOp& key : groups.order()) {
    std::vector<MeasuredRow> same;
    for (const Row* row : all.at(key)) same.push_back(row_of(*row, run.ranks));
    if (same.size() > 1 && !from_benchmark && !alike)
      throw InputError(all.at(key)[1]->where,
                       fmt::format("expected each size only once, found {} of {} here and on line {}",
                                   format(same[1].bytes), to_string(key.first), same[0].line),
                       "repetitions are accepted only if every size has the same number of them; their median is used");
    if (same.size() > 1) ++repeated, keep_wider(widest, spread_of(same));
    most = std::max(most, same.size());
    rows.push_back(merged(same));
  }
  if (repeated > 0)
    warnings.push_back(
        fmt::format("{}: {} of {} sizes occur several times, up to {}; they are treated as repetitions, and the median "
                    "is used; their times differ by {}",
                    name, repeated, rows.size(), most, widest->text()));
  return rows;
}

/// "1 MiB in 100 us in run 1 (line 3) and 200 us in run 2 (line 7)".
std::string where_apart(const std::vector<std::pair<MeasuredRow, const RunRows*>>& same) {
  const auto less = [](const auto& a, const auto& b) { return a.first.time_us < b.first.time_us; };
  const auto [least, most] = std::minmax_element(same.begin(), same.end(), less);
  const auto text = [](const auto& one) {
    const std::string line = one.first.line > 0 ? fmt::format(" (line {})", one.first.line) : "";
    return fmt::format("{} us in run {}{}", one.first.time_us, one.second->number, line);
  };
  return fmt::format("{} in {} and {}", format(least->first.bytes), text(*least), text(*most));
}

void require_one_way(const RunRows& first, const RunRows& second, const MeasuredRow& row, const std::string& name) {
  const auto variant_in = [&](const RunRows& run) {
    const auto found = std::find_if(run.rows.begin(), run.rows.end(),
                                    [&](const Row& each) { return each.op == row.op && each.bytes == row.bytes; });
    return found->variant() + (found->out.time ? "" : " in place");
  };
  if (variant_in(first) == variant_in(second)) return;
  throw InputError(
      name,
      fmt::format("expected {} with one type, operation and root, found \"{}\" in run {} and \"{}\" in run {}",
                  format(row.bytes), variant_in(first), first.number, variant_in(second), second.number),
      "choose a run with --run N");
}

}  // namespace

std::vector<MeasuredRow> joined_rows(const std::vector<RunRows>& runs, bool from_benchmark, const std::string& name,
                                     std::vector<std::string>& warnings) {
  // Twice what the same system measured again is off in one row of ten (docs/guide/compare.md, "Ranges").
  constexpr double most_apart = 0.2;
  if (runs.size() == 1) return merge_repetitions(runs.front(), from_benchmark, name, warnings);
  BySize<std::pair<MeasuredRow, const RunRows*>> groups;
  for (const RunRows& run : runs)
    for (const MeasuredRow& row : merge_repetitions(run, from_benchmark, name, warnings)) {
      auto& group = groups.at({row.op, row.bytes.count});
      if (!group.empty()) require_one_way(*group.front().second, run, row, name);
      group.emplace_back(row, &run);
    }
  std::vector<MeasuredRow> rows;
  std::optional<Spread> widest;
  std::string apart;
  for (const SizeOfOp& key : groups.order()) {
    std::vector<MeasuredRow> same;
    for (const auto& [row, run] : groups.groups().at(key)) same.push_back(row);
    if (same.size() > 1 && (!widest || spread_of(same).share() > widest->share())) {
      widest = spread_of(same);
      apart = where_apart(groups.groups().at(key));
    }
    rows.push_back(merged(same));
  }
  std::string how = "they have no size in common, so their rows are combined";
  if (widest && widest->share() > most_apart)
    how = fmt::format(
        "they differ by {:.0f} % ({}), too much for repetitions; their median is used unless --run N chooses one",
        100 * widest->share(), apart);
  else if (widest)
    how = "they are treated as repetitions, and the median is used; their times differ by " + widest->text();
  warnings.push_back(fmt::format("{}: it has {} runs: {}; {}", name, runs.size(), texts_of(runs), how));
  return rows;
}

}  // namespace ringsim::measured
