// Looking for elements by a key that they have themselves.
#pragma once

#include <tsl/robin_set.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "sim/base/mixed_hash.hpp"

namespace ringsim {

/// The elements of a container by `key`, a member of theirs that is a number: a hash table of their indices, of 12
/// bytes for each place where a map from keys to indices needs 24.
///
/// The container must outlive it, and stay where it is. Keys of elements that were inserted must not change.
template <class Container, auto key>
class KeyIndex {
  // The table is searched for keys and for indices, and only their types say which a number is.
  static_assert(std::is_same_v<decltype(key), std::uint64_t Container::value_type::*>, "keys are std::uint64_t");

 public:
  static constexpr std::uint32_t none = UINT32_MAX;

  explicit KeyIndex(const Container& elements) : known_(0, Hash{{&elements}}, Equal{{&elements}}) {
    known_.max_load_factor(0.8F);
  }
  KeyIndex(const KeyIndex&) = delete;
  KeyIndex& operator=(const KeyIndex&) = delete;

  /// Index of the element with that key; none if there is none.
  std::uint32_t find(std::uint64_t wanted) const {
    const auto found = known_.find(wanted);
    return found == known_.end() ? none : *found;
  }
  /// Requires that no other element has its key.
  void insert(std::uint32_t index) { known_.insert(index); }
  void clear() { known_.clear(); }
  /// Makes room for so many: growing by itself it would put them into place twice.
  void expect(std::size_t n) { known_.reserve(n); }

 private:
  struct KeyOf {
    const Container* elements;
    static std::uint64_t of(std::uint64_t wanted) { return wanted; }
    std::uint64_t of(std::uint32_t index) const { return (*elements)[index].*key; }
  };
  struct Hash : KeyOf {
    std::size_t operator()(auto one) const { return MixedHash{}(this->of(one)); }
  };
  struct Equal : KeyOf {
    using is_transparent = void;
    bool operator()(auto one, auto other) const { return this->of(one) == this->of(other); }
  };
  // A part of each hash is stored, so that most elements need not be looked at.
  tsl::robin_set<std::uint32_t, Hash, Equal, std::allocator<std::uint32_t>, true> known_;
};

}  // namespace ringsim
