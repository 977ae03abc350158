// KeyIndex against a map from keys to indices.
#include "sim/base/key_index.hpp"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <vector>

namespace key_index_test {

using namespace ringsim;

namespace {

struct Element {
  std::uint64_t key = 0;
};

/// Of three kinds: any number; numbers that could be indices; numbers whose low 40 bits are 0, which without mixing all
/// fall into one place of the table.
std::uint64_t some_key(std::mt19937_64& random) {
  const std::uint64_t kind = random() % 3;
  return kind == 0 ? random() : kind == 1 ? random() % 10'000 : random() % 10'000 << 40;
}

/// Elements in a container, their index, and the same as a map.
template <class Container>
struct Both {
  static constexpr std::uint32_t none = KeyIndex<Container, &Element::key>::none;

  Container elements;
  KeyIndex<Container, &Element::key> index{elements};
  std::map<std::uint64_t, std::uint32_t> indices;

  /// Does nothing if an element with that key is known.
  void add(std::uint64_t key) {
    const auto next = static_cast<std::uint32_t>(elements.size());
    if (!indices.emplace(key, next).second) return;
    elements.push_back({key});
    index.insert(next);
  }
  void clear() {
    index.clear();
    indices.clear();
  }
  void check(std::uint64_t key) const {
    CAPTURE(key);
    const auto expected = indices.find(key);
    REQUIRE(index.find(key) == (expected == indices.end() ? none : expected->second));
  }
  void check_all() const {
    for (const auto& known : indices) check(known.first);
  }
};

// A vector moves its elements when it grows, a deque does not; the simulator indexes both. With 5000 elements the table
// grows a dozen times. All keys are checked whenever the number of elements has doubled, so that the time stays linear.
template <class Container>
void grow(std::uint64_t seed) {
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Both<Container> both;
  std::size_t next_check = 1;
  while (both.elements.size() < 5000) {
    both.add(some_key(random));
    both.check(both.elements.back().key);
    both.check(some_key(random));  // mostly of no element
    if (both.elements.size() < next_check) continue;
    both.check_all();
    next_check *= 2;
  }
  both.check_all();
  for (int i = 0; i < 5000; ++i) both.check(some_key(random));
}

// 3000 elements stay in the container. Then every second of their keys comes again, and after each of them two other
// keys, so that indices differ by more than a constant.
template <class Container>
void start_again(std::uint64_t seed) {
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  Both<Container> both;
  while (both.elements.size() < 3000) both.add(some_key(random));
  std::vector<std::uint64_t> old_keys;
  for (const Element& element : both.elements) old_keys.push_back(element.key);

  both.clear();
  for (const std::uint64_t key : old_keys) REQUIRE(both.index.find(key) == Both<Container>::none);
  for (std::size_t i = 0; i < old_keys.size(); i += 2) {
    both.add(old_keys[i]);
    both.check(old_keys[i]);
    both.add(some_key(random));
    both.add(some_key(random));
  }
  both.check_all();
  for (const std::uint64_t key : old_keys) both.check(key);
}

}  // namespace

TEST_CASE("elements are found by their keys while their container grows, and unknown keys are not found") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    grow<std::vector<Element>>(seed);
    grow<std::deque<Element>>(seed);
  }
}

TEST_CASE("after clear() an element that is still in the container is not found, but a new one with its key is") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    start_again<std::vector<Element>>(seed);
    start_again<std::deque<Element>>(seed);
  }
}

TEST_CASE("only elements that were inserted are found") {
  std::vector<Element> elements{{7}, {0}, {UINT64_MAX}, {2}};
  KeyIndex<std::vector<Element>, &Element::key> index(elements);
  const std::uint32_t none = index.none;
  for (const std::uint64_t key : {std::uint64_t{7}, std::uint64_t{0}, UINT64_MAX, std::uint64_t{2}})
    CHECK(index.find(key) == none);
  // Keys at both ends of their range, and 2: the index of one of them, and the key of one that is not inserted.
  for (const std::uint32_t i : {2U, 1U, 0U}) index.insert(i);
  CHECK(index.find(7) == 0);
  CHECK(index.find(0) == 1);
  CHECK(index.find(UINT64_MAX) == 2);
  CHECK(index.find(2) == none);
  CHECK(index.find(1) == none);
}

// The table stores 32 bits of each hash, and looks at an element only where they agree. MixedHash multiplies by an odd
// number, which can be undone, and combines both halves of the product: a product whose halves
// are equal gives 32 bits of 0.
TEST_CASE("keys are distinguished where the stored part of their hashes is the same") {
  std::uint64_t inverse = 1;  // of the factor, by Newton's method: each round doubles the bits that are right
  for (int round = 0; round < 6; ++round) inverse *= 2 - 0x9E3779B97F4A7C15U * inverse;
  const auto key_of = [inverse](std::uint64_t half) { return (half << 32 | half) * inverse; };
  std::vector<Element> elements;
  KeyIndex<std::vector<Element>, &Element::key> index(elements);
  for (std::uint32_t i = 0; i < 50; ++i) {
    elements.push_back({key_of(std::uint64_t{2} * i)});
    REQUIRE(static_cast<std::uint32_t>(MixedHash{}(elements.back().key)) == 0);
    index.insert(i);
  }
  for (std::uint32_t i = 0; i < 50; ++i) {
    CAPTURE(i);
    CHECK(index.find(key_of(std::uint64_t{2} * i)) == i);
    CHECK(index.find(key_of(std::uint64_t{2} * i + 1)) == index.none);
  }
}

// As LaneRunner does with its mailboxes.
TEST_CASE("elements that were moved to the front are found there once they are inserted again") {
  std::deque<Element> elements;
  KeyIndex<std::deque<Element>, &Element::key> index(elements);
  for (std::uint32_t i = 0; i < 3000; ++i) {
    elements.push_back({std::uint64_t{i} << 40});
    index.insert(i);
  }
  index.clear();
  for (std::uint32_t i = 0; i < 1000; ++i) elements[i] = elements[std::size_t{3} * i];
  elements.resize(1000);
  for (std::uint32_t i = 0; i < 1000; ++i) index.insert(i);
  for (std::uint32_t i = 0; i < 3000; ++i) {
    CAPTURE(i);
    REQUIRE(index.find(std::uint64_t{i} << 40) == (i % 3 == 0 ? i / 3 : index.none));
  }
}

}  // namespace key_index_test
