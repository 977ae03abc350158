// A list that is mostly short.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <utility>
#include <vector>

namespace ringsim {

/// As std::vector, but up to N items lie within: a program has millions of such lists, and each allocation costs time
/// twice, and memory.
template <class T, std::uint32_t N>
class Few {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;

  Few() {}  // NOLINT(modernize-use-equals-default): the union has no default
  Few(std::initializer_list<T> items) { assign(items.begin(), items.end()); }
  Few(const std::vector<T>& items) { assign(items.begin(), items.end()); }  // NOLINT(google-explicit-constructor)
  Few(const Few& other) { assign(other.begin(), other.end()); }
  Few(Few&& other) noexcept { take(other); }
  Few& operator=(const Few& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  Few& operator=(Few&& other) noexcept {
    if (this != &other) {
      free();
      take(other);
    }
    return *this;
  }
  ~Few() { free(); }

  template <class Iterator>
  void assign(Iterator first, Iterator last) {
    size_ = 0;
    for (; first != last; ++first) push_back(*first);
  }
  void push_back(const T& item) {
    const T copy = item;  // it may lie within
    if (size_ == capacity_) grow();
    data()[size_++] = copy;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  T* erase(T* at) {
    std::copy(at + 1, end(), at);
    --size_;
    return at;
  }

  friend bool operator==(const Few& a, const Few& b) { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T* data() { return capacity_ > N ? many_ : few_; }
  const T* data() const { return capacity_ > N ? many_ : few_; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& operator[](std::size_t i) { return data()[i]; }
  const T& operator[](std::size_t i) const { return data()[i]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

 private:
  void grow() {
    const std::uint32_t more = 2 * capacity_;
    T* const items = new T[more];
    std::copy(begin(), end(), items);
    free();
    many_ = items;
    capacity_ = more;
  }
  void free() {
    if (capacity_ > N) delete[] many_;
    capacity_ = N;
  }
  void take(Few& other) {
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, N);
    if (capacity_ > N)
      many_ = other.many_;
    else
      std::copy(other.few_, other.few_ + size_, few_);
  }

  std::uint32_t size_ = 0, capacity_ = N;
  union {
    T few_[N];  // if capacity_ is N
    T* many_;
  };
};

}  // namespace ringsim
