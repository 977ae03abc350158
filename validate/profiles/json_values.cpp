#include "validate/profiles/json_values.hpp"

#include <nlohmann/json.hpp>
#include <string>

namespace ringsim::profiles {

std::vector<std::uint32_t> ranks_of(const nlohmann::json& value, std::uint32_t most) {
  std::vector<std::uint32_t> out;
  if (value.is_array()) {
    for (const nlohmann::json& each : value) {
      if (!each.is_number_unsigned() || each.get<std::uint64_t>() >= most) return {};
      out.push_back(each.get<std::uint32_t>());
    }
    return out;
  }
  if (!value.is_string()) return {};
  const auto& text = value.get_ref<const std::string&>();
  if (text.find("...") != std::string::npos) return {};
  const nlohmann::json list = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  return list.is_array() ? ranks_of(list, most) : std::vector<std::uint32_t>();
}

std::optional<std::int64_t> product(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &out)) return std::nullopt;
  return out;
}

}  // namespace ringsim::profiles
