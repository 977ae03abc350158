// Kernels that run slower while a collective runs on their GPU.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/program/lower.hpp"
#include "sim/run/run.hpp"

namespace ringsim {

/// While one of an actor's calls is open (from the end of its launch to its end at that actor), the actor's tasks on
/// compute streams take `millionths` / 10^6 times as long. Calls of other programs do not count, nor do those of the
/// streams `apart`. Listens to a run of the lowered program. Memory: O(actors * streams).
class Slowdown {
 public:
  /// The program must outlive it. Requires millionths >= 10^6.
  Slowdown(const LoweredProgram& lowered, std::int64_t millionths, const std::vector<Stream>& apart = {});

  /// Give it to RunOptions::on_compute.
  void on_compute(const ComputeEvent& event);
  /// Give it to RunOptions::longer. A task whose time is up takes at least that much longer; 0: it is done. It asks
  /// for what remains as if no call were open, and is asked again then: some s * log(time in ps) times for a factor s
  /// if a call stays open.
  Picoseconds longer(const ComputeEvent& event);
  /// True if any task took longer than its time.
  bool has_slowed() const { return has_slowed_; }

 private:
  __extension__ using Work = __int128;  // millionths of picoseconds at the slow rate
  struct Kernel {
    Work left = 0;
    SimTime since{};        // the work was counted up to then
    Picoseconds called{0};  // Of::called at that time
  };
  struct Of {  // one actor
    int open = 0;
    SimTime since{};              // of the last change of `open`
    Picoseconds called{0};        // how long some call was open until then
    std::vector<Kernel> kernels;  // [stream]
  };
  bool is_kernel(const StepPlace& place, const Program::Task& task) const;
  static Picoseconds called_until(const Of& it, SimTime now);
  void count(Of& it, int change, SimTime now) const;

  const LoweredProgram& lowered_;
  std::int64_t millionths_;
  std::vector<bool> slows_;  // [stream] its calls slow kernels
  std::vector<Of> actors_;
  bool has_slowed_ = false;
};

}  // namespace ringsim
