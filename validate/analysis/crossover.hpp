// Which algorithm is best at which size: times in, ranges of sizes out.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/base/units.hpp"

namespace ringsim {

/// An algorithm with its settings, its protocol and its channels. Two of one name are one algorithm, set differently.
struct Contender {
  std::string algorithm;
  std::string settings;  ///< "segments=8"; may be empty
  std::string protocol = "none";
  int channels = 1;
  bool operator==(const Contender&) const = default;
};

/// Times of several contenders at several sizes, all else equal.
struct Comparison {
  std::vector<Contender> contenders;
  /// [size][contender]; nothing: it does not serve that size.
  std::map<Bytes, std::vector<std::optional<Picoseconds>>> times;

  /// Adds a contender, if it is not there, and its time. Its index in `contenders`.
  std::size_t add(const Contender& contender, Bytes size, std::optional<Picoseconds> time);
};

/// How far the best is ahead at a size, of the fastest of another algorithm; if all are one algorithm, of the
/// fastest of its other settings.
struct Lead {
  Bytes at;
  std::size_t runner_up = 0;  ///< index of a contender
  double times = 1;           ///< its time over the best one's; infinite if the best takes no time at all
};

/// Compared sizes one after the other at which the same contenders are best.
struct BestRange {
  Bytes from, to;  ///< both compared, both inclusive
  Picoseconds time_from{0}, time_to{0};
  std::vector<std::size_t> best;  ///< ascending indices of contenders; several take equally long, to the picosecond
  /// At both ends, and where the lead is longest (the smallest such size); nothing if nobody else serves the size.
  std::optional<Lead> lead_from, lead_to, longest;
};

/// Ascending; sizes that nobody serves are in none. Where one range ends and the next begins, the best change
/// somewhere between the one's `to` and the other's `from`.
std::vector<BestRange> best_ranges(const Comparison& comparison);

/// The time of a contender at a size that was not compared before.
using TimeOf = std::function<std::optional<Picoseconds>(std::size_t contender, Bytes size)>;

/// How close two sizes must be for a change of the best between them to count as located: a byte, from 1 MiB on a KiB.
Bytes locating_step(Bytes size);

/// Compares all contenders at further sizes, until every change of the best lies between two sizes that are no more
/// than a locating_step() apart. Bisects: of several changes between two compared sizes, from which the same contender
/// comes out best, none is found.
void refine(Comparison& comparison, const TimeOf& time_of);

/// Contenders under other names: those of one name become one, at each size the fastest of them; those without are left
/// out. `names`: [contender].
Comparison renamed(const Comparison& comparison, const std::vector<std::optional<std::string>>& names);

}  // namespace ringsim
