// Traces of PyTorch's profiler (Kineto), 2019 to 2026.
#pragma once

#include <cstdint>
#include <optional>

#include "validate/profiles/pieces.hpp"
#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// Adds a trace: one source, and a record for each call whose kernels it has. Operation and size come from the first of
/// 1. the kernel's own arguments ("Collective name", "In msg nelems", "dtype");
/// 2. the event record_param_comms around the kernel's launch, found by its correlation;
/// 3. the event nccl:* around the launch, by the shapes of its tensors ("Input Dims", "Input type").
/// Kernels of one call are one record. Events of the category gpu_user_annotation repeat kernels and do not count.
/// Times count from "baseTimeNanoseconds" if the trace has it.
///
/// `rank`: of the trace; none: "distributedInfo" says it, else a number after "rank" in the file's name. Throws
/// InputError that names file and byte for what is no such trace, is damaged, or exceeds Limits; and if nothing says
/// the rank.
void read_kineto(Pieces& file, std::optional<std::uint32_t> rank, Profile& profile);

/// The number after "rank" in a file's name: 3 of "job/rank_3.json". Nothing if there is none.
std::optional<std::uint32_t> rank_of_name(std::string_view path);
/// The host in a name as PyTorch's TensorBoard handler writes it: HOST_PID.TIME.pt.trace.json; else empty.
std::string host_of_name(std::string_view path);

/// Microseconds as decimal text in ns, to the ns: "1365627949735.404". Nothing for other text, and beyond 292 years.
std::optional<std::int64_t> ns_of_us(std::string_view text);

}  // namespace ringsim::profiles
