#include "sim/run/link_use.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/quantity.hpp"

namespace ringsim {

namespace {

// While the length of the steps is looked for: ten times as many as there are in the end, so that 2 and 5 are tried.
constexpr std::int64_t most_fine_steps = 10 * static_cast<std::int64_t>(LinkUse::most_steps);

std::int64_t step_at(SimTime when, Picoseconds step) { return when.time_since_epoch() / step; }

}  // namespace

// n steps become one.
void LinkUse::merge(Sums& sums, std::size_t n) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (i % n == 0)
      sums[i / n] = sums[i];
    else
      sums[i / n] += sums[i];
  }
  sums.resize((sums.size() + n - 1) / n);
}

void LinkUse::widen(std::size_t n) {
  step_ *= static_cast<std::int64_t>(n);
  for (auto& [link, sums] : links_) merge(sums, n);
}

void LinkUse::put(Sums& sums, std::int64_t step, double bytes) {
  const auto at = static_cast<std::size_t>(step);
  if (sums.size() <= at) {
    if (!chooses_) cells_ += at + 1 - sums.size();
    is_full_ = cells_ > most_cells;
    if (is_full_) return;
    sums.resize(at + 1);
  }
  sums[at] += bytes;
}

void LinkUse::add(const Traffic& traffic) {
  if (is_full_) return;
  while (chooses_ && step_at(traffic.end, step_) >= most_fine_steps) widen(10);
  Sums& sums = links_[traffic.link];
  const auto length = std::max(1.0, static_cast<double>((traffic.end - traffic.begin).count()));
  double rest = traffic.bytes;
  SimTime begin = traffic.begin;
  if (begin == traffic.end && begin > SimTime{}) begin -= Picoseconds{1};  // not in a step after the run's last one
  for (std::int64_t step = step_at(begin, step_);; ++step) {
    const SimTime until{(step + 1) * step_};
    if (until >= traffic.end) {
      put(sums, step, rest);
      return;
    }
    const double part = traffic.bytes * (static_cast<double>((until - begin).count()) / length);
    put(sums, step, part);
    if (is_full_) return;
    rest -= part;
    begin = until;
  }
}

std::vector<LinkUse::Series> LinkUse::finish(const Timeline& timeline, bool spread) {
  if (is_full_)
    throw InputError("",
                     fmt::format("expected an interval that gives all links together at most {} samples, found {}",
                                 most_cells, format(step_)),
                     "without an interval, ringsim chooses one");
  const auto n_steps = [&] { return step_at(timeline.finish - Picoseconds{1}, step_) + 1; };
  while (chooses_ && n_steps() >= most_fine_steps) widen(10);
  const auto most = static_cast<std::int64_t>(most_steps);
  if (chooses_ && n_steps() > most) widen(n_steps() <= 2 * most ? 2 : n_steps() <= 5 * most ? 5 : 10);
  std::vector<Series> all;
  for (auto& [link, sums] : links_) {
    sums.resize(static_cast<std::size_t>(std::max<std::int64_t>(1, n_steps())));
    double total = 0;
    for (const double sum : sums) total += sum;
    const std::int64_t carried = spread ? std::llround(total) : timeline.link_bytes.at(link.value).count;
    ensure(std::abs(total - static_cast<double>(carried)) <= 1 + 1e-9 * total,
           "traffic over time sums to the bytes of its link");
    if (carried == 0) continue;
    // Rounded so that the sum stays: up to each step, the share of the total that has crossed by then.
    Series series{.link = link, .bytes = {}};
    double before = 0;
    std::int64_t rounded = 0;
    for (std::size_t i = 0; i < sums.size(); ++i) {
      before += sums[i];
      const bool is_last = i + 1 == sums.size();
      const std::int64_t now = is_last ? carried : std::min(carried, static_cast<std::int64_t>(std::llround(before)));
      series.bytes.push_back(now - rounded);
      rounded = now;
    }
    all.push_back(std::move(series));
  }
  return all;
}

}  // namespace ringsim
