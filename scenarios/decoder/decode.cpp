#include "scenarios/decoder/decode.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "scenarios/decoder/key_hint.hpp"
#include "scenarios/decoder/values.hpp"
#include "sim/base/error.hpp"
#include "sim/text/spelling.hpp"

namespace ringsim::scenarios {

namespace {

/// Walks the value along the table of fields. `varying`: lists, ranges and slots may stand where one value is expected.
class Decoder {
 public:
  /// `root`: the whole scenario, in which the right place of a key is looked for. `notes`: what is taken for names that
  /// leave something open; may be null.
  Decoder(const Json& root, const Blame& blame, const Files& files, const Json& sweeps, nlohmann::json* swept,
          std::vector<std::string>* notes)
      : root_(root), blame_(blame), files_(files), sweeps_(sweeps), swept_(swept), notes_(notes) {}

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
        return file(field, text(field, value, pointer), pointer);
      case Type::boolean:
        if (!value.is_boolean()) {
          fail(pointer, expectation(field), value, value.is_string() ? "write true and false without quotes" : "");
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
      const std::string* choice = chosen(field, found);
      if (choice == nullptr) fail_name(field, found, value, pointer);
      if (const Alias* alias = alias_of(field, found); alias != nullptr && !alias->note.empty() && notes_ != nullptr)
        notes_->push_back(fmt::format("{}: {} is {}", blame_.where(pointer), in_quotes(found), alias->note));
      return *choice;
    }
    if (static_cast<std::int64_t>(found.size()) < field.min) fail(pointer, expectation(field), value);
    return found;
  }

  [[noreturn]] void fail_name(const Field& field, const std::string& found, const Json& value,
                              const std::string& pointer) const {
    for (const KnownName& known : field.known_names)
      if (same_letters(known.name, found))
        blame_.fail(pointer, fmt::format("expected {}, found {}, {}", expectation(field), describe(value), known.what),
                    known.hint);
    std::string hint =
        field.suggest != nullptr ? field.suggest(found) : did_you_mean(found, field.choices, field.numbers);
    if (hint.empty()) hint = field.otherwise;
    fail(pointer, expectation(field), value, hint);
  }

  nlohmann::json file(const Field& field, const nlohmann::json& name, const std::string& pointer) {
    try {
      if (field.numbered) return {{"path", name}, {"content", files_.numbered(name.get<std::string>()).digest}};
      return {{"path", name}, {"content", files_.read(name.get<std::string>()).digest}};
    } catch (const InputError& error) {
      blame_.fail(
          pointer, error.message() + ": " + error.where(),
          "file names are relative to the folder of the scenario" + (error.hint().empty() ? "" : "; " + error.hint()));
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
    if (!field.named_by.empty() && given.is_string()) {
      Json named = Json::object();
      named[field.named_by] = given;
      // The text itself is to blame, not a key that the user did not write.
      return members(field, named, pointer, pointer, varying);
    }
    if (!given.is_object()) fail(pointer, expectation(field), given, given.is_string() ? field.otherwise : "");
    return members(field, given, pointer, child(pointer, field.named_by), varying);
  }

  /// `name_pointer`: of the key by which a text alone would name the object.
  nlohmann::json members(const Field& field, const Json& value, const std::string& pointer,
                         const std::string& name_pointer, bool varying) {
    nlohmann::json out = nlohmann::json::object();
    std::vector<const Field*> kinds{&field};
    Field own;
    if (field.type == Type::variant) {
      own = discriminator_field(field);
      if (const Field* implied = implied_variant(field, value)) {
        out[own.name] = implied->name;
      } else {
        if (!value.contains(own.name)) missing({{&own, {}}}, pointer);
        out[own.name] = decode(own, value[own.name], name_pointer, varying);
      }
      kinds = candidates(field, value, sweeps_);
      if (kinds.empty()) return out;  // a swept kind, refused where the sweep's values are read
    }
    for (const auto& [key, element] : value.items()) {
      if (key == own.name && field.type == Type::variant) continue;
      const Field* found = member(field, own, kinds, key);
      if (found == nullptr) unknown(field, own, kinds, key, pointer);
      nlohmann::json decoded =
          decode(*found, element, key == field.named_by ? name_pointer : child(pointer, key), varying);
      if (found->type != Type::ignored) out[key] = std::move(decoded);
    }
    // Where the kind varies, what a kind lacks shows when its point is decoded.
    if (kinds.size() == 1) fill(*kinds.front(), value, pointer, out);
    return out;
  }

  /// Defaults, and a complaint about all that have none.
  void fill(const Field& object, const Json& value, const std::string& pointer, nlohmann::json& out) {
    refuse_lacking(object, value, pointer);
    for (const Field& field : object.members) {
      if (value.contains(field.name)) continue;
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

  /// A missing key, and those that may replace it; "/library" is the key at the top of the scenario.
  struct Lacking {
    const Field* field;
    std::vector<std::string> others;
  };

  void refuse_lacking(const Field& object, const Json& value, const std::string& pointer) const {
    std::vector<Lacking> lacking;
    for (const Field& field : object.members)
      if (field.required && !value.contains(field.name)) lacking.push_back({&field, {}});
    const bool required = !lacking.empty();
    for (const std::vector<std::string>& group : object.one_of) {
      const bool given = std::any_of(group.begin(), group.end(), [&](const std::string& key) {
        return key.starts_with('/') ? root_.contains(key.substr(1)) : value.contains(key);
      });
      if (!given) lacking.push_back({find(object.members, group.front()), {group.begin() + 1, group.end()}});
    }
    // One that has others in its place is refused by the meaning of the scenario, which knows when it is needed.
    if (required || lacking.size() > 1) missing(lacking, pointer);
  }

  [[noreturn]] void missing(const std::vector<Lacking>& lacking, const std::string& pointer) const {
    std::vector<std::string> keys, hints;
    for (const Lacking& each : lacking) {
      std::string key = in_quotes(each.field->name);
      for (std::size_t i = 0; i < each.others.size(); ++i) {
        const std::string& other = each.others[i];
        key += i == 0 ? " (or " : ", ";
        key += other.starts_with('/') ? in_quotes(other.substr(1)) + " at the top" : in_quotes(other);
      }
      if (!each.others.empty()) key += ')';
      keys.push_back(std::move(key));
      const Field& field = *each.field;
      const bool few = !field.choices.empty() && field.list.empty();
      hints.push_back(fmt::format("{}: {} {}", field.name, field.doc,
                                  few ? "Here: " + expectation(field) : "For example: " + example_of(field)));
    }
    const std::string last = keys.back();
    keys.pop_back();
    blame_.fail(pointer,
                keys.empty()
                    ? fmt::format("expected the key {}, found none", last)
                    : fmt::format("expected the keys {} and {}, found none of them", fmt::join(keys, ", "), last),
                fmt::format("{}", fmt::join(hints, "\n  hint: ")));
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
                hint_for(field, pointer, key, known));
  }

  std::string hint_for(const Field& field, const std::string& pointer, const std::string& key,
                       const std::vector<std::string>& known) const {
    const auto foreign = std::find_if(field.foreign.begin(), field.foreign.end(), [&](const auto& begin_and_hint) {
      return key.starts_with(begin_and_hint.first);
    });
    if (foreign != field.foreign.end() && nearest(key, known).empty()) return foreign->second;
    return key_hint(root_, pointer, key, known);
  }

  [[noreturn]] void fail(const std::string& pointer, const std::string& expected, const Json& found,
                         const std::string& hint = "") const {
    blame_.fail(pointer, fmt::format("expected {}, found {}", expected, describe(found)), hint);
  }

  const Json& root_;
  const Blame& blame_;
  const Files& files_;
  const Json& sweeps_;
  nlohmann::json* swept_;
  std::vector<std::string>* notes_;
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
          .known_names = variant.known_names,
          .suggest = variant.suggest,
          .list = variant.list};
}

nlohmann::json canonical_point(const Json& scenario, const Blame& blame, const Files& files,
                               std::vector<std::string>* notes) {
  const Json none = Json::object();
  return Decoder(scenario, blame, files, none, nullptr, notes).decode(scenario_field(), scenario, "", false);
}

nlohmann::json canonical_file(const Json& scenario, const Json& sweeps, const Blame& blame, const Files& files) {
  nlohmann::json swept = nlohmann::json::object();
  nlohmann::json out =
      Decoder(scenario, blame, files, sweeps, &swept, nullptr).decode(scenario_field(), scenario, "", true);
  if (!swept.empty()) out["sweep"] = std::move(swept);
  return out;
}

}  // namespace ringsim::scenarios
