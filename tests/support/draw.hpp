// Random numbers for tests: a seed gives the same ones on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>
#include <utility>

namespace ringsim::test {

struct Draw {
  explicit Draw(std::uint64_t seed) : random(seed) {}
  /// Both ends are possible.
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  }
  bool once_in(int n) { return number(1, n) == 1; }
  template <class Array>
  auto one_of(const Array& all) {
    return all[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(std::size(all)) - 1))];
  }
  /// Every order is possible. std::shuffle() gives other orders with other standard libraries.
  template <class Array>
  void shuffle(Array& all) {
    for (std::size_t i = all.size(); i > 1; --i)
      std::swap(all[i - 1], all[static_cast<std::size_t>(number(0, static_cast<std::int64_t>(i) - 1))]);
  }

  std::mt19937_64 random;
};

}  // namespace ringsim::test
