// xxHash stands inline: nothing is linked, so an installed ringsim does not need it.
#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "scenarios/decode.hpp"

namespace ringsim::scenarios {

std::string hash_of(const nlohmann::json& canonical) {
  nlohmann::json physics = canonical;
  physics.erase("name");
  const std::string text = physics.dump();  // keys in alphabetical order, no spaces
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

}  // namespace ringsim::scenarios
