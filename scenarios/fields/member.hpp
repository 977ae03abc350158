// Where the value of a key goes: a member of the structure that the key's object describes.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/units.hpp"

namespace ringsim::scenarios {

struct Field;

template <class Owner>
void read_members(const Field& object, const nlohmann::json& canonical, Owner& out);

namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;

/// A canonical value: whole numbers, bytes, bytes per second, picoseconds and millionths are integers.
template <class Value>
void read_value(const Field& row, const nlohmann::json& value, Value& out) {
  if constexpr (is_optional<Value>) {
    typename Value::value_type inner{};
    read_value(row, value, inner);
    out = std::move(inner);
  } else if constexpr (std::is_same_v<Value, Bytes> || std::is_same_v<Value, Bandwidth>) {
    out = Value{value.get<std::int64_t>()};
  } else if constexpr (std::is_same_v<Value, Picoseconds>) {
    out = Picoseconds{value.get<std::int64_t>()};
  } else if constexpr (std::is_same_v<Value, SimTime>) {
    out = SimTime{Picoseconds{value.get<std::int64_t>()}};
  } else if constexpr (std::is_same_v<Value, double>) {
    out = static_cast<double>(value.get<std::int64_t>()) / 1e6;  // a factor, in millionths
  } else if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string> || is_vector<Value>) {
    out = value.get<Value>();
  } else {
    read_members(row, value, out);
  }
}

/// True unless the two are known to differ. Values without ==, such as links, differ if only one of them is there.
template <class Value>
bool equal(const Value& a, const Value& b) {
  if constexpr (std::equality_comparable<Value>)
    return a == b;
  else if constexpr (is_optional<Value>)
    return a.has_value() == b.has_value();
  else
    return true;
}

}  // namespace detail

/// The member of a structure that a row of the table fills. Without one the meaning of a scenario reads the key.
class Member {
 public:
  Member() = default;

  /// A number, a flag, a size, a rate, a time, a factor or a text; or a structure, whose members the row's members
  /// fill.
  template <class Owner, class Value>
  Member(Value Owner::*member)  // NOLINT(google-explicit-constructor): a row says `.into = &Staging::depth`
      : Member(member, detail::read_value<Value>) {}

  /// A member with a reader of its own: reader(row, canonical value, Value&).
  template <class Owner, class Value, class Read>
  requires std::invocable<Read, const Field&, const nlohmann::json&, Value&> Member(Value Owner::*member, Read reader)
      : Member(through<Owner>([member](Owner& owner) -> Value& { return owner.*member; }, reader)) {}

  /// A choice by its name. Requires a name for each choice of the row.
  template <class Owner, class Enum>
  Member(Enum Owner::*member, std::vector<std::pair<std::string, Enum>> names)
      : Member(member, [names = std::move(names)](const Field&, const nlohmann::json& value, Enum& out) {
          for (const auto& [name, choice] : names)
            if (value == name) {
              out = choice;
              return;
            }
          fail_invariant("the table of fields names a choice that nothing stands for: " + value.dump());
        }) {}

  /// A member of a member: at(Owner&) returns a reference to it.
  template <class Owner, class At>
  static Member through(At at) {
    using Value = std::remove_reference_t<std::invoke_result_t<At, Owner&>>;
    return through<Owner>(at, detail::read_value<Value>);
  }
  template <class Owner, class At, class Read>
  static Member through(At at, Read reader) {
    Member member;
    member.owner_ = &typeid(Owner);
    member.read_ = [at, reader](const Field& row, const nlohmann::json& value, void* owner) {
      reader(row, value, at(*static_cast<Owner*>(owner)));
    };
    member.equal_ = [at](void* a, void* b) {
      return detail::equal(at(*static_cast<Owner*>(a)), at(*static_cast<Owner*>(b)));
    };
    return member;
  }

  /// For a row among variants: Variant becomes an Alternative, whose members the row's members fill.
  template <class Variant, class Alternative>
  static Member alternative() {
    Member member;
    member.owner_ = &typeid(Variant);
    member.read_ = [](const Field& row, const nlohmann::json& value, void* owner) {
      Alternative made{};
      read_members(row, value, made);
      *static_cast<Variant*>(owner) = std::move(made);
    };
    member.equal_ = [](void*, void*) { return true; };
    return member;
  }

  explicit operator bool() const { return owner_ != nullptr; }
  template <class Owner>
  bool is_of() const {
    return owner_ != nullptr && *owner_ == typeid(Owner);
  }
  /// Requires is_of<Owner>().
  template <class Owner>
  void read(const Field& row, const nlohmann::json& value, Owner& out) const {
    read_(row, value, &out);
  }
  /// True if `object` has another value there than a structure that nothing was read into. Requires is_of<Owner>().
  template <class Owner>
  bool is_changed(Owner object) const {
    Owner untouched{};
    return !equal_(&object, &untouched);
  }

 private:
  const std::type_info* owner_ = nullptr;  // not owned: a type's
  std::function<void(const Field&, const nlohmann::json&, void*)> read_;
  std::function<bool(void*, void*)> equal_;
};

}  // namespace ringsim::scenarios
