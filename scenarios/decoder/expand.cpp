#include "scenarios/decoder/expand.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "scenarios/decoder/decode.hpp"
#include "scenarios/decoder/values.hpp"
#include "scenarios/fields/fields.hpp"
#include "sim/base/error.hpp"

namespace ringsim::scenarios {

namespace {

/// Beyond this, counts stop: far more than most_points, and far from overflow.
constexpr std::size_t uncountable = 1'000'000'000'000'000'000;

std::size_t times(std::size_t a, std::size_t b) { return a > uncountable / b ? uncountable : a * b; }

/// The values that a part of the document takes: one, a list of them (a sum), a range, or the product of its members.
struct Space {
  enum class Kind { fixed, values, alternatives, range, members, elements, slot };
  Kind kind = Kind::fixed;
  Json value;                     ///< fixed: it; values: the list
  std::vector<Space> parts;       ///< alternatives, members, elements
  std::vector<std::string> keys;  ///< members
  std::optional<Range> range;
  std::string sweep;  ///< slot
  std::size_t size = 1;

  bool is_fixed() const { return kind == Kind::fixed; }
};

using Chosen = std::map<std::string, Json>;  // by sweep

class Spreader {
 public:
  Spreader(const Json& sweeps, const Blame& blame) : sweeps_(sweeps), blame_(blame) {}

  Space spread(const Field& field, const Json& value, const std::string& pointer) const {
    if (const std::optional<std::string> sweep = slot_of(value)) {
      return {.kind = Space::Kind::slot, .value = nullptr, .sweep = *sweep};
    }
    if (field.type == Type::list) {
      Space space{.kind = Space::Kind::elements, .value = nullptr};
      for (std::size_t i = 0; i < value.size(); ++i) {
        space.parts.push_back(spread(field.members.front(), value[i], child(pointer, i)));
      }
      return product(std::move(space), value);
    }
    if (field.varies && value.is_array()) return alternatives(field, value, pointer);
    if (!value.is_object()) return {.value = value};
    if (is_scalar(field.type)) {
      Space space{.kind = Space::Kind::range, .value = nullptr, .range = Range::read(field, value, pointer, blame_)};
      space.size = space.range->size();
      return space;
    }
    Space space{.kind = Space::Kind::members, .value = nullptr};
    const Field own = field.type == Type::variant ? discriminator_field(field) : Field{};
    const std::vector<const Field*> kinds = candidates(field, value, sweeps_);
    for (const auto& [key, element] : value.items()) {
      const Field* found = member(field, own, kinds, key);
      ensure(found != nullptr, "a document is checked before it is expanded");
      space.keys.push_back(key);
      space.parts.push_back(spread(*found, element, child(pointer, key)));
    }
    return product(std::move(space), value);
  }

 private:
  Space alternatives(const Field& field, const Json& list, const std::string& pointer) const {
    const auto simple = [](const Json& each) { return !each.is_structured() && !slot_of(each); };
    if (std::all_of(list.begin(), list.end(), simple)) {
      return {.kind = Space::Kind::values, .value = list, .size = list.size()};
    }
    Space space{.kind = Space::Kind::alternatives, .value = nullptr, .size = 0};
    for (std::size_t i = 0; i < list.size(); ++i) {
      space.parts.push_back(spread(field, list[i], child(pointer, i)));
      space.size = std::min(space.size + space.parts.back().size, uncountable);
    }
    return space;
  }

  /// The space of an object or list; where nothing in it varies, just the value.
  static Space product(Space space, const Json& value) {
    if (std::all_of(space.parts.begin(), space.parts.end(), [](const Space& part) { return part.is_fixed(); })) {
      return {.value = value};
    }
    for (const Space& part : space.parts) space.size = times(space.size, part.size);
    return space;
  }

  const Json& sweeps_;
  const Blame& blame_;
};

/// Chooses value `i` of a space. `varied` is null within a value that is noted as a whole.
Json choose(const Space& space, std::size_t i, const Chosen& chosen, const std::string& path, Varied* varied) {
  const auto note = [&](Json value) {
    if (varied != nullptr && space.size > 1) varied->emplace_back(path, value.dump());
    return value;
  };
  switch (space.kind) {
    case Space::Kind::fixed:
      return space.value;
    case Space::Kind::values:
      return note(space.value[i]);
    case Space::Kind::range:
      return note(space.range->at(i));
    case Space::Kind::slot:
      return chosen.at(space.sweep);
    case Space::Kind::alternatives: {
      std::size_t part = 0;
      for (; i >= space.parts[part].size; ++part) i -= space.parts[part].size;
      return note(choose(space.parts[part], i, chosen, path, nullptr));
    }
    case Space::Kind::members:
    case Space::Kind::elements:
      break;
  }
  const bool members = space.kind == Space::Kind::members;
  std::vector<std::size_t> digits(space.parts.size());
  for (std::size_t part = space.parts.size(); part-- > 0; i /= space.parts[part].size) {
    digits[part] = i % space.parts[part].size;
  }
  Json out = members ? Json::object() : Json::array();
  for (std::size_t part = 0; part < space.parts.size(); ++part) {
    const std::string key = members ? space.keys[part] : std::to_string(part);
    std::string place = path;
    if (!path.empty()) place += '.';
    place += key;
    Json value = choose(space.parts[part], digits[part], chosen, place, varied);
    if (members) {
      out[key] = std::move(value);
    } else {
      out.push_back(std::move(value));
    }
  }
  return out;
}

/// A sweep's values, as the file lists them or as a range.
struct Sweep {
  std::string path;
  Json values;
  std::optional<Range> range;
  std::size_t size() const { return range ? range->size() : values.size(); }
  Json at(std::size_t i) const { return range ? range->at(i) : values[i]; }
};

/// The field at which a sweep's slot stands. Ranges are read by it.
const Field* field_of_slot(const Field& field, const Json& value, const Json& sweeps, const std::string& sweep) {
  if (const std::optional<std::string> found = slot_of(value)) return *found == sweep ? &field : nullptr;
  if (!value.is_structured()) return nullptr;
  const Field own = field.type == Type::variant ? discriminator_field(field) : Field{};
  const std::vector<const Field*> kinds = candidates(field, value, sweeps);
  for (const auto& [key, element] : value.items()) {
    const Field* inner = field.type == Type::list ? &field.members.front()
                         : value.is_array()       ? &field
                                                  : member(field, own, kinds, key);
    if (inner == nullptr || inner == &own) continue;  // a discriminator is text: no ranges
    if (const Field* found = field_of_slot(*inner, element, sweeps, sweep)) return found;
  }
  return nullptr;
}

}  // namespace

struct Points::Impl {
  std::vector<Sweep> sweeps;
  Space document;
  std::size_t size = 1;
};

Points::Points(const Json& scenario, const Json& sweeps, const Blame& blame) : impl_(std::make_unique<Impl>()) {
  for (const auto& [path, values] : sweeps.items()) {
    Sweep sweep{.path = path, .values = values, .range = std::nullopt};
    if (values.is_object()) {
      const Field* field = field_of_slot(scenario_field(), scenario, sweeps, path);
      ensure(field != nullptr, "a document is checked before it is expanded");
      sweep.range = Range::read(*field, values, child("/sweep", path), blame);
    }
    impl_->size = times(impl_->size, sweep.size());
    impl_->sweeps.push_back(std::move(sweep));
  }
  impl_->document = Spreader(sweeps, blame).spread(scenario_field(), scenario, "");
  impl_->size = times(impl_->size, impl_->document.size);
  if (impl_->size > most_points) {
    const std::string found = impl_->size == uncountable ? "at least 10^18" : std::to_string(impl_->size);
    blame.fail("", fmt::format("expected at most {} points, found {}", most_points, found),
               "the number of points is the product of all lists, ranges and sweeps");
  }
}

Points::~Points() = default;
Points::Points(Points&&) noexcept = default;
Points& Points::operator=(Points&&) noexcept = default;

std::size_t Points::size() const { return impl_->size; }

Json Points::at(std::size_t i, Varied& varied) const {
  std::size_t rest = i / impl_->document.size;
  Chosen chosen;
  for (std::size_t k = impl_->sweeps.size(); k-- > 0; rest /= impl_->sweeps[k].size()) {
    const Sweep& sweep = impl_->sweeps[k];
    chosen[sweep.path] = sweep.at(rest % sweep.size());
  }
  for (const Sweep& sweep : impl_->sweeps) {
    if (sweep.size() > 1) varied.emplace_back(sweep.path, chosen[sweep.path].dump());
  }
  return choose(impl_->document, i % impl_->document.size, chosen, "", &varied);
}

}  // namespace ringsim::scenarios
