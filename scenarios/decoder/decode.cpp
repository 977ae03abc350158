#include "scenarios/decoder/decode.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/decoder/values.hpp"
#include "sim/base/error.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim::scenarios {

namespace {

/// Whatever the case of its letters.
bool is_name(std::string_view name, std::string_view found) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::equal(name.begin(), name.end(), found.begin(), found.end(), same);
}

/// Walks the value along the table of fields. `varying`: lists, ranges and slots may stand where one value is expected.
class Decoder {
 public:
  Decoder(const Blame& blame, const Files& files, const Json& sweeps, nlohmann::json* swept)
      : blame_(blame), files_(files), sweeps_(sweeps), swept_(swept) {}

  nlohmann::json decode(const Field& field, const Json& value, const std::string& pointer, bool varying) {
    if (varying) {
      if (const std::optional<std::string> sweep = slot_of(value)) {
        (*swept_)[*sweep] = several(field, sweeps_[*sweep], child("/sweep", *sweep), false);
        return nullptr;
      }
      if (field.varies && field.type != Type::list) {
        if (value.is_array() || (is_scalar(field.type) && value.is_object()))
          return several(field, value, pointer, true);
      }
    }
    return one(field, value, pointer, varying);
  }

 private:
  /// A list, or a range of numbers. `varying`: its elements may hold lists and ranges themselves.
  nlohmann::json several(const Field& field, const Json& values, const std::string& pointer, bool varying) {
    if (is_scalar(field.type) && values.is_object()) return Range::read(field, values, pointer, blame_).canonical();
    if (!values.is_array()) fail(pointer, "a list of values", values);
    if (values.empty()) fail(pointer, "at least one value", values);
    if (values.size() > most_points) {
      blame_.fail(pointer, fmt::format("expected at most {} values, found {}", most_points, values.size()));
    }
    nlohmann::json out = nlohmann::json::array();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::string place = child(pointer, i);
      const bool nested = varying && !values[i].is_array();  // a range or a slot; no lists within lists
      out.push_back(nested ? decode(field, values[i], place, true) : one(field, values[i], place, varying));
    }
    return out.size() == 1 ? nlohmann::json(std::move(out[0])) : out;
  }

  nlohmann::json one(const Field& field, const Json& value, const std::string& pointer, bool varying) {
    switch (field.type) {
      case Type::text:
        return text(field, value, pointer);
      case Type::file:
        return file(text(field, value, pointer), pointer);
      case Type::boolean:
        if (!value.is_boolean()) {
          fail(pointer, expectation(field), value, value.is_string() ? "true and false stand without quotes" : "");
        }
        return value.get<bool>();
      case Type::whole:
      case Type::size:
      case Type::rate:
      case Type::time:
        return read_scalar(field, value, pointer, blame_);
      case Type::factor:
        return read_factor(field, value, pointer, blame_);
      case Type::portion:
        return read_portion(field, value, pointer, blame_);
      case Type::object:
      case Type::variant:
        return object(field, value, pointer, varying);
      case Type::list:
        return list(field, value, pointer, varying);
      case Type::ignored:
        if (!value.is_string() && !(field.digits && value.is_number_integer()))
          fail(pointer, field.digits ? "text or a whole number" : "text", value);
        return nullptr;
      case Type::sweep:
        break;  // taken out of the document before it is decoded
    }
    return nullptr;
  }

  nlohmann::json text(const Field& field, const Json& value, const std::string& pointer) {
    if (!value.is_string() && !(field.digits && value.is_number_integer())) fail(pointer, expectation(field), value);
    const std::string found = value.is_string() ? value.get<std::string>() : value.dump();
    if (!field.choices.empty()) {
      if (const std::string* choice = chosen(field, found)) return *choice;
      for (const auto& [name, reason] : field.not_modelled)
        if (is_name(name, found))
          blame_.fail(pointer,
                      fmt::format("expected {}, found {}, which is not modelled", expectation(field), describe(value)),
                      reason);
      fail(pointer, expectation(field), value, did_you_mean(found, field.choices));
    }
    if (static_cast<std::int64_t>(found.size()) < field.min) fail(pointer, expectation(field), value);
    return found;
  }

  nlohmann::json file(const nlohmann::json& name, const std::string& pointer) {
    try {
      return {{"path", name}, {"content", files_.read(name.get<std::string>()).digest}};
    } catch (const InputError& error) {
      blame_.fail(pointer, error.message() + ": " + error.where(), "files are relative to the scenario's folder");
    }
  }

  nlohmann::json list(const Field& field, const Json& value, const std::string& pointer, bool varying) {
    if (!value.is_array()) fail(pointer, expectation(field), value);
    const auto n = static_cast<std::int64_t>(value.size());
    if (n < field.min || n > field.max) {
      blame_.fail(pointer, fmt::format("expected {} {} element{}, found {}", n < field.min ? "at least" : "at most",
                                       n < field.min ? field.min : field.max,
                                       (n < field.min ? field.min : field.max) == 1 ? "" : "s", n));
    }
    nlohmann::json out = nlohmann::json::array();
    std::set<nlohmann::json> seen;
    for (std::size_t i = 0; i < value.size(); ++i) {
      out.push_back(decode(field.members.front(), value[i], child(pointer, i), varying));
      if (field.unique && !out.back().is_null() && !seen.insert(out.back()).second) {
        blame_.fail(child(pointer, i), fmt::format("expected each {} once, found {} again", field.members.front().name,
                                                   describe(value[i])));
      }
    }
    return out;
  }

  nlohmann::json object(const Field& field, const Json& given, const std::string& pointer, bool varying) {
    if (field.shorthand && given.is_string()) {
      Json named = Json::object();
      named[field.discriminator] = given;
      // The text itself is to blame, not a key that the user did not write.
      return members(field, named, pointer, pointer, varying);
    }
    if (!given.is_object()) fail(pointer, expectation(field), given);
    return members(field, given, pointer, child(pointer, field.discriminator), varying);
  }

  nlohmann::json members(const Field& field, const Json& value, const std::string& pointer,
                         const std::string& discriminator_pointer, bool varying) {
    nlohmann::json out = nlohmann::json::object();
    std::vector<const Field*> kinds{&field};
    Field own;
    if (field.type == Type::variant) {
      own = discriminator_field(field);
      if (const Field* implied = implied_variant(field, value)) {
        out[own.name] = implied->name;
      } else {
        if (!value.contains(own.name)) missing(own, pointer);
        out[own.name] = decode(own, value[own.name], discriminator_pointer, varying);
      }
      kinds = candidates(field, value, sweeps_);
      if (kinds.empty()) return out;  // a swept kind, refused where the sweep's values are read
    }
    for (const auto& [key, element] : value.items()) {
      if (key == own.name && field.type == Type::variant) continue;
      const Field* found = member(field, own, kinds, key);
      if (found == nullptr) unknown(field, own, kinds, key, pointer);
      nlohmann::json decoded = decode(*found, element, child(pointer, key), varying);
      if (found->type != Type::ignored) out[key] = std::move(decoded);
    }
    // Where the kind varies, what a kind lacks shows when its point is decoded.
    if (kinds.size() == 1) fill(*kinds.front(), value, pointer, out);
    return out;
  }

  /// Defaults, and a complaint about what has none.
  void fill(const Field& object, const Json& value, const std::string& pointer, nlohmann::json& out) {
    for (const Field& field : object.members) {
      if (value.contains(field.name)) continue;
      if (field.required) missing(field, pointer);
      const std::string place = child(pointer, field.name);
      if (field.only_said) continue;
      if (can_be_left_out(field)) {
        out[field.name] = members(field, Json::object(), place, place, false);
      } else if (field.type == Type::whole && !field.fallback.empty()) {
        out[field.name] = std::stoll(field.fallback);  // may lie out of bounds, to mean "not set"
      } else if (!field.fallback.empty()) {
        out[field.name] = one(field, default_of(field), place, false);
      }
    }
  }

  [[noreturn]] void missing(const Field& field, const std::string& pointer) const {
    std::string hint = fmt::format("{}: {}", field.name, field.doc);
    if (!field.choices.empty()) {
      hint += " Here: " + expectation(field);
    } else if (!field.examples.empty()) {
      hint += " For example: " + field.examples.front();
    }
    blame_.fail(pointer, fmt::format("expected the key \"{}\", found none", field.name), hint);
  }

  [[noreturn]] void unknown(const Field& field, const Field& own, const std::vector<const Field*>& kinds,
                            const std::string& key, const std::string& pointer) const {
    std::vector<std::string> known;
    if (!own.name.empty()) known.push_back(own.name);
    for (const Field* kind : kinds) {
      for (std::string& name : names(kind->members)) {
        if (std::find(known.begin(), known.end(), name) == known.end()) known.push_back(std::move(name));
      }
    }
    const std::string of = field.type == Type::variant && kinds.size() == 1 ? fmt::format(" of {}", kinds.front()->name)
                           : field.name.empty()                             ? ""
                                                                            : fmt::format(" of {}", field.name);
    blame_.fail(child(pointer, key), fmt::format("expected a known key{}, found {}", of, in_quotes(key)),
                hint_for(field, key, known, pointer));
  }

  static std::string hint_for(const Field& field, const std::string& key, const std::vector<std::string>& known,
                              const std::string& pointer) {
    const std::string hint = spelling_hint(key, known);
    if (!nearest(key, known).empty()) return hint;
    for (const auto& [begin, own_hint] : field.foreign)
      if (key.starts_with(begin)) return own_hint;
    const std::string place = place_of(scenario_field(), key, "");
    std::string here = pointer.substr(std::min<std::size_t>(1, pointer.size()));
    std::replace(here.begin(), here.end(), '/', '.');
    const bool of_another_kind = place == in_quotes(here);  // such as another fabric
    return place.empty() || of_another_kind
               ? hint
               : fmt::format("it is a key of {}{}{}", place, hint.empty() ? "" : "; ", hint);
  }

  /// "library.env": the one object of the scenario with that key; empty where none has it, or several have. Jobs have
  /// what the scenario's own collective has.
  static std::string place_of(const Field& field, const std::string& key, const std::string& path) {
    std::set<std::string> found;
    const auto look = [&](const Field& object) {
      for (const Field& member : object.members) {
        if (member.name == "jobs") continue;
        if (member.name == key && !path.empty()) found.insert(in_quotes(path));
        const std::string inner = path.empty() ? member.name : fmt::format("{}.{}", path, member.name);
        if (const std::string place = place_of(member, key, inner); !place.empty()) found.insert(place);
      }
    };
    look(field);
    for (const Field& variant : field.variants) look(variant);
    return found.size() == 1 ? *found.begin() : "";
  }

  [[noreturn]] void fail(const std::string& pointer, const std::string& expected, const Json& found,
                         const std::string& hint = "") const {
    blame_.fail(pointer, fmt::format("expected {}, found {}", expected, describe(found)), hint);
  }

  const Blame& blame_;
  const Files& files_;
  const Json& sweeps_;
  nlohmann::json* swept_;
};

}  // namespace

Json default_of(const Field& field) {
  if (field.type == Type::boolean) return field.fallback == "true";
  if (field.type == Type::whole) return std::stoll(field.fallback);
  if (field.type == Type::factor) return std::stod(field.fallback);
  return field.fallback;
}

const Field* implied_variant(const Field& variant, const Json& object) {
  if (object.contains(variant.discriminator)) return nullptr;
  for (const Field& each : variant.variants)
    if (!each.implied_by.empty() && object.contains(each.implied_by)) return &each;
  return nullptr;
}

Json make_slot(const std::string& sweep) { return Json::binary({sweep.begin(), sweep.end()}); }

std::optional<std::string> slot_of(const Json& value) {
  if (!value.is_binary()) return std::nullopt;
  const Json::binary_t& bytes = value.get_binary();
  return std::string(bytes.begin(), bytes.end());
}

std::vector<const Field*> candidates(const Field& variant, const Json& object, const Json& sweeps) {
  std::vector<const Field*> out;
  const auto add = [&](const Json& kind) {
    if (!kind.is_string()) return;
    const Field* found = find(variant.variants, kind.get_ref<const std::string&>());
    if (found != nullptr && std::find(out.begin(), out.end(), found) == out.end()) out.push_back(found);
  };
  if (const Field* implied = implied_variant(variant, object)) return {implied};
  if (!object.contains(variant.discriminator)) return out;
  const Json* kind = &object[variant.discriminator];
  if (const std::optional<std::string> sweep = slot_of(*kind)) kind = &sweeps[*sweep];
  if (kind->is_array()) {
    for (const Json& each : *kind) add(each);
  } else {
    add(*kind);
  }
  return out;
}

const Field* member(const Field& field, const Field& own, const std::vector<const Field*>& candidates,
                    std::string_view key) {
  if (field.type == Type::object) return find(field.members, key);
  if (key == own.name) return &own;
  for (const Field* candidate : candidates) {
    if (const Field* found = find(candidate->members, key)) return found;
  }
  return nullptr;
}

Field discriminator_field(const Field& variant) {
  return {.name = variant.discriminator,
          .type = Type::text,
          .doc = variant.doc,
          .required = true,
          .choices = names(variant.variants),
          .not_modelled = variant.not_modelled,
          .list = variant.list};
}

nlohmann::json canonical_point(const Json& scenario, const Blame& blame, const Files& files) {
  const Json none = Json::object();
  return Decoder(blame, files, none, nullptr).decode(scenario_field(), scenario, "", false);
}

nlohmann::json canonical_file(const Json& scenario, const Json& sweeps, const Blame& blame, const Files& files) {
  nlohmann::json swept = nlohmann::json::object();
  nlohmann::json out = Decoder(blame, files, sweeps, &swept).decode(scenario_field(), scenario, "", true);
  if (!swept.empty()) out["sweep"] = std::move(swept);
  return out;
}

}  // namespace ringsim::scenarios
