// What crossed each link over the time of a run, in steps of equal length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "sim/base/ids.hpp"
#include "sim/base/units.hpp"
#include "sim/run/run.hpp"
#include "sim/run/timeline.hpp"

namespace ringsim {

/// Listens to a run, and adds up what each link carried in each step of time.
///
/// Memory: 8 bytes per step and link that carries anything; at most `most_cells` of them.
class LinkUse {
 public:
  static constexpr std::size_t most_steps = 200;                   ///< if no step is given
  static constexpr std::size_t most_cells = std::size_t{1} << 24;  ///< 128 MiB

  /// `step`: its length. 0 chooses the shortest of 1, 2 or 5 times a power of ten that makes at most `most_steps`.
  explicit LinkUse(Picoseconds step = Picoseconds{0}) : step_(step), chooses_(step.count() == 0) {
    if (chooses_) step_ = Picoseconds{1};
  }

  /// Give it to RunOptions::on_traffic.
  void add(const Traffic& traffic);

  /// One link that carried something.
  struct Series {
    LinkId link;
    std::vector<std::int64_t> bytes;  ///< [step]; of each link as many as the run has
  };
  /// When the run is over: the links in ascending order. The bytes of each sum to Timeline::link_bytes exactly; throws
  /// InvariantError if the traffic does not. `spread`: packets were (Routing::Policy::packet_spray), so that
  /// link_bytes are expected values; then they sum to what really crossed. Throws InputError (empty `where`) if a given
  /// step makes more than `most_cells`.
  std::vector<Series> finish(const Timeline& timeline, bool spread);

  Picoseconds step() const { return step_; }  ///< after finish() the one of the series

 private:
  using Sums = std::vector<double>;  // [step]

  static void merge(Sums& sums, std::size_t n);
  void widen(std::size_t n);
  void put(Sums& sums, std::int64_t step, double bytes);

  Picoseconds step_;
  bool chooses_;
  std::map<LinkId, Sums> links_;
  std::size_t cells_ = 0;
  bool is_full_ = false;
};

}  // namespace ringsim
