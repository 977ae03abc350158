// A predicted training step as PyTorch's profiler would have traced it, one file per rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/predict/trace.hpp"

namespace ringsim::tools {

/// Members of distributedInfo that all ranks share.
struct KinetoJob {
  std::size_t ranks = 0;
  std::string nccl_version;  ///< "2.27.5"; empty: not known
};

/// Writes each rank's kernels as a PyTorch profiler trace (Kineto, schemaVersion 1): each task of the streams of
/// compute and each call is a kernel, those of collectives with the arguments that PyTorch writes since 2024; what the
/// host does is a cpu_op.
///
/// Times in us, rounded to whole ns: each begin and end by itself, down. Sizes are elements of one byte ("Byte"), so
/// that they are exact whatever the type is. A call begins when its rank calls it, or with the rank's step if it waited
/// for others before: the launch is in the kernel. ProfilerStep#0 is the time from a rank's first kernel to its last.
/// Calls that only send or only receive are "send" and "recv"; those that do both are "coalesced", without a size.
/// Calls of a group are numbered ("Seq", as PyTorch writes from March 2026 on) by their first begin.
///
/// Source of the names: the traces that validate/profiles/kineto.hpp reads.
class KinetoTraces {
 public:
  /// Requires Recording::kernels. The recording must outlive it.
  KinetoTraces(const Recording& recording, const KinetoJob& job);

  /// Requires `rank` below the number of Recording::kernels.
  std::string of(std::uint32_t rank) const;

 private:
  /// A call's group among all of the job, and the call's number in it.
  struct Place {
    std::size_t group = 0;
    int number = 0;
  };
  /// The arguments of a call's kernel, whose name is put into `name`.
  std::string call_arguments(const Recording::Kernel& kernel, Actor rank, std::string& name) const;

  const Recording& recording_;
  std::string job_;                         // members of distributedInfo after its rank
  std::vector<std::vector<Place>> places_;  // [call][group of the call]
};

}  // namespace ringsim::tools
