// Chakra execution traces as profiles: the collectives of a rank.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "validate/profiles/pieces.hpp"
#include "validate/profiles/record.hpp"

namespace ringsim::profiles {

/// True if the file is a Chakra trace: by its name, *.et or *.et.gz, else by its first bytes.
bool is_chakra(std::string_view name, std::string_view beginning);

/// Adds the trace's calls: kernels of communication, with comm_type and comm_size. comm_size is what goes in at one
/// rank, so that of an all_gather or a gather is a share. Groups are those of its metadata ("process_group:init"), else
/// known by name alone. A trace whose nodes have no start times has durations.
///
/// `rank`: of the trace; none: the last number in the file's name, 3 of "job.3.et". Throws InputError that names file
/// and byte or node; and if nothing says the rank.
void read_chakra_profile(Pieces& file, std::optional<std::uint32_t> rank, Profile& profile);

}  // namespace ringsim::profiles
