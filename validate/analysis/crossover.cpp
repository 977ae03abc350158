#include "validate/analysis/crossover.hpp"

#include <algorithm>
#include <iterator>
#include <limits>

#include "sim/base/error.hpp"

namespace ringsim {

using namespace literals;

namespace {

using Times = std::vector<std::optional<Picoseconds>>;

/// The first of [contender] that has the least time among those that `counts` says; nothing if none has one.
template <class Counts>
std::optional<std::size_t> fastest(const Times& times, Counts counts) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < times.size(); ++i)
    if (times[i] && counts(i) && (!found || *times[i] < *times[*found])) found = i;
  return found;
}

bool contains(const std::vector<std::size_t>& set, std::size_t i) {
  return std::find(set.begin(), set.end(), i) != set.end();
}

std::vector<std::size_t> best_of(const Times& times) {
  std::vector<std::size_t> best;
  const auto first = fastest(times, [](std::size_t) { return true; });
  for (std::size_t i = 0; first && i < times.size(); ++i)
    if (times[i] == times[*first]) best.push_back(i);
  return best;
}

std::optional<Lead> lead_of(const Comparison& comparison, Bytes size, const Times& times,
                            const std::vector<std::size_t>& best) {
  const auto is_best_algorithm = [&](std::size_t i) {
    return std::any_of(best.begin(), best.end(), [&](std::size_t b) {
      return comparison.contenders[b].algorithm == comparison.contenders[i].algorithm;
    });
  };
  auto runner_up = fastest(times, [&](std::size_t i) { return !is_best_algorithm(i); });
  if (!runner_up) runner_up = fastest(times, [&](std::size_t i) { return !contains(best, i); });
  if (!runner_up) return std::nullopt;
  const auto its = static_cast<double>(times[*runner_up]->count());
  const auto least = static_cast<double>(times[best.front()]->count());
  return Lead{size, *runner_up, least > 0 ? its / least : std::numeric_limits<double>::infinity()};
}

/// Two sizes with different best algorithms: whether those of the lower size are still the best at a size between them,
/// judged by one of each size. A missing time counts as the latest.
class Change {
 public:
  Change(const std::vector<std::size_t>& lower, const std::vector<std::size_t>& upper) {
    const auto left = std::find_if(lower.begin(), lower.end(), [&](std::size_t i) { return !contains(upper, i); });
    const auto joined = std::find_if(upper.begin(), upper.end(), [&](std::size_t i) { return !contains(lower, i); });
    ensure(left != lower.end() || joined != upper.end(), "neighboring ranges differ in their best algorithms");
    leaves_ = left != lower.end();
    before_ = leaves_ ? *left : lower.front();
    after_ = leaves_ ? upper.front() : *joined;
  }
  bool is_ahead(const TimeOf& time_of, Bytes size) const {
    const auto latest = Picoseconds::max();
    const Picoseconds before = time_of(before_, size).value_or(latest), after = time_of(after_, size).value_or(latest);
    return leaves_ ? before <= after : before < after;  // one that only joins is level when the change has come
  }

 private:
  bool leaves_ = false;
  std::size_t before_ = 0, after_ = 0;
};

}  // namespace

std::size_t Comparison::add(const Contender& contender, Bytes size, std::optional<Picoseconds> time) {
  const auto found = std::find(contenders.begin(), contenders.end(), contender);
  const auto index = static_cast<std::size_t>(found - contenders.begin());
  if (found == contenders.end()) {
    contenders.push_back(contender);
    for (auto& [at, row] : times) row.resize(contenders.size());
  }
  std::vector<std::optional<Picoseconds>>& row = times[size];
  row.resize(contenders.size());
  row[index] = time;
  return index;
}

std::vector<BestRange> best_ranges(const Comparison& comparison) {
  std::vector<BestRange> ranges;
  for (const auto& [size, times] : comparison.times) {
    const std::vector<std::size_t> best = best_of(times);
    if (best.empty()) continue;
    const Picoseconds time = *times[best.front()];
    const auto lead = lead_of(comparison, size, times, best);
    if (ranges.empty() || ranges.back().best != best)
      ranges.push_back({.from = size, .to = size, .time_from = time, .best = best, .lead_from = lead});
    BestRange& range = ranges.back();
    range.to = size;
    range.time_to = time;
    range.lead_to = lead;
    if (lead && (!range.longest || lead->times > range.longest->times)) range.longest = lead;
  }
  return ranges;
}

Bytes locating_step(Bytes size) { return size < 1_MiB ? 1_B : 1_KiB; }

void refine(Comparison& comparison, const TimeOf& time_of) {
  for (;;) {
    const std::vector<BestRange> ranges = best_ranges(comparison);
    const auto far = std::adjacent_find(ranges.begin(), ranges.end(), [](const BestRange& a, const BestRange& b) {
      return b.from.count - a.to.count > locating_step(a.to).count;
    });
    if (far == ranges.end()) return;
    const Change change(far->best, std::next(far)->best);
    Bytes lower = far->to, upper = std::next(far)->from;
    while (upper.count - lower.count > locating_step(lower).count) {
      const std::int64_t step = locating_step(lower).count;
      // On multiples of the step, which lie strictly between the two.
      std::int64_t middle = (lower.count + (upper.count - lower.count) / 2) / step * step;
      if (middle <= lower.count) middle += step;
      (change.is_ahead(time_of, {middle}) ? lower : upper) = {middle};
    }
    // All of them, since a third one may be ahead of both there: then these are two changes.
    for (const Bytes size : {lower, upper}) {
      if (comparison.times.contains(size)) continue;
      for (std::size_t i = 0; i < comparison.contenders.size(); ++i)
        comparison.add(Contender(comparison.contenders[i]), size, time_of(i, size));
    }
  }
}

Comparison renamed(const Comparison& comparison, const std::vector<std::optional<std::string>>& names) {
  Comparison result;
  for (const auto& [size, times] : comparison.times) {
    for (std::size_t i = 0; i < times.size(); ++i) {
      if (!names[i] || !times[i]) continue;
      const Contender contender{*names[i], ""};
      const auto known = std::find(result.contenders.begin(), result.contenders.end(), contender);
      std::optional<Picoseconds> least = times[i];
      if (const auto row = result.times.find(size); row != result.times.end() && known != result.contenders.end()) {
        const auto& before = row->second[static_cast<std::size_t>(known - result.contenders.begin())];
        if (before) least = std::min(*before, *least);
      }
      result.add(contender, size, least);
    }
  }
  return result;
}

}  // namespace ringsim
