// A predicted training step as PyTorch's profiler would have traced it, one file per rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "scenarios/predict/trace.hpp"

namespace ringsim::tools {

/// Members of distributedInfo that all ranks share.
struct KinetoJob {
  std::size_t ranks = 0;
  std::string nccl_version;  ///< "2.27.5"; empty: not known
};

/// A rank's kernels as a trace of PyTorch's profiler (Kineto, schemaVersion 1): each task of the streams of compute and
/// each call is a kernel, those of collectives with the arguments that PyTorch writes since 2024; what the host does
/// is a cpu_op.
///
/// Times in us, rounded to whole ns: each begin and end by itself, down. Sizes are elements of one byte ("Byte"), so
/// that they are exact whatever the type is. A call begins when its rank calls it: the launch is in the kernel. Calls
/// that only send or only receive are "send" and "recv"; those that do both are "coalesced", without a size. Calls of a
/// group are numbered ("Seq", as PyTorch writes from March 2026 on) by their first begin.
///
/// Source of the names: the traces that validate/profiles/kineto.hpp reads.
/// Requires Recording::kernels and `rank` below their number.
std::string kineto_trace(const Recording& recording, const KinetoJob& job, std::uint32_t rank);

}  // namespace ringsim::tools
