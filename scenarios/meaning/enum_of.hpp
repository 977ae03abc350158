// From the words of the table of fields to enumerators.
#pragma once

#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/error.hpp"

namespace ringsim::scenarios {

/// The enumerators whose names the table of fields lists.
template <class Enum>
Enum enum_of(const nlohmann::json& text, std::initializer_list<std::pair<std::string_view, Enum>> known) {
  for (const auto& [name, value] : known) {
    if (text.get_ref<const std::string&>() == name) return value;
  }
  fail_invariant("the table of fields names a choice that nothing stands for: " + text.get<std::string>());
}

}  // namespace ringsim::scenarios
