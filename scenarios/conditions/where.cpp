#include "scenarios/conditions/where.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "scenarios/decoder/decode.hpp"
#include "scenarios/decoder/edit.hpp"
#include "scenarios/decoder/values.hpp"
#include "scenarios/fields/fields.hpp"
#include "sim/base/error.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim::scenarios {

namespace {

/// A place in the table of fields and, where the point spells it out, in the point.
struct At {
  const Field* field = nullptr;
  const Json* value = nullptr;
  std::string pointer;
};

/// The name of a variant: "ring" of `"ring"`, of `{"name": "ring"}`, and what a key implies; empty if it has none.
std::string kind_of(const Field& variant, const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_object()) return "";
  if (const Field* implied = implied_variant(variant, value)) return implied->name;
  const auto found = value.find(variant.discriminator);
  return found != value.end() && found->is_string() ? found->get<std::string>() : "";
}

[[noreturn]] void fail_key(const std::string& path, const std::string& key, const std::vector<std::string>& known) {
  throw InputError(
      "", fmt::format("expected a valid scenario path, found {}: there is no key {}", in_quotes(path), in_quotes(key)),
      spelling_hint(key, known));
}

const Json* member_of(const Json* value, const std::string& key) {
  if (value == nullptr || !value->is_object()) return nullptr;
  const auto found = value->find(key);
  return found == value->end() ? nullptr : &*found;
}

/// The value of a key of an object; of one that is a text alone, the text if that is the key's value.
const Json* member_of(const At& at, const std::string& key) {
  if (at.value != nullptr && at.value->is_string() && key == at.field->named_by) return at.value;
  return member_of(at.value, key);
}

/// One key further. Nothing if this point cannot have it, though others can.
std::optional<At> below(const At& at, const std::string& key, const std::string& path) {
  const Field& field = *at.field;
  const std::string pointer = child(at.pointer, key);
  if (field.type == Type::object) {
    const Field* found = find(field.members, key);
    if (found == nullptr || found->type == Type::sweep || found->type == Type::ignored || found->name == "where")
      fail_key(path, key, names(field.members));
    return At{found, member_of(at, key), pointer};
  }
  if (field.type == Type::variant) {
    const Field* own = at.value == nullptr ? nullptr : find(field.variants, kind_of(field, *at.value));
    if (const Field* found = own == nullptr ? nullptr : find(own->members, key))
      return At{found, member_of(at.value, key), pointer};
    std::vector<std::string> known;
    for (const Field& variant : field.variants) {
      if (find(variant.members, key) != nullptr) return std::nullopt;
      for (const std::string& name : names(variant.members)) known.push_back(name);
    }
    fail_key(path, key, known);
  }
  if (field.type == Type::list) {
    const bool digits =
        key.size() <= 9 && std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; });
    if (!digits) fail_key(path, key, {"0", "1"});
    const std::size_t index = std::stoul(key);
    if (at.value == nullptr || !at.value->is_array() || index >= at.value->size()) return std::nullopt;
    return At{&field.members.front(), &(*at.value)[index], pointer};
  }
  throw InputError("", fmt::format("expected a valid scenario path, found {}: {} has no keys below it", in_quotes(path),
                                   at.pointer));
}

ExpressionValue value_of(const At& at, const Json& value, const Blame& blame) {
  const Field& field = *at.field;
  const auto number = [&](Dimension dimension) {
    return Quantity{static_cast<double>(read_scalar(field, value, at.pointer, blame)), dimension, 0};
  };
  switch (field.type) {
    case Type::whole:
      return number(Dimension::none);
    case Type::size:
      return number(Dimension::size);
    case Type::rate:
      return number(Dimension::rate);
    case Type::time:
      return number(Dimension::time);
    case Type::boolean:
      return value.is_boolean() && value.get<bool>();
    case Type::factor:
      return Quantity{static_cast<double>(read_factor(field, value, at.pointer, blame)) / 1e6, Dimension::none, 0};
    case Type::portion: {
      const nlohmann::json portion = read_portion(field, value, at.pointer, blame);
      if (portion.is_object()) return Quantity{portion["millionths"].get<double>() / 1e6, Dimension::none, 0};
      return Quantity{portion.get<double>(), Dimension::rate, 0};
    }
    default: {
      const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
      const std::string* choice = chosen(field, text);
      return choice == nullptr ? text : *choice;
    }
  }
}

}  // namespace

std::optional<ExpressionValue> value_at(const Json& point, const std::string& path, const Blame& blame) {
  At at{&scenario_field(), &point, ""};
  const DottedPath keys = split_path(path);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool last = i + 1 == keys.size();
    if (last && at.field->type == Type::variant && keys[i] == at.field->discriminator) break;
    std::optional<At> next = below(at, keys[i], path);
    if (!next) return std::nullopt;
    at = *std::move(next);
  }
  const Field& field = *at.field;
  if (field.type == Type::variant) {
    if (at.value == nullptr) return std::nullopt;
    std::string kind = kind_of(field, *at.value);
    if (kind.empty()) return std::nullopt;
    return kind;
  }
  if (keys.empty() || field.type == Type::object || field.type == Type::list) {
    throw InputError(
        "",
        fmt::format("expected a path to a single value, found {}: {}", in_quotes(path),
                    field.type == Type::list ? "a list" : "an object"),
        field.type == Type::list ? "add the index of an element" : spelling_hint("", names(field.members)));
  }
  if (at.value != nullptr) return value_of(at, *at.value, blame);
  if (field.fallback.empty()) return std::nullopt;
  if (field.type == Type::whole && std::stoll(field.fallback) < field.min) return std::nullopt;  // means "not set"
  return value_of(at, default_of(field), blame);
}

}  // namespace ringsim::scenarios
