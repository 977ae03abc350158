// xxHash stands inline: nothing is linked, so an installed ringsim does not need it.
#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <nlohmann/json.hpp>

#include "scenarios/decoder/decode.hpp"

namespace ringsim::scenarios {

namespace {

/// The content of a file that the scenario names counts, not its name.
void drop_paths(nlohmann::json& value) {
  if (value.is_object() && value.size() == 2 && value.contains("content") && value.contains("path"))
    value.erase("path");
  if (!value.is_structured()) return;
  for (nlohmann::json& element : value) drop_paths(element);
}

}  // namespace

std::string digest_of(std::string_view text) {
  const XXH128_hash_t hash = XXH3_128bits(text.data(), text.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

nlohmann::json physics_of(nlohmann::json canonical) {
  canonical.erase("name");
  drop_paths(canonical);
  return canonical;
}

std::string hash_of(const nlohmann::json& canonical) {
  return digest_of(physics_of(canonical).dump());  // keys in alphabetical order, no spaces
}

}  // namespace ringsim::scenarios
