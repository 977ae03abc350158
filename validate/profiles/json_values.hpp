// Values of profiles' JSON that several readers need.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

namespace ringsim::profiles {

/// Ranks as PyTorch writes them: a list, or the text "[0, 1, 2]". Empty if it is cut ("..."), something else, or a rank
/// is not below `most`.
std::vector<std::uint32_t> ranks_of(const nlohmann::json& value, std::uint32_t most);

/// a * b; nothing if a factor is negative or the product is above 2^63 - 1.
std::optional<std::int64_t> product(std::int64_t a, std::int64_t b);

}  // namespace ringsim::profiles
